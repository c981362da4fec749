"""Spread the values of images evenly over the whole range."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicLookupTable
from pipegen.ops.lowering.tables import equalized


class Equalization(DeterministicLookupTable):
    """Spreads the values of each channel evenly: afterwards each range of values has about as many pixels.

    It is Pillow's `equalize`, bit for bit. With s = (pixels - pixels of the greatest value) // 255, x becomes
    (s // 2 + pixels below x) // s, at most 255. A channel with s = 0, such as one of a single value, stays as it is.
    """

    op = "equalization"
    needs_histogram = True
    examples = (Example("equalization", IMAGE_224, "uint8[224×224×3] in [0, 255]"),)

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return equalized(histogram)
