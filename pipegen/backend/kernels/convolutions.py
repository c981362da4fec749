"""Runs of filters and reverberation: one convolution by the product of their transfer functions."""

from __future__ import annotations

from functools import partial, reduce
from operator import add

import tensorflow as tf

from pipegen.backend.features import Features, Params
from pipegen.backend.index.draws import acts, own_draws, step_of
from pipegen.backend.kernels.warp import sides
from pipegen.ops.families.convolutions import Convolution, ConvolutionTransform
from pipegen.ops.lowering.linear import as_float32
from pipegen.ops.lowering.waveforms import convolved, power_of_two, sizes
from pipegen.ops.lowering.windows import Whole


def convolution_params(stage: Convolution, features: Features) -> Params:
    """For each step a pair: its own parameters, and whether it acts, if that is drawn; tuples."""
    draws, size = features["@draws"], sides(features[stage.feature])
    own = (step_of(ref, draws).parameters(own_draws(ref, draws), *size) for ref in stage.refs)
    return tuple((given, (acts(ref, draws),) if ref.conditional else ()) for ref, given in zip(stage.refs, own, strict=True))


def changes_sounds(stage: Convolution, _sounds: tf.Tensor, params: Params) -> tf.Tensor | None:
    """Tests on which sounds a step acts, bool `(n,)`, from `convolution_params`; `None` if on all."""
    return reduce(tf.logical_or, (when[0] for _, when in params)) if stage.conditional else None


def transfers(stage: Convolution, sounds: tf.Tensor, params: Params) -> Params:
    """Multiplies the transfer functions of the steps that act, float32 or complex64 `(n, 1 or channels, bins)`; appends `changes_sounds`,
    if that is not `None`."""
    frames, channels = sizes(sounds)
    each = [(ref.step, given, when) for ref, (given, when) in zip(stage.refs, params, strict=True)]
    length = power_of_two(reduce(add, (step.reach(*given) for step, given, _ in each), frames))
    total = tf.ones([1, 1, 1])
    for step, given, when in each:
        if not when:
            total = _product(total, step.transfer(length, *given))
            continue
        others = _product(tf.ones([tf.shape(sounds)[0], channels, length // 2 + 1], tf.complex64), total)
        both = partial(_with, others, step, length, given)
        if sounds.shape[0] == 1:  # one that does not act costs nothing
            total = tf.cond(when[0][0], both, partial(tf.identity, others))
        else:
            total = tf.where(when[0][:, None, None], both(), others)
    changes = changes_sounds(stage, sounds, params)
    return (total,) if changes is None else (total, changes)


def _with(others: tf.Tensor, step: ConvolutionTransform, length: Whole, given: Params) -> tf.Tensor:
    return _product(others, step.transfer(length, *given))


def _product(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Multiplies transfer functions, each float32 or complex64."""
    dtype = a.dtype if a.dtype == b.dtype else tf.complex64
    return tf.cast(a, dtype) * tf.cast(b, dtype)


def convolution(stage: Convolution, sounds: tf.Tensor, given: Params) -> tf.Tensor:
    """Convolves sounds `(n, frames, channels)`, from the results of `transfers`."""
    transfer, *changes = given
    done = convolved(tf.cast(sounds, tf.float64) if stage.exact else sounds, transfer)
    done = tf.cast(as_float32(done), sounds.dtype) if stage.exact else done
    return tf.where(changes[0][:, None, None], done, sounds) if changes else done
