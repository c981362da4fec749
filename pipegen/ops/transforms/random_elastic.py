"""Distort images like a sheet of rubber."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, check_magnitude, checked, symmetric_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.neighbourhood import DisplacementTransform
from pipegen.ops.families.uniform import UniformTransform
from pipegen.ops.lowering.displacements import UNIT, smooth_field, spacing
from pipegen.ops.lowering.filters import sides
from pipegen.ops.lowering.threefry import key_of
from pipegen.types import FeatureType

FARTHEST = 10_000.0
"""The largest alpha, at which positions still fit 32 bits by far."""


class RandomElastic(UniformTransform, DisplacementTransform):
    """Moves each pixel by a random distance that changes smoothly over the image: the elastic distortion of Simard,
    Steinkraus and Platt (2003).

    Distances across and down are drawn for each pixel, uniform in [-1, 1], smoothed with a Gaussian of standard
    deviation `sigma`, and multiplied by an `alpha` that is drawn uniformly for each image. After smoothing, they have a
    standard deviation of alpha / (6.14 · sigma) pixels: for alpha 50 and sigma 5, of 1.6. A wide Gaussian needs no draw
    for each pixel: one is made for each square of `sigma` pixels (rounded down), and weighs as many times as much as
    the square is wide. The image is read once, at positions in 1/256 pixel that are the same everywhere.
    """

    op = "random_elastic"
    examples = (
        Example("random_elastic: {alpha: 50, sigma: 5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_elastic: {alpha: [200, 300], sigma: 12, fill: {constant: 0}}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    alpha: Annotated[Magnitude, checked(check_magnitude, 0, FARTHEST)]
    """The distance before smoothing, in pixels: 50 means from 0 to 50, a pair is the range."""
    sigma: Annotated[float, Field(ge=1, le=100)]
    """The standard deviation of the Gaussian that smooths the distances, from 1 to 100 pixels: small ones crumple, large ones bend."""

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        largest = symmetric_range(self.alpha)[1] / (6.14 * self.sigma)
        if largest > self.sigma / 2:
            message = f"`{self.op}` moves pixels by about {largest:.3g}, and its `sigma` is {self.sigma:g}, so the image folds over itself"
            return (OpError("PG510", message, field="alpha", help="use a larger `sigma` or a smaller `alpha`"),)
        if 0 < largest < 0.05:
            message = f"`{self.op}` moves pixels by about {largest:.2g} pixels, which nobody sees"
            return (OpError("PG510", message, field="alpha", help="distances after smoothing are about alpha / (6 · sigma)"),)
        return ()

    def weight(self) -> float:
        return 2.5

    def num_draws(self) -> int:
        return 3

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"alpha": tf.abs(super().drawn(u)["alpha"])}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        alpha = self.drawn(u)["alpha"]
        return key_of(u[:, 1:3]), tf.cast(alpha * (256.0 / (UNIT * spacing(self.sigma))), tf.float32)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (self._displacements,)

    def _displacements(self, images: tf.Tensor, key: tf.Tensor, gain: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns how far to the right and down each pixel is read, int32 `(n, height, width)`, in 1/256 pixel."""
        height, width, _ = sides(images)
        field = smooth_field(key, height, width, self.sigma)
        moved = tf.cast(tf.round(field * gain[:, None, None, None]), tf.int32)
        return moved[:, 0], moved[:, 1]
