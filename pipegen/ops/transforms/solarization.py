"""Invert the bright values of images."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Number, Odd, check_range, checked
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicLookupTable
from pipegen.ops.families.lookup_tables import threshold_lints
from pipegen.ops.lowering.tables import repeated


class Solarization(DeterministicLookupTable):
    """Inverts every value at or above a threshold: x becomes 255 - x, as in Pillow."""

    op = "solarization"
    examples = (
        Example("solarization", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("solarization: {threshold: 200}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    threshold: Annotated[Number, checked(check_range, 0, 256), Odd(threshold_lints)] = 128.0
    """The least value that is inverted, from 0, which inverts all, to 256, which inverts none."""

    def idle(self) -> bool:
        return self.threshold > 255

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return repeated([255 - x if x >= self.threshold else x for x in range(256)], u)
