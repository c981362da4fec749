"""Invert the bright values of images, above a random threshold."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Odd, Span, check_pair, check_range, checked, most, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.lookup_tables import LookupTableTransform, threshold_lints
from pipegen.ops.families.uniform import UniformTransform
from pipegen.ops.lowering.tables import solarized


class RandomSolarization(UniformTransform, LookupTableTransform):
    """Inverts every value at or above a threshold drawn uniformly: x becomes 255 - x, as in Pillow."""

    op = "random_solarization"
    examples = (
        Example("random_solarization: {threshold: [100, 255]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_solarization: {threshold: [128, 128], probability: 0.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    threshold: Annotated[Span, checked(check_pair), checked(check_range, 0, 256), Odd(threshold_lints)]
    """The range of the least value that is inverted: 0 inverts all, 256 inverts none."""

    def idle(self) -> bool:
        return most(self.probability) == 0 or span_range(self.threshold)[0] > 255

    def ranges(self) -> dict[str, tuple[float, float]]:
        return {"threshold": span_range(self.threshold)}

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return solarized(self.drawn(u)["threshold"])
