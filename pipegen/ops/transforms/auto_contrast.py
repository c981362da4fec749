"""Stretch the values of images over the whole range."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.families.lookup_tables import LookupTableTransform, OccasionalLookupTable
from pipegen.ops.families.uniform import UnconditionalTransform
from pipegen.ops.lowering.tables import auto_contrasted
from pipegen.ops.traits import same_type


class AutoContrastTransform(LookupTableTransform):
    """The table that stretches each channel over the whole range."""

    needs_histogram = True

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return auto_contrasted(histogram)


class AutoContrast(UnconditionalTransform, AutoContrastTransform):
    """Stretches each channel in a straight line, so that its least value becomes 0 and its greatest 255.

    It is Pillow's `autocontrast` without a cutoff, bit for bit. A channel of one value stays as it is.
    """

    op = "auto_contrast"
    examples = same_type("auto_contrast")


class RandomAutoContrast(OccasionalLookupTable, AutoContrastTransform):
    """Stretches each channel of a share of the images in a straight line, so that its least value becomes 0 and its greatest 255.

    It is Pillow's `autocontrast` without a cutoff, bit for bit. A channel of one value stays as it is.
    """

    op = "random_auto_contrast"
    examples = same_type("random_auto_contrast", "random_auto_contrast: {probability: 0.2}")
