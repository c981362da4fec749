"""Policies: steps that choose, for each example, among steps of other families."""

from __future__ import annotations

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Probability, most
from pipegen.ops.traits import Family
from pipegen.ops.transform import Transform
from pipegen.types import FeatureType, times


class Policy(Transform):
    """A step whose parts do its work. Subclasses define the parts, and which of them the draws of an example choose."""

    family = Family.POLICY

    random = True

    probability: Probability = 1.0
    """The share of examples that the policy changes."""

    def chosen(self, u: tf.Tensor, number: int) -> tf.Tensor:
        """Whether an example gets the choice of a number, as in the parts: bool `(...)`, from draws float64 `(..., num_draws)`, uniform in
        [0, 1)."""
        raise NotImplementedError

    def share(self, number: int) -> float:
        """The expected share of the examples that get one of the choices."""
        raise NotImplementedError

    def infer(self, x: FeatureType) -> FeatureType:
        """The type after all parts, one after another."""
        for part in self.parts():
            y = part.step.infer(x)
            require_same_shape(part.step, x, y)
            x = y
        return x

    def is_identity(self, x: FeatureType) -> bool:
        return most(self.probability) == 0 and all(part.step.infer(x) == x for part in self.parts())


def require_same_shape(step: Transform, x: FeatureType, y: FeatureType) -> None:
    """Rejects, as `PG226`, a part that changes the shape: examples with and without it could not be stacked."""
    if x.shape != y.shape:
        made = f"`{step.op}` makes {times(y.shape)} of {times(x.shape)}"
        raise OpError("PG226", f"{made}, and a policy does it to some examples only")
