"""Resize images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from pipegen.diagnostics.advice import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.fills import require_holds
from pipegen.ops.arguments.sizes import Size, height_width
from pipegen.ops.base import (
    ANY_IMAGE,
    ConstantFill,
    ElementTransform,
    Example,
    Family,
    Traits,
    Transform,
    require_image,
)
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.lowering import pillow_resizing as pillow
from pipegen.ops.lowering.resizing import (
    ANTIALIAS_WEIGHT,
    BLURS_WITH_ANTIALIAS,
    OVERSHOOTS,
    Method,
    cover_size,
    fit_size,
    resize,
    side_size,
)
from pipegen.ops.model import Model
from pipegen.types import INTEGER_RANGES, FeatureType, Interval

if TYPE_CHECKING:
    from pipegen.ops.lowering.pillow_resizing import Filter
    from pipegen.ops.lowering.resizing import Side
    from pipegen.ops.lowering.windows import Box, Sides

LANDSCAPE = FeatureType("image", "uint8", (300, 400, 3), Interval(0, 255))


class EarlierPillow(Model):
    """A filter as earlier versions of Pillow compute it."""

    filter: pillow.Weighting
    """Pillow's name of it: `box`, `bilinear`, `hamming`, `bicubic` or `lanczos`."""
    before: Literal[13]
    """The version before which Pillow gives these pixels: 13."""


class PillowMethod(Model):
    """A filter as Pillow computes it."""

    pillow: pillow.Filter | EarlierPillow
    """Pillow's name of it: `nearest`, `box`, `bilinear`, `hamming`, `bicubic` or `lanczos`; or `{filter: FILTER, before: 13}`."""

    def __str__(self) -> str:
        earlier = self.pillow
        return (
            f"{{pillow: {{filter: {earlier.filter}, before: {earlier.before}}}}}"
            if isinstance(earlier, EarlierPillow)
            else f"{{pillow: {earlier}}}"
        )

    @property
    def filter(self) -> Filter:
        """Pillow's name of the filter."""
        return self.pillow.filter if isinstance(self.pillow, EarlierPillow) else self.pillow

    def resize(self, image: tf.Tensor, height: Side, width: Side, box: Box | None = None) -> tf.Tensor:
        """Resizes an image, or the part of it in `box`."""
        chooses_pass = not isinstance(self.pillow, EarlierPillow)
        return pillow.resize_as_pillow(image, height, width, self.filter, box=box, chooses_pass=chooses_pass)


