"""Stages of ragged features such as boxes, of masks whose pixels number their items, and of pasted objects."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from pipegen.frozen import dataclass
from pipegen.lazy import tf
from pipegen.ops.families.combining import COUNTS, GROUP, CombiningTransform
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.stage import OneStep, Stage, StepRef, use, uses
from pipegen.types import times, valid_name


class ItemStage(Stage):
    """A stage of items, with what stands beside them, item by item (`riders`), or of what stands beside other items (`home`, which alone
    decides which items exist).

    Where stages have them, `kind` is the kind of the items, `details` are the details of their type, and `canvas` is the height and width
    of their image, in pixels.
    """

    __slots__ = ()

    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.0

    def touches(self) -> tuple[str, ...]:
        riders: tuple[str, ...] = getattr(self, "riders", ())
        return (self.feature, valid_name(getattr(self, "home", None) or self.feature), *riders)


@dataclass(frozen=True, slots=True)
class Measure(Stage):
    """Finds the stored size of the image that items are aligned with: `like`, its name, with its decoder if it is a file that is not
    decoded yet."""

    one_example: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    like: tuple[str, StepRef[DecodeTransform] | None]

    def says(self) -> str:
        return f"the size of `{self.like[0]}` as it is stored"


@dataclass(frozen=True, slots=True)
class Move(ItemStage):
    """Moves items with their image: by the product of the steps' matrices, or by one crop or resize, to an image of `size` in pixels. Drops
    those outside the image. `projective` says that a step's matrix can have a last row other than (0, 0, 1)."""

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
    """Converts stored items to the form that steps work on. Drops those outside the image."""

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
class InSound(ItemStage):
    """A stage of items in a sound, which it reads as it is before the steps that move them: `sound`, of `rate` frames a second."""

    feature: str
    kind: str
    sound: str
    rate: int
    details: Hashable
    riders: tuple[str, ...] = ()

    def touches(self) -> tuple[str, ...]:
        return (self.feature, valid_name(self.feature), self.sound, *self.riders)

    def needs(self) -> tuple[str, ...]:
        return (self.sound,)


@dataclass(frozen=True, slots=True)
class EnterSound(InSound):
    """Converts stored items to the form that steps work on, for a sound that begins `offset` seconds after the start of its file. Drops
    those outside of it."""

    offset: float = 0.0

    def says(self) -> str:
        return f"place in `{self.sound}`"


@dataclass(frozen=True, slots=True)
class MoveInSound(InSound):
    """Moves items with their sound, by the product of the steps' maps of time. Drops those outside of it."""

    refs: tuple[StepRef, ...] = ()

    def says(self) -> str:
        return f"move: {uses(self.refs)}"


@dataclass(frozen=True, slots=True)
class CutInSound(InSound):
    """Cuts items to the first `to` steps of a sound that has more, and drops those behind; a step has `hop` frames. `to` is unknown before
    the data is listed."""

    to: int | None = None
    hop: float = 1.0

    def says(self) -> str:
        return f"cut with `{self.sound}`" + ("" if self.to is None else f" to {self.to}")


@dataclass(frozen=True, slots=True)
class FrameLabels(Stage):
    """Replaces items in a sound, or with a number of `classes` what they have one of each, by what happens in each step of the sound, whose
    distance is `hop` frames of the `rate`; `home` has the items. The number is 0 before the data is listed. Nothing happens in the padding
    of a sound that is `padded`."""

    compilable: ClassVar[bool] = False
    cheap: ClassVar[bool] = True

    feature: str
    home: str
    sound: str
    rate: int
    hop: float
    classes: int | None = None
    padded: bool = False

    def touches(self) -> tuple[str, ...]:
        return (self.feature, *self.needs())

    def needs(self) -> tuple[str, ...]:
        read = (self.home, valid_name(self.home), self.sound, *([valid_name(self.sound)] if self.padded else []))
        return tuple(name for name in read if name != self.feature)

    def says(self) -> str:
        every = "frame" if self.hop == 1 else f"{self.hop / self.rate * 1000:g} ms"
        return f"for every {every} of `{self.sound}`"


@dataclass(frozen=True, slots=True)
class CombineItems(ItemStage):
    """Adds the visible items of other examples of the group, with as many times the places.

    The riders that `moved` with the image themselves have their names, their kinds and the details of their types here. `number` is the
    rider by which masks identify the items; items of partners get other numbers.
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
    """Limits a batch from `room` places, if known, to at `most` so many: an image with more items keeps the most important ones, such as
    the largest boxes."""

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
    """Converts items to the format of the output, `form`."""

    cheap: ClassVar[bool] = True

    feature: str
    kind: str
    form: str
    canvas: tuple[int, int] | None

    def says(self) -> str:
        return f"as {self.form}"


@dataclass(frozen=True, slots=True)
class Shorten(ItemStage):
    """Cuts a padded batch to the least of a few ascending lengths that holds all of its items, so that a model is compiled once for each
    length. The last one fits every example."""

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
    """Gives each pixel the place of its item among those of `home`, counted from 1 and found by their feature `number`, and 0 if the item
    was dropped. Pixels that the loss ignores stay. They come from `sources` images, each with its own numbers."""

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
    """Mixes masks of instances like their images; pixels of partners get numbers of their own, and those that the loss ignores stay."""

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
        """Chooses the pixels of the partners that are pasted, bool `(n, height, width, 1)`, as a pure function of their masks, uint8 of
        that shape, and of the draws of the examples that are pasted into, float64 `(n, num_draws)`. `ignore` is the class index of filled
        borders, which are not objects."""
        raise NotImplementedError

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`pastes`: whether the step acts, bool `(...)`; what is pasted depends on the masks."""
        return {"pastes": self.acts(u)}


@dataclass(frozen=True, slots=True)
class Paste(OneStep[PastingTransform]):
    """Pastes the objects of another example of the group, as a mask defines them, in which filled borders have the class index `ignore`.
    The mask itself comes last, since the others read its old state. A `label` is weighed by the share of pasted pixels."""

    combines: ClassVar[bool] = True
    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.5

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


@dataclass(frozen=True, slots=True)
class PasteInstances(Paste):
    """The same for a mask of instances: pasted pixels get numbers of their own."""


@dataclass(frozen=True, slots=True)
class PasteItems(CombineItems):
    """Adds the pasted items of another example, as a mask of instances defines them, and cuts the own ones to what remains visible. Their
    mask comes later, since this reads its old state; the loss leaves its value `ignore` out."""

    mask: str = ""
    ignore: int = 0

    def needs(self) -> tuple[str, ...]:
        return (self.mask, self.feature, valid_name(self.feature))

    def says(self) -> str:
        return f"join those that `{self.mask}` pastes of another of a group of {GROUP}, less what they cover: {use(self.ref)}"


@dataclass(frozen=True, slots=True)
class PastePoints(PasteItems):
    """Removes points that are pasted over. If an image can have any number of points (`joins`), adds those on pasted pixels."""

    joins: bool = False

    @property
    def sources(self) -> int:
        return 1 + self.joins

    def says(self) -> str:
        joined = f", and join those that it pastes of another of a group of {GROUP}" if self.joins else ""
        return f"leave out those that `{self.mask}` pastes over{joined}: {use(self.ref)}"
