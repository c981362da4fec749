"""Give images the histogram of a reference image."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pipegen.errors import OpError
from pipegen.lazy import np, tf
from pipegen.ops.arguments.magnitudes import Range, check_range, checked
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.families.references import ReferenceTransform
from pipegen.ops.lowering.linear import choice, uniform
from pipegen.types import FeatureType

_BITS = 12


class RandomHistogramMatching(ReferenceTransform, LookupTableTransform):
    """Gives each channel of an image the histogram of one of the reference images, each as likely, or its mean and deviation; the result is
    blended with the image by a share that is drawn uniformly.

    With `match: histogram`, a value becomes the one of the reference below which as large a share of the pixels lies, between two of its
    values by a straight line: scikit-image's `match_histograms`, and Albumentations' `HistogramMatching`. With `match: moments`, it becomes
    (x - mean) / std · std of the reference + its mean. Both are a table of the image's histogram, in whole numbers of 12 more bits.
    """

    op = "random_histogram_matching"
    random = True
    needs_histogram = True
    examples = (
        Example("random_histogram_matching: {references: styles/}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example(
            "random_histogram_matching: {references: 'styles/*.jpg', match: moments, share: [0.2, 0.8], probability: 0.5}",
            IMAGE_224,
            "uint8[224×224×3] in [0, 255]",
        ),
    )

    match: Literal["histogram", "moments"] = "histogram"
    """What is taken from the reference: the whole `histogram`, or its `moments`, mean and standard deviation."""
    share: Annotated[Range, checked(check_range, 0, 1)] = (0.5, 1.0)
    """The range of the share of what is matched, from 0, the image itself, to 1."""

    def infer(self, x: FeatureType) -> FeatureType:
        """uint8 of any value, of gray or RGB."""
        y = super().infer(x)
        if x.channels not in (1, 3):
            raise OpError("PG205", f"`{self.op}` works on 1 or 3 channels, and gets {x.channels}")
        return y

    def num_draws(self) -> int:
        return 2

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`share`, and `reference`: which of them, in an order that their content decides."""
        return {"share": uniform(u[..., 0], self.share), "reference": choice(u[..., 1], len(self.pictures(3)))}

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        counts = tf.cast(histogram, tf.int64)
        drawn = self.drawn(u)
        known = _histograms(self.pictures(int(counts.shape[1])))
        matched = (_matched if self.match == "histogram" else _moved)(counts, tf.gather(tf.constant(known), drawn["reference"]))
        share = tf.cast(tf.round(drawn["share"] * float(1 << _BITS)), tf.int64)[:, None, None]
        values = tf.range(256, dtype=tf.int64) * (1 << _BITS)
        half = 1 << (2 * _BITS - 1)
        blended = (values * ((1 << _BITS) - share) + matched * share + half) // (1 << (2 * _BITS))
        return tf.cast(tf.clip_by_value(blended, 0, 255), tf.int32)


def _histograms(pictures: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Counts the values of each channel of each reference: int64 `(references, channels, 256)`."""
    counted = [[np.bincount(picture[..., c].ravel(), minlength=256) for c in range(picture.shape[-1])] for picture in pictures]
    return np.array(counted, np.int64)


def _matched(counts: tf.Tensor, theirs: tf.Tensor) -> tf.Tensor:
    """Computes what each value becomes by the histogram, in 1/4096: int64 `(n, channels, 256)` from two histograms of that shape."""
    size, own = (tf.reduce_sum(part, -1, keepdims=True) for part in (theirs, counts))
    # Shares of the pixels over a common denominator: with references of at most 2^16 pixels, all products stay below 2^63.
    wanted, reached = tf.cumsum(counts, -1) * size, tf.cumsum(theirs, -1) * own
    above = tf.reduce_sum(tf.cast(reached[..., None, :] < wanted[..., :, None], tf.int32), -1)
    above = tf.minimum(above, 255)
    first = tf.gather(_present_before(theirs, tf.range(256)), above, batch_dims=2)
    there = first >= 0
    low = tf.where(there, first, above)
    at_low, at_high = (tf.gather(reached, place, batch_dims=2) for place in (low, above))
    span = tf.maximum(at_high - at_low, 1)
    between = tf.cast(above - low, tf.int64) * (wanted - at_low) * (1 << _BITS) // span
    return tf.cast(low, tf.int64) * (1 << _BITS) + tf.where(there, between, 0)


def _present_before(counts: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """The nearest smaller value that a histogram has any of, int32 `(n, channels, 256)`; -1 where there is none."""
    own = tf.where(counts > 0, values, -1)
    # The greatest of those up to each place, by doubling steps.
    step = 1
    while step < 256:
        own = tf.maximum(own, tf.pad(own[..., :-step], [[0, 0], [0, 0], [step, 0]], constant_values=-1))
        step *= 2
    return tf.pad(own[..., :-1], [[0, 0], [0, 0], [1, 0]], constant_values=-1)


def _moved(counts: tf.Tensor, theirs: tf.Tensor) -> tf.Tensor:
    """Computes what each value becomes by mean and standard deviation, in 1/4096."""
    (mean, std), (to, wide) = _moments(counts), _moments(theirs)
    values = tf.range(256, dtype=tf.float64)
    scale = tf.where(std > 0, wide / tf.where(std > 0, std, 1.0), 0.0)
    return tf.cast(tf.round(((values - mean) * scale + to) * float(1 << _BITS)), tf.int64)


def _moments(counts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    weights, values = tf.cast(counts, tf.float64), tf.range(256, dtype=tf.float64)
    size = tf.reduce_sum(weights, -1, keepdims=True)
    mean = tf.reduce_sum(weights * values, -1, keepdims=True) / size
    return mean, tf.sqrt(tf.reduce_sum(weights * tf.square(values - mean), -1, keepdims=True) / size)
