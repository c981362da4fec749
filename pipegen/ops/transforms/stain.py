"""`random_stain`: other stains of microscope slides."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pipegen.lazy import np, tf
from pipegen.ops.arguments.magnitudes import Amount, Factor, amount_within, odd_factor
from pipegen.ops.families.neighbourhood import RgbTransform
from pipegen.ops.lowering.colours import BITS, ONE
from pipegen.ops.lowering.filters import rounded_shift
from pipegen.ops.traits import same_type

_STAINS = ((0.650, 0.704, 0.286), (0.072, 0.990, 0.105), (0.268, 0.570, 0.776))
"""The optical densities in red, green and blue of haematoxylin, eosin and the rest (Ruifrok and Johnston 2001)."""
_DARKEST = 6 * ONE  # the largest optical density that is distinguished: 255 / e^6 is less than a level


class RandomStain(RgbTransform):
    """Changes the amounts of haematoxylin and of eosin on images of tissue, each by a factor and an amount drawn uniformly.

    Colours become optical densities, -ln((x + 1) / 256), and these the amounts of the two stains and of a third, by the vectors of Ruifrok
    and Johnston; then back. Arithmetic is in whole numbers of 12 bits, and grays do not stay gray.

    Source: Tellez, Balkenhol, Otte-Höller et al., "Whole-Slide Mitosis Detection in H&E Breast Histology Using PHH3 as a Reference to Train
    Distilled Stain-Invariant Convolutional Networks" (2018).
    """

    op = "random_stain"
    cost = 1.2
    symmetric = True
    factors = frozenset({"factor"})
    draws = 4
    examples = same_type("random_stain: {factor: 0.2, delta: 0.1}", "random_stain: {factor: [0.8, 1.1], delta: 0.05, probability: 0.5}")

    factor: Annotated[Factor, odd_factor(low=0.0, high=3.0)] = 0.2
    """The factor of the amount of each stain: 0.2 means from 0.8 to 1.2, a pair is the range."""
    delta: Annotated[Amount, amount_within(-2, 2)] = 0.0
    """The amount that is added, in units of optical density: 0.1 means from -0.1 to 0.1, a pair is the range."""

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`factor_1` and `delta_1` of haematoxylin, `factor_2` and `delta_2` of eosin."""
        found: dict[str, tf.Tensor] = {}
        for stain in range(2):
            own = super().drawn(u[..., 2 * stain : 2 * stain + 2])
            found |= {f"{name}_{stain + 1}": value for name, value in own.items()}
        return found

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        one, zero = tf.ones_like(u[:, 0]), tf.zeros_like(u[:, 0])
        factors = tf.stack([drawn["factor_1"], drawn["factor_2"], one], -1)
        deltas = tf.stack([drawn["delta_1"], drawn["delta_2"], zero], -1)
        stains = np.array(_STAINS) / np.linalg.norm(_STAINS, axis=1, keepdims=True)
        apart = tf.constant(np.linalg.inv(stains), tf.float64)
        matrix = tf.reduce_sum((apart[None] * factors[:, None, :])[..., None] * tf.constant(stains, tf.float64), 2)
        offset = tf.reduce_sum(deltas[..., None] * tf.constant(stains, tf.float64), 1)
        return tuple(tf.cast(tf.round(part * float(ONE)), tf.int32) for part in (matrix, offset))

    def phase(self, images: tf.Tensor, matrix: tf.Tensor, offset: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The optical densities of the output, int32 of the images' shape, in 1/4096."""
        density = tf.gather(tf.constant(_logs(), tf.int32), tf.cast(images, tf.int32))
        totals = [sum((density[..., i] * matrix[:, i, to, None, None] for i in range(3)), 0) for to in range(3)]
        return (tf.stack([rounded_shift(total, BITS) + offset[:, to, None, None] for to, total in enumerate(totals)], -1),)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        darkest = tf.clip_by_value(given[0], 0, _DARKEST)
        return tf.gather(tf.constant(_levels(), tf.uint8), tf.bitwise.right_shift(darkest, 2))


@cache
def _logs() -> tuple[int, ...]:
    return tuple(np.rint(-np.log((np.arange(256) + 1) / 256) * ONE).astype(int).tolist())


@cache
def _levels() -> tuple[int, ...]:
    """The level of each density in 1/1024."""
    return tuple(np.clip(np.rint(256 * np.exp(-np.arange(_DARKEST // 4 + 1) / (ONE // 4)) - 1), 0, 255).astype(int).tolist())
