"""Shadows, fog, rain, snow, sun and dirt in front of an image."""

from __future__ import annotations

from functools import cache
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Probability, Span, most, span_range, within
from pipegen.ops.families.neighbourhood import ByteTransform
from pipegen.ops.lowering.colours import BITS, ONE, clouds, over, plasma, shares, squares
from pipegen.ops.lowering.filters import Phase, rounded_shift, sides
from pipegen.ops.lowering.linear import radians, uniform
from pipegen.ops.lowering.random import half_words, key_of
from pipegen.ops.lowering.windows import Whole
from pipegen.ops.traits import same_type


class CoverTransform(ByteTransform):
    """Blends each pixel with one `colour`, whose share the last phase computes."""

    colour: ClassVar[tuple[int, int, int]] = (0, 0, 0)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return tf.cast(over(tf.cast(images, tf.int32), given[0], self.colour), tf.uint8)


class RandomPlasmaShadow(CoverTransform):
    """Darkens images by clouds: Albumentations' `PlasmaShadow`.

    A cloud is smooth noise of three sizes, from 0 to 1, the same for all channels. Each value becomes x · (1 - darkness · cloud), in
    whole numbers; the darkness is drawn uniformly for each image.
    """

    op = "random_plasma_shadow"
    cost = 1.7
    draws = 3
    examples = same_type("random_plasma_shadow", "random_plasma_shadow: {darkness: [0.5, 0.9], sigma: 20, probability: 0.5}")

    darkness: Annotated[Span, within(0, 1)] = (0.3, 0.7)
    """The range of the share of light that the middle of a cloud takes away, from 0 to 1."""
    sigma: Annotated[float, Field(ge=4, le=100)] = 40.0
    """The width of the largest clouds, in pixels; the others are half and a quarter of it."""

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return key_of(u[:, 1:3]), shares(self.drawn(u)["darkness"])

    def phase(self, images: tf.Tensor, key: tf.Tensor, darkness: tf.Tensor) -> tuple[tf.Tensor, ...]:
        height, width, _ = sides(images)
        cloud = (ONE + plasma(key, height, width, self.sigma)) // 2
        return (rounded_shift(darkness[:, None, None] * cloud, BITS),)


