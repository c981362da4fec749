"""Distort images as a thin metal plate bends."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.control_points import ControlPointTransform


class RandomThinPlateSpline(ControlPointTransform):
    """Reads each point of a regular grid over the image at distances of its own, drawn uniformly, and bends what lies between them
    as little as can be: the thin-plate spline of Bookstein (Principal Warps, IEEE PAMI 11, 1989).

    Distances between points are taken as fractions of the sides, so that images of any shape bend alike. (Albumentations' step
    draws from a normal distribution with a standard deviation of a tenth of its `scale_range`.) The image is read once, at
    positions in 1/256 pixel.
    """

    op = "random_thin_plate_spline"
    examples = (
        Example("random_thin_plate_spline: {x: 0.05, y: 0.05}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_thin_plate_spline: {x: 0.1, y: 0.1, cells: 2, fill: nearest}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    def basis(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """`r² log r²` for the distance r to each point; then 1, x and y."""
        bends = []
        for across, down in self.points():
            square = tf.square(x - across) + tf.square(y - down)
            bends.append(tf.math.xlogy(square, square))
        return tf.stack([*bends, tf.ones_like(x), x, y])

    def weights(self, moved: tf.Tensor) -> tf.Tensor:
        import numpy as np

        at = np.array(self.points())
        square = ((at[:, None] - at[None]) ** 2).sum(-1)
        bends = square * np.log(np.where(square > 0, square, 1.0))
        plane = np.concatenate([np.ones((len(at), 1)), at], 1)
        system = np.block([[bends, plane], [plane.T, np.zeros((3, 3))]])
        solution = np.linalg.inv(system)[:, : len(at)]
        return tf.linalg.matmul(moved, tf.constant(solution.T)[None])
