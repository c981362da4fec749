"""Erase a random rectangle of images."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.dropouts import DropoutTransform
from pipegen.ops.lowering.filters import sides
from pipegen.ops.lowering.linear import logarithms, uniform
from pipegen.ops.lowering.windows import pick, place


class RandomErasing(DropoutTransform):
    """Replaces a random rectangle of an image by one value: random erasing (Zhong et al. 2017), or Cutout.

    It draws an area, uniform in `area` as a fraction of the image's, and an aspect ratio (width / height), uniform in
    the logarithm of `aspect_ratio`; the rectangle is √(area · ratio) wide and √(area / ratio) high, rounded half to even
    and at least one pixel, and is placed uniformly inside the image. A side longer than the image's is cut to it.
    """

    op = "random_erasing"
    examples = (
        Example("random_erasing: {probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_erasing: {area: [0.1, 0.25], fill: {constant: 127}}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    area: Annotated[Span, checked(check_pair), checked(check_range, 0, 1)] = (0.02, 0.33)
    """The range of the rectangle's area, as a fraction of the image's."""
    aspect_ratio: Annotated[Span, checked(check_pair), checked(check_range, 0.01, 100)] = (0.3, 3.3)
    """The range of the rectangle's width divided by its height."""

    def num_draws(self) -> int:
        return 4

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """The rectangle: `top`, `left`, `height` and `width`, int32 `(n,)`."""
        (place,) = self.parameters(u, shape[0], shape[1])
        return dict(zip(("top", "left", "height", "width"), tf.unstack(place, axis=-1), strict=True))

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        rows, columns = tf.cast(height, tf.float64), tf.cast(width, tf.float64)
        area = uniform(u[:, 0], span_range(self.area)) * (rows * columns)
        ratio = tf.exp(uniform(u[:, 1], logarithms(span_range(self.aspect_ratio))))
        w = tf.clip_by_value(tf.cast(tf.round(tf.sqrt(area * ratio)), tf.int32), 1, width)
        h = tf.clip_by_value(tf.cast(tf.round(tf.sqrt(area / ratio)), tf.int32), 1, height)
        return (place(pick(u[:, 2], height - h), pick(u[:, 3], width - w), h, w, u),)

    def dropped(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        # In two steps: TensorFlow takes a part of what was just stacked for the part itself, and forgets a new axis.
        top, left, h, w = (part[:, None] for part in tf.unstack(given[0], num=4, axis=1))
        height, width, _ = sides(images)
        y, x = tf.range(height)[None, :], tf.range(width)[None, :]
        down, across = tf.logical_and(y >= top, y < top + h), tf.logical_and(x >= left, x < left + w)
        return tf.logical_and(down[:, :, None], across[:, None, :])
