"""Brighten or darken the middle tones of images."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Number, Odd, check_factor, checked, factor_lints
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.deterministic import DeterministicLookupTable
from pipegen.ops.lowering.tables import gamma_corrected


def _above_zero(value: float, name: str) -> None:
    check_factor((value, value), name, exclusive=True)


class Gamma(DeterministicLookupTable):
    """Raises values to a power: x becomes 255 · (x / 255) ^ gamma, rounded half to even. Black and white stay.

    Above 1 middle tones get darker, below 1 brighter.
    """

    op = "gamma"
    examples = (Example("gamma: {gamma: 2.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),)

    gamma: Annotated[Number, checked(_above_zero), Odd(factor_lints, low=0.1, high=10.0, drawn=False)]
    """The exponent, above 0; 1 changes nothing."""

    def idle(self) -> bool:
        return self.gamma == 1

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return gamma_corrected(tf.fill([tf.shape(u)[0]], tf.constant(self.gamma, tf.float64)))