class Resize(ElementTransform):
    """Resizes an image, to a fixed size or so that its shorter or its longer side has a given length.

    `size` with `mode: stretch` changes the proportions; `crop` keeps them, covers the size and cuts off evenly what
    hangs over; `pad` keeps them, fits inside and fills up evenly around. `shorter_side` and `longer_side`
    keep the proportions and let the other side follow, rounded half up; with both, the shorter side has its length unless the longer
    one would be longer than its own (`shorter_side: 800, longer_side: 1333`, as detectors are trained).

    Pixel centres lie at half-integers, as in OpenCV, Pillow and `tf.image.resize`. `nearest` picks the pixels that
    Pillow picks. The dtype stays: whole numbers are rounded half to even and clipped to their range.

    A strong reduction without `antialias` skips pixels and shows moiré; with it, every pixel counts, as in Pillow and
    torchvision, at two to three times the cost. JPEG files need it less: `decode: {scaled: auto}` has brought them within a
    factor of two of the size.

    `method: {pillow: FILTER}` gives what Pillow 13 gives, bit for bit, and so what Keras' `load_img` does: its filters widen by
    themselves where they shrink, values are whole between the two passes, and `mode: crop` cuts whole pixels before it resizes. It is
    for parity, with `decode: {jpeg: accurate}`, and takes several times as long as `antialias: true`. Pillow 10 to 12 give
    `{pillow: {filter: FILTER, before: 13}}`: they resize along rows first and then along columns, and Pillow 13 the other way round an
    image that loses more than twice as many rows as columns. Values then differ by a level or so, by more where a filter overshoots or
    an image is transparent. Which Pillow is installed changes nothing.

    A mask takes the nearest pixels whatever the `method` is, and `pad` puts its `ignore` around it.
    """

    op = "resize"
    later = frozenset({"longer_side"})
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
    shorter_side: Annotated[int, Field(ge=1, le=32767)] | None = None
    """The length of the output's shorter side in pixels; the proportions stay."""
    longer_side: Annotated[int, Field(ge=1, le=32767)] | None = None
    """The length of the output's longer side in pixels; the proportions stay. With `shorter_side`, the most that it can have."""
    mode: Literal["stretch", "crop", "pad"] = "stretch"
    """How `size` is reached: `stretch` both sides, cover and `crop`, or fit inside and `pad`."""
    method: Method | PillowMethod = "bilinear"
    """How pixels are weighted: `nearest`, `bilinear`, `bicubic`, `area` or `lanczos3`; or `{pillow: FILTER}`,
    or `{pillow: {filter: FILTER, before: 13}}`."""
    antialias: bool = False
    """Let every input pixel count when shrinking; for `bilinear`, `bicubic` and `lanczos3`."""
    fill: ConstantFill = ConstantFill()
    """What `mode: pad` puts around the image, in the units of the image that enters: `{constant: VALUE}`."""

    @model_validator(mode="after")
    def _consistent(self) -> Resize:
        side = "shorter_side" if self.shorter_side is not None else "longer_side" if self.longer_side is not None else None
        if (self.size is None) == (side is None):
            raise ValueError("give either `size`, or `shorter_side`, `longer_side` or both of them")
        if side is not None and self.mode != "stretch":
            raise ValueError(f"`mode: {self.mode}` needs `size`; `{side}` keeps the proportions as it is")
        if self.shorter_side is not None and self.longer_side is not None and self.longer_side < self.shorter_side:
            raise ValueError(f"a `longer_side` of {self.longer_side} is shorter than the `shorter_side` of {self.shorter_side}")
        if "fill" in self.model_fields_set and self.mode != "pad":
            raise ValueError("`fill` is for `mode: pad`")
        if self.antialias and self.method not in BLURS_WITH_ANTIALIAS:
            raise ValueError(f"`antialias` has no effect with `method: {self.method}`; it is for bilinear, bicubic and lanczos3")
        return self

    def traits(self, x: FeatureType) -> Traits:
        stretches = self.size is not None and self.mode == "stretch"
        weight = ANTIALIAS_WEIGHT if self.antialias else 1.0
        if isinstance(self.method, PillowMethod) and self.method.filter != "nearest":
            weight = pillow.WEIGHT
        return Traits(Family.ELEMENT, resizes=True, stretches=stretches, weight=weight)

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        height, width = self._output(x)
        interval = x.interval
        if interval is not None and self._overshoots:
            interval = INTEGER_RANGES.get(x.dtype)
        if self.mode == "pad":
            value = self.fill.constant
            require_holds(x, value, "padded")
            interval = interval.union(Interval(value, value)) if interval else None
        return x.with_(shape=(height, width, x.channels), interval=interval)

    @property
    def _overshoots(self) -> bool:
        return self.method.filter in pillow.OVERSHOOTS if isinstance(self.method, PillowMethod) else self.method in OVERSHOOTS

    def _output(self, x: FeatureType) -> tuple[int | None, int | None]:
        if self.size is not None:
            return height_width(self.size)
        if x.height is None or x.width is None:
            return None, None
        return side_size(x.height, x.width, self.shorter_side, self.longer_side)

    def is_identity(self, x: FeatureType) -> bool:
        return x.height is not None and x.width is not None and self._output(x) == (x.height, x.width)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        height, width = self._output(x)
        if self.antialias or self.method not in BLURS_WITH_ANTIALIAS or None in (height, width, x.height, x.width):
            return ()
        reduction = max(x.height / height, x.width / width)  # type: ignore[operator]
        if reduction <= 2:
            return ()
        message = f"`resize` shrinks {x.height}×{x.width} to {height}×{width} without `antialias`, which skips pixels"
        return (OpError("PG501", message, help=(write("antialias: true", "arguments"), write("method: area", "arguments", "or write {}"))),)

    def on(self, x: FeatureType) -> Transform:
        if not kind_of(x).categorical:
            return self
        return self.model_copy(update={"method": "nearest", "antialias": False, "fill": ConstantFill(constant=x.ignore)})

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
            return self._resized(image, *side_size(height, width, self.shorter_side, self.longer_side))
        size = height_width(self.size)
        if isinstance(self.method, PillowMethod) and self.mode == "crop":
            return self.method.resize(image, *size, box=pillow.centred_box(height, width, size))
        rows, columns = (cover_size if self.mode == "crop" else fit_size)(height, width, size)
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
            return whole, side_size(height, width, self.shorter_side, self.longer_side)
        size = height_width(self.size)
        if self.mode == "stretch":
            return whole, size
        if isinstance(self.method, PillowMethod) and self.mode == "crop":
            return pillow.centred_box(height, width, size), size
        rows, columns = (cover_size if self.mode == "crop" else fit_size)(height, width, size)
        down, across = tf.cast(height, tf.float64) / tf.cast(rows, tf.float64), tf.cast(width, tf.float64) / tf.cast(columns, tf.float64)
        if self.mode == "crop":
            top, left = (rows - size[0]) // 2, (columns - size[1]) // 2
        else:
            top, left = -((size[0] - rows) // 2), -((size[1] - columns) // 2)
        return (tf.cast(top, tf.float64) * down, tf.cast(left, tf.float64) * across, size[0] * down, size[1] * across), size

    def _resized(self, image: tf.Tensor, height: Side, width: Side) -> tf.Tensor:
        if isinstance(self.method, PillowMethod):
            return self.method.resize(image, height, width)
        return resize(image, height, width, self.method, antialias=self.antialias)
