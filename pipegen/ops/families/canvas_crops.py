"""The stage that crops and resizes whole batches of images that lie on canvases of one size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pipegen.ops.stage import Stage
from pipegen.ops.wording import use, uses

if TYPE_CHECKING:
    from pipegen.ops.base import CropTransform, GeometricTransform
    from pipegen.ops.stage import StepRef


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
