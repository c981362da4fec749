"""Holds the stages of instance masks, whose pixels have the numbers of items, such as boxes, while these are dropped, joined and cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipegen.ops.families.mixing import COUNTS, GROUP, MixingTransform
from pipegen.ops.stage import Stage, StepRef
from pipegen.ops.wording import use
from pipegen.types import valid_name

NUMBERS = 256
"""Numbers that a pixel can have. In a mixed image, those of the first partner begin behind these, those of the second twice as far."""


@dataclass(frozen=True, slots=True)
class Renumber(Stage):
    """Gives each pixel the place of its item, counted from 1: 0 where that was dropped. What the loss leaves out stays.

    Attributes:
        home: The items.
        number: The number that each of them is known by.
        ignore: What the loss leaves out.
        sources: How many images the pixels are of, each with numbers of its own.
    """

    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 1.5

    feature: str
    home: str
    number: str
    ignore: int
    sources: int = 1

    def touches(self) -> tuple[str, ...]:
        return (self.feature, self.number, valid_name(self.home))

    def needs(self) -> tuple[str, ...]:
        return (self.home, self.number, valid_name(self.home))

    def says(self) -> str:
        return f"places of `{self.home}`, for their numbers"


@dataclass(frozen=True, slots=True)
class NumberItems(Stage):
    """Makes the place of each item the number that it is known by: the masks have these by now."""

    cheap: ClassVar[bool] = True
    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    number: str

    def touches(self) -> tuple[str, ...]:
        return (self.feature, self.number, valid_name(self.feature))

    def says(self) -> str:
        return "number in order"


@dataclass(frozen=True, slots=True)
class MixInstances(Stage):
    """Takes parts of other examples' masks into each one, as the images are mixed; the pixels of partners have numbers beyond the own ones.

    Attributes:
        canvas: Height and width of the images, in pixels.
        ignore: What the loss leaves out.
    """

    mixes: ClassVar[bool] = True
    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 1.0

    feature: str
    ref: StepRef[MixingTransform]
    canvas: tuple[int | None, int | None]
    ignore: int

    def says(self) -> str:
        return f"mix the items of {COUNTS[self.ref.step.others]} of a group of {GROUP}: {use(self.ref)}"
