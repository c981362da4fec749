"""Stages on items in sounds, such as events: they move by the inverse of the map of time that reads the sound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pipegen.backend.features import Features, Params
from pipegen.backend.index.draws import acts, own_draws, step_of
from pipegen.backend.kernels.moving import keep_items
from pipegen.errors import InternalError
from pipegen.ops.families import item_stages as st
from pipegen.ops.families.sounds import TimeMap
from pipegen.ops.kinds.base import timeline_of
from pipegen.ops.lowering.linear import as_float32
from pipegen.ops.lowering.waveforms import POSITION_BITS, resampled_by, shifted, sizes
from pipegen.ops.stage import StepRef
from pipegen.plan import stages as s
from pipegen.types import valid_name


def enter_sound(stage: st.EnterSound, features: Features) -> None:
    """Places the stored items of a batch in their sounds, in place."""
    length = _seconds(sizes(features[stage.sound])[0], stage.rate)
    keep_items(stage, features, *timeline_of(stage.kind).prepare(features[stage.feature], stage.offset, length, stage.details))


def move_in_sound(stage: st.MoveInSound, features: Features) -> None:
    """Moves the items of a batch as steps are about to move their sounds, in place."""
    whole = product(stage.refs, features["@draws"], features[stage.sound])
    factor, start = (tf.cast(fixed, tf.float64) * 2.0**-POSITION_BITS for fixed in (whole.pace, whole.start))
    moved = timeline_of(stage.kind).move
    times = start / float(stage.rate), _seconds(whole.length, stage.rate)
    keep_items(stage, features, *moved(features[stage.feature], factor, *times, stage.details))


def cut_in_sound(stage: st.CutInSound, features: Features) -> None:
    """Cuts the items of a batch as their sounds are about to be cut to a length, in place."""
    items, steps = features[stage.feature], sizes(features[stage.sound])[0]
    if stage.to is None:
        raise InternalError(f"`{stage.sound}` is cut to a length that is not known")
    longest = stage.to * stage.hop / stage.rate
    length = tf.where(steps > stage.to, tf.constant(longest, tf.float64), tf.constant(math.inf, tf.float64))
    still = tf.zeros(tf.shape(items)[:1], tf.float64)
    keep_items(stage, features, *timeline_of(stage.kind).move(items, still + 1.0, still, length, stage.details))


def retime_params(stage: s.Retime, features: Features) -> Params:
    """Where each sound of a batch is read: the distance of two frames, and the first one, in 1/2^32 frame."""
    whole = product(stage.refs, features["@draws"], features[stage.feature])
    return whole.pace, whole.start


def retime(stage: s.Retime, sounds: tf.Tensor, params: Params) -> tf.Tensor:
    """Reads each sound of a batch once; cuts alone copy samples."""
    pace, start = params
    count = sizes(sounds)[0] if stage.length is None else stage.length
    whole = tf.bitwise.right_shift(start, tf.constant(POSITION_BITS, tf.int64))
    cut = shifted(sounds, -tf.cast(whole, tf.int32), wraps=False, count=count)
    if not stage.resamples():
        return cut
    wide = tf.cast(sounds, tf.float64) if stage.exact else sounds
    done = tf.cast(as_float32(resampled_by(wide, pace, count, stage.fastest, start)), sounds.dtype)
    if not any(ref.conditional for ref in stage.refs):
        return done
    one = tf.constant(1 << POSITION_BITS, tf.int64)
    return tf.where(((pace == one) & (start == whole * one))[:, None, None], cut, done)  # where no step changes the speed, samples stay


def product(refs: Sequence[StepRef[Any]], draws: tf.Tensor, sounds: tf.Tensor) -> TimeMap:
    """Multiplies the maps of time of uses of steps on sounds `(n, frames, channels)`. Each leaves the examples that it does not act on."""
    frames, _ = sizes(sounds)
    still = whole = TimeMap.of_shift(sounds, 0, frames)
    for ref in refs:
        own = step_of(ref, draws).time_map(own_draws(ref, draws), sounds)
        if ref.conditional:
            acting = acts(ref, draws)
            length = frames if own.length is frames else tf.where(acting, own.length, frames)
            own = TimeMap(tf.where(acting, own.pace, still.pace), tf.where(acting, own.start, still.start), length)
        whole = whole.then(own)
    return whole


def frame_labels(stage: st.FrameLabels, features: Features) -> None:
    """Replaces the items of a batch, or their classes, by what happens in each step of the sound, float32 `(n, steps)` or `(n, steps,
    classes)`, in place."""
    sounds, events = features[stage.sound], tf.cast(features[stage.home], tf.float64)
    steps, _ = sizes(sounds)
    first, last = tf.unstack(tf.round(events * float(stage.rate)) / stage.hop, axis=-1)
    first, last = tf.floor(first), tf.maximum(tf.math.ceil(last), tf.floor(first) + 1.0)
    place = tf.range(tf.cast(steps, tf.float64), dtype=tf.float64)
    on = (place >= first[..., None]) & (place < last[..., None]) & features[valid_name(stage.home)][..., None]
    on = on & features[valid_name(stage.sound)][:, None] if stage.padded else on
    if stage.classes is None:
        found = tf.cast(tf.reduce_any(on, 1), tf.float32)
    else:
        of = tf.one_hot(features[stage.feature], stage.classes, dtype=tf.float32)
        found = tf.minimum(tf.matmul(tf.cast(on, tf.float32), of, transpose_a=True), 1.0)
    features[stage.feature] = tf.ensure_shape(found, [None, sounds.shape[1], *found.shape[2:]])


def _seconds(frames: tf.Tensor | int, rate: int) -> tf.Tensor:
    return tf.cast(frames, tf.float64) / float(rate)
