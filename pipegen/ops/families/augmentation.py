"""The operations of RandAugment and similar policies, and the steps that do them for a whole batch.

Each layer of a policy does one operation to each example. Strengths are computed for all layers at once; the part of each family makes
of them what its family composes, such as a matrix, which is the identity for examples with another operation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Fill, Interpolation
from pipegen.ops.arguments.magnitudes import Schedule
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.families.neighbourhood import SharpenTransform
from pipegen.ops.lowering.colours import auto_contrasted, compose, equalized, posterized, solarized
from pipegen.ops.lowering.filters import sharpening_gains
from pipegen.ops.lowering.linear import LUMA, multiply, radians, stack
from pipegen.ops.step_bases import ColourTransform, GeometricTransform
from pipegen.ops.transform import Part, Policy, Transform

if TYPE_CHECKING:
    from typing_extensions import Self


OPERATIONS = (
    "identity", "shear_x", "shear_y", "translate_x", "translate_y", "rotate", "brightness", "color", "contrast",
    "sharpness", "posterize", "solarize", "invert", "auto_contrast", "equalize",
)  # fmt: skip
"""The operations by number, named as the papers name them."""

NUMBER = {name: number for number, name in enumerate(OPERATIONS)}
GEOMETRY = ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")
COLOUR = ("brightness", "color", "contrast")
KINDS = (("posterize", "solarize", "invert"), ("auto_contrast", "equalize"), ("sharpness",))
"""The operations of each choice of a layer, in the order of its parts: plain tables, tables of a histogram, and filters."""


class Limits(NamedTuple):
    """The effect of each operation at full strength: the slope of a shear about the top left corner, the distance of a translation (a
    fraction of the side, or `in_pixels`), the angle of a rotation about the centre, the distance from 1 of the factor of brightness,
    colour, contrast and sharpness (`enhancement`), and the number of bits, of 8, that `posterize` drops."""

    shear: float
    translation: float
    in_pixels: bool
    degrees: float
    enhancement: float
    bits: float


class Chosen(NamedTuple):
    """The operations of the layers of a policy for each example, `(..., layers)` each: the number of the operation, int32; its strength,
    float64 from 0 to 1; and its `sign`, float64 -1 or 1, the direction of operations with two."""

    operation: tf.Tensor
    strength: tf.Tensor
    sign: tf.Tensor

    def signed(self, name: str, limit: float) -> tf.Tensor:
        """The signed strength of one operation times its limit; 0 for layers with another operation."""
        amount = self.sign * self.strength * limit
        return tf.where(self.operation == NUMBER[name], amount, tf.zeros_like(amount))

    def bits(self, limits: Limits) -> tf.Tensor:
        """The bits that `posterize` leaves, int32 `(..., layers)`."""
        return 8 - tf.cast(tf.round(self.strength * limits.bits), tf.int32)

    def threshold(self) -> tf.Tensor:
        """The least value that `solarize` inverts, float64 `(..., layers)`."""
        return 255.0 * (1.0 - self.strength)

    def amounts(self, limits: Limits) -> dict[str, tuple[tuple[str, ...], tf.Tensor]]:
        """For each unit: the operations with an amount of this unit, and the amount, float64 `(..., layers)`."""

        def amount(names: tuple[str, ...], limit: float) -> tf.Tensor:
            return tf.add_n([self.signed(name, limit) for name in names])

        shear, translate, factor = GEOMETRY[:2], GEOMETRY[2:4], (*COLOUR, "sharpness")
        return {
            "degrees": (("rotate",), amount(("rotate",), limits.degrees)),
            "slope": (shear, amount(shear, limits.shear)),
            "pixels" if limits.in_pixels else "fraction": (translate, amount(translate, limits.translation)),
            "factor": (factor, 1.0 + amount(factor, limits.enhancement)),
            "bits": (("posterize",), tf.cast(self.bits(limits), tf.float64)),
            "threshold": (("solarize",), self.threshold()),
        }


def uniform_operation(u: tf.Tensor, names: tuple[str, ...]) -> tf.Tensor:
    """Numbers of operations, all equally likely: int32 of the shape of `u`."""
    return tf.gather(tf.constant([NUMBER[name] for name in names]), tf.cast(u * len(names), tf.int32))


def signs(u: tf.Tensor) -> tf.Tensor:
    """-1 or 1, each as likely: float64 of the shape of `u`."""
    return tf.where(u < 0.5, -tf.ones_like(u), tf.ones_like(u))


class Augmentation(Policy):
    """A policy of layers, each of which does one of `OPERATIONS`."""

    limits: ClassVar[Limits] = Limits(shear=0.3, translation=150 / 331, in_pixels=False, degrees=30.0, enhancement=0.9, bits=4.0)
    """The effect of each operation at full strength."""

    fill: Fill = "reflect"
    """What lies outside the image: `reflect`, `nearest`, `wrap` or `{constant: VALUE}`."""
    interpolation: Interpolation = "bilinear"
    """How a position between pixels is read."""

    def shares(self) -> tuple[dict[str, float], ...]:
        """For each layer, the expected share of the examples that get each operation; `identity` may be left out."""
        raise NotImplementedError

    def any_of(self, names: Iterable[str]) -> float:
        """The expected share of the examples that get one of these operations in some layer."""
        return 1 - math.prod(1 - sum(own.get(name, 0.0) for name in names) for own in self.shares())

    def operations(self, u: tf.Tensor) -> tf.Tensor:
        """The number of each layer's operation, int32 `(..., layers)`, from `u`, float64 `(..., num_draws)`; independent of schedules."""
        raise NotImplementedError

    def layers(self, u: tf.Tensor) -> Chosen:
        """The operation of each layer and its strength."""
        raise NotImplementedError

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """For each layer, counted from 1, its operation and the amount: `operation_1`, and one of `degrees_1`, `slope_1`, `fraction_1` or
        `pixels_1` of a translation, `factor_1`, `bits_1` that stay, and `threshold_1`."""
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

    def parts(self) -> tuple[Part, ...]:
        shares, found = self.shares(), []
        for layer, own in enumerate(shares):
            for kind, (names, part) in enumerate(zip(KINDS, (LayerTable, LayerHistogramTable, LayerFilter), strict=True)):
                if any(own.get(name, 0) for name in names):
                    step = part(policy=self, layer=layer, feature=self.feature)
                    found.append(Part(step, layer * len(KINDS) + kind))
        used = {name for own in shares for name, share in own.items() if share}
        if used & set(GEOMETRY):
            found.append(Part(AllGeometry(policy=self, fill=self.fill, interpolation=self.interpolation, feature=self.feature)))
        if used & set(COLOUR):
            found.append(Part(AllColour(policy=self, feature=self.feature)))
        return tuple(found)


