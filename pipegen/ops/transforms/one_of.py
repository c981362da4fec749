"""Do one of several steps."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.selections import Selection


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

    weights: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...] | None = None
    """How likely each step is, relative to the others; alike by default."""

    @model_validator(mode="after")
    def _weighted(self) -> OneOf:
        if self.weights is not None and len(self.weights) != len(self.steps):
            raise ValueError(f"`weights` has a number for each step: {len(self.steps)}, not {len(self.weights)}")
        if self.weights is not None and sum(self.weights) <= 0:
            raise ValueError("`weights` are all 0, so that no step is left")
        return self

    def num_draws(self) -> int:
        return 1

    def share(self, number: int) -> float:
        weights = self.weights or (1.0,) * len(self.steps)
        return weights[number] / sum(weights)

    def chosen(self, u: tf.Tensor, number: int) -> tf.Tensor:
        low, high = (sum(self.share(i) for i in range(end)) for end in (number, number + 1))
        last = all(self.share(i) == 0 for i in range(number + 1, len(self.steps)))  # whatever sums round to
        return tf.logical_and(u[..., 0] >= low, u[..., 0] < (1.0 if last else high))

    def meaning(self) -> dict[str, object]:
        return super().meaning() | {"weights": [self.share(i) for i in range(len(self.steps))]}
