"""Turn the hue of images at random."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import AROUND_ZERO, TURNS, Magnitude
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.uniform import UniformColour
from pipegen.ops.lowering.colours import hue
from pipegen.ops.lowering.linear import radians


class RandomHue(UniformColour):
    """Turns colours about the gray axis by an angle drawn uniformly; luma and grays stay as they are.

    In YIQ (the chroma plane of NTSC), (I, Q) is rotated by the angle. I and Q are U and V turned by 33 degrees, so
    the same rotation reads, with Y = 0.299 R + 0.587 G + 0.114 B, U = 0.492 (B - Y) and V = 0.877 (R - Y):
    U' = U cos - V sin, V' = U sin + V cos, and back to RGB. Positive angles turn red towards yellow and green.

    It is linear, so it costs nothing beside other colour steps. (`tf.image` turns the H of HSV instead, which keeps
    the largest channel rather than luma.)
    """

    op = "random_hue"
    min_channels = 3
    examples = (
        Example("random_hue: {degrees: 10}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("random_hue: {degrees: [-30, 30], probability: 0.8}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    degrees: Annotated[Magnitude, AROUND_ZERO, TURNS]
    """The angle in degrees: 10 means from -10 to 10, a pair is the range."""

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return hue(radians(self.drawn(u)["degrees"]))
