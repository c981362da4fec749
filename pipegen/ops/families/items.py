"""The stages of ragged features, such as boxes, and of masks whose pixels number their items; and of pasted objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pipegen.lazy import tf
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.families.mixing import COUNTS, GROUP, MixingTransform
from pipegen.ops.stage import Stage, StepRef, use, uses
from pipegen.types import times, valid_name

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pipegen.types import FeatureType


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


class PastingTransform(MixingTransform):
    """Takes those pixels of an example's partner that a mask chooses, into the image and all of its masks."""

    mask: str | None = None
    """The mask whose objects are pasted; by default the only one that is aligned with the image."""

    def pasted(self, masks: tf.Tensor, u: tf.Tensor, ignore: int) -> tf.Tensor:
        """Returns which pixels of the partners are pasted: a pure function.

        Args:
            masks: The partners' masks, uint8 `(n, height, width, 1)`.
            u: The draws of those that are pasted into, float64 `(n, num_draws)`.
            ignore: The class index of what a fill uncovered, which is no object.

        Returns:
            bool `(n, height, width, 1)`.
        """
        raise NotImplementedError

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`pastes`: whether the step acts, bool `(...)`; how much is pasted, the masks say."""
        return {"pastes": self.acts(u)}


@dataclass(frozen=True, slots=True)
class Paste(Stage):
    """Pastes the objects of another example of the group. The mask itself comes last, since the others read it as it was.

    Attributes:
        mask: The mask that says where they are.
        ignore: The class index of what a fill uncovered there.
        label: Whether the feature is a label, which is weighed by the share of pixels that is pasted.
    """

    mixes: ClassVar[bool] = True
    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.5

    feature: str
    ref: StepRef[PastingTransform]
    mask: str
    ignore: int
    label: bool

    def touches(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.feature, self.mask)))

    def needs(self) -> tuple[str, ...]:
        return (self.mask,)

    def says(self) -> str:
        done = "weigh the labels by what is pasted" if self.label else f"paste what `{self.mask}` shows"
        return f"{done} of another of a group of {GROUP}: {use(self.ref)}"

    def is_identity(self, x: FeatureType, y: FeatureType) -> bool:
        return x == y and self.ref.step.is_identity(x)


@dataclass(frozen=True, slots=True)
class PasteInstances(Paste):
    """The same of a mask of instances: the numbers of pasted pixels lie beyond the own ones."""


@dataclass(frozen=True, slots=True)
class PasteItems(MixItems):
    """Takes the items of another example that are pasted beside the own ones, and of these what the pasted ones leave to be seen. Their
    mask comes later, since it is read as it was.

    Attributes:
        mask: The mask of instances that says where they are.
        ignore: What the loss leaves out there.
    """

    mask: str = ""
    ignore: int = 0

    def needs(self) -> tuple[str, ...]:
        return (self.mask, self.feature, valid_name(self.feature))

    def says(self) -> str:
        return f"join those that `{self.mask}` pastes of another of a group of {GROUP}, less what they cover: {use(self.ref)}"


@dataclass(frozen=True, slots=True)
class PastePoints(PasteItems):
    """Takes away those points of an image that are pasted over. Of any number of points, those that lie on what is pasted come beside them.

    Attributes:
        joins: Whether there is any number of them.
    """

    joins: bool = False

    @property
    def sources(self) -> int:
        return 1 + self.joins

    def says(self) -> str:
        joined = f", and join those that it pastes of another of a group of {GROUP}" if self.joins else ""
        return f"leave out those that `{self.mask}` pastes over{joined}: {use(self.ref)}"
