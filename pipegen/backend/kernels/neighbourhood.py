"""The stages of the neighbourhood family: parameters, phases and the step itself, for the examples that it acts on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.index.uses import acts, own_draws, step_of
from pipegen.backend.kernels.positions import around, outside, sides
from pipegen.backend.kernels.warp import read
from pipegen.ops.families.neighbourhood import DisplacementTransform
from pipegen.ops.lowering.linear import as_float32

if TYPE_CHECKING:
    from pipegen.backend.features import Features, Params, Phase
    from pipegen.plan import stages as s


def neighbourhood_params(stage: s.Neighbourhood, features: Features) -> Params:
    """The step's own parameters, and behind them whether it acts, where that is drawn."""
    ref, draws = stage.ref, features["@draws"]
    own: Params = step_of(ref, draws).parameters(own_draws(ref, draws), *sides(features[stage.feature]))
    return (*own, acts(ref, draws)) if ref.conditional else own


def neighbourhood_phases(stage: s.Neighbourhood) -> tuple[Phase, ...]:
    """The step's phases, which know nothing of whether it acts; where it displaces, then what each pixel reads."""
    step: Any = stage.ref.step
    own: list[Callable[..., Params]] = list(step.phases())
    if isinstance(step, DisplacementTransform):
        own.append(partial(_places, step))
    return tuple(partial(_phase, phase, stage) for phase in own)


def neighbourhood(stage: s.Neighbourhood, image: tf.Tensor, given: Params) -> tf.Tensor:
    """The images `(n, height, width, channels)` that leave, from what the last phase gave."""
    step: Any = stage.ref.step
    own = given[:-1] if stage.ref.conditional else given
    if isinstance(step, DisplacementTransform):
        fill, constant = outside(step.fill)
        done = read(image, own, fill=fill, constant=constant, exact=stage.exact)
    else:
        done = step.finish(_entering(stage, image), *own)
    if stage.clip is not None:
        done = tf.clip_by_value(done, stage.clip.low, stage.clip.high)
    if stage.exact and done.dtype == tf.float64:
        done = tf.cast(as_float32(done), image.dtype)
    if done.dtype != image.dtype:  # a step on bytes
        image = step.entering(image)
    return tf.where(given[-1][:, None, None, None], done, image) if stage.ref.conditional else done


def _phase(phase: Callable[..., Params], stage: s.Neighbourhood, image: tf.Tensor, params: Params) -> Params:
    image = _entering(stage, image)
    return (*phase(image, *params[:-1]), params[-1]) if stage.ref.conditional else phase(image, *params)


def _entering(stage: s.Neighbourhood, image: tf.Tensor) -> tf.Tensor:
    """The image as the step takes it: bytes where it works on those alone; else float64 where every bit counts, which comes back where the
    step keeps the dtype."""
    image = stage.ref.step.entering(image)
    return tf.cast(image, tf.float64) if stage.exact and not stage.ref.step.on_bytes else image


def _places(step: DisplacementTransform, image: tf.Tensor, right: tf.Tensor, down: tf.Tensor) -> Params:
    """The rows, columns and weights that `read` takes, from displacements in 1/256 pixel."""
    height, width = sides(image)
    half = 128 if step.interpolation == "nearest" else 0
    x = right + 256 * tf.range(width)[None, None, :] + half
    y = down + 256 * tf.range(height)[None, :, None] + half
    index = tf.int16 if isinstance(height, int) and isinstance(width, int) else tf.int32  # sides that are known are below 2^15
    return around(x, y, (height, width), outside(step.fill)[0], step.interpolation, index)
