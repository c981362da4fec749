"""`rand_augment` and `trivial_augment`: a few operations on each image, drawn from a list."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Level, check_number, checked, level_range
from pipegen.ops.families.augmentation import OPERATIONS, Augmentation, Chosen, Limits, signs, uniform_operation
from pipegen.ops.traits import to_float32

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
