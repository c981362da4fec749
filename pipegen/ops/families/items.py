"""Holds the stages of a ragged feature, such as points: what moves its items with their image, and what shortens its batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.stage import Stage, StepRef
from pipegen.ops.wording import uses
from pipegen.types import times, valid_name


@dataclass(frozen=True, slots=True)
class Measure(Stage):
    """Finds the size of the image that items are aligned with, whose file is not decoded yet.

    Attributes:
        like: The image, and what decodes it.
    """

    one_example: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    like: tuple[str, StepRef[DecodeTransform]]

    def says(self) -> str:
        return f"the size of `{self.like[0]}` as it is stored"


@dataclass(frozen=True, slots=True)
class Move(Stage):
    """Moves items with their image: through the product of the steps' matrices, or as one step crops or resizes. What is no longer on
    the image is left out.

    Attributes:
        kind: The kind of the items.
        canvas: Height and width of the image that enters, in pixels.
        size: The same of the image that leaves.
    """

    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    kind: str
    refs: tuple[StepRef, ...]
    canvas: tuple[int | None, int | None]
    size: tuple[int | None, int | None]

    def touches(self) -> tuple[str, ...]:
        return (self.feature, valid_name(self.feature))

    def says(self) -> str:
        return f"move, to {times(self.size)}: {uses(self.refs)}"


@dataclass(frozen=True, slots=True)
class MoveEach(Move):
    """The same where images differ in size, so that each example is worked on by itself."""

    one_example: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Shorten(Stage):
    """Cuts a padded batch to one of a few lengths, the least that holds all of its items, so that a model is compiled for each once.

    Attributes:
        lengths: Those, ascending; the last holds the most items that an example has.
    """

    cheap: ClassVar[bool] = True
    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    lengths: tuple[int, ...]

    def touches(self) -> tuple[str, ...]:
        return (self.feature, valid_name(self.feature))

    def says(self) -> str:
        return f"cut to the least of {', '.join(map(str, self.lengths))} that holds the items of the batch"
