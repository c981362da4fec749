"""Let images look like a relief."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.taps import spread, whole_weights, with_border

_RELIEF = {(-1, -1): (-1, -1), (-1, 0): (0, -1), (0, -1): (0, -1), (0, 0): (1, 0), (0, 1): (0, 1), (1, 0): (0, 1), (1, 1): (1, 1)}
"""The weight of each offset, as a constant and a multiple of the strength; they sum to 1."""


class RandomEmboss(NeighbourhoodTransform):
    """Blends an image with its relief, lit from the lower right: y = (1 - alpha) · x + alpha · relief, with both numbers drawn uniformly.

    The relief is x filtered with [[-1 - s, -s, 0], [-s, 1, s], [0, s, 1 + s]] for a `strength` s; the image is reflected at its
    border (abc|cba). Values are clipped to the range of those that enter.
    """

    op = "random_emboss"
    random = True
    overshoots = True
    examples = (
        Example("random_emboss: {strength: [0.2, 0.7]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_emboss: {alpha: [0.5, 1], probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    strength: Annotated[Span, checked(check_pair), checked(check_range, 0, 4)] = (0.2, 0.7)
    """The range of the strength, from 0 to 4."""
    alpha: Annotated[Span, checked(check_pair), checked(check_range, 0, 1)] = (0.2, 0.5)
    """The range of how much of the relief is shown, from 0, which changes nothing, to 1."""

    def idle(self) -> bool:
        return super().idle() or span_range(self.alpha) == (0.0, 0.0)

    def weight(self) -> float:
        return 0.5

    def num_draws(self) -> int:
        return 2

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"strength": uniform(u[..., 0], span_range(self.strength)), "alpha": uniform(u[..., 1], span_range(self.alpha))}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        strength, alpha = drawn["strength"], drawn["alpha"]
        weights = [alpha * (constant + strength * times) for constant, times in _RELIEF.values()]
        middle = list(_RELIEF).index((0, 0))
        weights[middle] = weights[middle] + (1.0 - alpha)
        return whole_weights(tf.stack(weights, -1), middle)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return _widen, _filter


def _widen(images: tf.Tensor, *weights: tf.Tensor) -> tuple[tf.Tensor, ...]:
    return with_border(images, 1, "reflect"), *weights


def _filter(images: tf.Tensor, wide: tf.Tensor, whole: tf.Tensor, real: tf.Tensor) -> tuple[tf.Tensor, ...]:
    return (spread(images, wide, whole, real, [[offset] for offset in _RELIEF], 1),)
