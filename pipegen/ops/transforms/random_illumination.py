"""Make a part of images lighter or darker than the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import AROUND_ZERO, Magnitude, check_magnitude, checked
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.byte_images import ByteTransform
from pipegen.ops.lowering.filters import rounded_shift
from pipegen.ops.lowering.linear import radians

_BITS = 12
_ONE = 1 << _BITS


class RandomIllumination(ByteTransform):
    """Multiplies each pixel by 1 plus the drawn intensity times a pattern from 0 to 1: light that changes over the image.

    The pattern is a ramp in a direction that is drawn (`linear`), a bell around a place that is drawn (`spot`, with a standard deviation of
    a third of the shorter side), or the distance from one of the corners (`corner`). An intensity below 0 darkens. Arithmetic is in whole
    numbers, clipped.
    """

    op = "random_illumination"
    examples = (
        Example("random_illumination: {intensity: 0.3}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_illumination: {intensity: [0.1, 0.4], pattern: spot, probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    intensity: Annotated[Magnitude, AROUND_ZERO, checked(check_magnitude, -1, 4)] = 0.2
    """How much lighter it becomes at most, as a share of each value: 0.2 means from -0.2 to 0.2, a pair is the range; from -1 to 4."""
    pattern: Literal["linear", "spot", "corner"] = "linear"
    """How the light changes over the image."""

    def weight(self) -> float:
        return 0.4

    def num_draws(self) -> int:
        return 3

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`intensity`, and where light comes from: `degrees`, anticlockwise from the right; or `x` and `y` as fractions of the sides."""
        found = super().drawn(u)
        if self.pattern == "linear":
            return {**found, "degrees": u[..., 1] * 360.0}
        places = (u[..., 1], u[..., 2]) if self.pattern == "spot" else (tf.floor(u[..., 1] * 2.0), tf.floor(u[..., 2] * 2.0))
        return {**found, "x": places[0], "y": places[1]}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        intensity = tf.cast(tf.round(drawn["intensity"] * float(_ONE)), tf.int32)
        rows, columns = (tf.cast(side, tf.float64) for side in (height, width))
        y = (tf.range(height, dtype=tf.int32), rows)
        x = (tf.range(width, dtype=tf.int32), columns)
        down, right = ((tf.cast(at, tf.float64) + 0.5) / side for at, side in (y, x))
        if self.pattern == "linear":
            angle = radians(drawn["degrees"])[:, None]
            cos, sin = tf.cos(angle), -tf.sin(angle)
            reach = tf.abs(cos) + tf.abs(sin)
            return intensity, _whole((down - 0.5) * sin / reach + 0.25), _whole((right - 0.5) * cos / reach + 0.25)
        away = [tf.square(at - drawn[name][:, None]) for at, name in ((down, "y"), (right, "x"))]
        if self.pattern == "corner":
            return intensity, _whole(away[0] / 2.0), _whole(away[1] / 2.0)
        shorter = tf.minimum(rows, columns) / 3.0
        return intensity, *(_whole(tf.exp(-a * tf.square(side / shorter) / 2.0)) for a, side in zip(away, (rows, columns), strict=True))

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (self._gains,)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        lit = rounded_shift(tf.cast(images, tf.int32) * given[0][..., None], _BITS)
        return tf.cast(tf.clip_by_value(lit, 0, 255), tf.uint8)

    def _gains(self, images: tf.Tensor, intensity: tf.Tensor, down: tf.Tensor, across: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns what each pixel is multiplied by, in 1/4096: int32 `(n, height, width)`."""
        down, across = down[:, :, None], across[:, None, :]
        pattern = rounded_shift(down * across, _BITS) if self.pattern == "spot" else down + across
        return (_ONE + rounded_shift(intensity[:, None, None] * tf.clip_by_value(pattern, 0, _ONE), _BITS),)


def _whole(values: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.round(values * float(_ONE)), tf.int32)
