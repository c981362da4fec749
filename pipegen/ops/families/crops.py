"""The families of crops: windows that depend on what lies on the image, windows beyond it, and whole batches of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import ConstantFill, Fill, filled
from pipegen.ops.arguments.magnitudes import Probability
from pipegen.ops.base import CropTransform, require_image
from pipegen.ops.kinds.registry import kind_named, kind_of
from pipegen.ops.lowering.windows import cut, place
from pipegen.ops.stage import Stage, StepRef, use, uses
from pipegen.ops.traits import Family, Traits
from pipegen.types import valid_name

if TYPE_CHECKING:
    from pipegen.ops.arguments.geometry import Reach
    from pipegen.ops.base import GeometricTransform
    from pipegen.ops.transform import Transform
    from pipegen.types import FeatureType


_PIXEL_NS = 1.0
"""Nanoseconds of one core for each pixel of a mask that is looked at."""


class ItemCrop(CropTransform):
    """A window that its step chooses by what lies on the image.

    Class attributes:
        led_by: What it can choose by, as in `FeatureKind.crop_guide`; the first that an image has is taken.
        without_items: For images that have none of those, the step that serves better, and what this one does then, in words.
    """

    random = True
    led_by: ClassVar[tuple[str, ...]] = ("boxes",)
    without_items: ClassVar[tuple[str, str]] = ("random_crop", "its windows lie anywhere")

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.ELEMENT, crops=True, chosen=True)

    def leader(self) -> str | None:
        """Returns the feature that a user wants it to choose by; `None` where that is left open."""
        return None

    def choose(self, u: tf.Tensor, items: tf.Tensor, there: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Chooses the windows of images of one size.

        Args:
            u: float64 `(n, num_draws)`.
            items: float64 `(n, most, 4)`: left, top, right and bottom edge of each box, in pixels.
            there: Which of them there are, bool `(n, most)`.
            height: The images' height in pixels, an int32 scalar.
            width: Their width likewise.

        Returns:
            The windows, int32 `(n, 4)`: top, left, height and width, inside the image; and which items may stay, bool `(n, most)`.
        """
        raise NotImplementedError

    def choose_by_pixels(self, u: tf.Tensor, classes: tf.Tensor, there: tf.Tensor) -> tf.Tensor:
        """Chooses the windows of images by their masks.

        Args:
            u: float64 `(n, num_draws)`.
            classes: The class index of each pixel, int32 `(n, height, width)`.
            there: Which pixels have a class, and are not to be ignored, bool `(n, height, width)`.

        Returns:
            The windows, as `choose` gives them.
        """
        raise NotImplementedError


class WholeOrItemCrop(ItemCrop):
    """A window of any size; without items it is the whole image."""

    without_items = ("random_resized_crop", "it leaves every image whole")
    handles_probability = True

    probability: Probability = 1.0
    """The share of examples that the step changes."""

    def output_size(self) -> tuple[int | None, int | None]:
        return None, None

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        return x if self.idle() else super().infer(x)

    def is_identity(self, x: FeatureType) -> bool:
        return self.idle()

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return place(0, 0, height, width, u)


@dataclass(frozen=True, slots=True)
class ChooseWindow(Stage):
    """Chooses the window of a crop by the items of an image, or by a mask, before they and the image are cut to it.

    Attributes:
        kind: The kind of what it is chosen by.
        ref: The crop.
        canvas: Height and width of the image, in pixels.
        ignore: The value of pixels of a mask that are of no class.
        home: The feature that the items stand beside, if they do, such as the boxes that have keypoints.
    """

    one_example: ClassVar[bool] = True
    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    ref: StepRef[ItemCrop]
    canvas: tuple[int | None, int | None]
    kind: str = "boxes"
    ignore: int = 255
    home: str | None = None

    def touches(self) -> tuple[str, ...]:
        return (self.feature, valid_name(self.home or self.feature)) if self.by_items() else (self.feature,)

    def by_items(self) -> bool:
        """Returns whether it is chosen by items, and not by pixels."""
        return kind_named(self.kind).ragged

    def ns(self, x: FeatureType) -> float:
        return 0.0 if self.by_items() else _PIXEL_NS

    def says(self) -> str:
        return f"choose the window: {use(self.ref)}"


def window_name(ref: StepRef) -> str:
    """Returns what the window is called that a use of a step has chosen; a step without draws begins where the next one does."""
    return f"@window/{ref.start}/{ref.step.op}"


@dataclass(frozen=True, slots=True)
class CanvasCrop(Stage):
    """A window of each image of a batch, resized to one size; each image has a size of its own, and lies in a corner of its canvas.

    Attributes:
        ref: The crop.
        canvas: Height and width of the canvas.
        channels: Of an image.
        size: Those of the output.
        mirrors: The steps behind it that only mirror axes, which is done while pixels are read.
    """

    ns_per_value: ClassVar[float] = 0.9
    from_memory: ClassVar[bool] = True

    feature: str
    ref: StepRef[CropTransform]
    canvas: tuple[int, int]
    channels: int
    size: tuple[int, int]
    mirrors: tuple[StepRef[GeometricTransform], ...] = field(default=())

    def uses(self) -> tuple[StepRef, ...]:
        return (self.ref, *self.mirrors)

    def says(self) -> str:
        mirrored = f", and mirror: {uses(self.mirrors)}" if self.mirrors else ""
        return f"crop and resize a whole batch: {use(self.ref)}{mirrored}"

    def leads(self) -> bool:
        return True


def size_name(feature: str) -> str:
    """Returns what the height and the width of a feature's images are called, where they lie on canvases."""
    return f"@size/{feature}"


def store_name(feature: str) -> str:
    """Returns what the memory is called that a feature's images are stored in, as 64-bit words."""
    return f"@store/{feature}"


def place_name(feature: str) -> str:
    """Returns what the places are called where the images of a feature begin in that memory, in bytes."""
    return f"@place/{feature}"


class PaddedWindow(CropTransform):
    """A window that can lie beyond the image, where `fill` shows; a mask shows its `ignore` where a constant does."""

    fill: Fill = ConstantFill()
    """What is put around the image: `{constant: VALUE}` in the units of the image that enters, `reflect`, `nearest` or `wrap`."""

    def pads(self) -> bool:
        """Returns whether the window can lie beyond the image."""
        return True

    def room(self, x: FeatureType) -> tuple[int | None, int | None]:
        return (None, None) if self.pads() else super().room(x)

    def reach(self) -> Reach | None:
        return None if self.pads() else super().reach()

    def is_identity(self, x: FeatureType) -> bool:
        return not self.pads() and super().is_identity(x)

    def traits(self, x: FeatureType) -> Traits:
        traits = super().traits(x)
        return replace(traits, pads=True, moves_pixels_only=not isinstance(self.fill, ConstantFill)) if self.pads() else traits

    def infer(self, x: FeatureType) -> FeatureType:
        """The output size; a constant fill widens the interval."""
        y = super().infer(x)
        return filled(y, self.fill) if self.pads() else y

    def on(self, x: FeatureType) -> Transform:
        if not kind_of(x).categorical or not isinstance(self.fill, ConstantFill):
            return self
        return self.model_copy(update={"fill": ConstantFill(constant=x.ignore)})

    def cut(self, image: tf.Tensor, window: tf.Tensor) -> tf.Tensor:
        return cut(image, window, self.fill if self.pads() else None)
