"""Invert images."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicLookupTable
from pipegen.ops.lowering.tables import repeated


class Invert(DeterministicLookupTable):
    """Makes bright dark and dark bright: x becomes 255 - x."""

    op = "invert"
    examples = (Example("invert", IMAGE_224, "uint8[224×224×3] in [0, 255]"),)

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return repeated([255 - x for x in range(256)], u)
