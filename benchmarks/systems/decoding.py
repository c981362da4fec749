"""What several systems decode with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf

    from benchmarks import steps as s

FAST_JPEG = {"dct_method": "INTEGER_FAST", "fancy_upscaling": False}
"""TensorFlow's fastest settings."""


def distorted_box(shape: tf.Tensor, crop: s.RandomResizedCrop) -> tuple[tf.Tensor, tf.Tensor]:
    """A random window of an image: its first row, column and channel, and its size, int32 `(3,)` each."""
    import tensorflow as tf

    begin, size, _ = tf.image.sample_distorted_bounding_box(
        shape,
        bounding_boxes=tf.zeros([1, 0, 4]),
        area_range=crop.area,
        aspect_ratio_range=crop.aspect,
        min_object_covered=0.0,
        use_image_if_no_bounding_boxes=True,
    )
    return begin, size


def decode_window(contents: tf.Tensor, crop: s.RandomResizedCrop) -> tf.Tensor:
    """A random window of a JPEG, and no more than it."""
    import tensorflow as tf

    begin, size = distorted_box(tf.io.extract_jpeg_shape(contents), crop)
    return tf.io.decode_and_crop_jpeg(contents, tf.stack([begin[0], begin[1], size[0], size[1]]), 3, **FAST_JPEG)
