"""`delta`: how fast spectra change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from pipegen.lazy import tf
from pipegen.ops.families.sounds import SPECTRA, SoundTransform, require_sound
from pipegen.ops.step_bases import UnconditionalTransform
from pipegen.ops.traits import Example
from pipegen.types import FeatureType


def _odd(width: int) -> int:
    if width % 2 == 0:
        raise ValueError(f"`width` is odd, since a step lies in the middle of its neighbours: {width - 1} or {width + 1}")
    return width


class Delta(UnconditionalTransform, SoundTransform):
    """Appends the slopes of each band over time: `(steps, bands, channels)` become `(steps, bands · (1 + order), channels)`.

    The slope at step t is that of the line through its neighbours by least squares, Σ n (x[t + n] - x[t - n]) / (2 Σ n²) for n from 1 to
    `width` // 2, as in HTK and `torchaudio.functional.compute_deltas`; outside, the first and the last step are repeated. With `order: 2`
    the slopes of the slopes follow. The bands come first, then their slopes.
    """

    op = "delta"
    form: ClassVar[Literal["spectra"]] = "spectra"
    cost = 1.5
    examples = (
        Example("delta", SPECTRA, "float32[98×128×1]"),
        Example("delta: {width: 9, order: 2}", SPECTRA, "float32[98×192×1]"),
    )

    width: Annotated[int, Field(ge=3, le=99), AfterValidator(_odd)] = 5
    """The number of steps that a slope is computed from, an odd number."""
    order: Literal[1, 2] = 1
    """1 for the slopes, 2 for their slopes, too."""

    def infer(self, x: FeatureType) -> FeatureType:
        details = replace(require_sound(self, x, self.form), holds="coefficients")
        steps, bands, channels = x.shape
        bands = None if bands is None else bands * (1 + self.order)
        return x.with_(dtype="float32", shape=(steps, bands, channels), interval=None, details=details)

    def phases(self) -> tuple[Callable[..., Any], ...]:
        return (partial(_slopes, self.width // 2),) * self.order

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return tf.concat([tf.cast(images, given[0].dtype), *given], 2)


def _slopes(reach: int, images: tf.Tensor, *given: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Appends the slopes of the last of the values that are `given`, or else of the images: floats `(n, steps, bands, channels)` each."""
    from pipegen.ops.lowering.linear import working

    values = given[-1] if given else tf.cast(images, working(images))
    steps = values.shape[1] if values.shape[1] is not None else tf.shape(values)[1]
    held = tf.concat([tf.repeat(values[:, :1], reach, axis=1), values, tf.repeat(values[:, -1:], reach, axis=1)], 1)
    total = tf.add_n([n * (held[:, reach + n : reach + n + steps] - held[:, reach - n : reach - n + steps]) for n in range(1, reach + 1)])
    return *given, total * (1.0 / (2 * sum(n * n for n in range(1, reach + 1))))
