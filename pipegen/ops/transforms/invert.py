"""Invert images."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.families.lookup_tables import OccasionalLookupTable
from pipegen.ops.families.uniform import DeterministicLookupTable
from pipegen.ops.lowering.tables import repeated
from pipegen.ops.traits import IMAGE_224, Example


class Invert(DeterministicLookupTable):
    """Makes bright dark and dark bright: x becomes 255 - x."""

    op = "invert"
    examples = (Example("invert", IMAGE_224, "uint8[224×224×3] in [0, 255]"),)

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return repeated([255 - x for x in range(256)], u)


class RandomInvert(OccasionalLookupTable):
    """Makes bright dark and dark bright in a share of the images: x becomes 255 - x."""

    op = "random_invert"
    examples = (
        Example("random_invert", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_invert: {probability: 0.1}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return repeated([255 - x for x in range(256)], u)
