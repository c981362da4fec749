"""Let the sun shine into the lens."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Probability, Span, check_pair, check_range, checked, most, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.byte_images import ByteTransform
from pipegen.ops.lowering.filters import rounded_shift
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.overlays import BITS, ONE, over, shares, squares

_SUN = (255, 250, 232)
_GHOSTS = ((190, 235, 255), (255, 200, 160), (200, 255, 190), (255, 170, 220))


class RandomSunFlare(ByteTransform):
    """Lets the sun shine into the lens: a glow around a place in the upper part, and ghosts on the line through the centre of the image.

    The glow's share of its colour is `intensity` in the middle and falls with the distance d from it as (1 - d² / reach²)²;
    ghosts are even discs of a fifth of the glow's strength, between a twentieth and a fifth as wide. The sun's place is drawn
    uniformly in the columns, and in the rows of the `upper` part. (Albumentations' `RandomSunFlare` paints discs of growing size.)
    """

    op = "random_sun_flare"
    starts_kernel = False
    examples = (
        Example("random_sun_flare", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_sun_flare: {intensity: [0.8, 1.0], ghosts: 0, probability: 0.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    intensity: Annotated[Span, checked(check_pair), checked(check_range, 0, 1)] = (0.5, 0.9)
    """The range of the glow's share in its middle, from 0 to 1."""
    reach: Annotated[Span, checked(check_pair), checked(check_range, 0.01, 2)] = (0.2, 0.5)
    """The range of the glow's radius, as a fraction of the longer side."""
    upper: Probability = 0.5
    """The part of the height, from the top, in which the sun stands."""
    ghosts: Annotated[int, Field(ge=0, le=8)] = 4
    """How many ghosts there are."""

    def idle(self) -> bool:
        return most(self.probability) == 0 or span_range(self.intensity)[1] == 0

    def ranges(self) -> dict[str, tuple[float, float]]:
        return {"intensity": span_range(self.intensity), "reach": span_range(self.reach)}

    def weight(self) -> float:
        return 0.6 + 0.3 * self.ghosts

    def num_draws(self) -> int:
        return 4 + 2 * self.ghosts

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns the strength of the glow; and for it and each ghost, the squared distance of each row and of each column."""
        rows, columns = tf.cast(height, tf.float64), tf.cast(width, tf.float64)
        strength, share = self.drawn(u).values()
        radius = share * tf.maximum(rows, columns)
        x, y = u[:, 2] * columns, u[:, 3] * rows * self.upper
        # A ghost's place on the line: 0 is the sun, 1 the centre of the image, 2 as far behind it.
        along = uniform(u[:, 4 : 4 + self.ghosts], (0.3, 2.0))
        size = uniform(u[:, 4 + self.ghosts :], (0.05, 0.2)) * radius[:, None]
        across = tf.concat([x[:, None], x[:, None] + along * (columns / 2.0 - x)[:, None]], 1)
        down = tf.concat([y[:, None], y[:, None] + along * (rows / 2.0 - y)[:, None]], 1)
        radii = tf.concat([radius[:, None], size], 1)
        return shares(strength), squares(height, down, radii), squares(width, across, radii)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        strength, down, across = given
        done, whole = tf.cast(images, tf.int32), strength[:, None, None]
        for number in range(1 + self.ghosts):
            away = down[:, number, :, None] + across[:, number, None, :]
            if number:
                done = over(done, tf.where(away < ONE, whole // 5, 0), _GHOSTS[(number - 1) % len(_GHOSTS)])
                continue
            near = tf.maximum(ONE - away, 0)
            done = over(done, rounded_shift(rounded_shift(near * near, BITS) * whole, BITS), _SUN)
        return tf.cast(done, tf.uint8)
