"""Groups of examples that are combined: the partners of each example, and the extra examples that a host needs to complete its groups.

A group is `GROUP` consecutive positions of an epoch's order. If a host's block of a batch begins or ends inside one, the block is widened
to whole groups; after combining, the examples of other hosts are dropped.
"""

from __future__ import annotations

import tensorflow as tf

from pipegen.backend.features import Features, Params
from pipegen.backend.index.draws import own_draws, step_of
from pipegen.backend.index.order import START, From, Order
from pipegen.ops.families.combining import GROUP, Combine, CombiningTransform, combine_labels
from pipegen.ops.families.item_stages import Paste, PasteItems, PastingTransform
from pipegen.ops.lowering.linear import as_float32


def widened(order: Order, step: tf.Tensor, rows: int, since: From = START, epoch: tf.Tensor | int = 0) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the slots of a block of `rows`, widened to whole groups, and a mask of the host's own: int64 and bool `(..., rows)`.

    Slots past the end of the epoch stand for arbitrary examples that are dropped. `step` is int64 `(...)`.
    """
    low, high = order.block(step, since, epoch)
    begin = order.first_slot(step, epoch)
    first, last = (begin + low)[..., None], (begin + high)[..., None]
    whole = (first + since.origin) // GROUP * GROUP - since.origin  # groups are counted from the start of the epoch
    slot = whole + tf.range(rows, dtype=tf.int64)
    return slot, tf.logical_and(slot >= first, slot < last)


def own_rows(features: Features, size: int | None) -> Features:
    """Drops the examples of other hosts from a widened batch; `size` is the number of own ones if it is the same for each batch."""
    own = features["@own"]
    start = tf.argmax(own, output_type=tf.int32)
    count = tf.reduce_sum(tf.cast(own, tf.int32)) if size is None else tf.constant(size)
    cut = {}
    for name, value in features.items():
        if name != "@own":
            cut[name] = value[start : start + count]
            cut[name].set_shape([size, *value.shape[1:]])
    return cut


def group_of(order: Order, epoch: int, record: int) -> tuple[list[int], list[int], int, int]:
    """Returns the records of the group of a record's first occurrence, their cycles through the data, its place among them, and the
    number of the group.

    A record that is not in the epoch is alone.
    """
    slots = order.every_slot()
    records, cycle, _ = order.found(epoch, slots)
    found = tf.where(records == record)[:, 0].numpy()
    if not len(found):
        return [record], [epoch], 0, 0
    own = int(slots[int(found[0])])
    number = int(order.group(slots[int(found[0])]))
    members, cycles = (tf.boolean_mask(part, order.group(slots) == number).numpy().tolist() for part in (records, cycle))
    return members, cycles, own % GROUP, number


def partners(rank: tf.Tensor, member: tf.Tensor) -> tf.Tensor:
    """Returns the row of each example's partner: the next of its group by rank, cyclically.

    Args:
        rank: float64 `(n,)` in [0, 1); the rows are whole groups, except for the last one.
        member: bool `(n,)`: false for padding, which comes last in a group.

    Returns:
        int32 `(n,)`; its own row for padding and for an example alone in its group.
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
    """Returns the rows of `others` partners of each example, int32 `(n, others)`: each is the partner of the one before."""
    found = [partner]
    for _ in range(others - 1):
        found.append(tf.gather(partner, found[-1]))
    return tf.stack(found, 1)


def partners_by(step: CombiningTransform, u: tf.Tensor, features: Features) -> tf.Tensor:
    """Returns the rows of all partners, int32 `(n, others)`; without `@member`, no row is padding."""
    rank = step.rank(u)
    return partners_of(partners(rank, features.get("@member", tf.ones_like(rank, tf.bool))), step.others)


def combining_params(stage: Combine, features: Features) -> Params:
    """Returns the partners and, for an image, the step's choices, or for a label, the shares."""
    step = step_of(stage.ref, features["@draws"])
    value, u = features[stage.feature], own_draws(stage.ref, features["@draws"])
    partner = partners_by(step, u, features)
    height, width = (d if d is not None else tf.shape(value)[a] for a, d in enumerate(stage.canvas, 1))
    chosen = step.choose(u, height, width)
    return partner, step.shares(chosen, height, width) if stage.label else chosen


def combine(stage: Combine, value: tf.Tensor, params: Params) -> tf.Tensor:
    """Combines a feature: a pure function."""
    partner, how = params
    others = tf.gather(value, partner)
    if stage.label:
        return combine_labels(value, others, how)
    pair = (tf.cast(value, tf.float64), tf.cast(others, tf.float64)) if stage.exact else (value, others)
    combined: tf.Tensor = stage.ref.step.combine(*pair, how)
    return tf.cast(as_float32(combined), value.dtype) if stage.exact and combined.dtype == tf.float64 else combined


def pasted_pixels(stage: Paste | PasteItems, features: Features) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the partners, int32 `(n,)`, their masks, and the pixels of them to paste, bool: `(n, height, width, 1)` each."""
    step, u = step_of(stage.ref.of(PastingTransform), features["@draws"]), own_draws(stage.ref, features["@draws"])
    partner = partners_by(step, u, features)[:, 0]
    theirs = tf.gather(features[stage.mask], partner)
    return partner, theirs, step.pasted(theirs, u, stage.ignore)


def paste(stage: Paste, features: Features) -> None:
    """Pastes the masked pixels of each example's partner into a feature, or weighs a label by their share, in place."""
    partner, theirs, taken = pasted_pixels(stage, features)
    value = features[stage.feature]
    others = tf.gather(value, partner)
    if not stage.label:
        features[stage.feature] = tf.where(taken, theirs if stage.feature == stage.mask else others, value)
        return
    pixels = tf.reshape(taken, [tf.shape(taken)[0], -1])
    count, all_ = tf.math.count_nonzero(pixels, 1), tf.cast(tf.shape(pixels)[1], tf.float64)
    pasted = tf.cast(tf.cast(count, tf.float64) / all_, tf.float32)
    features[stage.feature] = combine_labels(value, others[:, None], tf.stack([1.0 - pasted, pasted], 1))
