"""Holds the stages of a ragged feature, such as boxes: what moves its items with their image, mixes those of two, and sizes its batches.

What stands beside it, such as the class of each box, loses the same items and keeps its order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.families.mixing import COUNTS, GROUP, MixingTransform
from pipegen.ops.stage import Stage, StepRef
from pipegen.ops.wording import use, uses
from pipegen.types import times, valid_name

if TYPE_CHECKING:
    from collections.abc import Hashable


@dataclass(frozen=True, slots=True)
class Measure(Stage):
    """Finds the size of the image that items are aligned with, as it is stored.

    Attributes:
        like: The image, and what decodes it where it is a file that is not decoded yet.
    """

    one_example: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    like: tuple[str, StepRef[DecodeTransform] | None]

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
        details: Those of their type.
        riders: What stands beside them, item by item.
        home: The feature beside which they stand themselves, which says alone which items there are.
        projective: Whether a step's matrix can have a last row other than (0, 0, 1).
    """

    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    kind: str
    refs: tuple[StepRef, ...]
    canvas: tuple[int | None, int | None]
    size: tuple[int | None, int | None]
    details: Hashable = None
    riders: tuple[str, ...] = ()
    home: str | None = None
    projective: bool = False

    def touches(self) -> tuple[str, ...]:
        return (self.feature, valid_name(self.home or self.feature), *self.riders)

    def says(self) -> str:
        return f"move, to {times(self.size)}: {uses(self.refs)}"


@dataclass(frozen=True, slots=True)
class Bend(Move):
    """Moves items with an image whose pixels are each read at a distance of their own, as one step says."""

    def says(self) -> str:
        return f"move along the field: {uses(self.refs)}"


@dataclass(frozen=True, slots=True)
class BendEach(Bend):
    """The same where images differ in size, so that each example is worked on by itself."""

    one_example: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class MoveEach(Move):
    """The same where images differ in size, so that each example is worked on by itself."""

    one_example: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Enter(Stage):
    """Brings items as they are stored into the form that steps work on. What lies outside the image is left out.

    Attributes: as those of `Move`.
    """

    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    kind: str
    canvas: tuple[int | None, int | None]
    details: Hashable
    riders: tuple[str, ...] = ()
    home: str | None = None

    def touches(self) -> tuple[str, ...]:
        return (self.feature, valid_name(self.home or self.feature), *self.riders)

    def says(self) -> str:
        return f"place on {times(self.canvas)}"


@dataclass(frozen=True, slots=True)
class EnterEach(Enter):
    """The same where images differ in size, so that each example is worked on by itself."""

    one_example: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class MixItems(Stage):
    """Takes the items of other examples of the group beside the own ones, as far as each image is still seen: there are as many times the
    places.

    Attributes:
        kind: The kind of the items.
        canvas: Height and width of the images, in pixels.
        details: Those of their type.
        riders: What stands beside them, item by item.
        moved: Those of the riders that are moved with the image themselves: their names, their kinds, and the details of their types.
        number: That of the riders by which masks know the items: those of partners are numbered apart.
    """

    mixes: ClassVar[bool] = True
    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    kind: str
    ref: StepRef[MixingTransform]
    canvas: tuple[int | None, int | None]
    details: Hashable = None
    riders: tuple[str, ...] = ()
    moved: tuple[tuple[str, str, Hashable], ...] = ()
    number: str | None = None

    @property
    def sources(self) -> int:
        """Returns of how many examples there are items."""
        return 1 + self.ref.step.others

    def touches(self) -> tuple[str, ...]:
        return (self.feature, valid_name(self.feature), *self.riders)

    def says(self) -> str:
        return f"join those of {COUNTS[self.ref.step.others]} of a group of {GROUP}: {use(self.ref)}"


@dataclass(frozen=True, slots=True)
class Limit(Stage):
    """Gives a batch places for so many items: of an image that has more, those stay that matter most, such as the largest boxes.

    Attributes:
        kind: The kind of the items.
        room: The places that there were, where that is known.
        most: The places that there are.
        riders: What stands beside them, item by item.
    """

    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    kind: str
    room: int | None
    most: int
    riders: tuple[str, ...] = ()

    def touches(self) -> tuple[str, ...]:
        return (self.feature, valid_name(self.feature), *self.riders)

    def says(self) -> str:
        if self.room is not None and self.room <= self.most:
            return f"pad to {self.most}"
        cut = f", up to {self.room - self.most} of {self.room} are cut" if self.room is not None else ""
        return f"keep the {self.most} largest{cut}"


@dataclass(frozen=True, slots=True)
class Express(Stage):
    """Writes items in the format that the output asks for.

    Attributes:
        kind: The kind of the items.
        form: The format.
        canvas: Height and width of the image, in pixels.
    """

    cheap: ClassVar[bool] = True
    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    kind: str
    form: str
    canvas: tuple[int, int]

    def touches(self) -> tuple[str, ...]:
        return (self.feature, valid_name(self.feature))

    def says(self) -> str:
        return f"as {self.form}"


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
    riders: tuple[str, ...] = ()

    def touches(self) -> tuple[str, ...]:
        return (self.feature, valid_name(self.feature), *self.riders)

    def says(self) -> str:
        return f"cut to the least of {', '.join(map(str, self.lengths))} that holds the items of the batch"
