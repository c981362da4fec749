"""Separate the colours of images as lenses do."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, span_range, within
from pipegen.ops.families.chains import Chains, EnlargingTransform
from pipegen.ops.families.uniform import UniformTransform
from pipegen.ops.lowering.filters import BITS
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.traits import same_type


class RandomChromaticAberration(UniformTransform, EnlargingTransform):
    """Enlarges red and blue about the centre, each by a factor that is drawn uniformly, and leaves green: lateral chromatic aberration.

    Each channel is read once, bilinear. Objects stay in place within a pixel or two, so masks and boxes stay, too. (Albumentations moves
    the channels along a curve, by the square and the fourth power of the distance from the centre.)
    """

    op = "random_chromatic_aberration"
    cost = 7.0
    channel_counts = (3,)
    examples = same_type(
        "random_chromatic_aberration: {factor: [0.98, 1.02]}", "random_chromatic_aberration: {factor: [1, 1.01], probability: 0.5}"
    )

    factor: Annotated[Span, within(0.8, 1.25)] = (0.98, 1.02)
    """The range of the factors of red and of blue, from 0.8 to 1.25."""

    def idle(self) -> bool:
        return super().idle() or span_range(self.factor) == (1, 1)

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Of `factor_1` for red and `factor_2` for blue."""
        return dict.fromkeys(("factor_1", "factor_2"), span_range(self.factor))

    def drawn_chains(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> Chains:
        scale = 1.0 / uniform(u, span_range(self.factor))
        weights = tf.constant([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]) * float(1 << BITS)  # green, red and blue
        return self.enlarged(scale, weights + tf.zeros_like(u[:, :1, None], tf.float32), height, width)
