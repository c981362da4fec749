"""RandAugment: a few operations at one strength."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Level, checked, level_range
from pipegen.ops.arguments.schedules import Strength
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.augmentation import OPERATIONS, Chosen, Limits, signs, uniform_operation
from pipegen.ops.families.augmentation_parts import LayeredAugmentation

USED = tuple(name for name in OPERATIONS if name != "invert")


def _plain(value: Strength, name: str) -> None:
    if isinstance(value, tuple):
        raise ValueError(f"`{name}` is a plain number in each epoch, not a range")


class RandAugment(LayeredAugmentation):
    """Does `num_ops` operations to each example, each drawn among 14, all at the strength `magnitude` (RandAugment).

    The operations, and what they do at full strength, a magnitude of `max_magnitude`: nothing; shear along x or y, a
    slope of 0.3 about the top left corner; translation along x or y, 150/331 of the side; rotation, 30 degrees;
    brightness, colour (saturation), contrast and sharpness, a factor of 1.9 or 0.1; posterize, 4 of the 8 bits; solarize, every
    value; auto-contrast and equalization, which have no strength. Where there are two directions, each is as likely.

    What is drawn for the layers is applied by family: tables and sharpness first, layer by layer, then all geometry as
    one resampling, then all colour as one matrix with one clip. Values that leave are float32.

    Source: Cubuk, Zoph, Shlens, Le, "RandAugment: Practical automated data augmentation with a reduced search space"
    (2020), with the ranges of AutoAugment. Some programs count magnitudes to 30, the default here; in the paper's own
    count 10 is full strength: `max_magnitude: 10`.
    """

    op = "rand_augment"
    limits = Limits(shear=0.3, translation=150 / 331, in_pixels=False, degrees=30.0, enhancement=0.9, bits=4.0)
    examples = (
        Example("rand_augment", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("rand_augment: {num_ops: 3, magnitude: 12, fill: {constant: 128}}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("rand_augment: {magnitude: {linear: {from: 5, to: 15, epochs: [0, 100]}}}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    num_ops: Annotated[int, Field(ge=1, le=16)] = 2
    """How many operations each example gets; the same one may come twice."""
    magnitude: Annotated[Level, checked(_plain)] = 9.0
    """How strong they are, from 0 to `max_magnitude`; a schedule changes it over the epochs."""
    max_magnitude: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0
    """The magnitude that stands for full strength."""

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
