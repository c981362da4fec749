"""Resize images: to a size, to a random one, or a random window to a size."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import BUCKET, ConstantFill, Side, Size, filled, height_width, interpolated, require_holds
from pipegen.ops.arguments.magnitudes import Span, checked, span_range, within
from pipegen.ops.families.crops import RandomSizedCrop
from pipegen.ops.lowering import resizing
from pipegen.ops.lowering.linear import logarithms, uniform
from pipegen.ops.lowering.resizing import Filter
from pipegen.ops.lowering.windows import Box, Sides, Whole, cut, pick, place, whole_between
from pipegen.ops.model import Model
from pipegen.ops.step_bases import ElementTransform, UniformTransform, require_image
from pipegen.ops.traits import ANY_IMAGE, IMAGE_224, Example, Family, Traits, same_type
from pipegen.ops.transform import Transform
from pipegen.types import LARGEST_SIDE, FeatureType, Interval


def _antialiased(step: Any) -> Any:
    if step.antialias and step.method not in resizing.BLURS_WITH_ANTIALIAS:
        raise ValueError(f"`antialias` has no effect with `method: {step.method}`; it is not for `nearest` and `area`")
    return step


class RandomResize(ElementTransform):
    """Resizes each image to a size of its own."""

    random = True
    moves: ClassVar[bool] = True
    only_sizes: ClassVar[bool] = True

    method: resizing.Method = "bilinear"
    """How pixels are weighted: `nearest`, `bilinear`, `bicubic`, `area`, `lanczos3`, `lanczos5`, `gaussian` or
    `mitchellcubic`."""
    antialias: bool = False
    """Use every input pixel when shrinking; not for `nearest` and `area`."""

    _blurs = model_validator(mode="after")(_antialiased)

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.ELEMENT, resizes=True, weight=resizing.ANTIALIAS_WEIGHT if self.antialias else 1.0)

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        return interpolated(x, self.method).with_(shape=(None, None, x.channels))

    def resized(self, image: tf.Tensor, height: Whole, width: Whole) -> tf.Tensor:
        return resizing.resize(image, height, width, self.method, antialias=self.antialias)


LANDSCAPE = FeatureType("image", "uint8", (300, 400, 3), Interval(0, 255))


class EarlierPillow(Model):
    """A filter as earlier versions of Pillow compute it."""

    filter: resizing.Weighting
    """Pillow's name of the filter: `box`, `bilinear`, `hamming`, `bicubic` or `lanczos`."""
    before: Literal[13]
    """The first version of Pillow that gives other pixels: 13."""


class PillowMethod(Model):
    """A filter as Pillow computes it."""

    pillow: resizing.Filter | EarlierPillow
    """Pillow's name of the filter: `nearest`, `box`, `bilinear`, `hamming`, `bicubic` or `lanczos`; or `{filter: FILTER, before: 13}`."""

    def __str__(self) -> str:
        earlier = isinstance(self.pillow, EarlierPillow)
        return f"{{pillow: {{filter: {self.filter}, before: 13}}}}" if earlier else f"{{pillow: {self.filter}}}"

    @property
    def filter(self) -> Filter:
        """Pillow's name of the filter."""
        return self.pillow.filter if isinstance(self.pillow, EarlierPillow) else self.pillow

    def resize(self, image: tf.Tensor, height: Whole, width: Whole, box: Box | None = None) -> tf.Tensor:
        """Resizes an image, or its part in `box`."""
        chooses_pass = not isinstance(self.pillow, EarlierPillow)
        return resizing.resize_as_pillow(image, height, width, self.filter, box=box, chooses_pass=chooses_pass)


