"""Standardises images by their own mean and spread, or by those of the training split."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.moments import Moments
from pipegen.ops.base import Arithmetic, ElementTransform, PointwiseTransform
from pipegen.ops.families.fitted import StepPart, require_values
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.floats import as_float32, nearest_float32, working
from pipegen.ops.lowering.moments import channel_moments, sample_moments
from pipegen.types import FeatureType, Interval


class StandardizePart(StepPart):
    """Does the work of a step that standardises."""

    center: bool
    """Whether the mean is subtracted."""
    scale: bool
    """Whether it is divided by the standard deviation."""
    epsilon: float
    """What is added to the standard deviation."""


class SampleStandardization(StandardizePart, NeighbourhoodTransform):
    """Standardises each image by its own mean and standard deviation."""

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example

    def weight(self) -> float:
        return 2.0

    def infer(self, x: FeatureType) -> FeatureType:
        """float32. No one of n values lies further than √(n - 1) standard deviations from their mean."""
        require_values(self, x)
        bounds = None
        if self.scale and self.center:
            count = math.prod(d or 0 for d in x.shape)
            bounds = Interval(-math.sqrt(count - 1), math.sqrt(count - 1)) if count else None
        elif self.center and x.interval is not None:
            bounds = Interval(-x.interval.width, x.interval.width)
        return x.with_(dtype="float32", interval=bounds)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (self._moments,)

    def _moments(self, images: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns what is subtracted, what is multiplied by, and what is added for the rounding of the first, float32 `(n,)`: of an image
        with little contrast it would show."""
        mean, std = sample_moments(images)
        shift = mean if self.center else tf.zeros_like(mean)
        factor = 1.0 / (std + self.epsilon) if self.scale else tf.ones_like(std)
        rounded = tf.round(shift * 256.0) / 256.0  # exact as float32, also for 16 bits
        return tuple(as_float32(t) for t in (rounded, factor, (rounded - shift) * factor))

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        dtype = working(images)
        shift, factor, rest = (tf.cast(g, dtype)[:, None, None, None] for g in given)
        return as_float32(nearest_float32(tf.cast(images, dtype) - shift) * factor + rest)


class FeatureStandardization(StandardizePart, PointwiseTransform):
    """Standardises each channel by the mean and the standard deviation that the training split has there.

    Until they are known its numbers are NaN, which shows in whatever is computed with them.
    """

    moments: Moments | None
    """What the training split has, or `None` before it has been looked at."""

    def infer(self, x: FeatureType) -> FeatureType:
        """float32, of unknown range until the numbers are there."""
        require_values(self, x)
        if self.moments is None:
            return x.with_(dtype="float32", interval=None, centred=self.center)
        if len(self.moments.mean) != x.channels:
            raise OpError("PG205", f"`{self.op}` was fitted on {len(self.moments.mean)} channels, and gets {x.channels}")
        return self.arithmetic(x).infer(x).with_(centred=self.center)

    def arithmetic(self, x: FeatureType) -> Arithmetic:
        if self.moments is None:
            return Arithmetic((math.nan,), (math.nan,), "float32")
        scale = tuple(1.0 / (s + self.epsilon) if self.scale and s > 0 else 1.0 for s in self.moments.std)
        shift = self.moments.mean if self.center else (0.0,) * len(scale)
        return Arithmetic(scale, tuple(-m * s for m, s in zip(shift, scale, strict=True)), "float32")


class ImageMoments(StepPart, ElementTransform):
    """Count, mean and squares of each channel of one image: what a step is fitted with, one image after another."""

    def infer(self, x: FeatureType) -> FeatureType:
        """float64 `(3, 1, channels)`."""
        require_values(self, x)
        if x.channels is None:
            raise OpError("PG205", f"`{self.op}` needs to know how many channels an image has")
        return x.with_(dtype="float64", shape=(3, 1, x.channels), interval=None)

    def meaning(self) -> dict[str, Any]:
        """Nothing: what is measured does not depend on what it is for."""
        return {}

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return channel_moments(image)
