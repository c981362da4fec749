"""Cut out a window of random size, shape and place, and resize it: the crop for training ImageNet models."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import model_validator

from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import BUCKET, Size, height_width
from pipegen.ops.arguments.magnitudes import Span, checked, span_range, within
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.lowering.linear import logarithms, uniform
from pipegen.ops.lowering.resizing import ANTIALIAS_WEIGHT, BLURS_WITH_ANTIALIAS, OVERSHOOTS, Method, resize
from pipegen.ops.lowering.windows import pick, place
from pipegen.ops.step_bases import CropTransform
from pipegen.ops.traits import ANY_IMAGE, Example, Traits
from pipegen.ops.transform import Transform
from pipegen.types import INTEGER_RANGES, LARGEST_SIDE, FeatureType

TRIES = 10
"""The number of windows that are drawn; if none fits, the central one is taken."""


def _has_pixels(area: tuple[float, float], name: str) -> None:
    if area[0] == 0:
        raise ValueError(f"`{name}` starts at 0, which is a window without pixels")


class RandomResizedCrop(CropTransform):
    """Cuts out a window of random area and shape, then resizes it to a fixed size.

    The algorithm is that of Inception (Szegedy et al. 2014) as implemented in torchvision: draw an area, uniform in `area` as a fraction of
    the image's, and an aspect ratio (width / height), uniform in the logarithm of `aspect_ratio`; the window is √(area · ratio) wide and
    √(area / ratio) high, rounded half to even. The first of 10 such windows that fits into the image is placed uniformly. If none fits, the
    window is the largest one in the middle whose aspect ratio is in range.

    It draws 22 numbers: area and ratio for each of the 10 windows, then top and left of the chosen one.

    On the other splits, the shorter side is resized to size · 256 / 224 and `center_crop` cuts out the middle; for a size that is not
    square, the image is resized to cover the size · 256 / 224 (`mode: crop`) instead.
    """

    op = "random_resized_crop"
    random = True
    draws = 2 * TRIES + 2
    examples = (
        Example("random_resized_crop: {size: 224}", ANY_IMAGE, "uint8[224×224×3] in [0, 255]"),
        Example("random_resized_crop: {size: [96, 128], area: [0.25, 1.0], method: bicubic}", ANY_IMAGE, "uint8[96×128×3] in [0, 255]"),
    )

    size: Size
    """The output's size in pixels: a square's side, or [height, width]."""
    area: Annotated[Span, within(0, 1), checked(_has_pixels)] = (0.08, 1.0)
    """The range of the window's area, as a fraction of the image's."""
    aspect_ratio: Annotated[Span, within(0.01, 100)] = (3 / 4, 4 / 3)
    """The range of the window's width divided by its height, before it is resized."""
    method: Method = "bilinear"
    """How pixels are weighted: `nearest`, `bilinear`, `bicubic`, `area` or `lanczos3`."""
    antialias: bool = False
    """Use every pixel of the window when shrinking; for `bilinear`, `bicubic` and `lanczos3`."""

    @model_validator(mode="after")
    def _consistent(self) -> RandomResizedCrop:
        if self.antialias and self.method not in BLURS_WITH_ANTIALIAS:
            raise ValueError(f"`antialias` has no effect with `method: {self.method}`; it is for bilinear, bicubic and lanczos3")
        return self

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        return y.with_(interval=INTEGER_RANGES.get(x.dtype)) if self.method in OVERSHOOTS and x.interval is not None else y

    def output_size(self) -> tuple[int, int]:
        return height_width(self.size)

    def resizes(self) -> bool:
        return True

    def traits(self, x: FeatureType) -> Traits:
        plain = self.method == "bilinear" and not self.antialias
        return replace(super().traits(x), weight=ANTIALIAS_WEIGHT if self.antialias else 1.0, bilinear=plain)

    def needed_size(self) -> tuple[int, int] | None:
        return self.output_size()

    def on(self, x: FeatureType) -> Transform:
        return self.model_copy(update={"method": "nearest", "antialias": False}) if kind_of(x).categorical else self

    def evaluation_form(self) -> tuple[Transform, ...]:
        from pipegen.ops.transforms.crop import CenterCrop
        from pipegen.ops.transforms.resize import Resize

        if self.size == BUCKET:  # not known yet, and so neither is a larger size
            return Resize(size=self.size, mode="crop", feature=self.feature), CenterCrop(size=self.size, feature=self.feature)
        h, w = self.output_size()
        larger = min(round(h * 256 / 224), LARGEST_SIDE), min(round(w * 256 / 224), LARGEST_SIDE)
        method, antialias, feature = self.method, self.antialias, self.feature
        if h == w:
            first = Resize(shorter_side=larger[0], method=method, antialias=antialias, feature=feature)
        else:
            first = Resize(size=larger, mode="crop", method=method, antialias=antialias, feature=feature)
        return first, CenterCrop(size=self.size, feature=feature)

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        # A new axis for the ten tries: height and width may each be one number or one for each image.
        most_h, most_w = height[..., None], width[..., None]
        rows, columns = tf.cast(most_h, tf.float64), tf.cast(most_w, tf.float64)
        low, high = span_range(self.aspect_ratio)
        area = uniform(u[..., 0 : 2 * TRIES : 2], span_range(self.area)) * (rows * columns)
        ratio = tf.exp(uniform(u[..., 1 : 2 * TRIES : 2], logarithms((low, high))))
        w = tf.cast(tf.round(tf.sqrt(area * ratio)), tf.int32)
        h = tf.cast(tf.round(tf.sqrt(area / ratio)), tf.int32)
        fits = (h >= 1) & (w >= 1) & (h <= most_h) & (w <= most_w)
        # The fallback is one more try, which always fits: the image in the middle, with its aspect ratio clamped.
        middle_h = tf.minimum(most_h, tf.cast(tf.round(columns / low), tf.int32))
        middle_w = tf.minimum(most_w, tf.cast(tf.round(rows * high), tf.int32))
        none = tf.zeros_like(h[..., :1])
        h = tf.concat([h, none + tf.maximum(middle_h, 1)], axis=-1)
        w = tf.concat([w, none + tf.maximum(middle_w, 1)], axis=-1)
        chosen = tf.argmax(tf.cast(tf.concat([fits, none == 0], axis=-1), tf.int32), axis=-1, output_type=tf.int32)
        one = tf.one_hot(chosen, TRIES + 1, dtype=tf.int32)
        h, w = tf.reduce_sum(h * one, axis=-1), tf.reduce_sum(w * one, axis=-1)
        fell_back = chosen == TRIES
        top = tf.where(fell_back, (height - h) // 2, pick(u[..., -2], height - h))
        left = tf.where(fell_back, (width - w) // 2, pick(u[..., -1], width - w))
        return place(top, left, h, w, u)

    def finish(self, window: tf.Tensor) -> tf.Tensor:
        return resize(window, *self.output_size(), self.method, antialias=self.antialias)