class Resize(ElementTransform):
    """Resizes an image, to a fixed size or so that its shorter or its longer side has a given length.

    `size` with `mode: stretch` changes the proportions; `crop` keeps them, covers the size and cuts off the rest evenly; `pad` keeps them,
    fits inside and fills the border evenly. `shorter_side` and `longer_side` keep the proportions: the other side follows, rounded half up.
    With both, the shorter side gets its length unless the longer one would exceed its own (`shorter_side: 800, longer_side: 1333`, as for
    training detectors).

    Pixel centres lie at half-integers, as in OpenCV, Pillow and `tf.image.resize`. `nearest` picks the same pixels as Pillow. The dtype
    stays: whole numbers are rounded half to even and clipped to their range.

    A strong reduction without `antialias` skips pixels and shows moiré; with it, every pixel counts, as in Pillow and torchvision, at two
    to three times the cost. JPEG files need it less: `decode: {scaled: auto}` decodes them at up to twice the size.

    `method: {pillow: FILTER}` gives the pixels of Pillow 13, and so of Keras' `load_img`, bit for bit: filters widen when shrinking, values
    are whole between the two passes, and `mode: crop` cuts whole pixels before it resizes. It is for parity, with
    `decode: {jpeg: accurate}`, and takes several times as long as `antialias: true`. `{pillow: {filter: FILTER, before: 13}}` gives the
    pixels of Pillow 10 to 12: they resize along rows first and then along columns, where Pillow 13 begins with columns for an image that
    loses more than twice as many rows as columns. Values then differ by about one level, and by more where a filter overshoots or an image
    is transparent. The installed version of Pillow does not matter.

    A mask takes the nearest pixels whatever the `method` is, and `pad` puts its `ignore` around it.
    """

    op = "resize"
    moves = True
    only_sizes = True
    examples = (
        Example("resize: {size: 224}", ANY_IMAGE, "uint8[224×224×3] in [0, 255]"),
        Example("resize: {size: [192, 256], mode: pad, fill: {constant: 128}}", ANY_IMAGE, "uint8[192×256×3] in [0, 255]"),
        Example("resize: {shorter_side: 256, method: bicubic, antialias: true}", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
        Example("resize: {shorter_side: 150}", LANDSCAPE, "uint8[150×200×3] in [0, 255]"),
        Example("resize: {longer_side: 200}", LANDSCAPE, "uint8[150×200×3] in [0, 255]"),
        Example("resize: {shorter_side: 200, longer_side: 240}", LANDSCAPE, "uint8[180×240×3] in [0, 255]"),
        Example("resize: {size: 224, method: {pillow: bilinear}}", ANY_IMAGE, "uint8[224×224×3] in [0, 255]"),
        Example("resize: {size: 32, method: {pillow: {filter: lanczos, before: 13}}}", ANY_IMAGE, "uint8[32×32×3] in [0, 255]"),
    )

    size: Size | None = None
    """The output's size in pixels: a square's side, or [height, width]."""
    shorter_side: Side | None = None
    """The length of the output's shorter side in pixels; the proportions stay."""
    longer_side: Side | None = None
    """The length of the output's longer side in pixels; the proportions stay. With `shorter_side`, its greatest length."""
    mode: Literal["stretch", "crop", "pad"] = "stretch"
    """How `size` is reached: `stretch` both sides, cover and `crop`, or fit inside and `pad`."""
    method: resizing.Method | PillowMethod = "bilinear"
    """How pixels are weighted: `nearest`, `bilinear`, `bicubic`, `area`, `lanczos3`, `lanczos5`, `gaussian` or `mitchellcubic`; or
    `{pillow: FILTER}`, or `{pillow: {filter: FILTER, before: 13}}`."""
    antialias: bool = False
    """Use every input pixel when shrinking; not for `nearest` and `area`."""
    fill: ConstantFill = ConstantFill()
    """The border of `mode: pad`, in the units of the incoming values: `{constant: VALUE}`."""

    @model_validator(mode="after")
    def _consistent(self) -> Resize:
        side = "shorter_side" if self.shorter_side is not None else "longer_side" if self.longer_side is not None else None
        if (self.size is None) == (side is None):
            raise ValueError("give either `size`, or `shorter_side`, `longer_side` or both of them")
        if side is not None and self.mode != "stretch":
            raise ValueError(f"`mode: {self.mode}` needs `size`; `{side}` keeps the proportions anyway")
        if self.shorter_side is not None and self.longer_side is not None and self.longer_side < self.shorter_side:
            raise ValueError(f"a `longer_side` of {self.longer_side} is shorter than the `shorter_side` of {self.shorter_side}")
        if "fill" in self.model_fields_set and self.mode != "pad":
            raise ValueError("`fill` needs `mode: pad`")
        return self

    _blurs = model_validator(mode="after")(_antialiased)

    def traits(self, x: FeatureType) -> Traits:
        stretches = self.size is not None and self.mode == "stretch"
        weight = resizing.ANTIALIAS_WEIGHT if self.antialias else 1.0
        if isinstance(self.method, PillowMethod) and self.method.filter != "nearest":
            weight = resizing.WEIGHT
        return Traits(Family.ELEMENT, resizes=True, stretches=stretches, weight=weight)

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        height, width = self._output(x)
        y = interpolated(x, self.method.filter if isinstance(self.method, PillowMethod) else self.method)
        if self.mode == "pad":
            value = self.fill.constant
            require_holds(x, value, "padded")
            y = y.with_(interval=y.interval.union(Interval(value, value)) if y.interval else None)
        return y.with_(shape=(height, width, x.channels))

    def _output(self, x: FeatureType) -> tuple[int | None, int | None]:
        if self.size is not None:
            return height_width(self.size)
        if x.height is None or x.width is None:
            return None, None
        return resizing.side_size(x.height, x.width, self.shorter_side, self.longer_side)

    def is_identity(self, x: FeatureType) -> bool:
        return x.height is not None and x.width is not None and self._output(x) == (x.height, x.width)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        height, width = self._output(x)
        if self.antialias or self.method not in resizing.BLURS_WITH_ANTIALIAS or None in (height, width, x.height, x.width):
            return ()
        reduction = max(x.height / height, x.width / width)  # type: ignore[operator]
        if reduction <= 2:
            return ()
        message = f"`resize` shrinks {x.height}×{x.width} to {height}×{width} without `antialias`, which skips pixels"
        return (OpError("PG501", message, help=(write("antialias: true", "arguments"), write("method: area", "arguments", "or write {}"))),)

    def needed_size(self) -> tuple[int, int] | None:
        if self.size is not None:
            return height_width(self.size)
        side = self.shorter_side or self.longer_side or 0
        return side, side

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        if self.size is not None and self.mode == "stretch":
            return self._resized(image, *height_width(self.size))
        height, width = (tf.shape(image)[i] if image.shape[i] is None else image.shape[i] for i in (0, 1))
        if self.size is None:
            return self._resized(image, *resizing.side_size(height, width, self.shorter_side, self.longer_side))
        size = height_width(self.size)
        if isinstance(self.method, PillowMethod) and self.mode == "crop":
            return self.method.resize(image, *size, box=resizing.centred_box(height, width, size))
        rows, columns = resizing.proportional_size(height, width, size, covers=self.mode == "crop")
        y = self._resized(image, rows, columns)
        if self.mode == "crop":
            y = y[(rows - size[0]) // 2 :, (columns - size[1]) // 2 :][: size[0], : size[1]]
        else:
            top, left = (size[0] - rows) // 2, (size[1] - columns) // 2
            margins = [[top, size[0] - rows - top], [left, size[1] - columns - left], [0, 0]]
            y = tf.pad(y, margins, constant_values=tf.cast(self.fill.constant, y.dtype))
        y.set_shape([*size, image.shape[-1]])
        return y

    def shown(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[Box, Sides]:
        whole = (0, 0, height, width)
        if self.size is None:
            return whole, resizing.side_size(height, width, self.shorter_side, self.longer_side)
        size = height_width(self.size)
        if self.mode == "stretch":
            return whole, size
        if isinstance(self.method, PillowMethod) and self.mode == "crop":
            return resizing.centred_box(height, width, size), size
        rows, columns = resizing.proportional_size(height, width, size, covers=self.mode == "crop")
        down, across = tf.cast(height, tf.float64) / tf.cast(rows, tf.float64), tf.cast(width, tf.float64) / tf.cast(columns, tf.float64)
        if self.mode == "crop":
            top, left = (rows - size[0]) // 2, (columns - size[1]) // 2
        else:
            top, left = -((size[0] - rows) // 2), -((size[1] - columns) // 2)
        return (tf.cast(top, tf.float64) * down, tf.cast(left, tf.float64) * across, size[0] * down, size[1] * across), size

    def _resized(self, image: tf.Tensor, height: Whole, width: Whole) -> tf.Tensor:
        if isinstance(self.method, PillowMethod):
            return self.method.resize(image, height, width)
        return resizing.resize(image, height, width, self.method, antialias=self.antialias)


class ScaleJitter(UniformTransform, RandomResize):
    """Resizes an image by a random factor, then cuts a window of fixed size out of it or pads it: large-scale jittering (Ghiasi et al.,
    Simple Copy-Paste, CVPR 2021).

    At a `scale` of 1 the image just fits inside `size`; the factor is drawn uniformly, the proportions stay, and sides are rounded half up.
    If the image is then larger than the output, the window is placed uniformly; if it is smaller, it lies at the top left and `fill` shows
    below it and on its right. It is `ScaleJitter` and `FixedSizeCrop` of torchvision's references, which draw one number for the window's
    row and column.

    On the other splits, `resize: {mode: pad}` to the same size replaces it.
    """

    op = "scale_jitter"
    draws = 3
    examples = (
        Example("scale_jitter: {size: 640}", ANY_IMAGE, "uint8[640×640×3] in [0, 255]"),
        Example(
            "scale_jitter: {size: [384, 512], scale: [0.8, 1.25], antialias: true, fill: {constant: 114}}",
            ANY_IMAGE,
            "uint8[384×512×3] in [0, 255]",
        ),
    )

    size: Size
    """The output's size in pixels: a square's side, or [height, width]."""
    scale: Annotated[Span, within(0.01, 10)] = (0.1, 2.0)
    """The range of the factor on the largest size that fits inside the output: 2 shows a quarter of such an image."""
    fill: ConstantFill = ConstantFill()
    """The padding, in the units of the incoming values: `{constant: VALUE}`."""

    def infer(self, x: FeatureType) -> FeatureType:
        return filled(super().infer(x).with_(shape=(*height_width(self.size), x.channels)), self.fill)

    def needed_size(self) -> tuple[int, int] | None:
        height, width = (min(math.ceil(side * span_range(self.scale)[1]), LARGEST_SIDE) for side in height_width(self.size))
        return height, width

    def evaluation_form(self) -> tuple[Transform, ...]:
        method, antialias, feature = self.method, self.antialias, self.feature
        return (Resize(size=self.size, mode="pad", method=method, antialias=antialias, fill=self.fill, feature=feature),)

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`scale`; the size that the image is resized to, `rows` and `columns`; and the window in it, `top` and `left`, in pixels."""
        (rows, columns), window = self._placed(u, tf.convert_to_tensor(shape[0]), tf.convert_to_tensor(shape[1]))
        return self.drawn(u) | {"rows": rows, "columns": columns, "top": window[..., 0], "left": window[..., 1]}

    def _placed(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[Sides, tf.Tensor]:
        """The size that images are resized to, int32 `(...)` each, and the window in them, int32 `(..., 4)`."""
        size = height_width(self.size)
        before = [tf.cast(side, tf.float64) for side in (height, width)]
        factor = self.drawn(u)["scale"] * tf.minimum(size[0] / before[0], size[1] / before[1])
        rows, columns = (tf.maximum(tf.cast(tf.floor(side * factor + 0.5), tf.int32), 1) for side in before)
        top, left = (pick(u[..., i + 1], tf.maximum(side - size[i], 0)) for i, side in enumerate((rows, columns)))
        return (rows, columns), place(top, left, *size, u)

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        shape = tf.shape(image)
        (rows, columns), window = self._placed(u, shape[0], shape[1])
        y = cut(self.resized(image, rows, columns), window, self.fill)
        y.set_shape([*height_width(self.size), image.shape[-1]])
        return y

    def shown(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[Box, Sides]:
        size = height_width(self.size)
        (rows, columns), window = self._placed(u, height, width)
        down, across = (tf.cast(side, tf.float64) / tf.cast(n, tf.float64) for side, n in ((height, rows), (width, columns)))
        top, left = (tf.cast(window[..., i], tf.float64) for i in (0, 1))
        return (top * down, left * across, size[0] * down, size[1] * across), size


class RandomShorterSide(RandomResize):
    """Resizes an image so that its shorter side has a length drawn from a list or a range; the proportions stay.

    All lengths are equally likely. The other side follows, rounded half up; if it would exceed `longer_side`, it gets that length, and the
    shorter side follows. Detectors are trained with it (`sizes: [640, 672, 704, 736, 768, 800], longer_side: 1333`), and with a
    `random_crop` after it, so were VGG and ResNet (`between: [256, 480]`).

    On the other splits, `resize` to the greatest of the lengths replaces it.
    """

    op = "random_shorter_side"
    draws = 1
    examples = same_type(
        "random_shorter_side: {sizes: [640, 704, 768, 800], longer_side: 1333}",
        "random_shorter_side: {between: [256, 480], antialias: true}",
        given=ANY_IMAGE,
    )

    sizes: Annotated[tuple[Side, ...], Field(min_length=1)] | None = None
    """The lengths that the shorter side can have, in pixels."""
    between: tuple[Side, Side] | None = None
    """The least and the greatest length in pixels; all whole numbers between them are equally likely."""
    longer_side: Side | None = None
    """The greatest length of the longer side, in pixels."""

    @model_validator(mode="after")
    def _one_form(self) -> RandomShorterSide:
        if (self.sizes is None) == (self.between is None):
            raise ValueError("give either `sizes` or `between`")
        if self.between is not None and self.between[0] > self.between[1]:
            raise ValueError(f"`between` is [least, greatest], got [{self.between[0]}, {self.between[1]}]")
        if self.longer_side is not None and self.longer_side < self._greatest():
            raise ValueError(f"a `longer_side` of {self.longer_side} is shorter than a shorter side of {self._greatest()}")
        return self

    def _greatest(self) -> int:
        return max(self.sizes or self.between or ())

    def needed_size(self) -> tuple[int, int] | None:
        return self._greatest(), self._greatest()

    def evaluation_form(self) -> tuple[Transform, ...]:
        side, most = self._greatest(), self.longer_side
        return (Resize(shorter_side=side, longer_side=most, method=self.method, antialias=self.antialias, feature=self.feature),)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`shorter_side`: the length in pixels, int32 `(...)`."""
        if self.sizes is not None:
            return {"shorter_side": tf.gather(tf.constant(self.sizes), pick(u[..., 0], tf.constant(len(self.sizes) - 1)))}
        least, greatest = self.between or (0, 0)
        return {"shorter_side": least + pick(u[..., 0], tf.constant(greatest - least))}

    def _size(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> Sides:
        side = tf.reshape(self.drawn(u)["shorter_side"], [-1])[0]  # images of several sizes come one by one
        return resizing.side_size(height, width, side, self.longer_side)

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        shape = tf.shape(image)
        return self.resized(image, *self._size(u, shape[0], shape[1]))

    def shown(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[Box, Sides]:
        return (0, 0, height, width), self._size(u, height, width)


TRIES = 10  # the number of windows that are drawn; if none fits, the central one is taken


def _has_pixels(area: tuple[float, float], name: str) -> None:
    if area[0] == 0:
        raise ValueError(f"`{name}` starts at 0, which is a window without pixels")


class RandomResizedCrop(RandomSizedCrop):
    """Cuts out a window of random area and shape, then resizes it to a fixed size.

    The algorithm is that of Inception (Szegedy et al. 2014) as implemented in torchvision: draw an area, uniform in `area` as a fraction of
    the image's, and an aspect ratio (width / height), uniform in the logarithm of `aspect_ratio`; the window is √(area · ratio) wide and
    √(area / ratio) high, rounded half to even. The first of 10 such windows that fits into the image is placed uniformly. If none fits, the
    window is the largest one in the middle whose aspect ratio is in range.

    With `rows` in place of `area`, the window's height in pixels is drawn, and its width is height · ratio, rounded down: Albumentations'
    `RandomSizedCrop`, whose ratio is one number (`aspect_ratio: [1, 1]`).

    It draws 22 numbers: area (or rows) and ratio for each of the 10 windows, then top and left of the chosen one.

    On the other splits, the shorter side is resized to size · 256 / 224 and `center_crop` cuts out the middle; for a size that is not
    square, the image is resized to cover the size · 256 / 224 (`mode: crop`) instead. With a `probability` below 1, nothing replaces it:
    images then have the size before it.
    """

    op = "random_resized_crop"
    draws = 2 * TRIES + 2
    examples = (
        Example("random_resized_crop: {size: 224}", ANY_IMAGE, "uint8[224×224×3] in [0, 255]"),
        Example("random_resized_crop: {size: [96, 128], area: [0.25, 1.0], method: bicubic}", ANY_IMAGE, "uint8[96×128×3] in [0, 255]"),
        Example("random_resized_crop: {size: 224, rows: [140, 224], probability: 0.4}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    size: Size
    """The output's size in pixels: a square's side, or [height, width]."""
    area: Annotated[Span, within(0, 1), checked(_has_pixels)] = (0.08, 1.0)
    """The range of the window's area, as a fraction of the image's."""
    rows: tuple[Side, Side] | None = None
    """The least and the greatest height of the window in pixels, in place of `area`; all whole numbers between them are equally likely."""
    aspect_ratio: Annotated[Span, within(0.01, 100)] = (3 / 4, 4 / 3)
    """The range of the window's width divided by its height, before it is resized."""
    method: resizing.Method = "bilinear"
    """How pixels are weighted: `nearest`, `bilinear`, `bicubic`, `area`, `lanczos3`, `lanczos5`, `gaussian` or
    `mitchellcubic`."""
    antialias: bool = False
    """Use every pixel of the window when shrinking; not for `nearest` and `area`."""

    _blurs = model_validator(mode="after")(_antialiased)

    @model_validator(mode="after")
    def _one_form(self) -> RandomResizedCrop:
        if self.rows is not None and "area" in self.model_fields_set:
            raise ValueError("give either `area` or `rows`")
        if self.rows is not None and self.rows[0] > self.rows[1]:
            raise ValueError(f"`rows` is [least, greatest], got [{self.rows[0]}, {self.rows[1]}]")
        return self

    def infer(self, x: FeatureType) -> FeatureType:
        return interpolated(super().infer(x), self.method) if not self.idle() else super().infer(x)

    def meaning(self) -> dict[str, Any]:
        return {name: value for name, value in super().meaning().items() if name != ("rows" if self.rows is None else "area")}

    def resizes(self) -> bool:
        return True

    def traits(self, x: FeatureType) -> Traits:
        plain = self.method == "bilinear" and not self.antialias
        return replace(super().traits(x), weight=resizing.ANTIALIAS_WEIGHT if self.antialias else 1.0, bilinear=plain)

    def needed_size(self) -> tuple[int, int] | None:
        return self.output_size()

    def replacement(self) -> tuple[Transform, ...]:
        from pipegen.ops.transforms.crop import CenterCrop

        if self.size == BUCKET:  # not known yet, and so neither is a larger size
            return Resize(size=self.size, mode="crop", feature=self.feature), CenterCrop(size=self.size, feature=self.feature)
        h, w = self.output_size()
        larger = min(round(h * 256 / 224), LARGEST_SIDE), min(round(w * 256 / 224), LARGEST_SIDE)
        method, antialias, feature = self.method, self.antialias, self.feature
        if h == w:
            first = Resize(shorter_side=larger[0], method=method, antialias=antialias, feature=feature)
        else:
            first = Resize(size=larger, mode="crop", method=method, antialias=antialias, feature=feature)
        return first, CenterCrop(size=self.size, feature=feature)

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        # A new axis for the ten tries: height and width may each be one number or one for each image.
        most_h, most_w = height[..., None], width[..., None]
        rows, columns = tf.cast(most_h, tf.float64), tf.cast(most_w, tf.float64)
        low, high = span_range(self.aspect_ratio)
        ratio = tf.exp(uniform(u[..., 1 : 2 * TRIES : 2], logarithms((low, high))))
        if self.rows is not None:
            h = whole_between(u[..., 0 : 2 * TRIES : 2], self.rows)
            w = tf.cast(tf.floor(tf.cast(h, tf.float64) * ratio + 1e-6), tf.int32)  # the exponential may be just below the ratio
        else:
            area = uniform(u[..., 0 : 2 * TRIES : 2], span_range(self.area)) * (rows * columns)
            w = tf.cast(tf.round(tf.sqrt(area * ratio)), tf.int32)
            h = tf.cast(tf.round(tf.sqrt(area / ratio)), tf.int32)
        fits = (h >= 1) & (w >= 1) & (h <= most_h) & (w <= most_w)
        # The fallback is one more try, which always fits: the image in the middle, with its aspect ratio clamped.
        middle_h = tf.minimum(most_h, tf.cast(tf.round(columns / low), tf.int32))
        middle_w = tf.minimum(most_w, tf.cast(tf.round(rows * high), tf.int32))
        none = tf.zeros_like(h[..., :1])
        h = tf.concat([h, none + tf.maximum(middle_h, 1)], axis=-1)
        w = tf.concat([w, none + tf.maximum(middle_w, 1)], axis=-1)
        chosen = tf.argmax(tf.cast(tf.concat([fits, none == 0], axis=-1), tf.int32), axis=-1, output_type=tf.int32)
        one = tf.one_hot(chosen, TRIES + 1, dtype=tf.int32)
        h, w = tf.reduce_sum(h * one, axis=-1), tf.reduce_sum(w * one, axis=-1)
        fell_back = chosen == TRIES
        top = tf.where(fell_back, (height - h) // 2, pick(u[..., -2], height - h))
        left = tf.where(fell_back, (width - w) // 2, pick(u[..., -1], width - w))
        return place(top, left, h, w, u)

    def finish(self, window: tf.Tensor) -> tf.Tensor:
        return resizing.resize(window, *self.output_size(), self.method, antialias=self.antialias)
