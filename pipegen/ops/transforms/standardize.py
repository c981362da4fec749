"""`standardize`: by the mean and spread of the training split, or by those of each example."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import np, tf
from pipegen.ops.arguments.arithmetic import Arithmetic
from pipegen.ops.arguments.learned import Moments, Statistics
from pipegen.ops.families.fitted import FittedTransform, StepPart, require_values
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.families.sounds import SPECTRA
from pipegen.ops.fields.notes import joined
from pipegen.ops.kinds.base import kind_of
from pipegen.ops.lowering.linear import as_float32, nearest_float32, working
from pipegen.ops.lowering.statistics import gathered, own_moments, sample_moments
from pipegen.ops.step_bases import VALUED, ElementTransform, PointwiseTransform, UnconditionalTransform
from pipegen.ops.traits import IMAGE_224, Example
from pipegen.ops.transform import Part
from pipegen.types import FeatureType, Interval, times


class StandardizePart(StepPart):
    """A part of `standardize`, whose arguments it reads."""

    if TYPE_CHECKING:
        owner: Standardize

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        if not x.missing:
            return super().lints(x)
        help_ = write("- fill_missing", "before", "put {} before it")
        message = (
            f"`{self.owner.op}` takes means of {joined([f'`{column}`' for column in x.missing])}, where values are missing: all become NaN"
        )
        return (OpError("PG495", message, help=help_), *super().lints(x))


class SampleStandardization(UnconditionalTransform, StandardizePart, NeighbourhoodTransform):
    """Standardises each example by its own mean and standard deviation."""

    kinds = VALUED
    cost = 2.0

    def infer(self, x: FeatureType) -> FeatureType:
        """float32. None of n values lies further than √(n - 1) standard deviations from their mean."""
        self.owner.require(x)
        bounds = None
        if self.owner.scale and self.owner.center:
            count = math.prod(d or 0 for d in x.shape[: len(x.shape) - self.owner.own_axes()])
            bounds = Interval(-math.sqrt(count - 1), math.sqrt(count - 1)) if count else None
        elif self.owner.center and x.interval is not None:
            bounds = Interval(-x.interval.width, x.interval.width)
        return x.with_(dtype="float32", interval=bounds)

    def phase(self, images: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The shift, the factor and the correction of the rounded shift, which would show in an image with little contrast: float32
        `(n,)` each, or for each channel, or each channel of each band."""
        mean, std = sample_moments(images, self.owner.per)
        shift = mean if self.owner.center else tf.zeros_like(mean)
        factor = 1.0 / (std + self.owner.epsilon) if self.owner.scale else tf.ones_like(std)
        rounded = tf.round(shift * 256.0) / 256.0  # exact as float32, also for 16 bits
        return tuple(as_float32(t) for t in (rounded, factor, (rounded - shift) * factor))

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        dtype = working(images)
        before = images.shape.rank - 1 - self.owner.own_axes()  # axes that share their moments
        shape = [-1, *([1] * before), *images.shape[1 + before :]]
        shift, factor, rest = (tf.reshape(tf.cast(g, dtype), shape) for g in given)
        return as_float32(nearest_float32(tf.cast(images, dtype) - shift) * factor + rest)


class FeatureStandardization(StandardizePart, PointwiseTransform):
    """Standardises each channel, or each channel of each band, by its mean and standard deviation over the training split.

    Until these are known its numbers are NaN, which shows in all results.
    """

    numbers: Moments | None
    """The moments of the training split, or `None` before they are computed."""

    def infer(self, x: FeatureType) -> FeatureType:
        """float32, of unknown range until the numbers are known."""
        self.owner.require(x)
        if self.numbers is None:
            return x.with_(dtype="float32", interval=None, centred=self.owner.center)
        own = self.owner.own_shape(x)
        if len(self.numbers.mean) != math.prod(d or 0 for d in own):
            found = f"{len(self.numbers.mean)} {'channels' if len(own) == 1 else 'numbers'}"
            raise OpError("PG205", f"`{self.op}` was fitted on {found}, and gets {times(own)}")
        return self.arithmetic(x).infer(x).with_(centred=self.owner.center)

    def arithmetic(self, x: FeatureType) -> Arithmetic:
        if self.numbers is None:
            return Arithmetic((math.nan,), (math.nan,), "float32")
        scale = tuple(1.0 / (s + self.owner.epsilon) if self.owner.scale and s > 0 else 1.0 for s in self.numbers.std)
        shift = self.numbers.mean if self.owner.center else (0.0,) * len(scale)
        bands = (x.shape[-2] or 1) if self.owner.per == "band" else 1
        return Arithmetic(scale, tuple(-m * s for m, s in zip(shift, scale, strict=True)), "float32", bands=bands)


