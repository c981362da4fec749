"""`auto_augment`: operations on each image, by a published policy."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Literal, NamedTuple

from pipegen.lazy import tf
from pipegen.ops.families.augmentation import NUMBER, Augmentation, Chosen, signs
from pipegen.ops.traits import to_float32

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
