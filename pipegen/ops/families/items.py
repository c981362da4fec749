"""Stages of ragged features such as boxes, of masks whose pixels number their items, and of pasted objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pipegen.frozen import dataclass
from pipegen.lazy import tf
from pipegen.ops.families.combining import COUNTS, GROUP, CombiningTransform
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.stage import Stage, StepRef, use, uses
from pipegen.types import times, valid_name

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pipegen.types import FeatureType


class ItemStage(Stage):
    """A stage of items, with what stands beside them, item by item (`riders`), or of what stands beside other items (`home`)."""

    __slots__ = ()

    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.0

    def touches(self) -> tuple[str, ...]:
        riders: tuple[str, ...] = getattr(self, "riders", ())
        return (self.feature, valid_name(getattr(self, "home", None) or self.feature), *riders)


@dataclass(frozen=True, slots=True)
class Measure(Stage):
    """Finds the stored size of the image that items are aligned with.

    Attributes:
        like: The image, and its decoder if it is a file that is not decoded yet.
    """

    one_example: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    like: tuple[str, StepRef[DecodeTransform] | None]

    def says(self) -> str:
        return f"the size of `{self.like[0]}` as it is stored"


@dataclass(frozen=True, slots=True)
class Move(ItemStage):
    """Moves items with their image: by the product of the steps' matrices, or by one crop or resize. Drops those outside the image.

    Attributes:
        kind: The kind of the items.
        canvas: Height and width of the input image, in pixels.
        size: Height and width of the output image, in pixels.
        details: The details of their type.
        riders: The features beside them, item by item.
        home: The feature beside which they stand, which alone decides which items exist.
        projective: Whether a step's matrix can have a last row other than (0, 0, 1).
    """

    feature: str
    kind: str
    refs: tuple[StepRef, ...]
    canvas: tuple[int | None, int | None]
    size: tuple[int | None, int | None]
    details: Hashable = None
    riders: tuple[str, ...] = ()
    home: str | None = None
    projective: bool = False

    def says(self) -> str:
        return f"move, to {times(self.size)}: {uses(self.refs)}"


@dataclass(frozen=True, slots=True)
class Bend(Move):
    """Moves items with an image whose pixels are displaced individually, by one step."""

    def says(self) -> str:
        return f"move along the field: {uses(self.refs)}"


@dataclass(frozen=True, slots=True)
class BendEach(Bend):
    """The same for images that differ in size, one example at a time."""

    one_example: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class MoveEach(Move):
    """The same for images that differ in size, one example at a time."""

    one_example: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Enter(ItemStage):
    """Converts stored items to the form that steps work on. Drops those outside the image.

    Attributes: As of `Move`.
    """

    feature: str
    kind: str
    canvas: tuple[int | None, int | None]
    details: Hashable
    riders: tuple[str, ...] = ()
    home: str | None = None

    def says(self) -> str:
        return f"place on {times(self.canvas)}"


@dataclass(frozen=True, slots=True)
class EnterEach(Enter):
    """The same for images that differ in size, one example at a time."""

    one_example: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class CombineItems(ItemStage):
    """Adds the visible items of other examples of the group, with as many times the places.

    Attributes:
        kind: The kind of the items.
        canvas: Height and width of the images, in pixels.
        details: The details of their type.
        riders: The features beside them, item by item.
        moved: The riders that move with the image themselves: their names, their kinds, and the details of their types.
        number: The rider by which masks identify the items; items of partners get other numbers.
    """

    combines: ClassVar[bool] = True

    feature: str
    kind: str
    ref: StepRef[CombiningTransform]
    canvas: tuple[int | None, int | None]
    details: Hashable = None
    riders: tuple[str, ...] = ()
    moved: tuple[tuple[str, str, Hashable], ...] = ()
    number: str | None = None

    @property
    def sources(self) -> int:
        """The number of examples that the items come from."""
        return 1 + self.ref.step.others

    def says(self) -> str:
        return f"join those of {COUNTS[self.ref.step.others]} of a group of {GROUP}: {use(self.ref)}"


@dataclass(frozen=True, slots=True)
class Limit(ItemStage):
    """Limits a batch to a number of items: an image with more keeps the most important ones, such as the largest boxes.

    Attributes:
        kind: The kind of the items.
        room: The number of places before, if it is known.
        most: The number of places after.
        riders: The features beside them, item by item.
    """

    feature: str
    kind: str
    room: int | None
    most: int
    riders: tuple[str, ...] = ()

    def says(self) -> str:
        if self.room is not None and self.room <= self.most:
            return f"pad to {self.most}"
        cut = f", up to {self.room - self.most} of {self.room} are cut" if self.room is not None else ""
        return f"keep the {self.most} largest{cut}"


@dataclass(frozen=True, slots=True)
class Express(ItemStage):
    """Converts items to the format of the output.

    Attributes:
        kind: The kind of the items.
        form: The format.
        canvas: Height and width of the image, in pixels.
    """

    cheap: ClassVar[bool] = True

    feature: str
    kind: str
    form: str
    canvas: tuple[int, int]

    def says(self) -> str:
        return f"as {self.form}"


@dataclass(frozen=True, slots=True)
class Shorten(ItemStage):
    """Cuts a padded batch to the least of a few lengths that holds all of its items, so that a model is compiled once for each length.

    Attributes:
        lengths: The lengths, ascending; the last one fits every example.
    """

    cheap: ClassVar[bool] = True

    feature: str
    lengths: tuple[int, ...]
    riders: tuple[str, ...] = ()

    def says(self) -> str:
        return f"cut to the least of {', '.join(map(str, self.lengths))} that holds the items of the batch"


NUMBERS = 256
"""The numbers that a pixel can have. In a combined image, those of the first partner begin here, those of the second at twice this."""


@dataclass(frozen=True, slots=True)
class Renumber(Stage):
    """Gives each pixel the place of its item, counted from 1, and 0 if the item was dropped. Ignored pixels stay.

    Attributes:
        home: The items.
        number: The feature with the number of each item.
        ignore: The value that the loss leaves out.
        sources: The number of images that the pixels come from, each with its own numbers.
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
class NumberItems(ItemStage):
    """Renumbers items by their places, as the masks are renumbered before."""

    cheap: ClassVar[bool] = True

    feature: str
    number: str

    def touches(self) -> tuple[str, ...]:
        return (self.feature, self.number, valid_name(self.feature))

    def says(self) -> str:
        return "number in order"


