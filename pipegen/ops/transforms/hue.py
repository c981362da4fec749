"""Turn the hue of images by an angle."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import TURN, Number
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicColour
from pipegen.ops.lowering.colours import hue
from pipegen.ops.lowering.linear import radians, zeros_for


class Hue(DeterministicColour):
    """Turns colours about the gray axis by one angle; luma and grays stay as they are.

    With Y = 0.299 R + 0.587 G + 0.114 B, U = 0.492 (B - Y) and V = 0.877 (R - Y): U' = U cos - V sin,
    V' = U sin + V cos, and back to RGB, which is one matrix on (R, G, B). Positive angles turn red towards yellow and
    green. (`random_hue` says how this relates to YIQ and to HSV.)
    """

    op = "hue"
    min_channels = 3
    examples = (Example("hue: {degrees: 30}", IMAGE_224, "float32[224×224×3] in [0, 255]"),)

    degrees: Annotated[Number, TURN]
    """The angle in degrees."""

    def idle(self) -> bool:
        return self.degrees == 0

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return hue(radians(zeros_for(u) + self.degrees))
