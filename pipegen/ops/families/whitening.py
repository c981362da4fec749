"""The parts of a step that whitens images: what is learned from them, and what is done to them."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from pipegen.diagnostics.advice import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.base import ElementTransform, Transform
from pipegen.ops.families.fitted import StepPart, require_values
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.whitening import whiten
from pipegen.ops.traits import Family, Traits
from pipegen.types import FeatureType, Interval, times

LARGEST = 8192
"""Values of an image up to which it can be whitened: its matrix takes 256 MiB, and finding that 3 GiB and some ten minutes."""
_WEIGHT = 0.05
"""What a value of an image adds to the cost of each value that leaves, beside a blur."""


class WhitenImages(StepPart, NeighbourhoodTransform):
    """Subtracts a mean image and multiplies by a matrix. Until these are known its numbers are NaN."""

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example

    numbers: Any
    """The `Whitening` that was learned, or `None` before."""

    def waits(self) -> bool:
        return self.numbers is None

    def meaning(self) -> dict[str, Any]:
        """With the numbers, on which it depends what a cache behind it holds."""
        return {**self.owner.meaning(), "numbers": self.numbers.digest if self.numbers is not None else None}

    def traits(self, x: FeatureType) -> Traits:
        values = math.prod(d or 0 for d in x.shape)
        return Traits(Family.NEIGHBOURHOOD, weight=max(1.0, _WEIGHT * values))

    def infer(self, x: FeatureType) -> FeatureType:
        """float32, within what the matrix can make of the values that enter."""
        require_whitenable(self, x)
        y = x.with_(dtype="float32", interval=None, centred=True)
        if self.numbers is None or math.prod(d or 0 for d in x.shape) == 0:
            return y
        size, fitted = math.prod(d or 0 for d in x.shape), len(self.numbers.mean)
        if size != fitted:
            raise OpError("PG231", f"`{self.op}` was fitted on images of {fitted:,} values, and gets {size:,}")
        if x.interval is None:
            return y
        up, down, middle = self.numbers.reach
        low, high = x.interval.low, x.interval.high
        return y.with_(interval=Interval(float((low * up + high * down - middle).min()), float((high * up + low * down - middle).max())))

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return whiten(images, self.numbers)


class ImageValues(StepPart, ElementTransform):
    """The values of an image as they are: what a covariance is taken of."""

    learns: dict[str, Any]
    """The arguments that decide what is learned of them."""

    def meaning(self) -> dict[str, Any]:
        return self.learns

    def infer(self, x: FeatureType) -> FeatureType:
        """float64, of the same shape."""
        require_whitenable(self, x)
        return x.with_(dtype="float64", interval=None)

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return tf.cast(image, tf.float64)


def require_whitenable(step: Transform, x: FeatureType) -> None:
    """Reject images of no fixed size, and of more values than a matrix can be found for.

    Raises:
        OpError: `PG231`; see also `require_values`.
    """
    require_values(step, x)
    if not x.is_static:
        help_ = write(f"resize: {{size: {_side(x.channels)}}}", "before", "add {} or smaller before it")
        raise OpError("PG231", f"`{step.op}` needs images of one size, and gets {times(x.shape)}", help=help_)
    values = math.prod(d or 0 for d in x.shape)
    if values <= LARGEST:
        return
    matrix = f"a matrix of {values:,}×{values:,} numbers ({values**2 * 4 / 2**30:,.1f} GiB)"
    ways = [f"`- resize: {{size: {_side(x.channels)}}}` or smaller before it"] if (x.channels or 1) <= LARGEST else []
    if x.channels == 3:
        ways.append(f"`- grayscale` before it and a size of at most {_side(1)}")
    ways.append("in its place `- standardize: {statistics: featurewise}`")
    message = f"`{step.op}` needs {matrix} for images of {times(x.shape)}, and works up to {LARGEST:,} values an image"
    raise OpError("PG231", message, help=", or ".join(ways))


def _side(channels: int | None) -> int:
    """The side of the largest square that can be whitened, in pixels."""
    return math.isqrt(LARGEST // min(channels or 3, LARGEST))
