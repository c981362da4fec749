"""`standardize`: by the mean and spread of the training split, or by those of each image."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from pipegen.errors import OpError
from pipegen.lazy import np, tf
from pipegen.ops.arguments.arithmetic import Arithmetic
from pipegen.ops.arguments.learned import Moments, Statistics
from pipegen.ops.families.fitted import FittedTransform, StepPart, require_values
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.linear import as_float32, nearest_float32, working
from pipegen.ops.lowering.statistics import channel_moments, gathered, sample_moments
from pipegen.ops.step_bases import ElementTransform, PointwiseTransform, UnconditionalTransform
from pipegen.ops.traits import IMAGE_224, Example
from pipegen.ops.transform import Part
from pipegen.types import FeatureType, Interval


class StandardizePart(StepPart):
    """A part of `standardize`, whose arguments it reads."""

    if TYPE_CHECKING:
        owner: Standardize


class SampleStandardization(UnconditionalTransform, StandardizePart, NeighbourhoodTransform):
    """Standardises each image by its own mean and standard deviation."""

    cost = 2.0

    def infer(self, x: FeatureType) -> FeatureType:
        """float32. None of n values lies further than √(n - 1) standard deviations from their mean."""
        require_values(self, x)
        bounds = None
        if self.owner.scale and self.owner.center:
            count = math.prod(d or 0 for d in x.shape)
            bounds = Interval(-math.sqrt(count - 1), math.sqrt(count - 1)) if count else None
        elif self.owner.center and x.interval is not None:
            bounds = Interval(-x.interval.width, x.interval.width)
        return x.with_(dtype="float32", interval=bounds)

    def phase(self, images: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The shift, the factor and the correction of the rounded shift, which would show in an image with little contrast: float32
        `(n,)` each."""
        mean, std = sample_moments(images)
        shift = mean if self.owner.center else tf.zeros_like(mean)
        factor = 1.0 / (std + self.owner.epsilon) if self.owner.scale else tf.ones_like(std)
        rounded = tf.round(shift * 256.0) / 256.0  # exact as float32, also for 16 bits
        return tuple(as_float32(t) for t in (rounded, factor, (rounded - shift) * factor))

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        dtype = working(images)
        shift, factor, rest = (tf.cast(g, dtype)[:, None, None, None] for g in given)
        return as_float32(nearest_float32(tf.cast(images, dtype) - shift) * factor + rest)


class FeatureStandardization(StandardizePart, PointwiseTransform):
    """Standardises each channel by its mean and standard deviation over the training split.

    Until these are known its numbers are NaN, which shows in all results.
    """

    numbers: Moments | None
    """The moments of the training split, or `None` before they are computed."""

    def infer(self, x: FeatureType) -> FeatureType:
        """float32, of unknown range until the numbers are known."""
        require_values(self, x)
        if self.numbers is None:
            return x.with_(dtype="float32", interval=None, centred=self.owner.center)
        if len(self.numbers.mean) != x.channels:
            raise OpError("PG205", f"`{self.op}` was fitted on {len(self.numbers.mean)} channels, and gets {x.channels}")
        return self.arithmetic(x).infer(x).with_(centred=self.owner.center)

    def arithmetic(self, x: FeatureType) -> Arithmetic:
        if self.numbers is None:
            return Arithmetic((math.nan,), (math.nan,), "float32")
        scale = tuple(1.0 / (s + self.owner.epsilon) if self.owner.scale and s > 0 else 1.0 for s in self.numbers.std)
        shift = self.numbers.mean if self.owner.center else (0.0,) * len(scale)
        return Arithmetic(scale, tuple(-m * s for m, s in zip(shift, scale, strict=True)), "float32")


class ImageMoments(StepPart, ElementTransform):
    """Count, mean and squares of each channel of one image, on which the step is fitted."""

    def infer(self, x: FeatureType) -> FeatureType:
        require_values(self, x)
        if x.channels is None:
            raise OpError("PG205", f"`{self.op}` needs a known number of channels")
        return x.with_(dtype="float64", shape=(3, 1, x.channels), interval=None)

    def meaning(self) -> dict[str, Any]:
        """Nothing: the moments do not depend on the arguments."""
        return {}

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return channel_moments(image)


class Standardize(FittedTransform):
    """Subtracts the mean and divides by the standard deviation: y = (x - mean) / (std + epsilon), as float32.

    - `samplewise`: each image by its own mean and standard deviation, over all its pixels and channels.
    - `featurewise`: each channel by its mean and standard deviation over every pixel of the training split, as it reaches this step
      without augmentation: without the random steps before it, or with their evaluation forms. Every split uses the same numbers.

    `pipegen.build` computes the featurewise numbers in one pass over the training split, stores them in the folder of the spec's disk
    cache, or else of the user's caches, and reads them from there as long as the data, the training split and the steps before are the
    same; `pipegen fit` does that in advance. A channel with one value everywhere is only centred.
    """

    op = "standardize"
    examples = (
        Example("standardize: {statistics: samplewise}", IMAGE_224, "float32[224×224×3] in [-387.978, 387.978]"),
        Example("standardize: {statistics: samplewise, scale: false}", IMAGE_224, "float32[224×224×3] in [-255, 255]"),
        Example("standardize: {statistics: featurewise}", IMAGE_224, "float32[224×224×3]"),
    )
    kind_of_numbers = Moments
    untrained = "write the numbers: `normalize: {mean, std}`, as `pipegen fit` prints them for the spec used in training"

    statistics: Literal["featurewise", "samplewise"]
    """The source of mean and standard deviation: each channel over the training split (`featurewise`), or each image by itself
    (`samplewise`)."""
    center: bool = True
    """Whether the mean is subtracted."""
    scale: bool = True
    """Whether values are divided by the standard deviation."""
    epsilon: Annotated[float, Field(gt=0, le=1)] = 1e-6
    """What is added to the standard deviation, in the units of the values, so that an image of one value can be divided."""

    @model_validator(mode="after")
    def _does_something(self) -> Standardize:
        if not self.center and not self.scale:
            raise ValueError("`center` and `scale` are both false, so the step does nothing: leave it out")
        return self

    def learns(self) -> bool:
        return self.statistics == "featurewise"

    def measuring(self, feature: str) -> ElementTransform:
        return ImageMoments(owner=self, when="all", feature=feature)

    def gather(self, batches: Iterable[np.ndarray[Any, Any]]) -> Moments:
        return gathered(batches)

    def written_down(self, numbers: Statistics) -> str | None:
        changed = {"center", "scale", "epsilon", "feature", "when"} & self.model_fields_set
        if changed or not isinstance(numbers, Moments) or not all(numbers.std):
            return None
        return f"- normalize: {{{', '.join(f'{name}: {text}' for name, text in numbers.figures().items())}}}"

    def parts(self) -> tuple[Part, ...]:
        if not self.learns():
            return (Part(SampleStandardization(owner=self, when=self.when, feature=self.feature)),)
        return self.fitted_parts(FeatureStandardization)
