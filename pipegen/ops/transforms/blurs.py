"""Blur images: by Gaussians, means and medians, and as lenses, moving cameras and frosted glass do; and separate colours as lenses do."""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from typing import Annotated, Literal

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import SOFT, Magnitude, Number, Span, amount_within, as_pair, check_range, checked, span_range, within
from pipegen.ops.families.chains import Chains, EnlargingTransform
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering import filters
from pipegen.ops.lowering.linear import radians, uniform
from pipegen.ops.lowering.random import half_words, key_of
from pipegen.ops.lowering.windows import whole_between
from pipegen.ops.step_bases import (
    AmountTransform,
    FixedTransform,
    OccasionalTransform,
    UnconditionalTransform,
    UniformTransform,
    UnsignedTransform,
)
from pipegen.ops.traits import FLOAT_224, same_type

LARGEST = 10.0
"""The largest sigma, in pixels. A wider filter would cost more than the rest of a recipe; blurring a smaller image looks the same."""


class BlurTransform(NeighbourhoodTransform):
    """A separable Gaussian filter of one radius for all examples."""

    symmetric = True

    def radius(self) -> int:
        """The number of pixels that are read to each side."""
        raise NotImplementedError

    def weight(self) -> float:
        return 0.4 + 0.1 * self.radius()

    def phases(self) -> tuple[filters.Phase, ...]:
        return filters.widen, filters.filter_rows, filters.filter_columns


class GaussianTransform(AmountTransform, BlurTransform):
    """A Gaussian filter, as wide as the largest sigma of any example needs."""

    def radius(self) -> int:
        return filters.gaussian_radius(self.largest("sigma"))

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return filters.gaussian_weights(self.amounts(u)["sigma"], self.radius())


