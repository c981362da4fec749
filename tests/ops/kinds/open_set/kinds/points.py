"""Points on an image, as a kind that the package does not know."""

from __future__ import annotations

from typing import Any

from pipegen.ops.kinds.base import FeatureKind, Geometry


class Moves(Geometry):
    """A point goes where its centre goes."""

    def move(self, items: Any, matrix: Any, before: Any, after: Any, details: Any) -> tuple[Any, Any]:
        import tensorflow as tf

        xy1 = tf.concat([tf.cast(items, tf.float64), tf.ones_like(items[..., :1], tf.float64)], -1)
        moved = tf.linalg.matmul(xy1, matrix, transpose_b=True)
        xy = tf.round(moved[..., :2] / moved[..., 2:] * 256) / 256
        last = tf.stack([tf.cast(after[1], tf.float64), tf.cast(after[0], tf.float64)]) - 0.5
        return tf.cast(xy, tf.float32), tf.reduce_all((xy >= -0.5) & (xy < last), -1)

    def draw(self, image: Any, value: Any, x: Any, names: Any = ()) -> Any:
        import numpy as np

        drawn = np.array(image)
        for px, py in np.rint(value).astype(int):
            drawn[min(max(py, 0), drawn.shape[0] - 1), min(max(px, 0), drawn.shape[1] - 1)] = (255, 0, 255)
        return drawn

    def described(self, items: Any, x: Any) -> Any:
        return [{"x": round(float(px), 2), "y": round(float(py), 2)} for px, py in items]


class Points(FeatureKind):
    """Any number of places on an image, `(x, y)` each, in pixels; pixel centres lie at whole numbers."""

    name = "points"
    plural = "points"
    storage = "ragged"
    geometry = Moves()
