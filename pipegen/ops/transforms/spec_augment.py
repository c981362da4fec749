"""`spec_augment`: a warp of time, and masks on spectra."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import ConstantFill, filled
from pipegen.ops.arguments.magnitudes import Probability, Share, check_number, checked, most, needs_one
from pipegen.ops.families.neighbourhood import Neighbourhood
from pipegen.ops.families.sounds import SPECTRA, SoundTransform
from pipegen.ops.lowering.filters import Phase
from pipegen.ops.lowering.linear import working
from pipegen.ops.lowering.windows import Whole, pick
from pipegen.ops.stage import StepRef
from pipegen.ops.traits import Example
from pipegen.types import FeatureType

_Share = Annotated[Share | None, checked(check_number)]
_Length = Annotated[int, Field(ge=1, le=1 << 20)]
_Count = Annotated[int, Field(ge=0, le=100)]


class SpecAugment(SoundTransform):
    """Warps the time of spectra, and covers runs of steps and runs of bands by one value: SpecAugment (Park et al. 2019).

    With `warp` W it draws a place between two steps, more than W steps from both ends, and moves it by a whole number of steps from -W to
    W, each as likely. What lies before it, and what lies behind it, is resized to its new length, with linear interpolation. That is the
    paper's sparse image warp along time alone, as ESPnet, SpeechBrain and lhotse have it, which interpolate by cubics. In spectra of
    fewer than 2 W + 2 steps, W is smaller.

    For each mask in time it draws a length, a whole number from 0 to the largest one, each as likely, and a place. The largest length is
    `time` as a share of the steps, or a number of `steps`, or of both the smaller one; masks in frequency have `frequency` and `bands`. The
    paper's policy LD is `spec_augment: {warp: 80, steps: 100, bands: 27, time_masks: 2, frequency_masks: 2}`. Masks may overlap, and cover
    what has been warped; all channels are changed alike.

    Masks are filled with the `mean` of the spectra that enter, over all their values. (The paper fills with 0 after subtracting the mean.)
    """

    op = "spec_augment"
    form: ClassVar[Literal["spectra"]] = "spectra"
    random = True
    cost = 1.0
    examples = (
        Example("spec_augment: {time: 0.1, frequency: 0.1}", SPECTRA, "float32[98×64×1]"),
        Example("spec_augment: {steps: 30, bands: 12, time_masks: 2, fill: {constant: 0}}", SPECTRA, "float32[98×64×1]"),
        Example("spec_augment: {warp: 10, time: 0.1, frequency: 0.1}", SPECTRA, "float32[98×64×1]"),
    )

    warp: _Length | None = None
    """The largest distance, in steps, by which a place in time is moved, W in the paper; by default time is not warped."""

    time: _Share = None
    """The largest length of a mask in time, as a share of the steps."""
    steps: _Length | None = None
    """The largest length of a mask in time, in steps."""
    frequency: _Share = None
    """The largest length of a mask in frequency, as a share of the bands."""
    bands: _Length | None = None
    """The largest length of a mask in frequency, in bands."""
    time_masks: _Count = 1
    """The number of masks in time, if `time` or `steps` is given."""
    frequency_masks: _Count = 1
    """The number of masks in frequency, if `frequency` or `bands` is given."""
    fill: Literal["mean"] | ConstantFill = "mean"
    """The value of masks: the `mean` of the spectra, or `{constant: VALUE}` in the units of the incoming values."""
    probability: Probability = 1.0
    """The share of examples that the step changes."""

    _any = needs_one("warp", "time", "steps", "frequency", "bands")

    def counts(self) -> tuple[int, int]:
        """Returns the number of masks in time and in frequency."""
        in_time, in_frequency = self.time is not None or self.steps is not None, self.frequency is not None or self.bands is not None
        return self.time_masks * in_time, self.frequency_masks * in_frequency

    def changes_times(self) -> bool:
        return self.warp is not None

    def num_draws(self) -> int:
        return 2 * (sum(self.counts()) + (self.warp is not None))

    def weight(self) -> float:
        return self.cost + 0.3 * (self.warp is not None)

    def idle(self) -> bool:
        shares = (most(share) for share, length in ((self.time, self.steps), (self.frequency, self.bands)) if share is not None)
        none = self.steps is None and self.bands is None and not any(shares)
        return super().idle() or (self.warp is None and (none or not any(self.counts())))

    def stage(self, feature: str, ref: StepRef[Any], x: FeatureType) -> Neighbourhood:
        return replace(super().stage(feature, ref, x), starts_kernel=self.fill == "mean" or self.warp is not None)

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        return y if self.fill == "mean" else filled(y, self.fill)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        found = []
        for name, share in (("time", self.time), ("frequency", self.frequency)):
            if share is not None and most(share) > 0.8:
                message = f"`{name}` of `{self.op}` is the largest share of a mask, and reaches {most(share):.0%}"
                found.append(OpError("PG510", message, field=name, help=write(f"{name}: 0.1", "arguments", "such as {}")))
        return (*found, *super().lints(x))

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """The masks: `step` and `steps`, the first step and the number of steps of each mask in time, `band` and `bands` of each in
        frequency, int32 `(n, masks)`. The warp: the number of steps `before` the place that is moved, and after it has `moved`, int32
        `(n,)`."""
        names = ("step", "steps", "band", "bands")
        found = {name: part for name, part in zip(names, self._masks(u, shape[0], shape[1]), strict=True) if part.shape[-1]}
        return found | dict(zip(("before", "moved"), self._places(u, shape[0]), strict=False))

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (*self._masks(u, height, width), *self._places(u, height))

    def _places(self, u: tf.Tensor, steps: Whole) -> tuple[tf.Tensor, ...]:
        """The steps before the place that is moved, before and after: int32 `(...)`; nothing without a warp."""
        if self.warp is None:
            return ()
        most = tf.maximum(tf.minimum(self.warp, (steps - 2) // 2), 0)
        before = most + 1 + pick(u[..., -2], steps - 2 * (most + 1))
        return before, before - most + pick(u[..., -1], 2 * most)

    def _masks(self, u: tf.Tensor, steps: Whole, bands: Whole) -> tuple[tf.Tensor, ...]:
        """The first line and the number of lines of each mask, in time and then in frequency: int32 `(..., masks)` each."""
        found: list[tf.Tensor] = []
        first = 0
        limits = ((self.time, self.steps, steps), (self.frequency, self.bands, bands))
        for count, (share, length, side) in zip(self.counts(), limits, strict=True):
            largest = tf.minimum(side, length) if length is not None else tf.convert_to_tensor(side)
            if share is not None:
                whole = tf.cast(tf.floor(tf.cast(side, tf.float64) * tf.cast(share, tf.float64)), tf.int32)
                largest = tf.minimum(largest, whole)
            long = pick(u[..., first : first + count], largest)
            found += [pick(u[..., first + count : first + 2 * count], side - long), long]
            first += 2 * count
        return tuple(found)

    def phases(self) -> tuple[Phase, ...]:
        return () if self.fill != "mean" else (_mean,)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        step, steps, band, bands, *others = given
        places, mean = others[: 2 * (self.warp is not None)], others[2 * (self.warp is not None) :]
        times, lines = (tf.shape(images)[axis] if images.shape[axis] is None else images.shape[axis] for axis in (1, 2))
        in_time, in_frequency = _covered(step, steps, times)[:, :, None, None], _covered(band, bands, lines)[:, None, :, None]
        constant = self.fill.constant if isinstance(self.fill, ConstantFill) else 0.0
        value = tf.cast(mean[0], images.dtype)[:, None, None, None] if mean else tf.constant(constant, images.dtype)
        return tf.where(tf.logical_or(in_time, in_frequency), value, _warped(images, *places) if places else images)


def _warped(images: tf.Tensor, before: tf.Tensor, moved: tf.Tensor) -> tf.Tensor:
    """Resizes the steps up to a place so that `before` of them, int32 `(n,)`, become `moved`, and the others so that they fill the rest.

    Positions are whole numbers of 1 / (2 · the new length) step, so that they are the same everywhere.
    """
    steps = tf.cast(images.shape[1] if images.shape[1] is not None else tf.shape(images)[1], tf.int64)
    first, ends = (tf.cast(part, tf.int64)[:, None] for part in (before, moved))
    step = tf.range(steps)[None, :]
    late = step >= ends
    begin, begun = tf.where(late, first, 0), tf.where(late, ends, 0)  # of the part that a step lies in, before and after
    length, filled = tf.where(late, steps - first, first), tf.maximum(tf.where(late, steps - ends, ends), 1)
    place = tf.clip_by_value((2 * (step - begun) + 1) * length - filled, 0, 2 * filled * (length - 1))
    whole = place // (2 * filled)
    share = tf.cast(place % (2 * filled), tf.float64) / tf.cast(2 * filled, tf.float64)
    lower, upper = (
        tf.gather(images, tf.cast(begin + line, tf.int32), axis=1, batch_dims=1) for line in (whole, tf.minimum(whole + 1, length - 1))
    )
    return lower + (upper - lower) * tf.cast(share, images.dtype)[:, :, None, None]


def _covered(first: tf.Tensor, count: tf.Tensor, lines: Whole) -> tf.Tensor:
    """Marks the lines that lie in one of the masks, bool `(n, lines)`."""
    line = tf.range(lines)[None, :, None]
    inside = tf.logical_and(line >= first[:, None, :], line < (first + count)[:, None, :])
    return tf.reduce_any(inside, -1)


def _mean(images: tf.Tensor, *given: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The mean of the values of each example, `(n,)`."""
    values = tf.reduce_mean(tf.cast(images, tf.float64), list(range(1, images.shape.rank)))
    return *given, tf.cast(values, working(images))
