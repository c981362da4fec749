"""Give images the look of others: their histogram, or their low frequencies."""

from __future__ import annotations

from typing import Annotated, Literal

from pipegen.lazy import np, tf
from pipegen.ops.arguments.magnitudes import Range, Span, bounded, within
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform, require_channels
from pipegen.ops.families.references import ReferenceTransform
from pipegen.ops.lowering.colours import BITS, ONE
from pipegen.ops.lowering.filters import sides
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.windows import pick
from pipegen.ops.step_bases import UniformTransform
from pipegen.ops.traits import same_type
from pipegen.types import FeatureType


class RandomHistogramMatching(ReferenceTransform, LookupTableTransform):
    """Gives each channel of an image the histogram, or the mean and standard deviation, of one of the reference images, each as likely; the
    result is blended with the image by a share drawn uniformly.

    With `match: histogram`, a value becomes the one with the same share of pixels below it in the reference, interpolated linearly:
    scikit-image's `match_histograms`, and Albumentations' `HistogramMatching`. With `match: moments`, it becomes (x - mean) / std · std of
    the reference + its mean. Both are tables made from the image's histogram, in whole numbers with 12 more bits.
    """

    op = "random_histogram_matching"
    random = True
    needs_histogram = True
    draws = 2
    examples = same_type(
        "random_histogram_matching: {references: styles/}",
        "random_histogram_matching: {references: 'styles/*.jpg', match: moments, share: [0.2, 0.8], probability: 0.5}",
    )

    match: Literal["histogram", "moments"] = "histogram"
    """What is matched: the whole `histogram` of the reference, or its `moments`, mean and standard deviation."""
    share: Annotated[Range, bounded(0, 1)] = (0.5, 1.0)
    """The range of the share of the matched image, from 0, the image itself, to 1."""

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        require_channels(self, x, (1, 3))
        return y

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`share`, and `reference`: the number of the image, in an order that depends on their content."""
        return {"share": uniform(u[..., 0], self.share), "reference": pick(u[..., 1], len(self.pictures(3)) - 1)}

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        counts = tf.cast(histogram, tf.int64)
        drawn = self.drawn(u)
        pictures = self.pictures(int(counts.shape[1]))
        known = np.array([[np.bincount(p[..., c].ravel(), minlength=256) for c in range(p.shape[-1])] for p in pictures], np.int64)
        matched = (_matched if self.match == "histogram" else _moved)(counts, tf.gather(tf.constant(known), drawn["reference"]))
        share = tf.cast(tf.round(drawn["share"] * float(ONE)), tf.int64)[:, None, None]
        values = tf.range(256, dtype=tf.int64) * ONE
        half = 1 << (2 * BITS - 1)
        blended = (values * (ONE - share) + matched * share + half) // (1 << (2 * BITS))
        return tf.cast(tf.clip_by_value(blended, 0, 255), tf.int32)


def _matched(counts: tf.Tensor, theirs: tf.Tensor) -> tf.Tensor:
    """The new value of each value by the histogram, in 1/4096: int64 `(n, channels, 256)`, from two histograms of that shape."""
    size, own = (tf.reduce_sum(part, -1, keepdims=True) for part in (theirs, counts))
    # Shares of pixels over a common denominator: with references of at most 2^16 pixels, all products stay below 2^63.
    wanted, reached = tf.cumsum(counts, -1) * size, tf.cumsum(theirs, -1) * own
    above = tf.reduce_sum(tf.cast(reached[..., None, :] < wanted[..., :, None], tf.int32), -1)
    above = tf.minimum(above, 255)
    first = tf.gather(_present_before(theirs, tf.range(256)), above, batch_dims=2)
    there = first >= 0
    low = tf.where(there, first, above)
    at_low, at_high = (tf.gather(reached, place, batch_dims=2) for place in (low, above))
    span = tf.maximum(at_high - at_low, 1)
    between = tf.cast(above - low, tf.int64) * (wanted - at_low) * ONE // span
    return tf.cast(low, tf.int64) * ONE + tf.where(there, between, 0)


def _present_before(counts: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """The nearest smaller value with a count above 0, int32 `(n, channels, 256)`; -1 where there is none."""
    own = tf.where(counts > 0, values, -1)
    # The running maximum, by doubling steps.
    step = 1
    while step < 256:
        own = tf.maximum(own, tf.pad(own[..., :-step], [[0, 0], [0, 0], [step, 0]], constant_values=-1))
        step *= 2
    return tf.pad(own[..., :-1], [[0, 0], [0, 0], [1, 0]], constant_values=-1)


def _moved(counts: tf.Tensor, theirs: tf.Tensor) -> tf.Tensor:
    """The new value of each value by mean and standard deviation, in 1/4096."""
    (mean, std), (to, wide) = _moments(counts), _moments(theirs)
    values = tf.range(256, dtype=tf.float64)
    scale = tf.where(std > 0, wide / tf.where(std > 0, std, 1.0), 0.0)
    return tf.cast(tf.round(((values - mean) * scale + to) * float(ONE)), tf.int64)


def _moments(counts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    weights, values = tf.cast(counts, tf.float64), tf.range(256, dtype=tf.float64)
    size = tf.reduce_sum(weights, -1, keepdims=True)
    mean = tf.reduce_sum(weights * values, -1, keepdims=True) / size
    return mean, tf.sqrt(tf.reduce_sum(weights * tf.square(values - mean), -1, keepdims=True) / size)


class RandomFourierAdaptation(UniformTransform, ReferenceTransform, NeighbourhoodTransform):
    """Replaces the amplitudes of low frequencies by those of one of the reference images, each as likely: Fourier domain adaptation,
    Albumentations' `FDA`. Phases stay, so objects stay in place.

    Frequencies from -b to b - 1 along both axes are low, where b is the shorter side times a share drawn uniformly, rounded down; a b of 0
    leaves an image as it is. The references are resized to the image's size, bilinear. Arithmetic is in float64, by TensorFlow's own
    Fourier transform and not by XLA, and the result is rounded to bytes.

    Source: Yang, Soatto, "FDA: Fourier Domain Adaptation for Semantic Segmentation" (2020).
    """

    op = "random_fourier_adaptation"
    cost = 25.0
    on_bytes = True
    on_host = True
    channel_counts = (1, 3)
    draws = 2
    examples = same_type(
        "random_fourier_adaptation: {references: styles/}", "random_fourier_adaptation: {references: styles/, beta: [0, 0.3]}"
    )

    beta: Annotated[Span, within(0, 0.5)] = (0.0, 0.1)
    """The range of the share of the shorter side that is low, from 0 to 0.5."""

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`beta`, and `reference`: the number of the image, in an order that depends on their content."""
        return super().drawn(u) | {"reference": pick(u[..., 1], len(self.pictures(3)) - 1)}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        shorter = tf.cast(tf.minimum(height, width), tf.float64)
        return tf.cast(tf.floor(drawn["beta"] * shorter), tf.int32), drawn["reference"]

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        border, reference = given
        height, width, channels = sides(images)
        pictures = [tf.image.resize(picture, (height, width)) for picture in self.pictures(channels)]
        theirs = tf.abs(_spectra(tf.stack(pictures)))
        own = _spectra(images)
        size = tf.abs(own)
        low = _low(height, border)[:, None, :, None] & _low(width, border)[:, None, None, :]
        amplitude = tf.where(low, tf.gather(theirs, reference), size)
        phase = own / tf.cast(tf.maximum(size, 1e-300), tf.complex128)
        mixed = tf.where(size > 0, tf.cast(amplitude, tf.complex128) * phase, tf.cast(amplitude, tf.complex128))
        pixels = tf.transpose(tf.math.real(tf.signal.ifft2d(mixed)), [0, 2, 3, 1])
        return tf.cast(tf.clip_by_value(tf.round(pixels), 0.0, 255.0), tf.uint8)


def _spectra(images: tf.Tensor) -> tf.Tensor:
    """The Fourier transform of each channel: complex128 `(n, channels, height, width)`."""
    return tf.signal.fft2d(tf.cast(tf.transpose(tf.cast(images, tf.float64), [0, 3, 1, 2]), tf.complex128))


def _low(length: int | tf.Tensor, border: tf.Tensor) -> tf.Tensor:
    """Marks the low frequencies along an axis for each example: bool `(n, length)`."""
    place = tf.range(length)
    frequency = tf.where(place < (length + 1) // 2, place, place - length)
    return (frequency >= -border[:, None]) & (frequency < border[:, None])
