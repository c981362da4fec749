"""Circles on an image, as a kind that the package does not know: x and y of the centre, and the radius, in pixels."""

from __future__ import annotations

from typing import Any

from pipegen.ops.fields.columns import Column, most_items
from pipegen.ops.kinds.base import FeatureKind, Geometry
from pipegen.types import FeatureType


class Moves(Geometry):
    """A circle goes where its centre goes."""

    def move(self, items: Any, matrix: Any, before: Any, after: Any, details: Any) -> tuple[Any, Any]:
        import tensorflow as tf

        xy1 = tf.concat([tf.cast(items[..., :2], tf.float64), tf.ones_like(items[..., :1], tf.float64)], -1)
        moved = tf.linalg.matmul(xy1, matrix, transpose_b=True)
        xy = tf.round(moved[..., :2] / moved[..., 2:] * 256) / 256
        scale = tf.sqrt(tf.abs(tf.linalg.det(matrix)))[:, None, None]
        radius = tf.round(tf.cast(items[..., 2:], tf.float64) * scale * 256) / 256
        last = tf.stack([tf.cast(after[1], tf.float64), tf.cast(after[0], tf.float64)]) - 0.5
        return tf.cast(tf.concat([xy, radius], -1), tf.float32), tf.reduce_all((xy >= -0.5) & (xy < last), -1)


class Circles(FeatureKind):
    """Any number of circles on an image. A circle goes where its centre goes, and is dropped with it."""

    name = "circles"
    plural = "circles"
    arguments = ("of",)
    storage = "ragged"
    geometry = Moves()
    output = "output: {{y: {}}}"

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (FeatureType("circles", "float32", (None, 3), of=feature.of or "image", most=0),)

    def item_shape(self, feature: Any, numbers: int, items: int | None) -> tuple[int, ...]:
        if numbers % 3:
            raise ValueError(f"it has {numbers} numbers, which is no multiple of 3")
        return (3,)

    def read_array(self, name: str, feature: Any, given: Any, place: Any = None) -> Column:
        from pipegen.ops.fields.numbers import read_ragged

        items = read_ragged(name, given, (3,), place)
        return Column(items, self.array_types(feature)[0].with_(most=most_items(items)))
