"""The mixing family: steps that take a part of another example into each one, and let its label follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Number
from pipegen.ops.base import Transform, require_image
from pipegen.ops.stage import Computes, Stage, StepRef, only_identities
from pipegen.ops.traits import Family
from pipegen.ops.wording import use
from pipegen.types import FeatureType

GROUP = 8
"""Consecutive positions of an epoch's order whose examples mix with one another: a part of the meaning of every such step."""

WHOLE = 1 << 16
"""A share is a whole number of these parts, so that mixing bytes in float32 is exact: 255 * 65536 < 2^24."""

_SHARED_DRAWS = 4
"""The rank in the group, whether the step acts, and two for the share."""


class MixingTransform(Transform):
    """A function of an example and its partner, another one of its group.

    The draws of the members of a group rank them, and the partner of each is the next in that order, the last one's the
    first: so everyone has another partner, and is one itself. What a member takes of its partner, its own draws decide.
    """

    family = Family.MIXING

    random = True
    handles_probability = True

    alpha: Annotated[Number, Field(gt=0)]
    """Both parameters of the Beta distribution that the example's own share is drawn from: 1 is uniform, less is mostly
    near 0 or 1, more is mostly near one half."""
    probability: Annotated[float, Field(ge=0, le=1)] = 1.0
    """The share of examples that the step changes; the others stay as they are, and can still be another one's partner."""

    def infer(self, x: FeatureType) -> FeatureType:
        """The same type."""
        require_image(self, x)
        return x

    def is_identity(self, x: FeatureType) -> bool:
        return self.probability == 0

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        if self.alpha <= 10:
            return ()
        help_ = "the papers use 0.1 to 1"
        message = f"with `alpha: {self.alpha:g}` `{self.op}` mixes nearly every pair half and half"
        return (OpError("PG510", message, field="alpha", help=help_),)

    def num_draws(self) -> int:
        return _SHARED_DRAWS

    def rank(self, u: tf.Tensor) -> tf.Tensor:
        """Ranks an example in its group: float64 `(...)`, from `u` `(..., num_draws)`."""
        return u[..., 0]

    def drawn_share(self, u: tf.Tensor) -> tf.Tensor:
        """The share that stays the example's own, in parts of `WHOLE`, before a rectangle is rounded: int32 `(...)`."""
        parts = tf.cast(tf.round(symmetric_beta(u[..., 2:4], self.alpha) * WHOLE), tf.int32)
        return tf.where(u[..., 1] < self.probability, parts, WHOLE)

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`own_share`: the weight of the example's own label, float32 `(...)`."""
        return {"own_share": self.own_share(self.choose(u, *shape[:2]), *shape[:2])}

    def choose(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        """Returns what the draws decide, as whole numbers: the same bits wherever it is computed.

        Args:
            u: float64 `(..., num_draws)`, uniform in [0, 1).
            height: The height of the images, in pixels.
            width: Their width.

        Returns:
            int32 `(..., k)`.
        """
        raise NotImplementedError

    def own_share(self, chosen: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        """The weight of an example's own label, float32 `(...)` in [0, 1]; its partner's has the rest.

        Args:
            chosen: From `choose`.
            height: The height of the images, in pixels.
            width: Their width.
        """
        raise NotImplementedError

    def mix(self, images: tf.Tensor, partners: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
        """The mixed images: a pure function.

        Args:
            images: `(n, height, width, channels)`.
            partners: The image of each one's partner, likewise.
            chosen: From `choose`, `(n, k)`.

        Returns:
            Images of the dtype that `infer` says.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Mix(Computes):
    """Take a part of another example of the group into each one.

    Attributes:
        canvas: The height and width of the images, in pixels.
        label: Whether the feature is a label, which is weighed by the share that is taken.
    """

    mixes: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.2

    feature: str
    ref: StepRef[MixingTransform]
    canvas: tuple[int | None, int | None]
    label: bool
    exact: bool = False

    def says(self) -> str:
        return f"{'weigh the labels of' if self.label else 'mix'} two of a group of {GROUP}: {use(self.ref)}"

    def rereads(self, before: Sequence[Stage]) -> bool:
        return bool(before)

    def is_identity(self, x: FeatureType, y: FeatureType) -> bool:
        return only_identities((self.ref,), x, y)


def mix_labels(labels: tf.Tensor, partners: tf.Tensor, own_share: tf.Tensor) -> tf.Tensor:
    """Labels of two examples, weighed.

    Args:
        labels: float32 `(n, classes)`.
        partners: Those of the partners, likewise.
        own_share: float32 `(n,)`.

    Returns:
        float32 `(n, classes)`.
    """
    # Products of float32 are exact as float64, so that it makes no difference whether a compiler joins them with the sum.
    share, rest, own, other = (tf.cast(t, tf.float64) for t in (own_share[:, None], 1.0 - own_share[:, None], labels, partners))
    return tf.cast(own * share + other * rest, tf.float32)


def symmetric_beta(u: tf.Tensor, alpha: float) -> tf.Tensor:
    """Numbers of the distribution Beta(alpha, alpha), from two uniform ones each and without a loop.

    Bailey's polar method (Mathematics of Computation 62, 1994) gives T = sqrt(v (U^(-2/v) - 1)) cos(2 pi V) of Student's
    distribution with v degrees of freedom, and (1 + T / sqrt(v + T^2)) / 2 is Beta(v/2, v/2); here v = 2 alpha.

    Args:
        u: float64 `(..., 2)`, uniform in [0, 1).
        alpha: Above 0.

    Returns:
        float64 `(...)` in [0, 1].
    """
    cosine = tf.cos(u[..., 1] * (2 * math.pi))
    squared = tf.math.expm1(-tf.math.log(u[..., 0]) / alpha) * cosine * cosine  # T^2 / v; infinite at U = 0, which is right
    return 0.5 + 0.5 * tf.sign(cosine) / tf.sqrt(1.0 + 1.0 / squared)
