"""Mix groups: who is whose partner, and which examples a host works out beside its own so that every group is whole.

A group is `GROUP` consecutive positions of an epoch's order. Where a host's block of a batch begins or ends inside one,
the block is widened to whole groups; the examples of others are cut away again once all is mixed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.backend.index.draws import own_draws, step_of
from pipegen.backend.index.order import START
from pipegen.ops.families.items import Paste, PasteItems, PastingTransform
from pipegen.ops.families.mixing import GROUP, Mix, MixingTransform, mix_labels
from pipegen.ops.lowering.linear import as_float32

if TYPE_CHECKING:
    from pipegen.backend.features import Features, Params
    from pipegen.backend.index.order import From, Order


def widened(order: Order, step: tf.Tensor, rows: int, since: From = START, epoch: tf.Tensor | int = 0) -> tuple[tf.Tensor, tf.Tensor]:
    """The slots of a block of `rows`, widened to whole groups, and which of them are the host's own: int64 and bool `(..., rows)`.

    Slots behind the end of the epoch are examples of some kind that nobody reads. `step` is int64 `(...)`.
    """
    low, high = order.block(step, since, epoch)
    begin = order.first_slot(step, epoch)
    first, last = (begin + low)[..., None], (begin + high)[..., None]
    whole = (first + since.origin) // GROUP * GROUP - since.origin  # groups are counted from the begin of the epoch
    slot = whole + tf.range(rows, dtype=tf.int64)
    return slot, tf.logical_and(slot >= first, slot < last)


def own_rows(features: Features, size: int | None) -> Features:
    """A widened batch without the examples of others; `size` is how many are the host's own, where that is the same for each batch."""
    own = features["@own"]
    start = tf.argmax(own, output_type=tf.int32)
    count = tf.reduce_sum(tf.cast(own, tf.int32)) if size is None else tf.constant(size)
    cut = {}
    for name, value in features.items():
        if name != "@own":
            cut[name] = value[start : start + count]
            cut[name].set_shape([size, *value.shape[1:]])
    return cut


def group_of(order: Order, epoch: int, record: int) -> tuple[list[int], list[int], int]:
    """The records of the group that a record is in first, their cycles through the data, and its place among them.

    A record that the epoch leaves out is alone.
    """
    slots = order.every_slot()
    records, cycle, _ = order.found(epoch, slots)
    found = tf.where(records == record)[:, 0].numpy()
    if not len(found):
        return [record], [epoch], 0
    own = int(slots[int(found[0])])
    group = slots // GROUP == own // GROUP  # they stand one behind the other
    members, cycles = (tf.boolean_mask(part, group).numpy().tolist() for part in (records, cycle))
    return members, cycles, own % GROUP


def partners(rank: tf.Tensor, member: tf.Tensor) -> tf.Tensor:
    """The row of each example's partner: the next of its group in the order of the ranks, the last one's the first.

    Args:
        rank: float64 `(n,)` in [0, 1); the rows are whole groups, but for the last.
        member: bool `(n,)`: whether the row has a place in the epoch's order. In a group those come first.

    Returns:
        int32 `(n,)`; its own row for one that is no member, or is alone.
    """
    n = tf.shape(rank)[0]
    missing = -n % GROUP
    keys = tf.reshape(tf.pad(tf.where(member, rank, 2.0), [[0, missing]], constant_values=2.0), [-1, GROUP])
    members = tf.reduce_sum(tf.cast(tf.reshape(tf.pad(member, [[0, missing]]), [-1, GROUP]), tf.int32), 1, keepdims=True)
    ranked = tf.argsort(keys, axis=1, stable=True)
    place = tf.range(GROUP)
    following = tf.where(place + 1 < members, place + 1, tf.where(place < members, 0, place))
    following = tf.gather(ranked, following, batch_dims=1)
    partner = tf.gather(following, tf.argsort(ranked, axis=1), batch_dims=1)
    first = tf.range(tf.shape(keys)[0])[:, None] * GROUP
    partner = tf.reshape(partner + first, [-1])[:n]
    partner.set_shape(rank.shape)
    return partner


def partners_of(partner: tf.Tensor, others: int) -> tf.Tensor:
    """Returns the rows of everyone's partners, int32 `(n, others)`, from that of the first one: the next is the partner of a partner."""
    found = [partner]
    for _ in range(others - 1):
        found.append(tf.gather(partner, found[-1]))
    return tf.stack(found, 1)


def _partners(step: MixingTransform, u: tf.Tensor, features: Features) -> tf.Tensor:
    """The rows of everyone's partners, int32 `(n, others)`.

    `@member` says which rows have a place in the epoch's order: all of them where it is missing.
    """
    rank = step.rank(u)
    return partners_of(partners(rank, features.get("@member", tf.ones_like(rank, tf.bool))), step.others)


def mix_params(stage: Mix, features: Features) -> Params:
    """The partners, and what the draws decide: for an image what the step's `choose` says, for a label the shares."""
    step = step_of(stage.ref, features["@draws"])
    value, u = features[stage.feature], own_draws(stage.ref, features["@draws"])
    partner = _partners(step, u, features)
    height, width = (d if d is not None else tf.shape(value)[a] for a, d in enumerate(stage.canvas, 1))
    chosen = step.choose(u, height, width)
    return partner, step.shares(chosen, height, width) if stage.label else chosen


def near_partners(params: Params, rows: tf.Tensor) -> Params:
    """Returns the parameters of a mixing step with how far each partner's row is from one's own."""
    partner, how = params
    return partner - rows[:, None], how


def partners_at(params: Params, rows: tf.Tensor) -> Params:
    """Returns the parameters with the partners' rows, from how far they are."""
    distance, how = params
    return distance + rows[:, None], how


def mix(stage: Mix, value: tf.Tensor, params: Params) -> tf.Tensor:
    """The mixed feature: a pure function."""
    partner, how = params
    others = tf.gather(value, partner)
    if stage.label:
        return mix_labels(value, others, how)
    pair = (tf.cast(value, tf.float64), tf.cast(others, tf.float64)) if stage.exact else (value, others)
    mixed: tf.Tensor = stage.ref.step.mix(*pair, how)
    return tf.cast(as_float32(mixed), value.dtype) if stage.exact and mixed.dtype == tf.float64 else mixed


def pasted_pixels(stage: Paste | PasteItems, features: Features) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns everyone's partner, int32 `(n,)`, the partners' masks, and which pixels of them are pasted: `(n, height, width, 1)` each."""
    step, u = step_of(stage.ref.of(PastingTransform), features["@draws"]), own_draws(stage.ref, features["@draws"])
    partner = _partners(step, u, features)[:, 0]
    theirs = tf.gather(features[stage.mask], partner)
    return partner, theirs, step.pasted(theirs, u, stage.ignore)


def paste(stage: Paste, features: Features) -> None:
    """Pastes what the mask of each one's partner shows into a feature, in place, or weighs a label by how much that is."""
    partner, theirs, taken = pasted_pixels(stage, features)
    value = features[stage.feature]
    others = tf.gather(value, partner)
    if not stage.label:
        features[stage.feature] = tf.where(taken, theirs if stage.feature == stage.mask else others, value)
        return
    pixels = tf.reshape(taken, [tf.shape(taken)[0], -1])
    count, all_ = tf.math.count_nonzero(pixels, 1), tf.cast(tf.shape(pixels)[1], tf.float64)
    pasted = tf.cast(tf.cast(count, tf.float64) / all_, tf.float32)
    features[stage.feature] = mix_labels(value, others[:, None], tf.stack([1.0 - pasted, pasted], 1))
