"""Change the light on images: from a side, or by clouds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Amount, amount_within, needs_one
from pipegen.ops.families.neighbourhood import ByteTransform
from pipegen.ops.lowering.colours import BITS, ONE, plasma
from pipegen.ops.lowering.filters import rounded_shift, sides
from pipegen.ops.lowering.linear import radians
from pipegen.ops.lowering.random import key_of
from pipegen.ops.traits import same_type


class RandomIllumination(ByteTransform):
    """Multiplies each pixel by 1 plus the drawn intensity times a pattern from 0 to 1: light that changes over the image.

    The pattern is a ramp in a direction that is drawn (`linear`), a Gaussian around a place that is drawn (`spot`, with a standard
    deviation of a third of the shorter side), or the distance from one of the corners (`corner`). An intensity below 0 darkens. Arithmetic
    is in whole numbers, clipped.
    """

    op = "random_illumination"
    cost = 0.4
    draws = 3
    examples = same_type(
        "random_illumination: {intensity: 0.3}", "random_illumination: {intensity: [0.1, 0.4], pattern: spot, probability: 0.5}"
    )

    intensity: Annotated[Amount, amount_within(-1, 4)] = 0.2
    """The greatest change, as a share of each value, from -1 to 4: 0.2 means from -0.2 to 0.2, a pair is the range."""
    pattern: Literal["linear", "spot", "corner"] = "linear"
    """How the light changes over the image."""

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`intensity`, and the origin of the light: `degrees`, anticlockwise from the right; or `x` and `y` as fractions of the sides."""
        found = super().drawn(u)
        if self.pattern == "linear":
            return {**found, "degrees": u[..., 1] * 360.0}
        places = (u[..., 1], u[..., 2]) if self.pattern == "spot" else (tf.floor(u[..., 1] * 2.0), tf.floor(u[..., 2] * 2.0))
        return {**found, "x": places[0], "y": places[1]}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        intensity = tf.cast(tf.round(drawn["intensity"] * float(ONE)), tf.int32)
        rows, columns = (tf.cast(side, tf.float64) for side in (height, width))
        down, right = ((tf.cast(tf.range(whole), tf.float64) + 0.5) / side for whole, side in ((height, rows), (width, columns)))
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

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        lit = rounded_shift(tf.cast(images, tf.int32) * given[0][..., None], BITS)
        return tf.cast(tf.clip_by_value(lit, 0, 255), tf.uint8)

    def phase(self, images: tf.Tensor, intensity: tf.Tensor, down: tf.Tensor, across: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The factor of each pixel, in 1/4096: int32 `(n, height, width)`."""
        down, across = down[:, :, None], across[:, None, :]
        pattern = rounded_shift(down * across, BITS) if self.pattern == "spot" else down + across
        return (ONE + rounded_shift(intensity[:, None, None] * tf.clip_by_value(pattern, 0, ONE), BITS),)


def _whole(values: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.round(values * float(ONE)), tf.int32)


class RandomPlasma(ByteTransform):
    """Changes brightness and contrast by clouds of noise, differently from place to place: Albumentations' `PlasmaBrightnessContrast`.

    A cloud is smooth noise c of three sizes, from -1 to 1, the same for all channels. Each value becomes
    (x - 128) · (1 + contrast · c) + 128 + 255 · brightness · c, in whole numbers, clipped. Both amounts are drawn uniformly for each image.
    """

    op = "random_plasma"
    cost = 2.3
    examples = same_type(
        "random_plasma: {brightness: 0.3, contrast: 0.3}", "random_plasma: {brightness: [0.1, 0.4], sigma: 20, probability: 0.5}"
    )

    brightness: Annotated[Amount, amount_within(-1, 1)] = 0.0
    """The amount that is added where the cloud is 1, as a share of 255: 0.3 means from -0.3 to 0.3, a pair is the range."""
    contrast: Annotated[Amount, amount_within(-1, 4)] = 0.0
    """The growth of the contrast where the cloud is 1: 0.3 means from -0.3 to 0.3, a pair is the range."""
    sigma: Annotated[float, Field(ge=4, le=100)] = 40.0
    """The width of the largest clouds, in pixels; the others are half and a quarter of it."""

    _given = needs_one("brightness", "contrast")

    def num_draws(self) -> int:
        return 2 + super().num_draws()

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        amounts = self.drawn(u)
        return key_of(u[:, -2:]), *(tf.cast(tf.round(amounts[name] * float(ONE)), tf.int32) for name in ("brightness", "contrast"))

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        gain, offset = (part[..., None] for part in given)
        x = tf.cast(images, tf.int32) - 128
        return tf.cast(tf.clip_by_value(128 + rounded_shift(x * gain + offset, BITS), 0, 255), tf.uint8)

    def phase(self, images: tf.Tensor, key: tf.Tensor, brightness: tf.Tensor, contrast: tf.Tensor) -> tuple[tf.Tensor, ...]:
        height, width, _ = sides(images)
        cloud = plasma(key, height, width, self.sigma)
        gain = ONE + rounded_shift(cloud * contrast[:, None, None], BITS)
        return gain, rounded_shift(cloud * brightness[:, None, None], BITS) * 255
