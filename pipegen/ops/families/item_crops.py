"""The family of crops whose window depends on what lies on the image, such as its boxes; and the stage that chooses the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Probability
from pipegen.ops.base import CropTransform, require_image
from pipegen.ops.lowering.windows import place
from pipegen.ops.stage import Stage, StepRef
from pipegen.ops.traits import Family, Traits
from pipegen.ops.wording import use
from pipegen.types import valid_name

if TYPE_CHECKING:
    from pipegen.types import FeatureType


class ItemCrop(CropTransform):
    """A window that its step chooses by the items of the image. Of an image without any it is the whole."""

    random = True
    handles_probability = True

    probability: Probability = 1.0
    """The share of examples that the step changes."""

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.ELEMENT, crops=True, chosen=True)

    def output_size(self) -> tuple[int | None, int | None]:
        return None, None

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        return x if self.idle() else super().infer(x)

    def is_identity(self, x: FeatureType) -> bool:
        return self.idle()

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return place(0, 0, height, width, u)

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


@dataclass(frozen=True, slots=True)
class ChooseWindow(Stage):
    """Chooses the window of a crop by the items of an image, before they and the image are cut to it.

    Attributes:
        ref: The crop.
        canvas: Height and width of the image, in pixels.
    """

    one_example: ClassVar[bool] = True
    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    ref: StepRef[ItemCrop]
    canvas: tuple[int | None, int | None]

    def touches(self) -> tuple[str, ...]:
        return (self.feature, valid_name(self.feature))

    def says(self) -> str:
        return f"choose the window: {use(self.ref)}"


def window_name(ref: StepRef) -> str:
    """Returns what the window is called that a use of a step has chosen; a step without draws begins where the next one does."""
    return f"@window/{ref.start}/{ref.step.op}"
