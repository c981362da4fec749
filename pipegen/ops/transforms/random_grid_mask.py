"""Replace the squares of a regular grid over images."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Fraction, Span, check_pair, check_range, checked, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.dropouts import DropoutTransform
from pipegen.ops.lowering.filters import sides
from pipegen.ops.lowering.linear import radians, uniform
from pipegen.ops.lowering.windows import pick

_TURN = 4294967296.0
"""A position is kept as a share of the grid's unit, in 1/2^32: whole units drop out by themselves."""


class RandomGridMask(DropoutTransform):
    """Replaces the squares of a regular grid by one value: GridMask (Chen et al. 2020).

    It draws how far apart the squares are, uniform in `unit` as a fraction of the image's shorter side and rounded to
    pixels, where the first one begins, and an angle by which the grid is turned about the image's centre. A square's
    side is `ratio` of that distance, rounded half to even and at least one pixel.
    """

    op = "random_grid_mask"
    examples = (
        Example("random_grid_mask: {ratio: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_grid_mask: {unit: [0.1, 0.3], degrees: [-45, 45], probability: 0.7}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    unit: Annotated[Span, checked(check_pair), checked(check_range, 0.01, 2)] = (0.4, 1.0)
    """The range of the distance from one square to the next, as a fraction of the image's shorter side."""
    ratio: Fraction = 0.4
    """The side of a square as a fraction of that distance. (In the paper, r is what is kept of it: 0.6.)"""
    degrees: Annotated[Span, checked(check_pair), checked(check_range, -360, 360)] = (0.0, 0.0)
    """The range of the angle in degrees, anticlockwise."""

    def num_draws(self) -> int:
        return 4

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`unit` and `side` in pixels, `top` and `left` of a square of the grid before it is turned, int32 `(n,)`; and `degrees`."""
        unit, side, top, left = self._grid(u, shape[0], shape[1])
        return {"unit": unit, "side": side, "top": top, "left": left, "degrees": uniform(u[:, 3], span_range(self.degrees))}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        unit, side, top, left = (tf.cast(v, tf.float64) for v in self._grid(u, height, width))
        angle = radians(uniform(u[:, 3], span_range(self.degrees)))
        cos, sin = tf.cos(angle), tf.sin(angle)
        cx, cy = (tf.cast(side_, tf.float64) / 2.0 for side_ in (width, height))
        # A pixel's middle is never on the edge of a square that is not turned, so that rounding decides nothing.
        x = cos, -sin, cx + (0.5 - cx) * cos - (0.5 - cy) * sin - left
        y = sin, cos, cy + (0.5 - cx) * sin + (0.5 - cy) * cos - top
        (ax, bx, px), (ay, by, py) = ([part / unit for part in line] for line in (x, y))
        return (tf.stack([_word(share) for share in (ax, bx, px - 0.5, ay, by, py - 0.5, side / unit - 0.5)], -1),)

    def dropped(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        height, width, _ = sides(images)
        right, down = tf.range(width)[None, None, :], tf.range(height)[None, :, None]
        ax, bx, cx, ay, by, cy, side = (part[:, None, None] for part in tf.unstack(given[0], num=7, axis=1))
        return tf.logical_and(right * ax + (down * bx + cx) < side, right * ay + (down * by + cy) < side)

    def _grid(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The unit, a square's side, and where the first one begins, down and across, in pixels."""
        shorter = tf.cast(tf.minimum(height, width), tf.float64)
        unit = tf.maximum(tf.cast(tf.round(uniform(u[:, 0], span_range(self.unit)) * shorter), tf.int32), 2)
        side = tf.clip_by_value(tf.cast(tf.round(tf.cast(unit, tf.float64) * self.ratio), tf.int32), 1, unit - 1)
        return unit, side, pick(u[:, 1], unit - 1), pick(u[:, 2], unit - 1)


def _word(share: tf.Tensor) -> tf.Tensor:
    """A share of a unit, less whole ones, as an int32 in 1/2^32: at least -1/2 and below 1/2."""
    return tf.bitcast(tf.cast(tf.cast(tf.round(share * _TURN), tf.int64) % (1 << 32), tf.uint32), tf.int32)