class RandomShadow(ByteTransform):
    """Darkens parts of an image by a share drawn uniformly: shadows with four straight edges.

    Each shadow lies between the top and the bottom row of `rows`, and between two lines from two places of the top row to two of the bottom
    row, all drawn uniformly. Where shadows overlap, the image is as dark as in one. (Albumentations' `RandomShadow` draws polygons with
    more corners.)
    """

    op = "random_shadow"
    starts_kernel = False
    examples = same_type("random_shadow", "random_shadow: {darkness: [0.5, 0.7], count: 3, rows: [0.5, 1.0], probability: 0.3}")

    darkness: Annotated[Span, within(0, 1)] = (0.3, 0.6)
    """The range of the share of the light that is missing, from 0 to 1; 1 is black."""
    count: Annotated[int, Field(ge=1, le=8)] = 1
    """The number of shadows."""
    rows: Annotated[Span, within(0, 1)] = (0.0, 1.0)
    """The top and the bottom of the part that shadows fall on, as fractions of the height: `[0.5, 1]` is the lower half."""

    def ranges(self) -> dict[str, tuple[float, float]]:
        return {"darkness": span_range(self.darkness)}  # without `rows`, from which nothing is drawn

    def weight(self) -> float:
        return 0.3 + 0.1 * self.count

    def num_draws(self) -> int:
        return 1 + 4 * self.count

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The share of the light that is left, and for each shadow and row its first column and the one behind its last."""
        whole, across = tf.cast(height, tf.float64), tf.cast(width, tf.float64)
        ends = tf.reshape(u[:, 1:], [-1, self.count, 2, 2]) * (across + 1.0)  # at the top and at the bottom, on two sides
        row = tf.range(whole, dtype=tf.float64) + 0.5
        top, bottom = (fraction * whole for fraction in span_range(self.rows))
        down = tf.clip_by_value((row - top) / tf.maximum(bottom - top, 1.0), 0.0, 1.0)
        edges = ends[:, :, 0, :, None] * (1.0 - down) + ends[:, :, 1, :, None] * down
        inside = tf.logical_and(row >= top, row < bottom)
        first = tf.cast(tf.floor(tf.reduce_min(edges, 2)), tf.int32)
        behind = tf.where(inside, tf.cast(tf.floor(tf.reduce_max(edges, 2)), tf.int32), 0)
        return shares(1.0 - self.drawn(u)["darkness"]), first, behind

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        light, first, behind = given
        column = tf.range(sides(images)[1])[None, None, :]
        dark = tf.zeros_like(images[..., 0], dtype=tf.bool)
        for number in range(self.count):
            left, right = first[:, number, :, None], behind[:, number, :, None]
            dark = tf.logical_or(dark, tf.logical_and(column >= left, column < right))
        factor = tf.where(dark, light[:, None, None], ONE)[..., None]
        return tf.cast(rounded_shift(tf.cast(images, tf.int32) * factor, BITS), tf.uint8)


class RandomFog(CoverTransform):
    """Blends images with white: fog whose density is drawn uniformly for each image and varies smoothly over it.

    Each pixel becomes x + share · (255 - x); the share is the density, times 1 plus `patchiness` times smooth noise of standard deviation
    1, clipped to 0 and 1. The noise depends only on the image's draws and on its place, in whole numbers. (Albumentations' `RandomFog`
    paints overlapping discs.)
    """

    op = "random_fog"
    cost = 1.5
    colour = (255, 255, 255)
    draws = 3
    examples = same_type("random_fog", "random_fog: {density: [0.6, 0.8], patchiness: 0.1, probability: 0.2}")

    density: Annotated[Span, within(0, 1)] = (0.2, 0.6)
    """The range of the share of white, from 0 to 1."""
    patchiness: Annotated[float, Field(ge=0, le=1)] = 0.3
    """The standard deviation of the density over an image, as a share of the density, from 0 to 1: 0 is an even haze."""
    sigma: Annotated[float, Field(ge=1, le=100)] = 30.0
    """The width of a patch, in pixels: the standard deviation of the Gaussian that smooths the noise."""

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return key_of(u[:, 1:3]), shares(self.drawn(u)["density"])

    def phase(self, images: tf.Tensor, key: tf.Tensor, density: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The share of white at each pixel, int32 `(n, height, width)`."""
        height, width, _ = sides(images)
        noise = tf.clip_by_value(clouds(key, height, width, self.sigma), -8 * ONE, 8 * ONE)
        uneven = ONE + rounded_shift(noise * round(self.patchiness * ONE), BITS)
        return (tf.clip_by_value(rounded_shift(density[:, None, None] * uneven, BITS), 0, ONE),)


