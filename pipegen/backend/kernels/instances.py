"""Numbers the pixels of instance masks anew, as the items that they are of are dropped, cut and joined with those of other examples."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.backend.index.mixing import pasted_pixels
from pipegen.backend.kernels.moving import mixed_with, settle
from pipegen.ops.families.items import NUMBERS
from pipegen.ops.kinds.registry import kind_named
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


def paste_instances(stage: s.PasteInstances, features: Features) -> None:
    """Pastes what the mask of each one's partner shows into a mask of instances, in place: int32, the partner's numbers behind the own."""
    partner, _, taken = pasted_pixels(stage, features)
    mask = tf.cast(features[stage.feature], tf.int32)
    others = tf.gather(mask, partner)
    alone = (partner == tf.range(tf.size(partner)))[:, None, None, None]
    numbered = (others != 0) & (others != stage.ignore)
    features[stage.feature] = tf.where(taken & ~alone, tf.where(numbered, others + NUMBERS, others), mask)


def paste_items(stage: s.PasteItems, features: Features) -> None:
    """Takes the items of each one's partner that are pasted beside its own, in place, and of the own ones what is still seen.

    Numbers are places by now. An edge of an item stays where it is as long as its outermost pixels there are seen, else it is that of those
    that are left.
    """
    partner, theirs, taken = pasted_pixels(stage, features)
    valid, rows = valid_name(stage.feature), tf.range(tf.size(partner))
    taken &= (partner != rows)[:, None, None, None]
    there, shown = features[valid], tf.squeeze(taken, -1)
    most = tf.shape(there)[1]
    kind = kind_named(stage.kind)

    seen = _Pixels(features[stage.mask], most, stage.ignore)
    covered = seen.where(shown)
    first, last, moved, share = _edges(seen, covered)
    own, kept = kind.covered(features[stage.feature], tf.concat([first, last + 1.0], -1), moved, share, stage.details)
    items = {name: features[name] for name in (stage.feature, *stage.riders)}
    mine = items | {stage.feature: own}
    for name, of, details in stage.moved:
        if name in mine:
            mine[name] = kind_named(of).beneath(mine[name], partial(_hidden, shown), details)[0]
    other = {name: tf.gather(value, partner) for name, value in items.items()}
    pasted = _Pixels(tf.where(taken, theirs, 0), most, stage.ignore).counts() > 0
    if stage.number in other:
        other[stage.number] += float(NUMBERS)
    both = tf.concat([there & (kept | (share == 1.0)), tf.gather(there, partner) & pasted], 1)
    features.update({name: tf.concat([mine[name], other[name]], 1) for name in items}, **{valid: both})
    settle(stage, features, features[stage.feature], both)


def paste_points(stage: s.PastePoints, features: Features) -> None:
    """Takes away, in place, the points of a batch that what is pasted hides, and joins those of each one's partner that lie on it."""
    partner, _, taken = pasted_pixels(stage, features)
    shown = tf.squeeze(taken, -1) & (partner != tf.range(tf.size(partner)))[:, None, None]
    valid, kind = valid_name(stage.feature), kind_named(stage.kind)
    own, kept = kind.beneath(features[stage.feature], partial(_hidden, shown), stage.details)
    mine, there = {name: features[name] for name in stage.riders} | {stage.feature: own}, features[valid] & kept
    if stage.joins:
        other = {name: tf.gather(features[name], partner) for name in mine}
        other[stage.feature], kept = kind.beneath(other[stage.feature], lambda at: ~_hidden(shown, at), stage.details)
        there = tf.concat([there, tf.gather(features[valid], partner) & kept], 1)
        mine = {name: tf.concat([value, other[name]], 1) for name, value in mine.items()}
    features.update(mine, **{valid: there})
    settle(stage, features, mine[stage.feature], there)


