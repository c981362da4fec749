"""The combining family: steps that combine parts of other examples into each one, with its label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Alpha, Probability, level_range
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.families.sounds import is_sound, require_sound
from pipegen.ops.kinds.base import kind_of
from pipegen.ops.stage import Computes, OneStep, Stage, use
from pipegen.ops.step_bases import require_image
from pipegen.ops.traits import Family
from pipegen.ops.transform import Transform, When
from pipegen.types import ElementType, FeatureType

GROUP = 8  # the number of consecutive positions of an epoch's order whose examples combine with one another

WHOLE = 1 << 16  # the parts of a whole that shares are counted in, so that combining bytes in float32 is exact: 255 * 65536 < 2^24

COUNTS = {1: "two", 3: "four"}  # the number of combined examples in words, by the number of partners


@dataclass(frozen=True)
class Seen:
    """The part of a combined image that shows one of its sources: inside or `outside` a window, whose top, left, bottom and right edge in
    pixels are whole numbers `(n, 4)`, `None` for the whole image. The source is moved by `shift` rows and columns, `(n, 2)`, if given."""

    window: tf.Tensor | None = None
    outside: bool = False
    shift: tf.Tensor | None = None


class CombiningTransform(Transform):
    """A function of an example and its partners, which are other examples of its group.

    The members of a group are ranked by their draws, and the partners of each are the next ones in that order, cyclically: so every member
    is the first partner of one, the second of another, and so on. A member's own draws decide what it takes from its partners.
    """

    family = Family.COMBINING

    random = True
    draws = 2  # the rank in the group, and whether the step acts
    handles_probability = True
    others: ClassVar[int] = 1
    """The number of partners. In a smaller group members repeat, the example itself among them."""

    probability: Probability = 1.0
    """The share of examples that the step changes; the others stay as they are, and can still be partners."""

    def infer(self, x: FeatureType) -> FeatureType:
        if is_sound(x):
            require_sound(self, x, "either")
        else:
            require_image(self, x)
        return x

    def rank(self, u: tf.Tensor) -> tf.Tensor:
        """The rank of an example in its group: float64 `(...)`, from `u` `(..., num_draws)`."""
        return u[..., 0]

    def acts(self, u: tf.Tensor) -> tf.Tensor:
        """Whether the step changes an example: bool `(...)`."""
        return u[..., 1] < self.probability

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`own_share`: the weight of the example's own label, float32 `(...)`."""
        return {"own_share": self.shares(self.choose(u, *shape[:2]), *shape[:2])[..., 0]}

    def choose(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        """Computes the choices of the draws, float64 `(..., num_draws)` in [0, 1), for images of a size in pixels, as whole numbers, with
        the same bits everywhere: int32 `(..., k)`."""
        raise NotImplementedError

    def shares(self, chosen: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tf.Tensor:
        """The weights of an example's own label and of its partners' labels, float32 `(..., 1 + others)` in [0, 1], which sum to 1, from
        what was `chosen`."""
        raise NotImplementedError

    def seen(self, chosen: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[Seen, ...]:
        """The parts of the combined image that show the example and each of its partners, from what was `chosen`, `(n, k)`, for boxes to
        follow; by default all of it."""
        return (Seen(),) * (1 + self.others)

    def combine(self, images: tf.Tensor, partners: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
        """Combines images `(n, height, width, channels)` with those of their partners, `(n, others, height, width, channels)`, by what was
        `chosen`, `(n, k)`, as a pure function, to the dtype that `infer` gives."""
        raise NotImplementedError


class PairTransform(CombiningTransform):
    """A function of an example and one partner, with a share drawn from a Beta distribution."""

    draws = 4

    alpha: Alpha
    """Both parameters of the Beta distribution of the example's own share: 1 is uniform, less is mostly near 0 or 1, more is mostly near
    one half."""

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        largest = level_range(self.alpha)[1]
        if largest <= 10:
            return ()
        help_ = "the papers use 0.1 to 1"
        message = f"with `alpha: {largest:g}` `{self.op}` combines nearly every pair half and half"
        return (OpError("PG510", message, field="alpha", help=help_),)

    def drawn_share(self, u: tf.Tensor) -> tf.Tensor:
        """The example's own share, in parts of `WHOLE`, before a rectangle is rounded: int32 `(...)`."""
        parts = tf.cast(tf.round(symmetric_beta(u[..., 2:4], self.alpha) * WHOLE), tf.int32)
        return tf.where(self.acts(u), parts, WHOLE)


@dataclass(frozen=True, slots=True)
class Combine(OneStep[CombiningTransform], Computes):
    """Combines parts of other examples of the group into each one. `canvas` is the height and width of the images, in pixels; a `label` is
    weighed by the shares."""

    combines: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.2

    canvas: tuple[int | None, int | None]
    label: bool
    exact: bool = False

    def says(self) -> str:
        return f"{'weigh the labels of' if self.label else 'combine'} {COUNTS[self.ref.step.others]} of a group of {GROUP}: {use(self.ref)}"

    def rereads(self, before: Sequence[Stage]) -> bool:
        return bool(before)


def combine_labels(labels: tf.Tensor, partners: tf.Tensor, shares: tf.Tensor) -> tf.Tensor:
    """Weighs labels, float32 `(n, classes)`, and those of their partners, `(n, others, classes)`, by shares, float32 `(n, 1 + others)`."""
    # Products of float32 are exact in float64, so a compiler may fuse them with the sum.
    total = tf.cast(labels, tf.float64) * tf.cast(shares[:, :1], tf.float64)
    for i in range(int(partners.shape[1])):
        # Not `[:, i + 1, None]`: TensorFlow's optimiser loses the new axis of such a slice of a stack.
        total = total + tf.cast(partners[:, i], tf.float64) * tf.cast(shares[:, i + 1 : i + 2], tf.float64)
    return tf.cast(total, tf.float32)


def symmetric_beta(u: tf.Tensor, alpha: float | tf.Tensor) -> tf.Tensor:
    """Draws from Beta(alpha, alpha), float64 `(...)`, from two uniform numbers each, float64 `(..., 2)` in [0, 1), and without a loop.

    Bailey's polar method (Mathematics of Computation 62, 1994) gives T = sqrt(v (U^(-2/v) - 1)) cos(2 pi V) of Student's
    distribution with v degrees of freedom, and (1 + T / sqrt(v + T^2)) / 2 is Beta(v/2, v/2); here v = 2 alpha.
    """
    cosine = tf.cos(u[..., 1] * (2 * math.pi))
    squared = tf.math.expm1(-tf.math.log(u[..., 0]) / alpha) * cosine * cosine  # T^2 / v; infinite at U = 0, which is right
    return 0.5 + 0.5 * tf.sign(cosine) / tf.sqrt(1.0 + 1.0 / squared)


def anchor(type_: ElementType, feature: str) -> str:
    """Returns the feature that one is aligned with, if present, else itself."""
    of = type_[feature].of
    return of if of is not None and of in type_ else feature


def acted_on(step: Transform, type_: ElementType) -> tuple[str, ...]:
    """Lists the features that a step acts on, unless it names one. By default, features aligned with an image change only if a step moves
    pixels."""
    follows = isinstance(step, (DecodeTransform, CombiningTransform))
    known = [(name, t) for name, t in type_.items() if step.acts_on(kind_of(t))]
    return tuple(name for name, t in known if follows or step.reaches(t) or anchor(type_, name) == name)


def runs_on(step: Transform, split: str) -> bool:
    """Checks that a step acts on a split: by default, random steps only on `train`, others on all."""
    when = step.when if step.when is not None else ("train" if step.random else "all")
    return named_by(when, split)


def on_split(step: Transform, split: str) -> tuple[Transform, ...]:
    """The steps that a split runs in the place of a step: itself, its evaluation form, or none."""
    if runs_on(step, split):
        return (step,)
    return step.evaluation_form() if step.when is None else ()


def named_by(when: When, split: str) -> bool:
    """Checks that a `when` names a split."""
    if isinstance(when, list):
        return split in when
    return when == "all" or (split == "train") == (when == "train")
