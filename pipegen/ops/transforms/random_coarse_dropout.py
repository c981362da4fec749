"""Replace several random rectangles of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field, model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.dropouts import MOST_GONE, DropoutTransform, inside, rectangles
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.windows import pick
from pipegen.types import FeatureType

Count = Annotated[int, Field(ge=1, le=124)]


class RandomCoarseDropout(DropoutTransform):
    """Replaces several random rectangles of an image by one value: coarse dropout, which is Cutout (DeVries and Taylor 2017) with
    many holes.

    It draws how many holes there are, and for each its height and width, uniform in `height` and `width` as fractions of
    the image's, rounded half to even and at least one pixel, and a place inside the image. Holes may overlap.
    """

    op = "random_coarse_dropout"
    starts_kernel = True
    examples = (
        Example("random_coarse_dropout: {holes: [3, 8]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example(
            "random_coarse_dropout: {holes: 16, height: [0.05, 0.1], width: [0.05, 0.1], fill: {constant: 127}}",
            IMAGE_224,
            "uint8[224×224×3] in [0, 255]",
        ),
    )

    holes: Count | tuple[Count, Count]
    """How many holes an image gets, at most 124; a pair is the range, both ends included."""
    height: Annotated[Span, checked(check_pair), checked(check_range, 0, 1)] = (0.1, 0.2)
    """The range of a hole's height, as a fraction of the image's."""
    width: Annotated[Span, checked(check_pair), checked(check_range, 0, 1)] = (0.1, 0.2)
    """The range of a hole's width, as a fraction of the image's."""

    @model_validator(mode="after")
    def _forward(self) -> RandomCoarseDropout:
        low, high = self._range()
        if low > high:
            raise ValueError(f"`holes` is a range [low, high], but {low} is above {high}")
        return self

    def _range(self) -> tuple[int, int]:
        return self.holes if isinstance(self.holes, tuple) else (self.holes, self.holes)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        each = sum(span_range(self.height)) / 2 * sum(span_range(self.width)) / 2
        gone = 1.0 - (1.0 - each) ** (sum(self._range()) / 2)
        if gone <= MOST_GONE:
            return ()
        help_ = "use fewer `holes`, or smaller ranges of `height` and `width`, which are fractions of the image"
        return (OpError("PG510", f"`{self.op}` replaces {gone:.0%} of an image on average", field="holes", help=help_),)

    def meaning(self) -> dict[str, Any]:
        return super().meaning() | {"holes": list(self._range())}

    def num_draws(self) -> int:
        return 1 + 4 * self._range()[1]

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """The holes: `top`, `left`, `height` and `width`, int32 `(n, most)`; one that an image does not have is 0 pixels high and wide."""
        return dict(zip(("top", "left", "height", "width"), self.parameters(u, shape[0], shape[1]), strict=True))

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        low, high = self._range()
        own = tf.reshape(u[:, 1:], [-1, 4, high])
        there = tf.range(high)[None, :] <= low - 1 + pick(u[:, :1], high - low)

        def length(v: tf.Tensor, bounds: tuple[float, float], side: int | tf.Tensor) -> tf.Tensor:
            return tf.clip_by_value(tf.cast(tf.round(uniform(v, bounds) * tf.cast(side, tf.float64)), tf.int32), 1, side)

        h, w = length(own[:, 0], span_range(self.height), height), length(own[:, 1], span_range(self.width), width)
        found = pick(own[:, 2], height - h), pick(own[:, 3], width - w), h, w
        return tuple(tf.where(there, part, 0) for part in found)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (rectangles,)

    def dropped(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return inside(*given)
