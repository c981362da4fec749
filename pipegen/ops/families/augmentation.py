"""The operations that RandAugment and its kin choose from, and the steps that do them for a whole batch.

Each layer of such a policy does one operation to each example. Their strengths are computed for all layers at once, and
each family's part turns them into what its family composes: an example that got something else gets the identity.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pipegen.lazy import tf
from pipegen.ops.base import Fill, Interpolation, Transform
from pipegen.ops.families.policies import Policy

if TYPE_CHECKING:
    from typing_extensions import Self

    from pipegen.ops.arguments.schedules import Schedule

OPERATIONS = (
    "identity", "shear_x", "shear_y", "translate_x", "translate_y", "rotate", "brightness", "color", "contrast",
    "sharpness", "posterize", "solarize", "invert", "auto_contrast", "equalize",
)  # fmt: skip
"""The operations by number, named as the papers name them."""

NUMBER = {name: number for number, name in enumerate(OPERATIONS)}
GEOMETRY = ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")
COLOUR = ("brightness", "color", "contrast")
PLAIN_TABLES = ("posterize", "solarize", "invert")
HISTOGRAM_TABLES = ("auto_contrast", "equalize")
FILTERS = ("sharpness",)


class Limits(NamedTuple):
    """Holds what each operation does at full strength.

    Attributes:
        shear: The slope, about the top left corner.
        translation: The distance, as a fraction of the side or in pixels.
        in_pixels: Whether it is in pixels.
        degrees: The angle of a rotation about the centre.
        enhancement: How far the factor of brightness, colour, contrast and sharpness lies from 1.
        bits: How many of the 8 bits of a value `posterize` drops.
    """

    shear: float
    translation: float
    in_pixels: bool
    degrees: float
    enhancement: float
    bits: float


class Chosen(NamedTuple):
    """Holds what the layers of a policy do to each example.

    Attributes:
        operation: int32 `(..., layers)`: by number.
        strength: float64 `(..., layers)` from 0 to 1.
        sign: float64 `(..., layers)`: -1 or 1, the direction of what has two.
    """

    operation: tf.Tensor
    strength: tf.Tensor
    sign: tf.Tensor

    def signed(self, name: str, limit: float) -> tf.Tensor:
        """Of one operation, the strength times its limit, with its sign; 0 where a layer does something else."""
        amount = self.sign * self.strength * limit
        return tf.where(self.operation == NUMBER[name], amount, tf.zeros_like(amount))

    def bits(self, limits: Limits) -> tf.Tensor:
        """Returns the bits that `posterize` leaves, int32 `(..., layers)`."""
        return 8 - tf.cast(tf.round(self.strength * limits.bits), tf.int32)

    def threshold(self) -> tf.Tensor:
        """The least value that `solarize` turns, float64 `(..., layers)`."""
        return 255.0 * (1.0 - self.strength)

    def amounts(self, limits: Limits) -> dict[str, tuple[tuple[str, ...], tf.Tensor]]:
        """By their units: the operations that have an amount, and how much it is, float64 `(..., layers)`."""

        def amount(names: tuple[str, ...], limit: float) -> tf.Tensor:
            return tf.add_n([self.signed(name, limit) for name in names])

        shear, translate, factor = GEOMETRY[:2], GEOMETRY[2:4], (*COLOUR, *FILTERS)
        return {
            "degrees": (("rotate",), amount(("rotate",), limits.degrees)),
            "slope": (shear, amount(shear, limits.shear)),
            "pixels" if limits.in_pixels else "fraction": (translate, amount(translate, limits.translation)),
            "factor": (factor, 1.0 + amount(factor, limits.enhancement)),
            "bits": (("posterize",), tf.cast(self.bits(limits), tf.float64)),
            "threshold": (("solarize",), self.threshold()),
        }


def uniform_operation(u: tf.Tensor, names: tuple[str, ...]) -> tf.Tensor:
    """Operations by number, each as likely as another: int32 of the shape of `u`."""
    return tf.gather(tf.constant([NUMBER[name] for name in names]), tf.cast(u * len(names), tf.int32))


def signs(u: tf.Tensor) -> tf.Tensor:
    """-1 or 1, each as likely: float64 of the shape of `u`."""
    return tf.where(u < 0.5, -tf.ones_like(u), tf.ones_like(u))


class Augmentation(Policy):
    """A policy of layers, each of which does one of `OPERATIONS`; `LayeredAugmentation` has its parts.

    Class attributes:
        limits: What each operation does at full strength.
    """

    limits: ClassVar[Limits]

    fill: Fill = "reflect"
    """What lies outside the image: `reflect`, `nearest`, `wrap` or `{constant: VALUE}`."""
    interpolation: Interpolation = "bilinear"
    """How a position between pixels is read."""

    def shares(self) -> tuple[dict[str, float], ...]:
        """For each layer, the expected share of the examples that get each operation; `identity` may be left out."""
        raise NotImplementedError

    def operations(self, u: tf.Tensor) -> tf.Tensor:
        """Returns what each layer does, by number: int32 `(..., layers)` from `u`, float64 `(..., num_draws)`; no schedule changes it."""
        raise NotImplementedError

    def layers(self, u: tf.Tensor) -> Chosen:
        """Returns what each layer does, and how strongly."""
        raise NotImplementedError

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """For each layer, counted from 1, what it does and how strongly: `operation_1`, and with it what that operation has:
        `degrees_1`, `slope_1`, `fraction_1` or `pixels_1` of a translation, `factor_1`, `bits_1` that stay, `threshold_1`."""
        chosen, found = self.layers(u), {}
        for layer in range(len(self.shares())):
            operation = chosen.operation[..., layer]
            found[f"operation_{layer + 1}"] = tf.gather(tf.constant(OPERATIONS), operation)
            for name, (operations, amount) in chosen.amounts(self.limits).items():
                does = tf.reduce_any([operation == NUMBER[each] for each in operations], axis=0)
                found[f"{name}_{layer + 1}"] = tf.where(does, amount[..., layer], math.nan)
        return found

    def share(self, number: int) -> float:
        layer, kind = divmod(number, len(KINDS))
        return sum(self.shares()[layer].get(name, 0.0) for name in KINDS[kind])

    def chosen(self, u: tf.Tensor, number: int) -> tf.Tensor:
        layer, kind = divmod(number, len(KINDS))
        members = tf.constant([name in KINDS[kind] for name in OPERATIONS])
        return tf.gather(members, self.operations(u)[..., layer])


KINDS = (PLAIN_TABLES, HISTOGRAM_TABLES, FILTERS)
"""What a layer does under a choice, in the order of the parts."""


class AugmentationPart(Transform):
    """Takes from its policy what every part has: its draws, its schedules, and how a message calls it."""

    random = True

    policy: Augmentation
    """Whose."""

    @property
    def op(self) -> str:  # type: ignore[override]
        return self.policy.op

    def written(self) -> Transform:
        return self.policy

    def num_draws(self) -> int:
        return self.policy.num_draws()

    def schedules(self) -> dict[str, Schedule]:
        return self.policy.schedules()

    def at(self, epoch: tf.Tensor) -> Self:
        return self.model_copy(update={"policy": self.policy.at(epoch)})


class LayerPart(AugmentationPart):
    """The part of one layer."""

    layer: int
    """Which layer, from 0."""
