"""Numbers the pixels of instance masks anew, as the items that they are of are dropped, cut and joined with those of other examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.backend.kernels.moving import mixed_with
from pipegen.ops.families.instances import NUMBERS
from pipegen.types import valid_name

if TYPE_CHECKING:
    from pipegen.backend.features import Features
    from pipegen.plan import stages as s


def renumber(stage: s.Renumber, features: Features) -> None:
    """Gives each pixel of a batch the place of its item, counted from 1, in place: uint8."""
    mask, there = features[stage.feature], features[valid_name(stage.home)]
    n, most = tf.shape(there)[0], tf.shape(there)[1]
    numbers = tf.where(there, tf.cast(features[stage.number], tf.int32), 0)
    places = tf.where(there, tf.range(1, most + 1), 0)
    row = tf.broadcast_to(tf.range(n)[:, None], [n, most])
    table = tf.scatter_nd(tf.stack([row, numbers], -1), places, [n, stage.sources * NUMBERS])
    table += stage.ignore * tf.one_hot(stage.ignore, stage.sources * NUMBERS, dtype=tf.int32)
    found = tf.gather(tf.cast(table, tf.uint8), tf.reshape(tf.cast(mask, tf.int32), [n, -1]), batch_dims=1)
    features[stage.feature] = tf.ensure_shape(tf.reshape(found, tf.shape(mask)), mask.shape)


def number_items(stage: s.NumberItems, features: Features) -> None:
    """Numbers the items of a batch from 1 on, in place."""
    there = features[valid_name(stage.feature)]
    features[stage.number] = tf.where(there, tf.cast(tf.range(1, tf.shape(there)[1] + 1), tf.float32), 0.0)


def mix_instances(stage: s.MixInstances, features: Features) -> None:
    """Mixes the masks of a batch as its images are, in place: int32, the numbers of each partner behind those of the one before."""
    mask = features[stage.feature]
    height, width = (d if d is not None else tf.shape(mask)[a] for a, d in enumerate(stage.canvas, 1))
    step, chosen, partner, alone = mixed_with(stage.ref, features, *(tf.convert_to_tensor(side, tf.int32) for side in (height, width)))
    own = tf.cast(mask, tf.int32)
    others = tf.gather(own, partner)
    numbered = (others != 0) & ~alone[:, None, None, None, None]
    if stage.ignore:
        numbered &= others != stage.ignore
    behind = (tf.range(step.others) + 1)[None, :, None, None, None] * NUMBERS
    mixed = step.mix(own, tf.where(numbered, others + behind, others), chosen)
    features[stage.feature] = tf.ensure_shape(mixed, mask.shape)
