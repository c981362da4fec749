"""Holds the stages of steps that paste what the mask of another example shows, which is found pixel by pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pipegen.lazy import tf
from pipegen.ops.families.items import MixItems
from pipegen.ops.families.mixing import GROUP, MixingTransform
from pipegen.ops.stage import Stage, StepRef
from pipegen.ops.wording import use
from pipegen.types import valid_name

if TYPE_CHECKING:
    from pipegen.types import FeatureType


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
