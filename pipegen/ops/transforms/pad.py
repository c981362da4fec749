"""`pad` and `random_zoom_out`: put borders around images."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Size, filled, height_width
from pipegen.ops.arguments.magnitudes import Probability, Span, span_range, within
from pipegen.ops.families.crops import PaddedWindow
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.windows import holds, pick, place
from pipegen.ops.model import Model
from pipegen.ops.step_bases import require_image
from pipegen.ops.traits import ANY_IMAGE, IMAGE_224, Example, Family, Traits, same_type
from pipegen.types import LARGEST_SIDE, FeatureType, times

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
