"""Invert images."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.families.lookup_tables import LookupTableTransform, OccasionalLookupTable
from pipegen.ops.families.uniform import UnconditionalTransform
from pipegen.ops.lowering.tables import repeated
from pipegen.ops.traits import same_type


class InvertTransform(LookupTableTransform):
    """The table from x to 255 - x."""

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return repeated([255 - x for x in range(256)], u)


class Invert(UnconditionalTransform, InvertTransform):
    """Makes bright dark and dark bright: x becomes 255 - x."""

    op = "invert"
    examples = same_type("invert")


class RandomInvert(OccasionalLookupTable, InvertTransform):
    """Makes bright dark and dark bright in a share of the images: x becomes 255 - x."""

    op = "random_invert"
    examples = same_type("random_invert", "random_invert: {probability: 0.1}")
