"""`random_tone_curve`."""

from __future__ import annotations

from typing import Annotated

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Level, bounded, level_range
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.lowering.linear import normal
from pipegen.ops.traits import same_type
from pipegen.types import FeatureType


class RandomToneCurve(LookupTableTransform):
    """Bends the tone curve at random: dark and bright values get darker or brighter.

    A value v, from 0 to 1, becomes 3 (1 - v)² v a + 3 (1 - v) v² b + v³, where a and b are normal
    around 1/4 and 3/4 and clipped to 0 and 1; then it is rounded half to even. Black and white stay. It is Albumentations'
    `RandomToneCurve`. Values would stay as they are with a = 1/3 and b = 2/3, so 1/4 and 3/4 raise the contrast a little.
    """

    op = "random_tone_curve"
    random = True
    examples = same_type("random_tone_curve", "random_tone_curve: {std: 0.2, per_channel: true, probability: 0.5}")

    std: Annotated[Level, bounded(0, 1)] = 0.1
    """The standard deviation of a and b, from 0 to 1."""
    per_channel: bool = False
    """Draw a curve for each of the three channels, which tints the image, instead of one for all."""

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        if self.per_channel and x.channels != 3:
            raise OpError("PG205", f"`per_channel` of `{self.op}` needs 3 channels, and gets {x.channels}", field="per_channel")
        return y

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        largest = level_range(self.std)[1]
        if largest <= 0.5:
            return super().lints(x)
        message = f"with a `std` of {largest:g} most curves of `{self.op}` are at a limit"
        return (OpError("PG510", message, field="std", help="0.1 is usual"),)

    def num_draws(self) -> int:
        return 6 if self.per_channel else 2

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """The curve, or one for each channel: `a` and `b`."""
        std = tf.convert_to_tensor(self.std, tf.float64)
        half = self.num_draws() // 2
        ends = {"a": 0.25 + std * normal(u[..., :half]), "b": 0.75 + std * normal(u[..., half:])}
        return {name: tf.clip_by_value(end if self.per_channel else end[..., 0], 0.0, 1.0) for name, end in ends.items()}

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        a, b = (end[..., None] if self.per_channel else end[:, None, None] for end in self.drawn(u).values())
        v = tf.range(256, dtype=tf.float64) / 255.0
        curve = 3.0 * (1.0 - v) ** 2 * v * a + 3.0 * (1.0 - v) * v**2 * b + v**3
        return tf.cast(tf.clip_by_value(tf.round(255.0 * curve), 0.0, 255.0), tf.int32)
