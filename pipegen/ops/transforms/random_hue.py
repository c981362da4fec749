"""Turn the hue of images at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import field_validator

from pipegen.ops.base import IMAGE_224, ColourTransform, Example
from pipegen.ops.magnitudes import Magnitude, angle_lints, check_magnitude, symmetric_range

if TYPE_CHECKING:
    import tensorflow as tf

    from pipegen.errors import OpError
    from pipegen.types import FeatureType

U_SCALE, V_SCALE = 0.492111, 0.877283
"""The scales of the colour differences blue minus luma and red minus luma in YUV."""


class RandomHue(ColourTransform):
    """Turns colours about the gray axis by an angle drawn uniformly; luma and grays stay as they are.

    In YIQ (the chroma plane of NTSC), (I, Q) is rotated by the angle. I and Q are U and V turned by 33 degrees, so
    the same rotation reads, with Y = 0.299 R + 0.587 G + 0.114 B, U = 0.492 (B - Y) and V = 0.877 (R - Y):
    U' = U cos - V sin, V' = U sin + V cos, and back to RGB. Positive angles turn red towards yellow and green.

    It is linear, so it costs nothing beside other colour steps. (`tf.image` turns the H of HSV instead, which keeps
    the largest channel rather than luma.)
    """

    op = "random_hue"
    random = True
    min_channels = 3
    examples = (
        Example("random_hue: {degrees: 10}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("random_hue: {degrees: [-30, 30], probability: 0.8}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    degrees: Magnitude
    """The angle in degrees: 10 means from -10 to 10, a pair is the range."""

    @field_validator("degrees")
    @classmethod
    def _degrees(cls, value: float | tuple[float, float]) -> float | tuple[float, float]:
        check_magnitude(value, "degrees")
        return value

    def is_identity(self, x: FeatureType) -> bool:
        return x.dtype == "float32" and (self.probability == 0 or symmetric_range(self.degrees) == (0, 0))

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return angle_lints(self.op, self.degrees, most=180, why="a full turn is [-180, 180]")

    def num_draws(self) -> int:
        return 1

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        import tensorflow as tf

        from pipegen.ops.linear import LUMA, radians, stack, uniform, zeros

        angle = radians(uniform(u[..., 0], symmetric_range(self.degrees)))
        cos, sin = tf.cos(angle), tf.sin(angle)
        quarter = quarter_turn()
        rows = [
            [weight + ((1.0 if i == j else 0.0) - weight) * cos + quarter[i][j] * sin for j, weight in enumerate(LUMA)] for i in range(3)
        ]
        return stack(rows, angle), zeros(channels, angle), zeros(channels, angle)


def quarter_turn() -> tuple[tuple[float, float, float], ...]:
    """The 3x3 matrix on RGB that turns the chroma by 90 degrees and drops luma: U' = -V, V' = U."""
    from pipegen.ops.linear import LUMA

    red_y = [(1.0 if j == 0 else 0.0) - weight for j, weight in enumerate(LUMA)]
    blue_y = [(1.0 if j == 2 else 0.0) - weight for j, weight in enumerate(LUMA)]
    ratio = V_SCALE / U_SCALE
    red = [b / ratio for b in blue_y]
    blue = [-r * ratio for r in red_y]
    green = [-(LUMA[0] * r + LUMA[2] * b) / LUMA[1] for r, b in zip(red, blue, strict=True)]
    return (red[0], red[1], red[2]), (green[0], green[1], green[2]), (blue[0], blue[1], blue[2])
