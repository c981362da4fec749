"""AutoAugment: the policies that a search found on three data sets."""

from __future__ import annotations

from collections import Counter

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.augmentation import NUMBER, Chosen, Limits, signs
from pipegen.ops.families.augmentation_parts import LayeredAugmentation
from pipegen.ops.families.auto_augment_policies import PolicyName, sub_policies

FULL_LEVEL = 9
"""The level of full strength in the published tables."""


class AutoAugment(LayeredAugmentation):
    """Draws one of 25 published pairs of operations for each example, and does each of the two with its own probability.

    The operations, and what they do at full strength (level 9 of the tables): shear along x or y, a slope of 0.3 about the
    top left corner; translation along x or y, 150/331 of the side; rotation, 30 degrees; brightness, colour (saturation),
    contrast and sharpness, a factor of 1.9 or 0.1; posterize, 4 of the 8 bits; solarize, every value; invert, auto-contrast
    and equalization, which have no strength. Where there are two directions, each is as likely.

    The two are applied by family: tables and sharpness first, in order, then geometry as one resampling, then colour as
    one matrix with one clip. Values that leave are float32.

    Source: Cubuk, Zoph, Mané, Vasudevan, Le, "AutoAugment: Learning Augmentation Strategies from Data" (2019).
    """

    op = "auto_augment"
    limits = Limits(shear=0.3, translation=150 / 331, in_pixels=False, degrees=30.0, enhancement=0.9, bits=4.0)
    examples = (
        Example("auto_augment", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("auto_augment: {policy: cifar10, fill: {constant: 128}}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    policy: PolicyName = "imagenet"
    """The data set that the policy was found on: `imagenet`, `cifar10` or `svhn`."""

    def num_draws(self) -> int:
        return 5

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
        return Chosen(self.operations(u), tf.gather(levels, self._number(u)) / FULL_LEVEL, signs(u[..., 3:5]))

    def _number(self, u: tf.Tensor) -> tf.Tensor:
        """Returns the number of the sub-policy, int32 `(...)`."""
        return tf.cast(u[..., 0] * len(sub_policies(self.policy)), tf.int32)
