"""Add a random amount to the dark values of images."""

from __future__ import annotations

from typing import Annotated

from pipegen.diagnostics.advice import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, Number, Odd, check_magnitude, check_range, checked, symmetric_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.lookup_tables import LookupTableTransform, threshold_lints
from pipegen.ops.families.uniform import UniformTransform
from pipegen.types import FeatureType


class RandomSolarizeAdd(UniformTransform, LookupTableTransform):
    """Adds an amount drawn uniformly to every value below a threshold, rounded half to even: AutoAugment's "solarize add".

    Values stay between 0 and 255, so dark values get brighter, and those at or above the threshold stay.
    """

    op = "random_solarize_add"
    examples = (
        Example("random_solarize_add: {delta: [0, 110]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_solarize_add: {delta: 40, threshold: 100, probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    delta: Annotated[Magnitude, checked(check_magnitude, -255, 255)]
    """What is added, in levels of 255: 40 means from -40 to 40, a pair is the range."""
    threshold: Annotated[Number, checked(check_range, 0, 256), Odd(threshold_lints)] = 128.0
    """The least value that stays as it is, from 0 to 256."""

    def idle(self) -> bool:
        return super().idle() or self.threshold == 0

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        largest = max(abs(v) for v in symmetric_range(self.delta))
        if not 0 < largest <= 1:
            return super().lints(x)
        message = f"the `delta` of `{self.op}` is at most {largest:g}, but values are from 0 to 255"
        help_ = write(f"delta: {255 * largest:g}", "arguments", "for a share of the range write {}")
        return (OpError("PG510", message, field="delta", help=help_), *super().lints(x))

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        values = tf.range(256)
        added = tf.cast(tf.round(self.drawn(u)["delta"]), tf.int32)[:, None, None]
        return tf.where(values < -int(-self.threshold // 1), tf.clip_by_value(values + added, 0, 255), values)
