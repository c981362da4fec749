"""Runs of filters and reverberation: one convolution by the product of their transfer functions."""

from __future__ import annotations

from functools import reduce
from operator import add

import tensorflow as tf

from pipegen.backend.features import Features, Params
from pipegen.backend.index.draws import acts, own_draws, step_of
from pipegen.backend.kernels.warp import sides
from pipegen.ops.families.convolutions import Convolution
from pipegen.ops.lowering.linear import as_float32
from pipegen.ops.lowering.waveforms import convolved, power_of_two, sizes


def convolution_params(stage: Convolution, features: Features) -> Params:
    """The parameters of each step, a tuple; and whether the step acts, if that is drawn."""
    draws, size = features["@draws"], sides(features[stage.feature])
    own = [step_of(ref, draws).parameters(own_draws(ref, draws), *size) for ref in stage.refs]
    return (*own, acts(stage.refs[0], draws)) if stage.conditional else tuple(own)


def transfers(stage: Convolution, sounds: tf.Tensor, params: Params) -> Params:
    """Multiplies the transfer functions, float32 or complex64 `(n, 1 or channels, bins)`; passes on whether the step acts."""
    each = [(ref.step, given) for ref, given in zip(stage.refs, params, strict=False)]
    length = power_of_two(reduce(add, (step.reach(*given) for step, given in each), sizes(sounds)[0]))
    return (reduce(_product, (step.transfer(length, *given) for step, given in each)), *params[len(each) :])


def _product(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Multiplies transfer functions, each float32 or complex64."""
    dtype = a.dtype if a.dtype == b.dtype else tf.complex64
    return tf.cast(a, dtype) * tf.cast(b, dtype)


def convolution(stage: Convolution, sounds: tf.Tensor, given: Params) -> tf.Tensor:
    """Convolves sounds `(n, frames, channels)`, from the results of `transfers`."""
    transfer, *acting = given
    done = convolved(tf.cast(sounds, tf.float64) if stage.exact else sounds, transfer)
    done = tf.cast(as_float32(done), sounds.dtype) if stage.exact else done
    return tf.where(acting[0][:, None, None], done, sounds) if acting else done