class MedianTransform(NeighbourhoodTransform):
    """Replaces each value by the median of those around it."""

    symmetric = True

    side: Literal[3, 5] = 3
    """The side of the square that the median is taken of, in pixels: 3 or 5."""

    def weight(self) -> float:
        return 0.55 if self.side == 3 else 1.1

    def phases(self) -> tuple[filters.Phase, ...]:
        return filters.bordered(self.side // 2, "nearest"), partial(filters.sorted_columns, size=self.side), filters.medians


LONGEST = 64.0  # the longest line, in pixels


class MotionTransform(AmountTransform, NeighbourhoodTransform):
    """The mean along a line through each pixel. Each step of the line lies between two pixels and reads both."""

    idle_at = {"length": 1.0}

    def weight(self) -> float:
        return 0.5 + 0.2 * self._reach()

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The places of the taps, int32 `(n, taps, 2)`, and their weights."""
        length, degrees = self.amounts(u).values()
        reach = self._reach()
        right, up = tf.cos(radians(degrees)), tf.sin(radians(degrees))
        flat = tf.abs(right) >= tf.abs(up)
        along_, beside = tf.where(flat, right, up), tf.where(flat, up, right)
        step = tf.range(-reach, reach + 1)
        half = (length - 1.0) / 2.0 * tf.abs(along_)
        cover = tf.clip_by_value(half[:, None] + 1.0 - tf.abs(tf.cast(step, tf.float64)), 0.0, 1.0)
        # Rounded, since the last bits of a cosine must not decide which pixel is read.
        off = tf.round(tf.cast(step, tf.float64) * -(beside / along_)[:, None] * 65536.0) / 65536.0
        first = tf.floor(off)
        share = off - first
        weights = tf.concat([cover * (1.0 - share), cover * share], 1)
        first = tf.cast(first, tf.int32)
        minor = tf.concat([first, first + 1], 1)
        major = tf.zeros_like(minor) + tf.concat([step, step], 0)
        rows = tf.where(flat[:, None], minor, -major)
        columns = tf.where(flat[:, None], major, -minor)
        places = tf.stack([rows, columns], -1) + reach + 1
        return places, *filters.whole_weights(weights / tf.reduce_sum(weights, -1, keepdims=True), reach)

    def phases(self) -> tuple[filters.Phase, ...]:
        return filters.bordered(self._reach() + 1, "reflect"), filters.along

    def _reach(self) -> int:
        """The pixels that the longest line reaches to each side."""
        return math.ceil((self.largest("length") - 1.0) / 2.0)


LARGEST_RADIUS = 10.0  # the largest radius, in pixels: such a disc has 346 pixels


class DefocusTransform(AmountTransform, NeighbourhoodTransform):
    """The mean of a disc, whose rim counts as far as it covers a pixel's middle."""

    symmetric = True

    def idle(self) -> bool:
        return super().idle() or self.largest("radius") <= 0.5

    def weight(self) -> float:
        return 0.35 + 0.2 * self._reach()

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The weights of the `_groups`."""
        radius, groups = self.amounts(u)["radius"], self._groups()
        far = tf.constant([math.hypot(*group[0]) for group in groups], tf.float64)
        counts = [len(group) for group in groups]
        cover = tf.clip_by_value(radius[:, None] + 0.5 - far, 0.0, 1.0)
        return filters.whole_weights(cover / tf.reduce_sum(cover * tf.constant(counts, tf.float64), -1, keepdims=True), counts=counts)

    def phases(self) -> tuple[filters.Phase, ...]:
        return filters.bordered(self._reach(), "reflect"), partial(filters.spread, groups=self._groups(), radius=self._reach())

    def _reach(self) -> int:
        """The pixels that the largest disc reaches to each side."""
        return math.ceil(self.largest("radius") + 0.5) - 1

    def _groups(self) -> list[list[filters.Offset]]:
        """The offsets in the largest disc from the middle on, grouped by their distances across and down."""
        reach, far = self._reach(), self.largest("radius") + 0.5
        found: dict[filters.Offset, list[filters.Offset]] = {}
        for down, right in product(range(-reach, reach + 1), repeat=2):
            if math.hypot(down, right) < far:
                low, high = sorted((abs(down), abs(right)))
                found.setdefault((high, low), []).append((down, right))
        return [found[key] for key in sorted(found)]


class GaussianBlur(FixedTransform, GaussianTransform):
    """Blurs every image with one Gaussian.

    The filter is separable and reaches 3 sigma; the image is reflected at its border (abc|cba). The weights for bytes are integers of 14
    bits, the same everywhere, and results are within one level of the true sum.
    """

    op = "gaussian_blur"
    examples = same_type("gaussian_blur: {sigma: 1.5}") + same_type("gaussian_blur: {sigma: 3}", given=FLOAT_224)

    sigma: Annotated[float, Field(ge=0, le=LARGEST), SOFT]
    """The standard deviation of the Gaussian, in pixels, at most 10."""


class RandomGaussianBlur(UnsignedTransform, GaussianTransform):
    """Blurs an image with a Gaussian whose standard deviation is drawn uniformly.

    The filter is separable and reaches 3 times the largest sigma; the image is reflected at its border (abc|cba). The weights for bytes
    are integers of 14 bits, the same everywhere, and results are within one level of the true sum.
    (Keras' layer takes a `kernel_size` beside `sigma`; here it follows from `sigma`.)
    """

    op = "random_gaussian_blur"
    examples = same_type("random_gaussian_blur: {sigma: 2}", "random_gaussian_blur: {sigma: [0.1, 2.0], probability: 0.5}")

    sigma: Annotated[Magnitude, amount_within(0, LARGEST), SOFT]
    """The standard deviation of the Gaussian, in pixels, at most 10: 2 means from 0 to 2, a pair is the range."""


class RandomAdvancedBlur(UniformTransform, NeighbourhoodTransform):
    """Blurs images with a generalised Gaussian of two widths, an angle and an exponent, each drawn uniformly: the blur kernels of
    Real-ESRGAN, and Albumentations' `AdvancedBlur` without noise.

    A pixel at (x, y), turned by the angle, weighs exp(-½ · ((x / sigma_1)² + (y / sigma_2)²) ^ beta): an exponent of 1 is a Gaussian, a
    smaller one has heavier tails, a larger one is flatter. The filter reaches 2 of the largest sigma; the image is reflected at its border
    (abc|cba), and bytes are weighted by integers of 14 bits.
    """

    op = "random_advanced_blur"
    examples = same_type(
        "random_advanced_blur: {sigma: [0.5, 1.5]}", "random_advanced_blur: {sigma: [0.2, 1], beta: [1, 1], probability: 0.5}"
    )

    sigma: Annotated[Span, within(0.1, 3)] = (0.2, 1.0)  # it is not separable, so its cost grows with the square
    """The range of each of the two widths, in pixels, from 0.1 to 3."""
    degrees: Annotated[Span, within(-180, 180)] = (-90.0, 90.0)
    """The range of the angle of the first width, in degrees, anticlockwise from the right."""
    beta: Annotated[Span, within(0.2, 16)] = (0.5, 8.0)
    """The range of the exponent, from 0.2 to 16."""

    def ranges(self) -> dict[str, tuple[float, float]]:
        found = super().ranges()
        sigma = found.pop("sigma")
        return {"sigma_1": sigma, "sigma_2": sigma, **found}

    def reach(self) -> int:
        """The number of pixels that are read to each side."""
        return max(1, math.ceil(2 * span_range(self.over_epochs().sigma)[1]))

    def weight(self) -> float:
        return 0.4 + 0.05 * (2 * self.reach() + 1) ** 2

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        first, second, degrees, beta = (value[:, None] for value in self.drawn(u).values())
        reach = self.reach()
        offsets = list(product(range(-reach, reach + 1), repeat=2))
        down, right = (tf.constant([float(o[i]) for o in offsets], tf.float64) for i in (0, 1))
        cos, sin = tf.cos(radians(degrees)), tf.sin(radians(degrees))
        along_, beside = cos * right - sin * down, sin * right + cos * down
        weights = tf.exp(-0.5 * (tf.square(along_ / first) + tf.square(beside / second)) ** beta)
        weights = weights / tf.reduce_sum(weights, -1, keepdims=True)
        places = tf.constant([[y + reach, x + reach] for y, x in offsets], tf.int32) + tf.zeros_like(degrees, tf.int32)[..., None]
        return places, *filters.whole_weights(weights, len(offsets) // 2)

    def phases(self) -> tuple[filters.Phase, ...]:
        return filters.bordered(self.reach(), "reflect"), filters.along


Reach = Annotated[int, Field(ge=0, le=15)]


class RandomBoxBlur(BlurTransform):
    """Replaces each value by the mean of the square around it, whose reach is drawn: OpenCV's `blur`.

    The image is reflected at its border (abc|cba). The weights for bytes are integers of 14 bits, and results are within one level of the
    true mean.
    """

    op = "random_box_blur"
    random = True
    draws = 1
    pairs = frozenset({"reach"})
    examples = same_type("random_box_blur: {reach: [1, 3]}", "random_box_blur: {reach: [0, 5], probability: 0.5}")

    reach: Annotated[Reach | tuple[Reach, Reach], checked(check_range)] = (1, 3)
    """The pixels that the square reaches to each side, at most 15; a pair is the range, both ends included. A reach of 1 is a square of 3
    by 3."""

    def idle(self) -> bool:
        return super().idle() or as_pair(self.reach)[1] == 0

    def radius(self) -> int:
        return max(as_pair(self.reach)[1], 1)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"reach": whole_between(u[..., 0], as_pair(self.reach))}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        reach = self.drawn(u)["reach"]
        distance = tf.range(1, self.radius() + 1)
        share = 1.0 / tf.cast(2 * reach + 1, tf.float64)[:, None]
        beside = tf.where(distance <= reach[:, None], share, tf.zeros_like(share))
        whole = tf.cast(tf.round(beside * float(1 << filters.BITS)), tf.int32)
        middle = (1 << filters.BITS) - 2 * tf.reduce_sum(whole, -1, keepdims=True)
        return tf.concat([middle, whole], -1), tf.cast(tf.concat([share, beside], -1), tf.float32)


class MedianBlur(UnconditionalTransform, MedianTransform):
    """Replaces each value by the median of the 3 by 3 or 5 by 5 values around it, in its own channel.

    It is OpenCV's `medianBlur`, bit for bit; the edge of the image is repeated.
    """

    op = "median_blur"
    examples = same_type("median_blur: {side: 3}") + same_type("median_blur: {side: 5}", given=FLOAT_224)


class RandomMedianBlur(OccasionalTransform, MedianTransform):
    """Replaces each value of a share of the images by the median of the 3 by 3 or 5 by 5 values around it, in its own channel.

    It is OpenCV's `medianBlur`, bit for bit; the edge of the image is repeated.
    """

    op = "random_median_blur"
    examples = same_type("random_median_blur: {side: 3}", "random_median_blur: {side: 5, probability: 0.2}")


class MotionBlur(FixedTransform, MotionTransform):
    """Replaces each pixel by the mean along a line through it, as a moving camera does.

    The line is followed pixel by pixel along its longer direction, and read between two pixels along the other. The image is reflected at
    its border (abc|cba). The weights for bytes are integers of 14 bits.
    """

    op = "motion_blur"
    examples = same_type("motion_blur: {length: 9}") + same_type("motion_blur: {length: 7, degrees: 30}", given=FLOAT_224)

    length: Annotated[float, Field(ge=1, le=LONGEST)]
    """The length of the line, in pixels, from 1, which changes nothing, to 64."""
    degrees: Number = 0.0
    """The angle of the line in degrees, anticlockwise from the right; 90 is upright."""


class RandomMotionBlur(UniformTransform, MotionTransform):
    """Replaces each pixel by the mean along a line through it, as a moving camera does; length and angle are drawn uniformly.

    The line is followed pixel by pixel along its longer direction, and read between two pixels along the other. The image is reflected at
    its border (abc|cba). The weights for bytes are integers of 14 bits.
    """

    op = "random_motion_blur"
    examples = same_type(
        "random_motion_blur: {length: [3, 15]}", "random_motion_blur: {length: [1, 9], degrees: [-30, 30], probability: 0.5}"
    )

    length: Annotated[Span, within(1, LONGEST)]
    """The range of the line's length, in pixels, from 1, which changes nothing, to 64."""
    degrees: Annotated[Span, within(-360, 360)] = (0.0, 180.0)
    """The range of the line's angle in degrees, anticlockwise from the right; by default any angle."""


class DefocusBlur(FixedTransform, DefocusTransform):
    """Replaces each pixel by the mean of a disc around it, as a lens out of focus does.

    A pixel at distance d has the weight radius + 1/2 - d, clipped to 0 and 1; the image is reflected at its border (abc|cba). The weights
    for bytes are integers of 14 bits, the same everywhere.
    """

    op = "defocus_blur"
    examples = same_type("defocus_blur: {radius: 3}") + same_type("defocus_blur: {radius: 1.5}", given=FLOAT_224)

    radius: Annotated[float, Field(ge=0, le=LARGEST_RADIUS)]
    """The radius of the disc, in pixels, at most 10; 0 changes nothing."""


class RandomDefocusBlur(UniformTransform, DefocusTransform):
    """Replaces each pixel by the mean of a disc around it whose radius is drawn uniformly, as a lens out of focus does.

    A pixel at distance d has the weight radius + 1/2 - d, clipped to 0 and 1; the image is reflected at its border (abc|cba). The weights
    for bytes are integers of 14 bits, the same everywhere.
    """

    op = "random_defocus_blur"
    examples = same_type("random_defocus_blur: {radius: [1, 4]}", "random_defocus_blur: {radius: [0, 3], probability: 0.5}")

    radius: Annotated[Span, within(0, LARGEST_RADIUS)]
    """The range of the disc's radius, in pixels, at most 10; 0 changes nothing."""


class RandomGlassBlur(NeighbourhoodTransform):
    """Shows an image through frosted glass: blurs it, takes each pixel from a random place nearby, and blurs it again (the corruption
    `glass_blur` of Hendrycks and Dietterich 2019, in which pixels change places).

    The place of each pixel is drawn independently, by 8 random bits across and 8 down (Threefry-2x32), and lies inside the image. The blur
    is that of `gaussian_blur`. Masks stay as they are.
    """

    op = "random_glass_blur"
    random = True
    draws = 2
    examples = same_type("random_glass_blur: {distance: 3}", "random_glass_blur: {distance: 2, sigma: 0.5, probability: 0.3}")

    distance: Annotated[int, Field(ge=1, le=16)]
    """The greatest distance at which a pixel is taken, across and down, in pixels."""
    sigma: Annotated[float, Field(gt=0, le=5)] = 0.7
    """The standard deviation of the Gaussian, in pixels, at most 5."""

    def weight(self) -> float:
        return 2.4 + 0.2 * filters.gaussian_radius(self.sigma)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`key`, which decides the place of every pixel, uint32 `(n, 2)`."""
        return {"key": key_of(u)}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        sigma = tf.fill(tf.shape(u)[:1], tf.constant(self.sigma, tf.float64))
        return key_of(u), *filters.gaussian_weights(sigma, filters.gaussian_radius(self.sigma))

    def phases(self) -> tuple[filters.Phase, ...]:
        def widen_again(images: tf.Tensor, taken: tf.Tensor, *weights: tf.Tensor) -> tuple[tf.Tensor, ...]:
            return filters.widen(tf.reshape(taken, [-1, *filters.sides(images)]), *weights)

        first = [filters.beside(phase) for phase in (filters.widen, filters.filter_rows)]
        return *first, self._filter_and_take, widen_again, filters.filter_rows, filters.filter_columns

    def _moved(self, key: tf.Tensor, pixels: int | tf.Tensor) -> list[tf.Tensor]:
        """How far down, and to the right, each pixel is taken: int32 `(n, pixels)` each."""
        words, places = tf.cast(half_words(key, pixels), tf.int32), 2 * self.distance + 1
        halves = tf.bitwise.right_shift(words, 8), tf.bitwise.bitwise_and(words, 255)
        return [tf.bitwise.right_shift(half * places, 8) - self.distance for half in halves]

    def _filter_and_take(self, images: tf.Tensor, key: tf.Tensor, *given: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The blurred images `(n, height · width, channels)`, each pixel taken from its place."""
        height, width, channels = filters.sides(images)
        (lines,) = filters.filter_columns(images, *given)
        down, right = (tf.reshape(moved, [-1, height, width]) for moved in self._moved(key, height * width))
        row = tf.clip_by_value(tf.range(height)[:, None] + down, 0, height - 1)
        column = tf.clip_by_value(tf.range(width)[None, :] + right, 0, width - 1)
        pixels = tf.reshape(lines, [-1, height * width, channels])
        return tf.gather(pixels, tf.reshape(row * width + column, [-1, height * width]), batch_dims=1), *given[1:]


class RandomZoomBlur(UniformTransform, EnlargingTransform):
    """Replaces each image by the mean of itself and of enlargements about its centre, up to a factor that is drawn uniformly.

    The enlargements are evenly spaced between 1 and that factor, both included; each is read once, bilinear, and the sum is in whole
    numbers. Objects stay in place, so masks and boxes do, too.
    """

    op = "random_zoom_blur"
    idle_at = {"factor": 1.0}
    examples = same_type("random_zoom_blur: {factor: [1, 1.2]}", "random_zoom_blur: {factor: [1.05, 1.1], steps: 5, probability: 0.5}")

    factor: Annotated[Span, within(1, 4)] = (1.0, 1.2)
    """The range of the largest enlargement, from 1, which changes nothing, to 4."""
    steps: Annotated[int, Field(ge=2, le=32)] = 8
    """The number of images in the mean, from 2 to 32; with a large factor, few of them can be told apart."""

    def weight(self) -> float:
        return 3.6 * (self.steps - 1)

    def drawn_chains(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> Chains:
        factor, count = self.drawn(u)["factor"], self.steps - 1
        along = tf.range(1, count + 1, dtype=tf.float64) / float(count)
        scale = 1.0 / (1.0 + (factor[:, None] - 1.0) * along)
        even = tf.fill([1, self.steps], tf.constant(1.0 / self.steps, tf.float64))
        weights, _ = filters.whole_weights(tf.ones_like(factor)[:, None] * even)
        return self.enlarged(scale, weights, height, width)


class RandomChromaticAberration(UniformTransform, EnlargingTransform):
    """Enlarges red and blue about the centre, each by a factor that is drawn uniformly, and leaves green: lateral chromatic aberration.

    Each channel is read once, bilinear. Objects stay in place within a pixel or two, so masks and boxes stay, too. (Albumentations moves
    the channels along a curve, by the square and the fourth power of the distance from the centre.)
    """

    op = "random_chromatic_aberration"
    cost = 7.0
    idle_at = {"factor_1": 1.0, "factor_2": 1.0}
    channel_counts = (3,)
    examples = same_type(
        "random_chromatic_aberration: {factor: [0.98, 1.02]}", "random_chromatic_aberration: {factor: [1, 1.01], probability: 0.5}"
    )

    factor: Annotated[Span, within(0.8, 1.25)] = (0.98, 1.02)
    """The range of the factors of red and of blue, from 0.8 to 1.25."""

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Of `factor_1` for red and `factor_2` for blue."""
        return dict.fromkeys(("factor_1", "factor_2"), span_range(self.factor))

    def drawn_chains(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> Chains:
        scale = 1.0 / uniform(u, span_range(self.factor))
        weights = tf.constant([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]) * float(1 << filters.BITS)  # green, red and blue
        return self.enlarged(scale, weights + tf.zeros_like(u[:, :1, None], tf.float32), height, width)
