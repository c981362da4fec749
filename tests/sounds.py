"""Sounds for tests, and steps on them by the plainest way, in XLA, and one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipegen.ops.families.sounds import SECOND, SoundTransform
from pipegen.ops.kinds.audio import Sound
from pipegen.types import FeatureType

Array = np.ndarray[Any, Any]
RATE = 16000


def tone(hz: float, seconds: float = 1.0, rate: int = RATE, level: float = 0.5) -> Array:
    """A sine, float32 `(frames, 1)`."""
    return (level * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)[:, None]


def chatter(n: int = 3, frames: int = 4000, channels: int = 2, seed: int = 0) -> Array:
    """Noise that comes and goes, in 16 bits as files have it, with a part that is silent: float32 `(n, frames, channels)`."""
    rng = np.random.default_rng(seed)
    swell = 0.5 + 0.5 * np.sin(np.linspace(0, 9, frames))[None, :, None] * rng.uniform(0.2, 1, (n, 1, channels))
    values = np.rint(rng.normal(0, 0.1, (n, frames, channels)) * swell * 32768) / 32768
    values[:, frames // 2 : frames // 2 + frames // 8] = 0
    return np.clip(values, -1, 1).astype(np.float32)


def draws(step: SoundTransform, n: int, seed: int = 3) -> Array:
    return np.random.default_rng(seed).random((n, step.num_draws()))


def type_of(sounds: Array, rate: int = RATE) -> FeatureType:
    return SECOND.with_(shape=sounds.shape[1:], details=Sound(rate))


def applied(
    step: SoundTransform, sounds: Array, u: Array | None = None, *, jit: bool = False, rate: int = RATE, known: bool = True
) -> Array:
    """The step on a batch of sounds, with the frames statically `known` or not; a batch of one is known as one, as pipelines have it."""
    import tensorflow as tf

    on: Any = step.on(type_of(sounds, rate)).at(tf.constant(0))

    def whole(x: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        frames = x.shape[1] if x.shape[1] is not None else tf.shape(x)[1]
        return on.apply(x, *on.parameters(u, frames, x.shape[2]))

    u = draws(step, len(sounds)) if u is None else u
    shape = sounds.shape if known else (1 if len(sounds) == 1 else None, None, sounds.shape[2])
    signature = [tf.TensorSpec(shape, tf.float32), tf.TensorSpec([shape[0], u.shape[1]], tf.float64)]
    return tf.function(whole, jit_compile=jit, autograph=False, input_signature=signature)(tf.constant(sounds), tf.constant(u)).numpy()


def by_phases(step: SoundTransform, sounds: Array, u: Array, *, rate: int = RATE) -> Array:
    """The step as kernels run it: parameters on the host, and each phase compiled by itself."""
    import tensorflow as tf

    on: Any = step.on(type_of(sounds, rate)).at(tf.constant(0))
    x = tf.constant(sounds)
    given = on.parameters(tf.constant(u), *sounds.shape[1:])
    for phase in on.phases():
        given = tf.function(phase, jit_compile=True, autograph=False)(x, *given)
    return tf.function(on.finish, jit_compile=True, autograph=False)(x, *given).numpy()
