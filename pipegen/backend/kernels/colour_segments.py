"""Lowers the segments of colour: the matrices of steps, their product, and one application."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.backend.index.uses import acts, own_draws, step_of
from pipegen.backend.kernels.colour import ColourMatrix, apply_colour
from pipegen.ops.lowering.colours import compose

if TYPE_CHECKING:
    from pipegen.backend.features import Features, Params
    from pipegen.ops.base import ColourTransform
    from pipegen.plan import stages as s


def colour_matrix(ref: s.StepRef[ColourTransform], draws: tf.Tensor, channels: int) -> ColourMatrix:
    """One step's colour matrix, float64."""
    n = tf.shape(draws)[0]
    a, b, m = step_of(ref, draws).matrix(own_draws(ref, draws), channels)
    out = a.shape[-2]
    a, b, m = tf.broadcast_to(a, [n, out, channels]), tf.broadcast_to(b, [n, out]), tf.broadcast_to(m, [n, out])
    if not ref.conditional:
        return a, b, m
    when, eye = acts(ref, draws), tf.eye(channels, batch_shape=[n], dtype=tf.float64)
    return tf.where(when[:, None, None], a, eye), *(tf.where(when[:, None], part, tf.zeros_like(part)) for part in (b, m))


def colour_params(stage: s.Colour, features: Features) -> Params:
    """Multiplies the matrices of a segment, float32."""
    draws = features["@draws"]
    matrix = colour_matrix(stage.refs[0], draws, stage.channels)
    for ref in stage.refs[1:]:
        matrix = compose(matrix, colour_matrix(ref, draws, int(matrix[0].shape[-2])))
    return tuple(tf.cast(part, tf.float32) for part in matrix)


def colour(stage: s.Colour, value: tf.Tensor, params: Params) -> tf.Tensor:
    """Applies the matrices to the images."""
    a, b, m = params
    how = {"uses_mean": stage.uses_mean, "mixes_channels": stage.mixes_channels, "exact": stage.exact}
    return apply_colour(value, (a, b, m), stage.clip, **how)


def compose_colour(stage: s.ComposeColour, features: Features) -> None:
    """Multiplies a step's matrix into the pending one, `@colour/FEATURE/a`, `/b` and `/m`."""
    matrix = colour_matrix(stage.ref, features["@draws"], stage.channels)
    key = f"@colour/{stage.feature}"
    if not stage.opens:
        matrix = compose((features[f"{key}/a"], features[f"{key}/b"], features[f"{key}/m"]), matrix)
    features |= dict(zip((f"{key}/a", f"{key}/b", f"{key}/m"), matrix, strict=True))


def apply_pending(stage: s.ApplyColour, features: Features) -> None:
    """Applies the pending matrix."""
    name, key = stage.feature, f"@colour/{stage.feature}"
    a, b, m = (tf.cast(features.pop(f"{key}/{part}"), tf.float32) for part in "abm")
    features[name] = apply_colour(features[name], (a, b, m), stage.clip, uses_mean=stage.uses_mean, exact=stage.exact)
