"""Random numbers for each pixel or value of an image, as functions of the image's key and of the place alone."""

from __future__ import annotations

from functools import cache

from pipegen.lazy import tf

BITS = 12
"""Normal numbers are kept in 1/4096."""


def normal_numbers(places: tf.Tensor) -> tf.Tensor:
    """Normal numbers in 1/4096, int32, from the 16 random bits that choose one of 65,536 quantiles, from -4.33 to 4.33."""
    return tf.cast(tf.gather(tf.constant(quantiles(), tf.int16), tf.cast(places, tf.int32)), tf.int32)


@cache
def quantiles() -> tuple[int, ...]:
    """The middle of each of 65,536 equally likely parts of the normal distribution, in 1/4096."""
    from statistics import NormalDist

    normal = NormalDist()
    upper = [round(normal.inv_cdf(0.5 + (i + 0.5) / 65536) * (1 << BITS)) for i in range(32768)]
    return tuple(-v for v in reversed(upper)) + tuple(upper)