class AugmentationPart(Transform):
    """A part of a policy, which has its draws, its schedules and its name."""

    random = True

    policy: Augmentation

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
    """A part of one layer of a policy."""

    layer: int
    """The number of the layer, from 0."""


class AllGeometry(AugmentationPart, GeometricTransform):
    """The geometry of every layer of a policy, as one matrix."""

    part = "geometry"

    def changes(self) -> float:
        return self.policy.any_of(GEOMETRY)

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return product(self.policy.layers(u), self.policy.limits, height, width)


def product(chosen: Chosen, limits: Limits, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """The product of the geometry of all layers: float64 `(..., 3, 3)`, from output to input, on a canvas of this size in pixels."""
    slant_x, slant_y = chosen.signed("shear_x", limits.shear), chosen.signed("shear_y", limits.shear)
    right, down = chosen.signed("translate_x", limits.translation), chosen.signed("translate_y", limits.translation)
    if not limits.in_pixels:
        right, down = right * width, down * height
    angle = radians(chosen.signed("rotate", limits.degrees))
    cos, sin = tf.cos(angle), tf.sin(angle)
    cx, cy = (width - 1.0) / 2.0, (height - 1.0) / 2.0
    # A layer does one of these, so the terms of the others are 0. The corner of shears lies half a pixel outside.
    across = cx - (cos * cx - sin * cy) - 0.5 * slant_x - right
    along = cy - (sin * cx + cos * cy) - 0.5 * slant_y - down
    matrices = stack([[cos, -sin - slant_x, across], [sin - slant_y, cos, along], [0.0, 0.0, 1.0]], angle)
    return reduce(multiply, (matrices[..., layer, :, :] for layer in range(int(chosen.operation.shape[-1]))))


class AllColour(AugmentationPart, ColourTransform):
    """The colour of every layer of a policy, as one matrix."""

    part = "colour"

    def uses_mean(self) -> bool:
        return any(own.get("contrast", 0) for own in self.policy.shares())

    def mixes_channels(self) -> bool:
        return any(own.get("color", 0) for own in self.policy.shares())

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        chosen, limit = self.policy.layers(u), self.policy.limits.enhancement
        brightness, colour, contrast = (1.0 + chosen.signed(name, limit) for name in COLOUR)
        luma = LUMA if channels == 3 else (1.0,)
        gain = brightness * contrast
        own, gray = gain * colour, gain * (1.0 - colour)
        rows = [[gray * luma[j] + (own if i == j else 0.0) for j in range(channels)] for i in range(channels)]
        matrices, pivots = stack(rows, gain), tf.stack([1.0 - contrast] * channels, -1)
        none = tf.zeros_like(pivots[..., 0, :])
        layers = range(len(self.policy.shares()))
        return reduce(compose, ((matrices[..., layer, :, :], none, pivots[..., layer, :]) for layer in layers))


class LayerTable(LayerPart, LookupTableTransform):
    """Posterize, solarize or invert, as one layer of a policy chooses."""

    part = "tables"

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        chosen = self.policy.layers(u)
        operation, bits = chosen.operation[..., self.layer], chosen.bits(self.policy.limits)[..., self.layer]
        reduced, turned = posterized(bits), solarized(chosen.threshold()[..., self.layer])
        inverted = 255 - tf.range(256)
        return tf.where(_is(operation, "posterize"), reduced, tf.where(_is(operation, "solarize"), turned, inverted))


class LayerHistogramTable(LayerPart, LookupTableTransform):
    """Auto-contrast or equalization, as one layer of a policy chooses."""

    part = "histogram tables"
    needs_histogram = True

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return tf.where(self.from_extremes(u)[:, None, None], auto_contrasted(histogram), equalized(histogram))

    def from_extremes(self, u: tf.Tensor) -> tf.Tensor:
        return self.policy.operations(u)[..., self.layer] == NUMBER["auto_contrast"]


class LayerFilter(LayerPart, SharpenTransform):
    """Sharpness, as one layer of a policy chooses."""

    part = "filter"

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return sharpening_gains(1.0 + self.policy.layers(u).signed("sharpness", self.policy.limits.enhancement)[..., self.layer])


def _is(operation: tf.Tensor, name: str) -> tf.Tensor:
    return (operation == NUMBER[name])[:, None, None]