def _hidden(shown: tf.Tensor, points: tf.Tensor) -> tf.Tensor:
    """Looks whether something is pasted where points are: bool `(n, ...)`.

    Args:
        shown: Which pixels are pasted, bool `(n, height, width)`.
        points: x and y, float64 `(n, ..., 2)`, pixel centres at whole numbers.
    """
    size = tf.shape(shown)
    x, y = tf.unstack(tf.cast(tf.floor(tf.clip_by_value(points, -1e6, 1e6) + 0.5), tf.int32), axis=-1)
    inside = (x >= 0) & (x < size[2]) & (y >= 0) & (y < size[1])
    at = tf.where(inside, y * size[2] + x, 0)
    found = tf.gather(tf.reshape(shown, [size[0], -1]), tf.reshape(at, [size[0], -1]), batch_dims=1)
    return tf.reshape(found, tf.shape(x)) & inside


class _Pixels:
    """The pixels of masks `(n, height, width, 1)` that show an item, whose number is not above `most`."""

    def __init__(self, mask: tf.Tensor, most: tf.Tensor, ignore: int) -> None:
        numbers = tf.cast(tf.squeeze(mask, -1), tf.int32)
        shape = tf.shape(numbers)
        is_item = (numbers > 0) & (numbers <= most)
        if ignore:
            is_item &= numbers != ignore
        self.shape, self.most = shape, most
        self._places = tf.where(is_item)
        self._items = tf.cast(self._places[:, 0], tf.int32) * most + tf.gather_nd(numbers, self._places) - 1

    def where(self, shown: tf.Tensor) -> _Pixels:
        """Returns those of them that are shown, bool `(n, height, width)`."""
        found = object.__new__(_Pixels)
        chosen = tf.gather_nd(shown, self._places)
        found.shape, found.most = self.shape, self.most
        found._places, found._items = tf.boolean_mask(self._places, chosen), tf.boolean_mask(self._items, chosen)
        return found

    def along(self, axis: int) -> tf.Tensor:
        """Counts the pixels of each item in each row (1) or column (2): int32 `(n, most, side)`."""
        side = self.shape[axis]
        at = self._items * side + tf.cast(self._places[:, axis], tf.int32)
        total = self.shape[0] * self.most * side
        return tf.reshape(tf.math.bincount(at, minlength=total, maxlength=total), [self.shape[0], self.most, side])

    def counts(self) -> tf.Tensor:
        """Counts the pixels of each item: int32 `(n, most)`."""
        total = self.shape[0] * self.most
        return tf.reshape(tf.math.bincount(self._items, minlength=total, maxlength=total), [self.shape[0], self.most])


def _edges(seen: _Pixels, covered: _Pixels) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns x and y of the first and of the last pixel that is left of each item, float64 `(n, most, 2)` each; which edges, left, top,
    right and bottom, are others now, bool `(n, most, 4)`; and the share of its pixels that is left, float64 `(n, most)`: 1 of an item that
    shows none."""
    firsts, lasts, moved_first, moved_last = [], [], [], []
    for axis in (2, 1):
        before = seen.along(axis)
        after = before - covered.along(axis)
        ends = [_ends(count > 0) for count in (before, after)]
        firsts.append(ends[1][0])
        lasts.append(ends[1][1])
        moved_first.append(ends[0][0] != ends[1][0])
        moved_last.append(ends[0][1] != ends[1][1])
    whole, gone = (tf.cast(pixels.counts(), tf.float64) for pixels in (seen, covered))
    share = tf.where(whole > 0, (whole - gone) / tf.maximum(whole, 1.0), 1.0)
    first, last = (tf.cast(tf.stack(ends, -1), tf.float64) for ends in (firsts, lasts))
    return first, last, tf.stack([*moved_first, *moved_last], -1), share


def _ends(there: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the first and the last place of each row that is true, bool `(..., side)`."""
    ones = tf.cast(there, tf.uint8)
    side = tf.shape(there, tf.int64)[-1]
    return tf.argmax(ones, -1), side - 1 - tf.argmax(tf.reverse(ones, [-1]), -1)
