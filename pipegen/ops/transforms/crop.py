"""Cut windows out of images, at a place, at random or by their boxes, keypoints or masks; and put borders around them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Size, filled, height_width
from pipegen.ops.arguments.magnitudes import Probability, Span, span_range, within
from pipegen.ops.families.crops import ItemCrop, PaddedWindow, SizedCrop, WholeOrItemCrop
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.windows import holds, inside, pick, place
from pipegen.ops.model import Model
from pipegen.ops.step_bases import require_image
from pipegen.ops.traits import ANY_IMAGE, IMAGE_224, Example, Family, Traits, same_type
from pipegen.ops.transform import Transform
from pipegen.types import LARGEST_SIDE, FeatureType, Interval, times

Pixels = Annotated[int, Field(ge=0, le=LARGEST_SIDE)]


class Borders(Model):
    """A number of pixels for each border."""

    top: Pixels = 0
    """Rows above the image, in pixels."""
    bottom: Pixels = 0
    """Rows below the image, in pixels."""
    left: Pixels = 0
    """Columns on the left of the image, in pixels."""
    right: Pixels = 0
    """Columns on the right of the image, in pixels."""


class Pad(PaddedWindow):
    """Puts a border around an image: up to a size, up to at least a size, of a number of pixels, or up to a multiple of a divisor.

    `position` places the image on the larger canvas; in the `center`, an odd pixel is added below and on the right. An image larger than
    `size` is an error, which names the file if it is found while running. Pixels are copied unchanged.

    `at_least`, `padding` and `divisor` can leave images with different sizes; a later step then has to make them one size.
    """

    op = "pad"
    examples = (
        Example("pad: {padding: 24}", IMAGE_224, "uint8[272×272×3] in [0, 255]"),
        Example("pad: {size: 256}", IMAGE_224, "uint8[256×256×3] in [0, 255]"),
        Example("pad: {size: [640, 960], position: top_left, fill: {constant: 114}}", ANY_IMAGE, "uint8[640×960×3] in [0, 255]"),
        Example("pad: {padding: 4, fill: reflect}", IMAGE_224, "uint8[232×232×3] in [0, 255]"),
        Example("pad: {padding: {top: 2, right: 8}}", IMAGE_224, "uint8[226×232×3] in [0, 255]"),
        Example("pad: {at_least: 224}", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
        Example("pad: {divisor: 32}", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
    )

    size: Size | None = None
    """The output's size in pixels: a square's side, or [height, width]."""
    at_least: Size | None = None
    """The least size of the output in pixels: a square's side, or [height, width]. A shorter side is padded, a longer one stays."""
    padding: Pixels | tuple[Pixels, Pixels] | Borders | None = None
    """The width of the border in pixels: on every side, [above and below, left and right], or a map of `top`, `bottom`, `left` and
    `right`."""
    divisor: Size | None = None
    """The divisor of both sides of the output, or [of the height, of the width]; sides are the least multiples that hold the image."""
    position: Literal["center", "top_left", "top_right", "bottom_left", "bottom_right"] = "center"
    """The place of the image on a canvas of `size`, `at_least` or `divisor`."""

    @model_validator(mode="after")
    def _one_form(self) -> Pad:
        if sum(given is not None for given in (self.size, self.at_least, self.padding, self.divisor)) != 1:
            raise ValueError("give one of `size`, `at_least`, `padding` and `divisor`")
        if self.padding is not None and "position" in self.model_fields_set:
            raise ValueError("`position` needs `size`, `at_least` or `divisor`; `padding` has a width for each side")
        return self

    def _borders(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The pixels above and below, and on the left and right."""
        if isinstance(self.padding, Borders):
            return (self.padding.top, self.padding.bottom), (self.padding.left, self.padding.right)
        rows, columns = self.padding if isinstance(self.padding, tuple) else (self.padding or 0,) * 2
        return (rows, rows), (columns, columns)

    def output_size(self) -> tuple[int | None, int | None]:
        return height_width(self.size) if self.size is not None else (None, None)

    def _side(self, side: int | tf.Tensor, axis: int) -> int | tf.Tensor:
        """The length of a side of the output."""
        if self.size is not None:
            return height_width(self.size)[axis]
        if self.at_least is not None:
            least = height_width(self.at_least)[axis]
            return max(side, least) if isinstance(side, int) else tf.maximum(side, least)
        if self.divisor is not None:
            divisor = height_width(self.divisor)[axis]
            return (side + divisor - 1) // divisor * divisor
        return side + sum(self._borders()[axis])

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        before = x.shape[:2]
        after = [self._side(side, axis) if side is not None else self.output_size()[axis] for axis, side in enumerate(before)]
        if any(n is not None and m is not None and n > m for n, m in zip(before, after, strict=True)):
            message = f"`pad` makes images of {times(after)}, and gets one of {times(before)}"
            raise OpError("PG258", message, field="size", help="resize to at most that size first, or pad to a larger one")
        return filled(x.with_(shape=(*after, x.channels)), self.fill)

    def traits(self, x: FeatureType) -> Traits:
        traits = super().traits(x)
        known = None not in (x.height, x.width)
        return Traits(Family.GEOMETRIC if known else Family.ELEMENT, crops=True, pads=True, moves_pixels_only=traits.moves_pixels_only)

    def is_identity(self, x: FeatureType) -> bool:
        return None not in (x.height, x.width) and self.infer(x).shape == x.shape

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        if self.size is not None:
            holds(height_width(self.size), height, width)
        starts, sides = [], []
        for axis, side in enumerate((height, width)):
            sides.append(self._side(side, axis))
            if self.padding is not None:
                starts.append(-self._borders()[axis][0])
            elif self.position == "center":
                starts.append(-((sides[-1] - side) // 2))
            else:
                first = self.position.split("_")[axis] in ("top", "left")
                starts.append(0 if first else side - sides[-1])
        return place(starts[0], starts[1], sides[0], sides[1], u)


class RandomZoomOut(PaddedWindow):
    """Puts an image at a random place of a larger canvas: the expansion for training SSD (Liu et al. 2016).

    Height and width of the canvas are those of the image times a factor drawn uniformly from `canvas`, rounded down; all places at which
    the canvas holds the whole image are equally likely. Pixels are copied. Images leave it with different sizes, so a later step has to
    make them one size. On the other splits nothing replaces it.
    """

    op = "random_zoom_out"
    random = True
    handles_probability = True
    draws = 4
    examples = same_type("random_zoom_out", "random_zoom_out: {canvas: [1, 2], fill: {constant: 114}, probability: 1}", given=ANY_IMAGE)

    canvas: Annotated[Span, within(1, 100)] = (1.0, 4.0)
    """The range of the canvas's height and width, as a factor of the image's."""
    probability: Probability = 0.5
    """The share of examples that the step changes."""

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        return x if self.idle() else y

    def idle(self) -> bool:
        return super().idle() or span_range(self.canvas) == (1, 1)

    def is_identity(self, x: FeatureType) -> bool:
        return self.idle()

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`canvas`, which is 1 for an unchanged image."""
        return {"canvas": tf.where(u[..., 3] < self.probability, uniform(u[..., 0], span_range(self.canvas)), tf.ones_like(u[..., 0]))}

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`canvas`, and the window, which extends beyond the image."""
        return self.drawn(u) | super().drawn_on(u, shape)

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        factor = self.drawn(u)["canvas"]
        rows, columns = (tf.cast(tf.floor(tf.cast(side, tf.float64) * factor), tf.int32) for side in (height, width))
        return place(-pick(u[..., 1], rows - height), -pick(u[..., 2], columns - width), rows, columns, u)


class Crop(SizedCrop):
    """Cuts out the window at a place in pixels, the same for every image.

    An image that does not hold the window is an error, which names the file if it is found while running. `center_crop` and `corner_crop`
    choose the place by the image's size, `random_crop` draws it.
    """

    op = "crop"
    examples = (
        Example("crop: {top: 2, left: 10, size: 160}", IMAGE_224, "uint8[160×160×3] in [0, 255]"),
        Example("crop: {size: [180, 240]}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    top: Pixels = 0
    """The window's first row, counted from 0."""
    left: Pixels = 0
    """The window's first column, counted from 0."""

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        h, w = self.output_size()
        if (x.height is not None and self.top + h > x.height) or (x.width is not None and self.left + w > x.width):
            message = f"`{self.op}` reaches to row {self.top + h} and column {self.left + w} of an image of {times(x.shape[:2])}"
            raise OpError("PG206", message, field="size", help="use a smaller window, or one further up and to the left")
        return y

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        h, w = self.output_size()
        inside((self.top + h, self.left + w), height, width)
        return place(self.top, self.left, h, w, u)


class CenterCrop(SizedCrop):
    """Cuts a window out of the middle: top = ⌊(H - h) / 2⌋, left = ⌊(W - w) / 2⌋.

    An image smaller than the window is an error, which names the file if it is found while running.
    """

    op = "center_crop"
    examples = (
        Example("center_crop: {size: 160}", IMAGE_224, "uint8[160×160×3] in [0, 255]"),
        Example("center_crop: {size: [180, 240]}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        h, w = self.output_size()
        inside((h, w), height, width)
        return place((height - h) // 2, (width - w) // 2, h, w, u)


class CornerCrop(SizedCrop):
    """Cuts a window out of one corner.

    With `center_crop` it gives the five crops of AlexNet (Krizhevsky et al. 2012), torchvision's `FiveCrop`: as branches of `views` with
    `when: all`, each is an input of its own on every split. Five more branches with a `flip` give ten crops.

    An image smaller than the window is an error, which names the file if it is found while running.
    """

    op = "corner_crop"
    examples = (
        Example("corner_crop: {size: 160, corner: top_left}", IMAGE_224, "uint8[160×160×3] in [0, 255]"),
        Example("corner_crop: {size: [180, 240], corner: bottom_right}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    corner: Literal["top_left", "top_right", "bottom_left", "bottom_right"]
    """The corner."""

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        h, w = self.output_size()
        inside((h, w), height, width)
        row, column = self.corner.split("_")
        return place(0 if row == "top" else height - h, 0 if column == "left" else width - w, h, w, u)


SMALL = FeatureType("image", "uint8", (32, 32, 3), Interval(0, 255))


class RandomCrop(SizedCrop, PaddedWindow):
    """Cuts out a window of fixed size; each of its (H - h + 1) · (W - w + 1) places is equally likely.

    `padding` puts a border around the image first, as recipes for CIFAR do (`random_crop: {size: 32, padding: 4}`); with `as_needed`, an
    image smaller than the window lies at a random place in it. The border and the window take one copy.

    On the other splits, `center_crop` of the same size replaces it, after a `pad` to at least that size if it has a `padding`. An image
    that is smaller than the window even with its border is an error, which names the file if it is found while running.
    """

    op = "random_crop"
    random = True
    draws = 2
    examples = (
        Example("random_crop: {size: 200}", IMAGE_224, "uint8[200×200×3] in [0, 255]"),
        Example("random_crop: {size: [180, 240]}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
        Example("random_crop: {size: 32, padding: 4}", SMALL, "uint8[32×32×3] in [0, 255]"),
        Example("random_crop: {size: [180, 240], padding: as_needed, fill: reflect}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    padding: Pixels | tuple[Pixels, Pixels] | Literal["as_needed"] | None = None
    """The width in pixels of a border around the image: on every side, or [above and below, left and right]; or `as_needed`, as far as the
    window is larger than the image."""

    @model_validator(mode="after")
    def _consistent(self) -> RandomCrop:
        if "fill" in self.model_fields_set and not self.pads():
            raise ValueError("`fill` needs `padding`")
        return self

    def pads(self) -> bool:
        return self.padding == "as_needed" or any(self._border())

    def _border(self) -> tuple[int, int]:
        if self.padding is None or isinstance(self.padding, str):
            return 0, 0
        return height_width(self.padding)

    def room(self, x: FeatureType) -> tuple[int | None, int | None]:
        if self.padding == "as_needed":
            return None, None
        height, width = (side + 2 * more if side is not None else None for side, more in zip(x.shape[:2], self._border(), strict=True))
        return height, width

    def meaning(self) -> dict[str, Any]:
        """Writes an equal border as one number."""
        rows, columns = self._border()
        border = self.padding if isinstance(self.padding, str) else rows if rows == columns else [rows, columns]
        return super().meaning() | {"padding": border}

    def evaluation_form(self) -> tuple[Transform, ...]:
        pad = (Pad(at_least=self.size, fill=self.fill, feature=self.feature),) if self.pads() else ()
        return (*pad, CenterCrop(size=self.size, feature=self.feature))

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        size, border = self.output_size(), self._border()
        if self.padding != "as_needed":
            inside(size, height, width, border)
        starts = []
        for axis, side in enumerate((height, width)):
            room = side + 2 * border[axis] - size[axis]
            first = pick(u[..., axis], tf.abs(room))
            starts.append((first if self.padding != "as_needed" else tf.where(room < 0, -first, first)) - border[axis])
        return place(starts[0], starts[1], *size, u)


class RandomBoxCrop(WholeOrItemCrop):
    """Cuts out a window around one of the boxes of the image, each as likely: Albumentations' `RandomCropNearBBox`.

    Each edge of the window is that of the box, moved outwards or inwards by a share of the box's side drawn uniformly, rounded outwards to
    whole pixels and clipped to the image. An image without boxes stays whole. Other boxes are cut as by any crop.

    It needs boxes on the image, and a later step that makes images one size, such as `resize: {size: 224}`. On the other splits nothing
    replaces it.
    """

    op = "random_box_crop"
    draws = 6
    examples = same_type("random_box_crop", "random_box_crop: {shift: [0, 1], probability: 0.5}", given=ANY_IMAGE)

    shift: Annotated[float, Field(ge=0, le=10)] | tuple[Annotated[float, Field(ge=-0.45)], Annotated[float, Field(le=10)]] = 0.3
    """The share of the box's side by which an edge moves, outwards above 0: 0.3 means from -0.3 to 0.3, a pair is the range. It is at least
    -0.45, so that some of the box remains."""

    def _range(self) -> tuple[float, float]:
        return self.shift if isinstance(self.shift, tuple) else (max(-self.shift, -0.45), self.shift)

    def meaning(self) -> dict[str, object]:
        return super().meaning() | {"shift": list(self._range())}

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`left`, `top`, `right` and `bottom`: the distance of that edge of the window outside the box, as a share of its side."""
        shares = uniform(u[..., 2:6], self._range())
        return dict(zip(("left", "top", "right", "bottom"), tf.unstack(shares, num=4, axis=-1), strict=True))

    def choose(self, u: tf.Tensor, items: tf.Tensor, there: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        shares = tuple(self.drawn(u).values())
        count = tf.reduce_sum(tf.cast(there, tf.int32), -1)
        wanted = tf.cast(tf.floor(u[..., 1] * tf.cast(count, tf.float64)), tf.int32)
        rank = tf.cumsum(tf.cast(there, tf.int32), -1) - 1
        one = tf.cast(there & (rank == wanted[..., None]), tf.float64)
        left, top, right, bottom = (tf.reduce_sum(items[..., i] * one, -1) for i in range(4))
        across, down = right - left, bottom - top
        cuts = (u[..., 0] < self.probability) & (count > 0)

        def edge(at: tf.Tensor, side: tf.Tensor, whole: tf.Tensor) -> tf.Tensor:
            return tf.cast(tf.where(cuts, tf.clip_by_value(at, 0.0, tf.cast(side, tf.float64)), tf.cast(whole, tf.float64)), tf.int32)

        first = edge(tf.floor(left - shares[0] * across), width - 1, 0), edge(tf.floor(top - shares[1] * down), height - 1, 0)
        last = (edge(tf.math.ceil(right + shares[2] * across), width, width), edge(tf.math.ceil(bottom + shares[3] * down), height, height))
        rows, columns = tf.maximum(last[1] - first[1], 1), tf.maximum(last[0] - first[0], 1)
        return place(first[1], first[0], rows, columns, u), tf.ones_like(there)


class RandomBoxSafeCrop(WholeOrItemCrop):
    """Cuts out a random window that holds every box of the image whole: Albumentations' `BBoxSafeRandomCrop`.

    On each side a share of the room between the image's edge and the nearest box is cut off; the four shares are drawn uniformly, and edges
    are rounded outwards to whole pixels. An image without boxes stays whole.

    It needs boxes on the image, and a later step that makes images one size: with `resize: {size: 512}` it is `RandomSizedBBoxSafeCrop`. On
    the other splits nothing replaces it.
    """

    op = "random_box_safe_crop"
    draws = 5
    examples = same_type("random_box_safe_crop", "random_box_safe_crop: {probability: 0.5}", given=ANY_IMAGE)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`left`, `top`, `right` and `bottom`: the share of the room on that side that is cut off."""
        shares = tf.where((u[..., 0] < self.probability)[..., None], u[..., 1:5], tf.zeros_like(u[..., 1:5]))
        return dict(zip(("left", "top", "right", "bottom"), tf.unstack(shares, num=4, axis=-1), strict=True))

    def choose(self, u: tf.Tensor, items: tf.Tensor, there: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        shares = self.drawn(u)
        rows, columns = tf.cast(height, tf.float64), tf.cast(width, tf.float64)
        some = tf.reduce_any(there, -1)
        edges = []
        for i, (name, side) in enumerate((("left", columns), ("top", rows), ("right", columns), ("bottom", rows))):
            if i < 2:
                nearest = tf.reduce_min(tf.where(there, items[..., i], side), -1)
                edges.append(tf.where(some, tf.floor(nearest * shares[name]), 0.0))
            else:
                nearest = tf.reduce_max(tf.where(there, items[..., i], tf.zeros_like(side)), -1)
                edges.append(tf.where(some, tf.math.ceil(side - (side - nearest) * shares[name]), side))
        left, top, right, bottom = (tf.cast(edge, tf.int32) for edge in edges)
        return place(top, left, tf.maximum(bottom - top, 1), tf.maximum(right - left, 1), u), tf.ones_like(there)


TRIES = 50  # the number of windows that are drawn; if none fits, the image stays whole


class RandomIouCrop(WholeOrItemCrop):
    """Cuts out a window whose overlap with some box is at least a number drawn from a list: the crop for training SSD (Liu et al. 2016).

    It draws an overlap (intersection over union) from `overlaps`; 1 leaves the image whole. Then it draws 50 windows, whose height and
    width are uniform in `scale` as fractions of the image's, rounded down, and whose places are uniform. It takes the first window whose
    aspect ratio (width / height) is within `aspect_ratio`, that contains the centre of some box, and whose overlap with one of these boxes
    is large enough; if there is none, the image stays whole. Boxes with their centre outside the window are dropped, and the others are cut
    to it.

    torchvision's `RandomIoUCrop` draws another overlap after every 40 windows until one is found. Here the number of draws is fixed, so
    that the draws of an example do not depend on its batch.

    It needs boxes on the image, and a later step that makes images one size. On the other splits nothing replaces it.
    """

    op = "random_iou_crop"
    draws = 2 + 4 * TRIES
    examples = same_type(
        "random_iou_crop", "random_iou_crop: {overlaps: [0.5, 0.7, 0.9], scale: [0.5, 1], probability: 0.8}", given=ANY_IMAGE
    )

    overlaps: Annotated[tuple[Annotated[float, Field(ge=0, le=1)], ...], Field(min_length=1)] = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
    """The choices of the least intersection over union of the window and some box; 1 leaves the image whole."""
    scale: Annotated[Span, within(0.01, 1)] = (0.3, 1.0)
    """The range of the window's height and width, as fractions of the image's."""
    aspect_ratio: Annotated[Span, within(0.01, 100)] = (0.5, 2.0)
    """The range of the window's width divided by its height."""

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`overlap`, which is 1 for an image that stays whole."""
        overlap = tf.gather(tf.constant(self.overlaps, tf.float64), pick(u[..., 1], tf.constant(len(self.overlaps) - 1)))
        return {"overlap": tf.where(u[..., 0] < self.probability, overlap, tf.ones_like(overlap))}

    def choose(self, u: tf.Tensor, items: tf.Tensor, there: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        overlap = self.drawn(u)["overlap"]
        tries = tf.reshape(u[:, 2:], [-1, TRIES, 4])
        sides = [tf.cast(side, tf.float64) for side in (height, width)]
        rows, columns = (tf.cast(tf.floor(side * uniform(tries[..., i], span_range(self.scale))), tf.int32) for i, side in enumerate(sides))
        top, left = pick(tries[..., 2], height - rows), pick(tries[..., 3], width - columns)
        windows = tf.stack([top, left, rows, columns], -1)
        ratio = tf.cast(columns, tf.float64) / tf.cast(tf.maximum(rows, 1), tf.float64)
        flattest, steepest = span_range(self.aspect_ratio)
        shaped = (ratio >= flattest) & (ratio <= steepest) & (rows > 0) & (columns > 0)
        centred, overlaps = _compared(items, windows)
        inside = centred & there[:, None]
        best = tf.reduce_max(tf.where(inside, overlaps, -tf.ones([], tf.float64)), -1)
        fits = shaped & (best >= overlap[:, None]) & tf.reduce_any(inside, -1) & (overlap < 1)[:, None]
        found = tf.reduce_any(fits, -1)
        first = tf.argmax(tf.cast(fits, tf.int32), -1, output_type=tf.int32)
        chosen = tf.gather(windows, first, batch_dims=1)
        stays = tf.gather(inside, first, batch_dims=1)
        return tf.where(found[:, None], chosen, place(0, 0, height, width, u)), stays | ~found[:, None]


def _compared(items: tf.Tensor, windows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Whether each box has its centre in each of the windows `(n, tries, 4)`, bool `(n, tries, most)`; and their intersection over union,
    float64 of that shape."""
    # Not `windows[..., None, i]`: Grappler replaces a slice of a stack by its input, and loses the new axis.
    top, left, rows, columns = (tf.cast(windows[..., i], tf.float64)[..., None] for i in range(4))
    right, bottom = left + columns, top + rows
    x0, y0, x1, y1 = (items[:, None, :, i] for i in range(4))
    x, y = (x0 + x1) / 2.0, (y0 + y1) / 2.0
    shared = tf.maximum(tf.minimum(x1, right) - tf.maximum(x0, left), 0.0) * tf.maximum(tf.minimum(y1, bottom) - tf.maximum(y0, top), 0.0)
    either = (x1 - x0) * (y1 - y0) + (right - left) * (bottom - top) - shared
    return (x > left) & (x < right) & (y > top) & (y < bottom), shared / tf.maximum(either, 1e-9)


Index = Annotated[int, Field(ge=0, le=255)]


class RandomCropAround(SizedCrop, ItemCrop):
    """Cuts out a window of fixed size that holds a random pixel of an object in a mask: Albumentations' `CropNonEmptyMaskIfExists`.

    The pixel is one of the mask, also of an instance mask, whose class index is neither one of `background` nor the mask's `ignore`; all
    such pixels are equally likely. With boxes it is a pixel of one of the boxes, each box as likely; with keypoints it is one that is not
    absent. The window lies around the pixel, each offset as likely, and is then moved onto the image. Without such a pixel, all windows
    are equally likely, as for `random_crop`.

    On the other splits, `center_crop` of the same size replaces it. An image smaller than the window is an error, which names the file if
    it is found while running.
    """

    op = "random_crop_around"
    led_by: ClassVar[tuple[str, ...]] = ("pixels", "boxes", "points")
    draws = 5
    examples = (
        Example("random_crop_around: {size: 112}", IMAGE_224, "uint8[112×112×3] in [0, 255]"),
        Example("random_crop_around: {size: [180, 240], background: [0, 7]}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    around: str | None = None
    """The feature that shows the objects; by default the first mask of the image, else its boxes, else its keypoints."""
    background: Index | tuple[Index, ...] = 0
    """The class indices of a mask that are not objects: one, or several."""

    def _background(self) -> tuple[int, ...]:
        return self.background if isinstance(self.background, tuple) else (self.background,)

    def meaning(self) -> dict[str, Any]:
        return super().meaning() | {"background": sorted(set(self._background()))}

    def leader(self) -> str | None:
        return self.around

    def evaluation_form(self) -> tuple[Transform, ...]:
        return (CenterCrop(size=self.size, feature=self.feature),)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`above` and `before`: the pixels of the window above and left of the chosen pixel, before it is moved onto the image, int32."""
        height, width = (tf.constant(side - 1) for side in self.output_size())
        return {"above": pick(u[..., 0], height), "before": pick(u[..., 1], width)}

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        size = self.output_size()
        inside(size, height, width)
        return place(pick(u[..., 0], height - size[0]), pick(u[..., 1], width - size[1]), *size, u)

    def choose(self, u: tf.Tensor, items: tf.Tensor, there: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        count = tf.math.count_nonzero(there, axis=-1, dtype=tf.int32)
        one = there & (tf.cumsum(tf.cast(there, tf.int32), -1) - 1 == pick(u[..., 2], count - 1)[..., None])
        left, top, right, bottom = (tf.reduce_sum(tf.where(one, items[..., i], 0.0), -1) for i in range(4))
        x, y = (
            tf.cast(tf.clip_by_value(tf.floor(first + u[..., at] * (last - first)), 0.0, tf.cast(side - 1, tf.float64)), tf.int32)
            for first, last, side, at in ((left, right, width, 3), (top, bottom, height, 4))
        )
        return self._around(u, y, x, count > 0, height, width), tf.ones_like(there)

    def choose_by_pixels(self, u: tf.Tensor, classes: tf.Tensor, there: tf.Tensor) -> tf.Tensor:
        for index in self._background():
            there &= classes != index
        # The pixel of a rank is found by its row and then within the row, so that the cumulative sum runs over one row only.
        rows = tf.math.count_nonzero(there, axis=2, dtype=tf.int32)
        before = tf.cumsum(rows, axis=1)
        rank = pick(u[:, 2], before[:, -1] - 1)
        y = tf.math.count_nonzero(before <= rank[:, None], axis=1, dtype=tf.int32)
        height, width = tf.shape(classes)[1], tf.shape(classes)[2]
        y = tf.minimum(y, height - 1)  # for a mask without objects
        row = tf.cast(tf.gather(there, y, batch_dims=1), tf.int32)
        rest = rank - tf.gather(before, y, batch_dims=1) + tf.gather(rows, y, batch_dims=1)
        x = tf.minimum(tf.math.count_nonzero(tf.cumsum(row, axis=1) <= rest[:, None], axis=1, dtype=tf.int32), width - 1)
        return self._around(u, y, x, before[:, -1] > 0, height, width)

    def _around(self, u: tf.Tensor, y: tf.Tensor, x: tf.Tensor, found: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        """The windows around these pixels, int32 `(n, 4)`; windows anywhere where none was `found`."""
        size, anywhere, drawn = self.output_size(), self.window(u, height, width), self.drawn(u)
        top = tf.clip_by_value(y - drawn["above"], 0, height - size[0])
        left = tf.clip_by_value(x - drawn["before"], 0, width - size[1])
        return tf.where(found[:, None], place(top, left, *size, u), anywhere)
