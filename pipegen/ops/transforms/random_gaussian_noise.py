"""Add noise to images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pipegen.diagnostics.advice import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, check_magnitude, checked, symmetric_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.families.uniform import UniformTransform
from pipegen.ops.lowering.filters import rounded_shift, sides
from pipegen.ops.lowering.floats import working
from pipegen.ops.lowering.noise import BITS, normal_numbers
from pipegen.ops.lowering.threefry import half_words, key_of
from pipegen.types import FeatureType, Interval

_STD_BITS = 8
"""Standard deviations for bytes are kept in 1/256 of a level."""
UNIT_224 = FeatureType("image", "float32", (224, 224, 3), Interval(0, 1))


class RandomGaussianNoise(UniformTransform, NeighbourhoodTransform):
    """Adds normal noise of mean 0, drawn for each value by itself, and clips to the range of the values that enter.

    The standard deviation is drawn uniformly for each image. Each value's noise is a function of the image's draws and
    of its place alone: 16 random bits (Threefry-2x32) choose one of the 65,536 quantiles of the normal distribution,
    from -4.33 to 4.33. On bytes all of it is whole numbers, and the same bits everywhere.
    """

    op = "random_gaussian_noise"
    overshoots = True
    examples = (
        Example("random_gaussian_noise: {std: 10}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_gaussian_noise: {std: [0.01, 0.05], probability: 0.5}", UNIT_224, "float32[224×224×3] in [0, 1]"),
    )

    std: Annotated[Magnitude, checked(check_magnitude, 0)]
    """The standard deviation, in the units of the values that enter: 10 means from 0 to 10, a pair is the range."""

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        largest = symmetric_range(self.std)[1]
        if x.dtype == "uint8" and largest > 255:
            raise OpError("PG105", f"noise of `std` {largest:g} leaves nothing of values from 0 to 255", field="std")
        return y

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        largest = symmetric_range(self.std)[1]
        if x.dtype == "uint8" and 0 < largest <= 0.5:
            message = f"`{self.op}` with `std` {largest:g} hardly changes a byte"
            said = "`std` is in the units of the values; for a fraction of their range write {}"
            help_: str = write(f"std: {largest * 255:.3g}", "arguments", said)
        elif x.interval is not None and largest >= x.interval.width / 2:
            message = f"the `std` of `{self.op}` reaches {largest:g}, and the values are in {x.interval}"
            help_ = "`std` is in the units of the values"
        else:
            return ()
        return (OpError("PG510", message, field="std", help=help_),)

    def weight(self) -> float:
        return 1.2

    def num_draws(self) -> int:
        return 3

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"std": tf.abs(super().drawn(u)["std"])}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        std = self.drawn(u)["std"]
        # Floats may have any unit, bytes have been checked: what exceeds 255 belongs to floats and is not read here.
        whole = tf.cast(tf.round(tf.minimum(std, 255.0) * float(1 << _STD_BITS)), tf.int32)
        return key_of(u[:, 1:3]), whole, tf.cast(std * 2.0**-BITS, tf.float32)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return _draw, _add


def _draw(images: tf.Tensor, key: tf.Tensor, whole: tf.Tensor, real: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """16 random bits for each value of an image, uint16 `(n, values)`."""
    height, width, channels = sides(images)
    return half_words(key, height * width * channels), whole, real


def _add(images: tf.Tensor, places: tf.Tensor, whole: tf.Tensor, real: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The values `(n, values)` with noise, from their places among the quantiles."""
    values = tf.reshape(images, tf.shape(places))
    noise = normal_numbers(places)
    if images.dtype.is_integer:
        bits = BITS + _STD_BITS
        total = tf.bitwise.left_shift(tf.cast(values, tf.int32), bits) + noise * whole[:, None]
        return (tf.cast(tf.clip_by_value(rounded_shift(total, bits), 0, 255), images.dtype),)
    dtype = working(images)
    return (tf.cast(tf.cast(values, dtype) + tf.cast(noise, dtype) * tf.cast(real, dtype)[:, None], images.dtype),)
