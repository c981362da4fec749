"""Distort images by the triangles between the points of a grid."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.control_points import ControlPointTransform


class RandomPiecewiseAffine(ControlPointTransform):
    """Reads each point of a regular grid over the image at distances of its own, drawn uniformly, and each of the two triangles of a
    cell through the affine map that its corners say.

    The distortion is continuous and has creases along the edges of the triangles; `random_thin_plate_spline` has none.
    (Scikit-image's and imgaug's steps of this name draw distances from a normal distribution, and Albumentations' weighs the
    points by distance, which is not affine.) The image is read once, at positions in 1/256 pixel.
    """

    op = "random_piecewise_affine"
    examples = (
        Example("random_piecewise_affine: {x: 0.04, y: 0.04}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_piecewise_affine: {x: 0.08, cells: 2, fill: {constant: 0}}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    def basis(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """A function for each point: 1 there, 0 at its neighbours, and linear on each triangle, of which a cell has one on
        either side of the diagonal from its top left corner to its bottom right one."""
        hats = []
        for across, down in self.points():
            right, below = (x - across) * float(self.cells), (y - down) * float(self.cells)
            farthest = tf.maximum(tf.maximum(tf.abs(right), tf.abs(below)), tf.abs(right - below))
            hats.append(tf.maximum(1.0 - farthest, 0.0))
        return tf.stack(hats)
