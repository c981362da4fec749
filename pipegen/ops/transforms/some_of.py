"""Do several of a list of steps."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.selections import Selection

Count = Annotated[int, Field(ge=0)]


class SomeOf(Selection):
    """Does a number of the steps to each example: different ones, every choice of them as likely as any other.

    The order in which they act is that of a block: tables and filters as they are written, then all geometry as one
    resampling, then all colour as one matrix. It draws a number for `count` and one for each step.
    """

    op = "some_of"
    examples = (
        Example(
            "some_of: {count: 2, steps: [random_flip, random_rotation: {degrees: 30}, random_shear: {degrees: 10}]}",
            IMAGE_224,
            "uint8[224×224×3] in [0, 255]",
        ),
        Example(
            "some_of: {count: [0, 2], steps: [random_hue: {degrees: 20}, random_brightness: {factor: 0.3}]}",
            IMAGE_224,
            "float32[224×224×3] in [0, 255]",
        ),
    )

    count: Count | tuple[Count, Count]
    """How many of the steps an example gets; a pair is the range, both ends included."""

    @model_validator(mode="after")
    def _few_enough(self) -> SomeOf:
        low, high = self._range()
        if low > high:
            raise ValueError(f"`count` is a range [low, high], but {low} is above {high}")
        if high > len(self.steps):
            raise ValueError(f"`count` reaches {high}, and there are {len(self.steps)} steps")
        return self

    def _range(self) -> tuple[int, int]:
        return self.count if isinstance(self.count, tuple) else (self.count, self.count)

    def num_draws(self) -> int:
        return 1 + len(self.steps)

    def share(self, number: int) -> float:
        return sum(self._range()) / 2 / len(self.steps)

    def chosen(self, u: tf.Tensor, number: int) -> tf.Tensor:
        """A step is chosen when fewer than `count` of the others drew a smaller number."""
        low, high = self._range()
        count = low + tf.cast(tf.floor(u[..., 0] * (high - low + 1)), tf.int32)
        own = u[..., 1 + number, None]
        before, after = u[..., 1 : 1 + number] <= own, u[..., 2 + number :] < own
        return tf.reduce_sum(tf.cast(tf.concat([before, after], -1), tf.int32), -1) < count

    def meaning(self) -> dict[str, object]:
        return super().meaning() | {"count": list(self._range())}
