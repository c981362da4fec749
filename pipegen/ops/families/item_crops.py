"""The family of crops whose window depends on what lies on the image, such as its boxes; and the stage that chooses the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Probability
from pipegen.ops.base import CropTransform, require_image
from pipegen.ops.kinds.registry import kind_named
from pipegen.ops.lowering.windows import place
from pipegen.ops.stage import Stage, StepRef
from pipegen.ops.traits import Family, Traits
from pipegen.ops.wording import use
from pipegen.types import valid_name

if TYPE_CHECKING:
    from pipegen.types import FeatureType


_PIXEL_NS = 1.0
"""Nanoseconds of one core for each pixel of a mask that is looked at."""


class ItemCrop(CropTransform):
    """A window that its step chooses by what lies on the image.

    Class attributes:
        led_by: The forms of what it can choose by, as kinds of feature say (`FeatureKind.leads`); the first that an image has is taken.
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
