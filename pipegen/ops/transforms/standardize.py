"""Standardise images by their own mean and spread, or by those of the training split."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from pipegen.lazy import np
from pipegen.ops.arguments.learned import Statistics
from pipegen.ops.arguments.moments import Moments
from pipegen.ops.base import IMAGE_224, ElementTransform, Example, Part
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.families.standardizing import FeatureStandardization, ImageMoments, SampleStandardization, StandardizePart
from pipegen.ops.lowering.moments import gathered


class Standardize(FittedTransform):
    """Subtracts the mean and divides by the standard deviation: y = (x - mean) / (std + epsilon), as float32.

    - `samplewise`: each image by its own mean and standard deviation, over all its pixels and channels.
    - `featurewise`: each channel by its mean and standard deviation over every pixel of the training split, as it reaches
      this step without augmentation: without the random steps before it, or with their evaluation forms. The same
      numbers then serve every split.

    `pipegen.build` finds the featurewise numbers in one pass over the training split, keeps them in the folder of the spec's disk
    cache, or else of the user's caches, and takes them from there as long as the data, the training split and the steps before
    are the same; `pipegen fit` does that ahead. A channel that has one value everywhere is only centred.
    """

    op = "standardize"
    examples = (
        Example("standardize: {statistics: samplewise}", IMAGE_224, "float32[224×224×3] in [-387.978, 387.978]"),
        Example("standardize: {statistics: samplewise, scale: false}", IMAGE_224, "float32[224×224×3] in [-255, 255]"),
        Example("standardize: {statistics: featurewise}", IMAGE_224, "float32[224×224×3]"),
    )
    untrained = "write the numbers down: `normalize: {mean, std}`, as `pipegen fit` prints them for the spec that was trained with"

    statistics: Literal["featurewise", "samplewise"]
    """Whose mean and standard deviation: those of each channel over the training split (`featurewise`), or of each image
    by itself (`samplewise`)."""
    center: bool = True
    """Whether the mean is subtracted."""
    scale: bool = True
    """Whether it is divided by the standard deviation."""
    epsilon: Annotated[float, Field(gt=0, le=1)] = 1e-6
    """What is added to the standard deviation, so that an image of one value can be divided; in the units of the values."""

    @model_validator(mode="after")
    def _does_something(self) -> Standardize:
        if not self.center and not self.scale:
            raise ValueError("without `center` and `scale` there is nothing left to do: leave the step out")
        return self

    def learns(self) -> bool:
        return self.statistics == "featurewise"

    def kind_of_numbers(self) -> type[Statistics]:
        return Moments

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
            return (self._part(SampleStandardization, feature=self.feature),)
        if self.fitted is None:
            return (self._part(FeatureStandardization, feature=self.feature, moments=None),)
        return tuple(self._part(FeatureStandardization, feature=f, moments=m) for f, m in self.fitted.numbers.items())

    def _part(self, kind: type[StandardizePart], **own: Any) -> Part:
        return Part(kind(owner=self, when=self.when, center=self.center, scale=self.scale, epsilon=self.epsilon, **own))