class OwnMoments(StandardizePart, ElementTransform):
    """Count, mean and squares of each channel of one example, or of each channel of each band, on which the step is fitted."""

    kinds = VALUED

    def infer(self, x: FeatureType) -> FeatureType:
        self.owner.require(x)
        if None in self.owner.own_shape(x):
            raise OpError("PG205", f"`{self.op}` needs a known number of channels")
        return x.with_(dtype="float64", shape=(3, 1, math.prod(d or 0 for d in self.owner.own_shape(x))), interval=None)

    def meaning(self) -> dict[str, Any]:
        """Only what has a mean of its own: the moments do not depend on the other arguments."""
        return {"per": "band"} if self.owner.per == "band" else {}

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return own_moments(image, self.owner.per)


class Standardize(FittedTransform):
    """Subtracts the mean and divides by the standard deviation: y = (x - mean) / (std + epsilon), as float32.

    - `samplewise`: each image or sound by its own mean and standard deviation, over all its values.
    - `featurewise`: each channel by its mean and standard deviation over every value of the training split, as it reaches this step
      without augmentation: without the random steps before it, or with their evaluation forms. Every split uses the same numbers.

    With `per`, each channel or each band of spectra has numbers of its own in both: `samplewise` with `per: band` is the cepstral mean and
    variance normalization of speech.

    `pipegen.build` computes the featurewise numbers in one pass over the training split, stores them in the folder of the spec's disk
    cache, or else of the user's caches, and reads them from there as long as the data, the training split and the steps before are the
    same; `pipegen fit` does that in advance. A channel with one value everywhere is only centred.
    """

    op = "standardize"
    examples = (
        Example("standardize: {statistics: samplewise}", IMAGE_224, "float32[224×224×3] in [-387.978, 387.978]"),
        Example("standardize: {statistics: samplewise, scale: false}", IMAGE_224, "float32[224×224×3] in [-255, 255]"),
        Example("standardize: {statistics: featurewise}", IMAGE_224, "float32[224×224×3]"),
        Example("standardize: {statistics: samplewise, per: band}", SPECTRA, "float32[98×64×1] in [-9.84886, 9.84886]"),
    )
    kinds = VALUED
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
    per: Literal["channel", "band"] | None = None
    """What has a mean and a standard deviation of its own: each `channel`, or each channel of each `band` of spectra. By default the whole
    example if `samplewise`, and each channel if `featurewise`."""

    @model_validator(mode="after")
    def _does_something(self) -> Standardize:
        if not self.center and not self.scale:
            raise ValueError("`center` and `scale` are both false, so the step does nothing: leave it out")
        return self

    def meaning(self) -> dict[str, Any]:
        same = self.per == "channel" and self.learns()  # the default
        return {name: value for name, value in super().meaning().items() if name != "per" or not (same or value is None)}

    @property
    def each(self) -> str:
        return "band" if self.per == "band" else "channel"

    def own_axes(self) -> int:
        """Counts the last axes along which each place has moments of its own."""
        return 2 if self.per == "band" else 1 if self.learns() or self.per == "channel" else 0

    def own_shape(self, x: FeatureType) -> tuple[int | None, ...]:
        """Returns the lengths of these axes."""
        return x.shape[len(x.shape) - self.own_axes() :]

    def require(self, x: FeatureType) -> None:
        """Rejects what `require_values` does, and as `PG204` values without bands for `per: band`."""
        require_values(self, x)
        if self.per == "band" and (kind_of(x).samples is None or len(x.shape) != 3):
            given = "samples" if kind_of(x).samples is not None else kind_of(x).plural
            help_ = "move it behind `mel_spectrogram`, or leave `per` out" if kind_of(x).samples is not None else "leave `per` out"
            raise OpError("PG204", f"`per: band` is for spectra, and gets {given}", field="per", help=help_)

    def learns(self) -> bool:
        return self.statistics == "featurewise"

    def measuring(self, feature: str) -> ElementTransform:
        return OwnMoments(owner=self, when="all", feature=feature)

    def gather(self, batches: Iterable[np.ndarray[Any, Any]]) -> Moments:
        return gathered(batches)

    def written_down(self, numbers: Statistics) -> str | None:
        changed = {"center", "scale", "epsilon", "feature", "when", "per"} & self.model_fields_set
        if changed or not isinstance(numbers, Moments) or not all(numbers.std):
            return None
        return f"- normalize: {{{', '.join(f'{name}: {text}' for name, text in numbers.figures().items())}}}"

    def parts(self) -> tuple[Part, ...]:
        if not self.learns():
            return (Part(SampleStandardization(owner=self, when=self.when, feature=self.feature)),)
        return self.fitted_parts(FeatureStandardization)
