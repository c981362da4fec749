"""Distort images as lenses do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import AROUND_ZERO, Magnitude, symmetric_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.neighbourhood import DisplacementTransform
from pipegen.ops.families.uniform import UniformTransform
from pipegen.ops.lowering.filters import sides
from pipegen.types import FeatureType

_FLATTEST = {"camera": -4 / 11, "fisheye": -1 / 3}
"""The coefficient at which the corners of an image come to lie on each other: the derivative of the radius is 0 there."""


class RandomOpticalDistortion(UniformTransform, DisplacementTransform):
    """Bends straight lines outwards or inwards around the centre of the image, as a wide lens does: barrel distortion where the
    drawn coefficient k is above 0, pincushion distortion where it is below.

    What is seen at a distance r from the centre is read at r · (1 + k · r² + k · r⁴) in the model `camera`, where a side measures 1
    (OpenCV's `initUndistortRectifyMap` with the sides for focal lengths and k1 = k2 = k), and at r · (1 + k · r²) in the model
    `fisheye`, where half the diagonal measures 1. (Albumentations' step is the same around a centre half a pixel further right and
    down.) The image is read once, at positions in 1/256 pixel.
    """

    op = "random_optical_distortion"
    examples = (
        Example("random_optical_distortion: {coefficient: 0.3}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_optical_distortion: {coefficient: [0, 0.5], model: fisheye}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    coefficient: Annotated[Magnitude, AROUND_ZERO]
    """The coefficient k of the model: 0.3 means from -0.3 to 0.3, a pair is the range."""
    model: Literal["camera", "fisheye"] = "camera"
    """How the radius grows: `camera` by its square and its fourth power, `fisheye` by its square alone."""

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        least, flattest = symmetric_range(self.coefficient)[0], _FLATTEST[self.model]
        if least >= flattest:
            return super().lints(x)
        message = f"`{self.op}` draws coefficients down to {least:g}, and below {flattest:.3g} the corners of an image fold back over it"
        return (OpError("PG510", message, field="coefficient", help=f"begin the range at {flattest:.2g} or above"),)

    def weight(self) -> float:
        return 1.2

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (self.drawn(u)["coefficient"],)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (self._displacements,)

    def _displacements(self, images: tf.Tensor, k: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns how far to the right and down each pixel is read, int32 `(n, height, width)`, in 1/256 pixel."""
        lengths = [tf.cast(side, tf.float64) for side in sides(images)[:2]]
        down, across = (
            tf.cast(tf.range(side), tf.float64) - (length - 1.0) / 2.0 for side, length in zip(sides(images), lengths, strict=False)
        )
        if self.model == "camera":
            square = tf.square(down / lengths[0])[:, None] + tf.square(across / lengths[1])
            growth = square + tf.square(square)
        else:
            growth = (tf.square(down)[:, None] + tf.square(across)) * 4.0 / (tf.square(lengths[0]) + tf.square(lengths[1]))
        moved = (k[:, None, None] * (growth * centred * 256.0) for centred in (across, down[:, None]))
        return tuple(tf.cast(tf.round(m), tf.int32) for m in moved)
