"""AutoAugment, RandAugment, TrivialAugment and AugMix: a few operations on each image, drawn from a list."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Level, as_pair, ascending, bounded, check_number, checked, level_range
from pipegen.ops.families.augmentation import GEOMETRY, NUMBER, OPERATIONS, Augmentation, Chosen, Limits, product, signs, uniform_operation
from pipegen.ops.families.chains import PLAIN, SPREAD, STRETCH, Chains, ChainsTransform
from pipegen.ops.families.combining import symmetric_beta
from pipegen.ops.lowering.colours import posterized, solarized
from pipegen.ops.lowering.filters import whole_weights
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.random import symmetric_dirichlet
from pipegen.ops.lowering.windows import whole_between
from pipegen.ops.traits import same_type, to_float32

PolicyName = Literal["imagenet", "cifar10", "svhn"]


class SubPolicy(NamedTuple):
    """Two operations, with the probability and the level (0 to 9) of each."""

    operations: tuple[str, str]
    probabilities: tuple[float, float]
    levels: tuple[int, int]


_SUB_POLICIES: dict[PolicyName, str] = {
    "imagenet": """
        posterize .4 8, rotate .6 9
        solarize .6 5, auto_contrast .6
        equalize .8, equalize .6
        posterize .6 7, posterize .6 6
        equalize .4, solarize .2 4
        equalize .4, rotate .8 8
        solarize .6 3, equalize .6
        posterize .8 5, equalize 1
        rotate .2 3, solarize .6 8
        equalize .6, posterize .4 6
        rotate .8 8, color .4 0
        rotate .4 9, equalize .6
        equalize 0, equalize .8
        invert .6, equalize 1
        color .6 4, contrast 1 8
        rotate .8 8, color 1 2
        color .8 8, solarize .8 7
        sharpness .4 7, invert .6
        shear_x .6 5, equalize 1
        color .4 0, equalize .6
        equalize .4, solarize .2 4
        solarize .6 5, auto_contrast .6
        invert .6, equalize 1
        color .6 4, contrast 1 8
        equalize .8, equalize .6
    """,
    "cifar10": """
        invert .1, contrast .2 6
        rotate .7 2, translate_x .3 9
        sharpness .8 1, sharpness .9 3
        shear_y .5 8, translate_y .7 9
        auto_contrast .5, equalize .9
        shear_y .2 7, posterize .3 7
        color .4 3, brightness .6 7
        sharpness .3 9, brightness .7 9
        equalize .6, equalize .5
        contrast .6 7, sharpness .6 5
        color .7 7, translate_x .5 8
        equalize .3, auto_contrast .4
        translate_y .4 3, sharpness .2 6
        brightness .9 6, color .2 8
        solarize .5 2, invert 0
        equalize .2, auto_contrast .6
        equalize .2, equalize .6
        color .9 9, equalize .6
        auto_contrast .8, solarize .2 8
        brightness .1 3, color .7 0
        solarize .4 5, auto_contrast .9
        translate_y .9 9, translate_y .7 9
        auto_contrast .9, solarize .8 3
        equalize .8, invert .1
        translate_y .7 9, auto_contrast .9
    """,
    "svhn": """
        shear_x .9 4, invert .2
        shear_y .9 8, invert .7
        equalize .6, solarize .6 6
        invert .9, equalize .6
        equalize .6, rotate .9 3
        shear_x .9 4, auto_contrast .8
        shear_y .9 8, invert .4
        shear_y .9 5, solarize .2 6
        invert .9, auto_contrast .8
        equalize .6, rotate .9 3
        shear_x .9 4, solarize .3 3
        shear_y .8 8, invert .7
        equalize .9, translate_y .6 6
        invert .9, equalize .6
        contrast .3 3, rotate .8 4
        invert .8, translate_y 0 2
        shear_y .7 6, solarize .4 8
        invert .6, rotate .8 4
        shear_y .3 7, translate_x .9 3
        shear_x .1 6, invert .6
        solarize .7 2, translate_y .6 7
        shear_y .8 4, invert .8
        shear_x .7 9, translate_y .8 3
        shear_y .8 5, auto_contrast .7
        shear_x .7 2, invert .1
    """,
}


@cache
def sub_policies(name: PolicyName) -> tuple[SubPolicy, ...]:
    """The 25 sub-policies of a published policy, in the order of the paper."""
    found = []
    for line in _SUB_POLICIES[name].strip().splitlines():
        first, second = (part.split() for part in line.split(","))
        levels = tuple(int(part[2]) if len(part) > 2 else 0 for part in (first, second))
        found.append(SubPolicy((first[0], second[0]), (float(first[1]), float(second[1])), (levels[0], levels[1])))
    return tuple(found)


class AutoAugment(Augmentation):
    """Draws one of 25 published pairs of operations for each example, and does each of the two with its own probability.

    The operations, and what they do at full strength (level 9 of the tables): shear along x or y, a slope of 0.3 about the
    top left corner; translation along x or y, 150/331 of the side; rotation, 30 degrees; brightness, colour (saturation),
    contrast and sharpness, a factor of 1.9 or 0.1; posterize, 4 of the 8 bits; solarize, every value; invert, auto-contrast
    and equalization, which have no strength. Where there are two directions, each is as likely.

    The two are applied by family: tables and sharpness first, in order, then geometry as one resampling, then colour as one matrix with one
    clip. The output is float32.

    Source: Cubuk, Zoph, Mané, Vasudevan, Le, "AutoAugment: Learning Augmentation Strategies from Data" (2019).
    """

    op = "auto_augment"
    draws = 5
    examples = to_float32("auto_augment", "auto_augment: {policy: cifar10, fill: {constant: 128}}")

    policy: PolicyName = "imagenet"
    """The dataset that the policy was found on: `imagenet`, `cifar10` or `svhn`."""

    def shares(self) -> tuple[dict[str, float], ...]:
        table = sub_policies(self.policy)
        shares: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        for sub in table:
            for layer in range(2):
                shares[layer][sub.operations[layer]] += sub.probabilities[layer] / len(table)  # type: ignore[assignment]
        return tuple(dict(share) for share in shares)

    def operations(self, u: tf.Tensor) -> tf.Tensor:
        table, number = sub_policies(self.policy), self._number(u)
        drawn = tf.gather(tf.constant([[NUMBER[name] for name in sub.operations] for sub in table]), number)
        probability = tf.gather(tf.constant([sub.probabilities for sub in table], tf.float64), number)
        return tf.where(u[..., 1:3] < probability, drawn, tf.zeros_like(drawn))

    def layers(self, u: tf.Tensor) -> Chosen:
        levels = tf.constant([sub.levels for sub in sub_policies(self.policy)], tf.float64)
        return Chosen(self.operations(u), tf.gather(levels, self._number(u)) / 9, signs(u[..., 3:5]))

    def _number(self, u: tf.Tensor) -> tf.Tensor:
        """The number of the sub-policy, int32 `(...)`."""
        return tf.cast(u[..., 0] * len(sub_policies(self.policy)), tf.int32)


USED = tuple(name for name in OPERATIONS if name != "invert")


class RandAugment(Augmentation):
    """Does `num_ops` operations to each example, each drawn among 14, all at the strength `magnitude` (RandAugment).

    The operations, and what they do at full strength, a magnitude of `max_magnitude`: nothing; shear along x or y, a
    slope of 0.3 about the top left corner; translation along x or y, 150/331 of the side; rotation, 30 degrees;
    brightness, colour (saturation), contrast and sharpness, a factor of 1.9 or 0.1; posterize, 4 of the 8 bits; solarize, every
    value; auto-contrast and equalization, which have no strength. Where there are two directions, each is as likely.

    Operations are applied by family: tables and sharpness first, layer by layer, then all geometry as one resampling, then all colour as
    one matrix with one clip. The output is float32.

    Source: Cubuk, Zoph, Shlens, Le, "RandAugment: Practical automated data augmentation with a reduced search space" (2020), with the
    ranges of AutoAugment. Some programs count magnitudes up to 30, the default here; the paper counts up to 10: `max_magnitude: 10`.
    """

    op = "rand_augment"
    examples = to_float32(
        "rand_augment",
        "rand_augment: {num_ops: 3, magnitude: 12, fill: {constant: 128}}",
        "rand_augment: {magnitude: {linear: {from: 5, to: 15, epochs: [0, 100]}}}",
    )

    num_ops: Annotated[int, Field(ge=1, le=16)] = 2
    """The number of operations for each example; one may be drawn twice."""
    magnitude: Annotated[Level, checked(check_number)] = 9.0
    """The strength of the operations, from 0 to `max_magnitude`; a schedule changes it over the epochs."""
    max_magnitude: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0
    """The magnitude of full strength."""

    @model_validator(mode="after")
    def _within(self) -> RandAugment:
        low, high = level_range(self.magnitude)
        if low < 0 or high > self.max_magnitude:
            wrong = low if low < 0 else high
            raise ValueError(f"`magnitude` must be between 0 and `max_magnitude`, which is {self.max_magnitude:g}, got {wrong:g}")
        return self

    def num_draws(self) -> int:
        return 2 * self.num_ops

    def shares(self) -> tuple[dict[str, float], ...]:
        return ({name: 1 / len(USED) for name in USED},) * self.num_ops

    def operations(self, u: tf.Tensor) -> tf.Tensor:
        return uniform_operation(u[..., : self.num_ops], USED)

    def layers(self, u: tf.Tensor) -> Chosen:
        side = u[..., self.num_ops :]
        strength = tf.zeros_like(side) + tf.convert_to_tensor(self.magnitude, tf.float64) / self.max_magnitude
        return Chosen(self.operations(u), strength, signs(side))


class TrivialAugment(Augmentation):
    """Does one operation to each example, drawn among 14, at a strength drawn evenly (TrivialAugment, the wide table).

    The operations, and what they do at full strength: nothing; shear along x or y, a slope of 0.99 about the top left
    corner; translation along x or y, 32 pixels; rotation, 135 degrees; brightness, colour (saturation), contrast and
    sharpness, a factor of 1.99 or 0.01; posterize, 6 of the 8 bits; solarize, every value; auto-contrast and equalization,
    which have no strength. Strengths are one of 31, from none to full. Where there are two directions, each is as likely.

    It needs no tuning. The output is float32.

    Source: Müller, Hutter, "TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation" (2021).
    """

    op = "trivial_augment"
    limits = Limits(shear=0.99, translation=32.0, in_pixels=True, degrees=135.0, enhancement=0.99, bits=6.0)
    draws = 3
    examples = to_float32("trivial_augment", "trivial_augment: {fill: {constant: 0}, interpolation: nearest}")

    def shares(self) -> tuple[dict[str, float], ...]:
        return ({name: 1 / len(USED) for name in USED},)

    def operations(self, u: tf.Tensor) -> tf.Tensor:
        return uniform_operation(u[..., 0:1], USED)

    def layers(self, u: tf.Tensor) -> Chosen:
        return Chosen(self.operations(u), tf.floor(u[..., 1:2] * 31) / 30, signs(u[..., 2:3]))


MIXED = ("auto_contrast", "equalize", "posterize", "rotate", "solarize", "shear_x", "shear_y", "translate_x", "translate_y")
_LIMITS = Limits(shear=0.3, translation=1 / 3, in_pixels=False, degrees=30.0, enhancement=0.0, bits=4.0)
_STRONGEST = 10.0
_LEAST = 0.1  # the magnitude from which strengths are drawn
Count = Annotated[int, Field(ge=1, le=8)]


class AugMix(ChainsTransform):
    """Blends each image with the results of several chains of operations (AugMix): many different changes, all close to the image.

    A chain does `depth` of nine operations: auto-contrast, equalization, posterize, solarize, rotation, and shear and translation along x
    or y, each at a strength drawn from 0.1 to `magnitude`. At full strength, 10, posterize leaves 1 bit (4 bits at 0), solarize inverts
    every value, and geometry is that of `rand_augment`: 30 degrees, a slope of 0.3, a third of the side. The weights of the chains are
    drawn from Dirichlet(alpha), and the weight of their blend against the image itself from Beta(alpha, alpha). Within a chain tables come
    first, layer by layer, then all geometry as one resampling. Arithmetic is in whole numbers.

    Masks, boxes and points cannot follow chains that move an image in several ways: with them, set `geometry: false`, which leaves the four
    operations on colour. The paper's loss compares two or three `views` of an image, one plain and the others with this step.

    Source: Hendrycks, Mu, Cubuk, Zoph, Gilmer, Lakshminarayanan, "AugMix: A Simple Data Processing Method to Improve Robustness and
    Uncertainty" (2020). Its operations leave out colour, contrast, brightness and sharpness, which torchvision and Keras add by default.
    """

    op = "aug_mix"
    random = True
    pairs = frozenset({"depth"})
    examples = same_type(
        "aug_mix",
        "aug_mix: {magnitude: {linear: {from: 1, to: 5, epochs: [0, 50]}}, chains: 2}",
        "aug_mix: {depth: 2, geometry: false, probability: 0.5}",
    )

    chains: Count = 3
    """The number of chains, at most 8."""
    depth: Count | tuple[Count, Count] = (1, 3)
    """The number of operations of a chain; a pair is the range, both ends included."""
    magnitude: Annotated[Level, checked(check_number), bounded(_LEAST, _STRONGEST)] = 3.0
    """The greatest strength, from 0.1 to 10; a schedule changes it over the epochs."""
    alpha: Annotated[float, Field(ge=0.1, le=100)] = 1.0
    """The parameter of the distributions of the weights, from 0.1 to 100: 1 is uniform, less prefers one chain and extreme blends."""

    _ascending = ascending("depth")

    def used(self) -> tuple[str, ...]:
        """The operations that a chain chooses from."""
        return tuple(name for name in MIXED if self.geometry or name not in GEOMETRY)

    def weight(self) -> float:
        return self.chains * (4.0 if self.geometry else 0.7)

    def num_draws(self) -> int:
        return 2 + self.chains * (2 + 3 * as_pair(self.depth)[1])

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`own_share`, the weight of the image itself; and for each chain, counted from 1, `weight_1` and `operations_1`, the names of its
        operations, joined by `+`."""
        weights, chosen = self._weights(u), self._chosen(u)
        found = {"own_share": weights[..., 0]}
        for chain in range(self.chains):
            found[f"weight_{chain + 1}"] = weights[..., chain + 1]
            names = tf.gather(tf.constant(OPERATIONS), chosen.operation[..., chain, :])
            there = chosen.operation[..., chain, :] > 0
            joined = tf.where(there, tf.strings.join(["+", names]), tf.strings.join(["", tf.zeros_like(names)]))
            found[f"operations_{chain + 1}"] = tf.strings.substr(tf.strings.reduce_join(joined, -1), 1, 1000)
        return found

    def drawn_chains(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> Chains:
        chosen = self._chosen(u)
        operation, given = chosen.operation, tf.range(256) + tf.zeros_like(chosen.operation)[..., None]

        def tables(name: str, made: tf.Tensor, before: tf.Tensor) -> tf.Tensor:
            return tf.where((operation == NUMBER[name])[..., None], tf.reshape(made, tf.shape(before)), before)

        bits = tf.maximum(4 - tf.cast(tf.floor(chosen.strength * _LIMITS.bits), tf.int32), 1)
        given = tables("posterize", posterized(tf.reshape(bits, [-1])), given)
        given = tables("solarize", solarized(tf.reshape(256.0 - tf.floor(chosen.strength * 256.0), [-1])), given)
        stretches, spreads = (operation == NUMBER[name] for name in ("auto_contrast", "equalize"))
        kinds = tf.where(stretches, STRETCH, tf.where(spreads, SPREAD, PLAIN))
        whole, _ = whole_weights(self._weights(u))
        return Chains(kinds, given, product(chosen, _LIMITS, height, width), whole)

    def _weights(self, u: tf.Tensor) -> tf.Tensor:
        """The weights of the image itself and of its chains, float64 `(..., 1 + chains)` that sum to 1."""
        share = symmetric_beta(u[..., :2], self.alpha)[..., None]
        return tf.concat([1.0 - share, share * symmetric_dirichlet(u[..., 2 : 2 + self.chains], self.alpha)], -1)

    def _chosen(self, u: tf.Tensor) -> Chosen:
        """The operations of the layers of the chains, `(..., chains, layers)`; a layer beyond a chain's depth does nothing."""
        bounds, first = as_pair(self.depth), 2 + self.chains
        depth = whole_between(u[..., first : first + self.chains], bounds)
        own = tf.reshape(u[..., first + self.chains :], tf.concat([tf.shape(u)[:-1], [3, self.chains, bounds[1]]], 0))
        which, strong, side = (own[..., i, :, :] for i in range(3))
        operation = tf.where(tf.range(bounds[1]) < depth[..., None], uniform_operation(which, self.used()), 0)
        return Chosen(operation, uniform(strong, (_LEAST, self.magnitude)) / _STRONGEST, signs(side))
