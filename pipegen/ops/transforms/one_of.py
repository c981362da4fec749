"""Do some of several steps, or steps in a random order."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import AnySchedule, Schedule, Strength, as_pair, check_range, checked, level_range
from pipegen.ops.families.selections import InnerStep, Selection
from pipegen.ops.lowering.windows import whole_between
from pipegen.ops.traits import ANY_IMAGE, Example, same_type, to_float32
from pipegen.ops.transform import Part, Policy, Transform


def check_weight(value: Strength, name: str) -> None:
    """Raises `ValueError` unless the value is a plain number of at least 0."""
    if isinstance(value, tuple):
        raise ValueError(f"one of the `{name}` is a plain number in each epoch, not a range")
    check_range(value, name, 0)


Weight = Annotated[Annotated[float, Field(ge=0, allow_inf_nan=False)] | AnySchedule, checked(check_weight)]


class OneOf(Selection):
    """Does exactly one of the steps to each example, drawn by `weights`.

    Each step keeps its own arguments; with a `probability` below 1, the step that is drawn may still leave the example as it is. Geometry
    and colour cost the same as a single such step, since an example that gets another step gets the identity matrix.

    Crops and resizes may be among the steps if all of them end at one size: at that of the image before, or, if each example gets one of
    them, at another. On the other splits, the first of several crops and resizes, or what replaces it there, stands for all of them.
    """

    op = "one_of"
    draws = 1
    examples = (
        *same_type("one_of: {steps: [random_flip: {probability: 1}, random_rotation: {degrees: 30}]}"),
        *to_float32("one_of: {steps: [random_hue: {degrees: 20}, random_rotation: {degrees: 30}], weights: [3, 1], probability: 0.5}"),
        Example("one_of: {steps: [random_resized_crop: {size: 96}, resize: {size: 96}]}", ANY_IMAGE, "uint8[96×96×3] in [0, 255]"),
    )

    weights: tuple[Weight, ...] | None = None
    """The relative probability of each step; equal by default."""

    @model_validator(mode="after")
    def _weighted(self) -> OneOf:
        if self.weights is not None and len(self.weights) != len(self.steps):
            raise ValueError(f"`weights` needs a number for each step: {len(self.steps)}, not {len(self.weights)}")
        if any(sum(weights) <= 0 for weights in self._of_epochs()):
            raise ValueError("`weights` are all 0: at least one must be above 0")
        return self

    def _of_epochs(self) -> list[tuple[float, ...]]:
        """The weights in each epoch, up to the one after which they do not change."""
        given = [w.ranges(level_range) if isinstance(w, Schedule) else ((w, w),) for w in self.weights or (1.0,) * len(self.steps)]
        return [tuple(epochs[min(n, len(epochs) - 1)][0] for epochs in given) for n in range(max(map(len, given)))]

    def picks_one(self) -> bool:
        return True

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


Count = Annotated[int, Field(ge=0)]


class SomeOf(Selection):
    """Does a number of different steps to each example; all choices of steps are equally likely.

    Steps run in the order of a block: crops and resizes, then tables and filters as they are written, then all geometry as one resampling,
    then all colour as one matrix. Crops and resizes have to keep the size of the image, unless `count` is 1. It draws a number for `count`
    and one for each step.
    """

    op = "some_of"
    pairs = frozenset({"count"})
    examples = (
        *same_type("some_of: {count: 2, steps: [random_flip, random_rotation: {degrees: 30}, random_shear: {degrees: 10}]}"),
        *to_float32("some_of: {count: [0, 2], steps: [random_hue: {degrees: 20}, random_brightness: {factor: 0.3}]}"),
    )

    count: Annotated[Count | tuple[Count, Count], checked(check_range)]
    """The number of steps that an example gets; a pair is the range, both ends included."""

    @model_validator(mode="after")
    def _few_enough(self) -> SomeOf:
        high = as_pair(self.count)[1]
        if high > len(self.steps):
            raise ValueError(f"`count` reaches {high}, and there are {len(self.steps)} steps")
        return self

    def num_draws(self) -> int:
        return 1 + len(self.steps)

    def picks_one(self) -> bool:
        return as_pair(self.count) == (1, 1)

    def share(self, number: int) -> float:
        return sum(as_pair(self.count)) / 2 / len(self.steps)

    def chosen(self, u: tf.Tensor, number: int) -> tf.Tensor:
        """Chooses a step when fewer than `count` of the others drew a smaller number."""
        return _rank(u[..., 1:], number) < whole_between(u[..., 0], as_pair(self.count))


def _rank(u: tf.Tensor, number: int) -> tf.Tensor:
    """Counts the steps that drew a smaller number than one of them, from a number for each: int32 `(...)`."""
    own = u[..., number, None]
    before, after = u[..., :number] <= own, u[..., number + 1 :] < own
    return tf.reduce_sum(tf.cast(tf.concat([before, after], -1), tf.int32), -1)


class RandomOrder(Selection):
    """Does all of the steps to each example, in a random order; all orders are equally likely.

    Unlike in a block of other policies, the order also holds between families: a table after a colour step acts on its result. Steps of
    one family cost the same as without an order (matrices and tables multiply), and geometry beside other families is resampled once for
    each step. A table or a step on bytes rounds its input to bytes in any order. It draws a number for each step.
    """

    op = "random_order"
    examples = (
        *to_float32("random_order: {steps: [random_brightness: {factor: 0.2}, random_contrast: {factor: 0.2}, random_hue: {degrees: 10}]}"),
        *same_type("random_order: {steps: [random_posterization: {bits: [4, 6]}, random_solarization: {threshold: [128, 256]}]}"),
    )

    steps: Annotated[tuple[InnerStep, ...], Field(min_length=2, max_length=6)]
    """The steps, from 2 to 6, written as they are in `transforms`."""

    @classmethod
    def refuses(cls, step: Transform) -> tuple[str, str] | None:
        if isinstance(step, Policy):
            return f"`{cls.op}` cannot hold `{step.op}`", "it holds steps, not policies"
        return super().refuses(step)

    def num_draws(self) -> int:
        return len(self.steps)

    def share(self, number: int) -> float:
        return 1 / len(self.steps)

    def chosen(self, u: tf.Tensor, number: int) -> tf.Tensor:
        """Numbers count places first, then steps. The place of a step is the number of others that drew a smaller number."""
        place, step = divmod(number, len(self.steps))
        return _rank(u, step) == place

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """The place of each step, from 1, by the step's name; the second one of a name is `NAME#2`."""
        return {name: _rank(u, step) + 1 for step, name in enumerate(super().drawn(u))}

    def parts(self) -> tuple[Part, ...]:
        own = self.own_steps()
        return tuple(Part(step, place * len(own) + i, i) for place in range(len(own)) for i, step in enumerate(own))
