"""TrivialAugment: one operation at a random strength."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.augmentation import OPERATIONS, Chosen, Limits, signs, uniform_operation
from pipegen.ops.families.augmentation_parts import LayeredAugmentation

USED = tuple(name for name in OPERATIONS if name != "invert")
BINS = 31
"""Strengths are drawn from this many, evenly spaced from none to full."""


class TrivialAugment(LayeredAugmentation):
    """Does one operation to each example, drawn among 14, at a strength drawn evenly (TrivialAugment, the wide table).

    The operations, and what they do at full strength: nothing; shear along x or y, a slope of 0.99 about the top left
    corner; translation along x or y, 32 pixels; rotation, 135 degrees; brightness, colour (saturation), contrast and
    sharpness, a factor of 1.99 or 0.01; posterize, 6 of the 8 bits; solarize, every value; auto-contrast and equalization,
    which have no strength. Strengths are one of 31, from none to full. Where there are two directions, each is as likely.

    There is nothing to tune. Values that leave are float32.

    Source: Müller, Hutter, "TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation" (2021).
    """

    op = "trivial_augment"
    limits = Limits(shear=0.99, translation=32.0, in_pixels=True, degrees=135.0, enhancement=0.99, bits=6.0)
    examples = (
        Example("trivial_augment", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("trivial_augment: {fill: {constant: 0}, interpolation: nearest}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    def num_draws(self) -> int:
        return 3

    def shares(self) -> tuple[dict[str, float], ...]:
        return ({name: 1 / len(USED) for name in USED},)

    def operations(self, u: tf.Tensor) -> tf.Tensor:
        return uniform_operation(u[..., 0:1], USED)

    def layers(self, u: tf.Tensor) -> Chosen:
        return Chosen(self.operations(u), tf.floor(u[..., 1:2] * BINS) / (BINS - 1), signs(u[..., 2:3]))
