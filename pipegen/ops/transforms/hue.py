"""`hue`, `random_hue` and `random_hsv`."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import ADDED_LEVELS, TURN, Degrees, Magnitude, Number, amount_within, needs_one
from pipegen.ops.families.neighbourhood import RgbTransform
from pipegen.ops.lowering.colours import channels, hue, shifted, whole_shifts
from pipegen.ops.lowering.linear import radians
from pipegen.ops.step_bases import AmountTransform, ColourTransform, FixedTransform, UniformTransform
from pipegen.ops.traits import same_type, to_float32


class HueTransform(AmountTransform, ColourTransform):
    """A turn of colours about the gray axis."""

    min_channels = 3

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return hue(radians(self.amounts(u)["degrees"]))


class Hue(FixedTransform, HueTransform):
    """Turns colours about the gray axis by one angle; luma and grays stay as they are.

    With Y = 0.299 R + 0.587 G + 0.114 B, U = 0.492 (B - Y) and V = 0.877 (R - Y): U' = U cos - V sin,
    V' = U sin + V cos, and back to RGB, which is one matrix on (R, G, B). Positive angles turn red towards yellow and
    green. (See `random_hue` for how this relates to YIQ and to HSV.)
    """

    op = "hue"
    examples = to_float32("hue: {degrees: 30}")

    degrees: Annotated[Number, TURN]
    """The angle in degrees."""


class RandomHue(UniformTransform, HueTransform):
    """Turns colours about the gray axis by an angle drawn uniformly; luma and grays stay as they are.

    In YIQ (the chroma plane of NTSC), (I, Q) is rotated by the angle. I and Q are U and V turned by 33 degrees, so
    the same rotation reads, with Y = 0.299 R + 0.587 G + 0.114 B, U = 0.492 (B - Y) and V = 0.877 (R - Y):
    U' = U cos - V sin, V' = U sin + V cos, and back to RGB. Positive angles turn red towards yellow and green.

    It is linear, so it costs nothing beside other colour steps. (`tf.image` turns the H of HSV instead, which keeps
    the largest channel rather than luma.)
    """

    op = "random_hue"
    examples = to_float32("random_hue: {degrees: 10}", "random_hue: {degrees: [-30, 30], probability: 0.8}")

    degrees: Degrees
    """The angle in degrees: 10 means from -10 to 10, a pair is the range."""


Levels = Annotated[Magnitude, amount_within(-255, 255), ADDED_LEVELS]


class RandomHsv(RgbTransform):
    """Shifts the hue, saturation and value of HSV by amounts drawn uniformly: the hue turns, the other two are added to.

    It is Albumentations' `HueSaturationValue`, with hue in degrees and not rounded to steps of 2. Grays stay gray. Where `random_hue`
    keeps luma, HSV keeps the largest of red, green and blue, so this is not a matrix: each pixel is computed in whole numbers and
    clipped. An argument without a value changes nothing.
    """

    op = "random_hsv"
    cost = 1.5
    symmetric = True
    examples = same_type(
        "random_hsv: {hue_degrees: 20, saturation_delta: 30, value_delta: 20}", "random_hsv: {saturation_delta: [-60, 0], probability: 0.5}"
    )

    hue_degrees: Degrees = 0.0
    """The angle by which hues turn, in degrees: 10 means from -10 to 10, a pair is the range."""
    saturation_delta: Levels = 0.0
    """What is added to the saturation, in levels of 255: 30 means from -30 to 30, a pair is the range."""
    value_delta: Levels = 0.0
    """What is added to the value, in levels of 255: 20 means from -20 to 20, a pair is the range."""

    _given = needs_one("hue_degrees", "saturation_delta", "value_delta")

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return whole_shifts(*self.drawn(u).values())

    def phase(self, images: tf.Tensor, *shifts: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return shifted(images, *(shift[:, None, None] for shift in shifts))

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return tf.cast(channels(*given), tf.uint8)
