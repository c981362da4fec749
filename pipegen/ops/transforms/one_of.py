"""Do one of several steps."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import check_range, checked, level_range
from pipegen.ops.arguments.schedules import AnySchedule, Schedule, Strength
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.selections import Selection


def check_weight(value: Strength, name: str) -> None:
    """Rejects what is no plain number of 0 or more, by a `ValueError`."""
    if isinstance(value, tuple):
        raise ValueError(f"one of the `{name}` is a plain number in each epoch, not a range")
    check_range(value, name, 0)


Weight = Annotated[Annotated[float, Field(ge=0, allow_inf_nan=False)] | AnySchedule, checked(check_weight)]


class OneOf(Selection):
    """Does exactly one of the steps to each example, drawn by `weights`.

    Each step keeps arguments of its own; with a `probability` below 1, the step that is drawn may still leave the
    example as it is. Geometry and colour cost the same as a single such step would, since an example that gets another
    step gets the identity matrix.
    """

    op = "one_of"
    examples = (
        Example(
            "one_of: {steps: [random_flip: {probability: 1}, random_rotation: {degrees: 30}]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"
        ),
        Example(
            "one_of: {steps: [random_hue: {degrees: 20}, random_rotation: {degrees: 30}], weights: [3, 1], probability: 0.5}",
            IMAGE_224,
            "float32[224×224×3] in [0, 255]",
        ),
    )

    weights: tuple[Weight, ...] | None = None
    """How likely each step is, relative to the others; alike by default."""

    @model_validator(mode="after")
    def _weighted(self) -> OneOf:
        if self.weights is not None and len(self.weights) != len(self.steps):
            raise ValueError(f"`weights` has a number for each step: {len(self.steps)}, not {len(self.weights)}")
        if any(sum(weights) <= 0 for weights in self._of_epochs()):
            raise ValueError("`weights` are all 0, so that no step is left")
        return self

    def _of_epochs(self) -> list[tuple[float, ...]]:
        """The weights in each epoch up to the one from which on they stay."""
        given = [w.ranges(level_range) if isinstance(w, Schedule) else ((w, w),) for w in self.weights or (1.0,) * len(self.steps)]
        return [tuple(epochs[min(n, len(epochs) - 1)][0] for epochs in given) for n in range(max(map(len, given)))]

    def num_draws(self) -> int:
        return 1

    def share(self, number: int) -> float:
        epochs = self.over_epochs()._of_epochs()
        return sum(weights[number] / sum(weights) for weights in epochs) / len(epochs)

    def chosen(self, u: tf.Tensor, number: int) -> tf.Tensor:
        weights: Any = self.weights or (1.0,) * len(self.steps)  # of numbers, or of tensors in one epoch of a schedule
        shares = [weight / sum(weights) for weight in weights]
        low, high, later = sum(shares[:number]), sum(shares[: number + 1]), sum(shares[number + 1 :])
        if tf.is_tensor(shares[0]):
            high = tf.where(tf.equal(tf.cast(later, tf.float64), 0.0), tf.ones_like(high), high)
        elif later == 0:  # whatever sums round to
            high = 1.0
        return tf.logical_and(u[..., 0] >= low, u[..., 0] < high)

    def meaning(self) -> dict[str, object]:
        epochs = [[weight / sum(weights) for weight in weights] for weights in self._of_epochs()]
        changes = [[n, shares] for n, shares in enumerate(epochs) if not n or shares != epochs[n - 1]]
        return super().meaning() | {"weights": epochs[0] if len(changes) == 1 else {"epochs": changes}}
