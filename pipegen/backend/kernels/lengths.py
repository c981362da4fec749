"""Padding of examples along their first axis."""

from __future__ import annotations

import tensorflow as tf

from pipegen.backend.features import Features
from pipegen.errors import InternalError
from pipegen.ops.families.lengths import MarkLength, MeasureLength, PadLength


def measure_length(stage: MeasureLength, features: Features) -> None:
    """Adds the length of one example, int32, at most that after padding."""
    features[stage.feature] = tf.minimum(tf.shape(features[stage.of])[0], _known(stage))


def pad_length(stage: PadLength, features: Features) -> None:
    """Pads one example, `(length, ...)` to `(to, ...)`, or cuts it; fails if it is longer and must not be cut."""
    value, to = features[stage.feature], _known(stage)
    length = tf.shape(value)[0]
    if stage.longer == "cut":
        value = value[:to]
    else:
        known = f"at most {to} by its header or its column, whose length is wrong" if stage.listed else None
        text = f"`{stage.feature}` has a length of {{}}, but " + (
            known or f"`batch.pad` has room for {to}; raise `to`, or write `longer: cut`"
        )
        fits = tf.debugging.Assert(length <= to, [tf.strings.format(text, length)])
        with tf.control_dependencies([fits] if fits is not None else []):
            value = tf.identity(value)
    behind = [[0, tf.maximum(to - length, 0)], *([0, 0] for _ in value.shape[1:])]
    padded = tf.pad(value, behind, constant_values=tf.cast(stage.value, value.dtype))
    padded.set_shape([to, *value.shape[1:]])
    features[stage.feature] = padded


def mark_length(stage: MarkLength, features: Features) -> None:
    """Adds the mask of a batch: bool `(n, to)`."""
    features[stage.feature] = tf.sequence_mask(features[stage.length], _known(stage))


def _known(stage: MeasureLength | PadLength | MarkLength) -> int:
    if stage.to is None:
        raise InternalError(f"`{stage.feature}` is padded to a length that is not known")
    return stage.to
