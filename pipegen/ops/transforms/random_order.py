"""Do steps in a random order."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example, Part, Transform
from pipegen.ops.families.policies import Policy
from pipegen.ops.families.selections import InnerStep, Selection


class RandomOrder(Selection):
    """Does all of the steps to each example, in an order that is drawn; every order is as likely as any other.

    Unlike in a block of other policies, the order holds among families, too: a table behind a colour step sees what
    that made. So steps of one family cost what they cost without an order (matrices and tables multiply), and geometry
    beside other families is resampled as often as there are steps. A table or a step on bytes rounds to bytes what comes before it in any
    order. It draws a number for each step.
    """

    op = "random_order"
    examples = (
        Example(
            "random_order: {steps: [random_brightness: {factor: 0.2}, random_contrast: {factor: 0.2}, random_hue: {degrees: 10}]}",
            IMAGE_224,
            "float32[224×224×3] in [0, 255]",
        ),
        Example(
            "random_order: {steps: [random_posterization: {bits: [4, 6]}, random_solarization: {threshold: [128, 256]}]}",
            IMAGE_224,
            "uint8[224×224×3] in [0, 255]",
        ),
    )

    steps: Annotated[tuple[InnerStep, ...], Field(min_length=2, max_length=6)]
    """The steps, from 2 to 6, written as they are in `transforms`."""

    @classmethod
    def refuses(cls, step: Transform) -> tuple[str, str] | None:
        if isinstance(step, Policy):
            return f"`{cls.op}` cannot hold `{step.op}`", "it holds steps, and no policies"
        return super().refuses(step)

    def num_draws(self) -> int:
        return len(self.steps)

    def share(self, number: int) -> float:
        return 1 / len(self.steps)

    def chosen(self, u: tf.Tensor, number: int) -> tf.Tensor:
        """Numbers count places first, then steps: a step's place is the number of others that drew a smaller number."""
        place, step = divmod(number, len(self.steps))
        return self._place(u, step) == place

    def _place(self, u: tf.Tensor, step: int) -> tf.Tensor:
        own = u[..., step, None]
        before, after = u[..., :step] <= own, u[..., step + 1 :] < own
        return tf.reduce_sum(tf.cast(tf.concat([before, after], -1), tf.int32), -1)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """Names for each step its place, from 1, by the step's name; the second one of a name is `NAME#2`."""
        return {name: self._place(u, step) + 1 for step, name in enumerate(super().drawn(u))}

    def parts(self) -> tuple[Part, ...]:
        own = [step if self.feature is None else step.model_copy(update={"feature": self.feature}) for step in self.steps]
        return tuple(Part(step, place * len(own) + i, i) for place in range(len(own)) for i, step in enumerate(own))
