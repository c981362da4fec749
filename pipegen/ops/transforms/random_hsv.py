"""Shift hue, saturation and value of images at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.checks import needs_one
from pipegen.ops.arguments.magnitudes import AROUND_ZERO, TURNS, Magnitude, check_magnitude, checked, delta_lints
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.byte_images import RgbTransform
from pipegen.ops.lowering.hsv import channels, shifted, whole_shifts
from pipegen.types import BYTE_RANGE, FeatureType

_LEVELS = checked(check_magnitude, -255, 255)
_DELTAS = ("saturation_delta", "value_delta")


class RandomHsv(RgbTransform):
    """Shifts hue, saturation and value, as HSV has them, by amounts drawn uniformly: hue turns, the others are added to.

    It is Albumentations' `HueSaturationValue`, with hue in degrees and not rounded to steps of 2. Grays stay gray. HSV keeps the
    largest of red, green and blue when the hue turns, where `random_hue` keeps luma, so this is no matrix: it is computed for each pixel,
    in whole numbers, and clipped by itself. An argument without a value changes nothing.
    """

    op = "random_hsv"
    symmetric = True
    examples = (
        Example("random_hsv: {hue_degrees: 20, saturation_delta: 30, value_delta: 20}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_hsv: {saturation_delta: [-60, 0], probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    hue_degrees: Annotated[Magnitude, AROUND_ZERO, TURNS] = 0.0
    """The angle by which hues turn, in degrees: 10 means from -10 to 10, a pair is the range."""
    saturation_delta: Annotated[Magnitude, _LEVELS] = 0.0
    """What is added to the saturation, in levels of 255: 30 means from -30 to 30, a pair is the range."""
    value_delta: Annotated[Magnitude, _LEVELS] = 0.0
    """What is added to the value, in levels of 255: 20 means from -20 to 20, a pair is the range."""

    _given = needs_one("hue_degrees", *_DELTAS)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        levels = x.with_(interval=BYTE_RANGE)
        return (*super().lints(x), *(lint for name in _DELTAS for lint in delta_lints(self.op, name, getattr(self, name), levels)))

    def weight(self) -> float:
        return 1.5

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return whole_shifts(*self.drawn(u).values())

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (_shift,)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return tf.cast(channels(*given), tf.uint8)


def _shift(images: tf.Tensor, *shifts: tf.Tensor) -> tuple[tf.Tensor, ...]:
    return shifted(images, *(shift[:, None, None] for shift in shifts))