class RandomRain(CoverTransform):
    """Adds rain: slanted streaks one pixel wide, which get denser from top to bottom.

    Columns of pixels, slanted by an angle drawn uniformly for each image, are divided into stretches of twice the length of a streak. Each
    stretch has a streak with a probability of `density`, drawn uniformly for each image; whether it has one depends only on the image's
    draws and on its place, by 16 random bits (Threefry-2x32). (Albumentations' `RandomRain` draws lines anywhere, and blurs and darkens the
    image, which other steps do as well.)
    """

    op = "random_rain"
    cost = 1.0
    idle_at = {"density": 0.0}
    colour = (205, 210, 215)
    draws = 4
    examples = same_type("random_rain", "random_rain: {density: [0.1, 0.2], length: 30, probability: 0.2}")

    density: Annotated[Span, within(0, 1)] = (0.05, 0.2)
    """The range of the probability that a stretch of a column has a streak."""
    length: Annotated[int, Field(ge=2, le=200)] = 16
    """The height of a streak, in pixels."""
    slant_degrees: Annotated[Span, within(-60, 60)] = (-10.0, 10.0)
    """The range of the angle from the vertical, in degrees, from -60 to 60; above 0 rain falls to the right."""
    opacity: Annotated[float, Field(ge=0, le=1)] = 0.6
    """The opacity of a streak at its bottom, from 0 to 1."""

    def idle(self) -> bool:
        return super().idle() or self.opacity == 0

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The key, the probability, and the shift of each row to the right, in pixels."""
        density, degrees = self.drawn(u).values()
        slope = tf.tan(radians(degrees))[:, None]
        moved = tf.cast(tf.round(slope * tf.range(tf.cast(height, tf.float64), dtype=tf.float64)), tf.int32)
        return key_of(u[:, 2:4]), tf.cast(tf.round(density * 65536.0), tf.int32), moved

    def phases(self) -> tuple[Phase, ...]:
        return self._streaks, self._shares

    def _stretches(self, height: Whole) -> Whole:
        """The most stretches that a column can have; the first one begins above the image."""
        return height // (2 * self.length) + 2

    def _streaks(self, images: tf.Tensor, key: tf.Tensor, density: tf.Tensor, moved: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The distance above the image at which each column's first stretch begins, and whether each stretch has a streak."""
        height, width, _ = sides(images)
        words = tf.cast(half_words(key, width * (self._stretches(height) + 1)), tf.int32)
        return rounded_shift(words[:, :width] * (2 * self.length - 1), 16), tf.cast(words[:, width:] < density[:, None], tf.int32), moved

    def _shares(self, images: tf.Tensor, above: tf.Tensor, has: tf.Tensor, moved: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The share of the rain's colour at each pixel, int32 `(n, height, width)`."""
        height, width, _ = sides(images)
        column = tf.math.floormod(tf.range(width)[None, None, :] - moved[:, :, None], width)
        down = tf.range(height)[None, :, None] + _picked(above, column)
        stretch, place = down // (2 * self.length), tf.math.floormod(down, 2 * self.length)
        falls = _picked(has, column * self._stretches(height) + stretch)
        denser = tf.where(place < self.length, place + 1, 0) * (round(self.opacity * (1 << BITS)) // self.length)
        return (falls * denser,)


def _picked(values: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """Values `(n, k)` of each example at places of any shape `(n, ...)`."""
    found = tf.gather(values, tf.reshape(places, [tf.shape(places)[0], -1]), batch_dims=1)
    return tf.reshape(found, tf.shape(places))


class RandomSnow(ByteTransform):
    """Brightens pixels darker than a point drawn uniformly, so that they look covered with snow: Albumentations' `bleach`.

    Their lightness is multiplied by `factor` and clipped at white; hue and saturation stay. Lightness is that of HLS, half the sum of a
    pixel's greatest and least channel. For each lightness that is one scale and one offset for all channels, read from tables of 12 bits.
    (Albumentations rounds hue to 2 degrees and saturation to whole levels.)
    """

    op = "random_snow"
    cost = 0.8
    symmetric = True
    examples = same_type("random_snow", "random_snow: {point: [0.3, 0.5], factor: 2, probability: 0.2}")

    point: Annotated[Span, within(0, 1)] = (0.1, 0.3)
    """The range of the lightness below which pixels brighten, from 0 to 1. (Albumentations adds a third to half of its argument.)"""
    factor: Annotated[float, Field(ge=1, le=16)] = 2.5
    """The factor of the lightness below the point, from 1 to 16."""

    def idle(self) -> bool:
        return super().idle() or self.factor == 1

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (tf.cast(tf.round(self.drawn(u)["point"] * 510.0), tf.int32),)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        x = tf.cast(images, tf.int32)
        lightness = tf.reduce_max(x, -1, keepdims=True) + tf.reduce_min(x, -1, keepdims=True)
        scale, offset = (tf.gather(tf.constant(table, tf.int32), lightness) for table in _tables(self.factor))
        snowed = tf.clip_by_value(rounded_shift(x * scale + offset, BITS), 0, 255)
        return tf.cast(tf.where(lightness < given[0][:, None, None, None], snowed, x), tf.uint8)


@cache
def _tables(factor: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The scale and the offset of values, in 1/4096, for each sum of the greatest and the least channel."""
    found = []
    for total in range(511):
        after = min(total * factor, 510.0)
        # The spread of the channels has to shrink towards black and white for the saturation to stay.
        scale = min(after, 510.0 - after) / min(total, 510 - total) if 0 < total < 510 else 1.0
        found.append((round(scale * (1 << BITS)), round((after - total * scale) / 2 * (1 << BITS))))
    return tuple(scale for scale, _ in found), tuple(offset for _, offset in found)


_GHOSTS = ((190, 235, 255), (255, 200, 160), (200, 255, 190), (255, 170, 220))


class RandomSunFlare(ByteTransform):
    """Adds a lens flare: a glow around a place in the upper part, and ghosts on the line from there through the centre of the image.

    The opacity of the glow is `intensity` in its middle, and falls with the distance d as (1 - d² / reach²)²; ghosts are even discs of a
    fifth of that opacity, between a twentieth and a fifth as wide. The place of the sun is drawn uniformly in the columns, and in the rows
    of the `upper` part. (Albumentations' `RandomSunFlare` paints discs of growing size.)
    """

    op = "random_sun_flare"
    idle_at = {"intensity": 0.0}
    starts_kernel = False
    examples = same_type("random_sun_flare", "random_sun_flare: {intensity: [0.8, 1.0], ghosts: 0, probability: 0.2}")

    intensity: Annotated[Span, within(0, 1)] = (0.5, 0.9)
    """The range of the opacity of the glow in its middle, from 0 to 1."""
    reach: Annotated[Span, within(0.01, 2)] = (0.2, 0.5)
    """The range of the glow's radius, as a fraction of the longer side."""
    upper: Probability = 0.5
    """The part of the height, from the top, in which the sun can be."""
    ghosts: Annotated[int, Field(ge=0, le=8)] = 4
    """The number of ghosts."""

    def weight(self) -> float:
        return 0.6 + 0.3 * self.ghosts

    def num_draws(self) -> int:
        return 4 + 2 * self.ghosts

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The strength of the glow; and the squared distances of each row and each column from the glow and each ghost."""
        rows, columns = tf.cast(height, tf.float64), tf.cast(width, tf.float64)
        strength, share = self.drawn(u).values()
        radius = share * tf.maximum(rows, columns)
        x, y = u[:, 2] * columns, u[:, 3] * rows * self.upper
        # Places on the line: 0 is the sun, 1 the centre of the image, 2 as far behind the centre.
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
            done = over(done, rounded_shift(rounded_shift(near * near, BITS) * whole, BITS), (255, 250, 232))
        return tf.cast(done, tf.uint8)


class RandomSpatter(ByteTransform):
    """Puts drops of water or mud over a share of the image, drawn uniformly: patches where smooth noise is highest.

    The opacity of a drop grows with the noise above the threshold of its edge, up to `opacity`. The noise depends only on the image's draws
    and on its place, in whole numbers. It follows the spatter of ImageNet-C, and Albumentations' `Spatter`, without their edges of
    reflected light.

    Source: Hendrycks and Dietterich, "Benchmarking neural network robustness to common corruptions and perturbations" (2019).
    """

    op = "random_spatter"
    cost = 2.0
    draws = 3
    examples = same_type("random_spatter", "random_spatter: {of: mud, share: [0.1, 0.3], probability: 0.2}")

    of: Literal["water", "mud"] = "water"
    """The kind of drops: `water`, which is pale, or `mud`, which is dark."""
    share: Annotated[Span, within(0, 0.9)] = (0.02, 0.15)
    """The range of the share of the image that drops cover, from 0 to 0.9."""
    opacity: Annotated[float, Field(ge=0, le=1)] = 0.8
    """The greatest opacity of a drop, from 0 to 1."""
    sigma: Annotated[float, Field(ge=1, le=100)] = 4.0
    """The width of a drop, in pixels: the standard deviation of the Gaussian that smooths the noise."""

    def idle(self) -> bool:
        return most(self.probability) == 0 or self.opacity == 0  # a share of 0 leaves drops: the edge stops at the quantile 1 - 2^-20

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        free = tf.clip_by_value(1.0 - self.drawn(u)["share"], 0.0, 1.0 - 2.0**-20)
        return key_of(u[:, 1:3]), tf.cast(tf.round(tf.math.ndtri(free) * float(ONE)), tf.int32)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        colour = {"water": (175, 238, 238), "mud": (63, 42, 20)}[self.of]
        return tf.cast(over(tf.cast(images, tf.int32), given[0], colour), tf.uint8)

    def phase(self, images: tf.Tensor, key: tf.Tensor, edge: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The share of the drops' colour at each pixel, int32 `(n, height, width)`."""
        height, width, _ = sides(images)
        # Opacity grows twice as fast as the noise from the edge on.
        above = tf.clip_by_value(2 * (clouds(key, height, width, self.sigma) - edge[:, None, None]), 0, ONE)
        return (rounded_shift(above * round(self.opacity * ONE), BITS),)