@dataclass(frozen=True, slots=True)
class CombineInstances(Stage):
    """Combines masks of instances like their images; pixels of partners get numbers of their own.

    Attributes:
        canvas: Height and width of the images, in pixels.
        ignore: The value that the loss leaves out.
    """

    combines: ClassVar[bool] = True
    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 1.0

    feature: str
    ref: StepRef[CombiningTransform]
    canvas: tuple[int | None, int | None]
    ignore: int

    def says(self) -> str:
        return f"combine the items of {COUNTS[self.ref.step.others]} of a group of {GROUP}: {use(self.ref)}"


class PastingTransform(CombiningTransform):
    """Pastes pixels of an example's partner, chosen by a mask, into the image and all of its masks."""

    mask: str | None = None
    """The mask whose objects are pasted; by default the image's only mask."""

    def pasted(self, masks: tf.Tensor, u: tf.Tensor, ignore: int) -> tf.Tensor:
        """Chooses the pixels of the partners that are pasted, as a pure function.

        Args:
            masks: The partners' masks, uint8 `(n, height, width, 1)`.
            u: The draws of the examples that are pasted into, float64 `(n, num_draws)`.
            ignore: The class index of filled borders, which are not objects.

        Returns:
            bool `(n, height, width, 1)`.
        """
        raise NotImplementedError

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`pastes`: whether the step acts, bool `(...)`; what is pasted depends on the masks."""
        return {"pastes": self.acts(u)}


@dataclass(frozen=True, slots=True)
class Paste(Stage):
    """Pastes the objects of another example of the group. The mask itself comes last, since the others read its old state.

    Attributes:
        mask: The mask that defines the objects.
        ignore: The class index of filled borders in the mask.
        label: Whether the feature is a label, which is weighed by the share of pasted pixels.
    """

    combines: ClassVar[bool] = True
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
    """The same for a mask of instances: pasted pixels get numbers of their own."""


@dataclass(frozen=True, slots=True)
class PasteItems(CombineItems):
    """Adds the pasted items of another example, and cuts the own ones to what remains visible. Their mask comes later, since this reads its
    old state.

    Attributes:
        mask: The mask of instances that defines the items.
        ignore: The value of the mask that the loss leaves out.
    """

    mask: str = ""
    ignore: int = 0

    def needs(self) -> tuple[str, ...]:
        return (self.mask, self.feature, valid_name(self.feature))

    def says(self) -> str:
        return f"join those that `{self.mask}` pastes of another of a group of {GROUP}, less what they cover: {use(self.ref)}"


@dataclass(frozen=True, slots=True)
class PastePoints(PasteItems):
    """Removes points that are pasted over. If an image can have any number of points, adds those on pasted pixels.

    Attributes:
        joins: Whether an image can have any number of points.
    """

    joins: bool = False

    @property
    def sources(self) -> int:
        return 1 + self.joins

    def says(self) -> str:
        joined = f", and join those that it pastes of another of a group of {GROUP}" if self.joins else ""
        return f"leave out those that `{self.mask}` pastes over{joined}: {use(self.ref)}"
