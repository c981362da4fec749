"""The order of the training split of a mix: the part and the example at each position of an epoch.

An epoch has an exact number of examples of each part (`data/rounding.py`), spread evenly over it. Positions are permuted within windows
of `WINDOW`, so that parts do not align with batches or with the blocks of hosts. The examples of a part, counted over all epochs, run
through an endless sequence of permutations of the part, its passes. All of it is a function of the epoch and the position, in time linear
in the number of parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from pipegen.backend.index.draws import keys, permute
from pipegen.backend.index.order import START, Found, From, Order
from pipegen.data.rounding import Mixture
from pipegen.frozen import dataclass

WINDOW = 64  # positions of a window


class Counts:
    """`Mixture` in the graph: the counts of each part in each epoch."""

    def __init__(self, mixture: Mixture) -> None:
        self._mixture = mixture
        self._table = np.array(mixture.table, np.int64)
        self._period = np.array(mixture.period, np.int64)

    def before(self, epoch: tf.Tensor) -> tf.Tensor:
        """Counts the examples of each part before epochs: int64 `(..., parts)` from `(...)`; see `Mixture.before`."""
        made, last = self._mixture, len(self._table) - 1
        listed = tf.gather(tf.constant(self._table), tf.minimum(epoch, last))
        later = tf.maximum(epoch - last, 0)[..., None]
        if made.period:
            whole, left = later // (len(made.period) - 1), later[..., 0] % (len(made.period) - 1)
            return listed + whole * self._period[-1] + tf.gather(tf.constant(self._period), left)
        return listed + (_nested(later * made.examples, made.shares) if made.nested else self._rounded(later))

    def _rounded(self, later: tf.Tensor) -> tf.Tensor:
        """Rounds by largest remainder, for a number of settled epochs. Shares are split into whole and remainder to avoid overflow."""
        made, unit = self._mixture, self._mixture.unit
        owed = [divmod(made.examples * share, unit) for share in made.shares]
        whole, over = (tf.constant([one[i] for one in owed], tf.int64) for i in (0, 1))
        over = later * over + tf.where(later > 0, tf.constant(made.carried, tf.int64), 0)
        floor = later * whole + tf.math.floordiv(over, unit)
        left = later[..., 0] * made.examples - tf.reduce_sum(floor, -1)
        order = tf.argsort(-tf.math.floormod(over, unit), axis=-1, stable=True)
        place = tf.argsort(order, axis=-1, stable=True)
        return floor + tf.cast(tf.cast(place, tf.int64) < left[..., None], tf.int64)


def _nested(total: tf.Tensor, shares: Sequence[int]) -> tf.Tensor:
    """Divides totals in the proportion of shares, part by part: int64 `(..., parts)` from `(..., 1)`; see `data/rounding.py`."""
    found, left = [], sum(shares)
    for share in shares:
        # `total * share // left` without overflow: `left` is below 2^32.
        count = total // left * share + total % left * share // left if left else tf.zeros_like(total)
        found.append(count)
        total, left = total - count, left - share
    return tf.concat(found, -1)


@dataclass(frozen=True, eq=False)
class MixedOrder(Order):
    """The order of the training split of a mix on one host; `num_examples` counts an epoch.

    A position of a cycle, as returned by `at`, is a place in the permutation of a part, offset by the records of the parts before."""

    parts: tuple[Order, ...] = ()
    """The order of each part, with its own seed; for a sampled part, that of the examples of a pass. A part that samples from its easiest
    examples permutes these itself."""
    counts: Counts | None = None  # the examples of each part in each epoch
    begins: tuple[int, ...] = ()  # the first record of each part, with the end

    @property
    def firsts(self) -> tuple[int, ...]:
        """The first position of each part, with the end."""
        return tuple(np.cumsum([0, *(part.num_examples for part in self.parts)]).tolist())

    def at(self, epoch: tf.Tensor, slot: tf.Tensor, since: From = START) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the pass of its part, the position in it, both int64, and the weight, float32, of each slot; see `Order.at`."""
        slot = slot + since.origin
        part, place = self._places(epoch, slot % self.num_examples)
        cycle, position = self._passes(part, place)
        return cycle, position, tf.cast(slot < self.num_examples, tf.float32)

    def _places(self, epoch: tf.Tensor, position: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds the part at each position of an epoch, and counts earlier examples of it in all epochs: int64, like `position`."""
        assert self.counts is not None  # noqa: S101 - set for every mix
        epoch = tf.convert_to_tensor(epoch, tf.int64)
        before = self.counts.before(epoch)
        now = self.counts.before(epoch + 1) - before
        number = position // WINDOW
        first = number * WINDOW
        last = tf.minimum(first + WINDOW, tf.constant(self.num_examples, tf.int64)) - 1
        t = first + permute(position - first, keys(self.seed)(tf.zeros_like(position) + epoch, number), last - first)
        left = tf.zeros_like(t) + self.num_examples
        part, place, free = tf.zeros_like(t), tf.zeros_like(t), tf.ones_like(t, tf.bool)
        for i in range(len(self.parts)):
            count = now[..., i]
            whole = tf.maximum(left, 1)
            low, high = t * count // whole, (t + 1) * count // whole
            taken = tf.logical_and(free, high > low)
            part = tf.where(taken, tf.constant(i, tf.int64), part)
            place = tf.where(taken, before[..., i] + low, place)
            free = tf.logical_and(free, tf.logical_not(taken))
            t, left = t - low, left - count
        return part, place

    def _passes(self, part: tf.Tensor, place: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        firsts = tf.constant(self.firsts, tf.int64)
        first = tf.gather(firsts, part)
        size = tf.maximum(tf.gather(firsts, part + 1) - first, 1)
        cycle, position = place // size, place % size
        for i, own in enumerate(self.parts):
            if own.passes is not None:
                here = tf.equal(part, i)
                paced = own.passes(tf.where(here, place, 0))
                cycle, position = tf.where(here, paced[0], cycle), tf.where(here, paced[1], position)
        return cycle, first + position

    def alternates(self, epoch: tf.Tensor, slot: tf.Tensor, count: int, since: From = START) -> Found:
        """Finds examples that may replace a damaged one: the next ones of its part, in any batch."""
        part, place = self._places(epoch, ((slot + since.origin) % self.num_examples)[None])
        cycle, position = self._passes(tf.tile(part, [count]), place + 1 + tf.range(count, dtype=tf.int64))
        return self.visits(cycle, position)

    def visits(self, cycle: tf.Tensor, position: tf.Tensor, *, laid: tuple[tf.Tensor, ...] = ()) -> Found:
        """Finds the examples at positions of the passes of parts: int64 `(n,)` each; see `Order.visits`."""
        record, occurrence = position, tf.zeros_like(position)
        for first, begin, part in zip(self.firsts, self.begins, self.parts, strict=False):
            if not part.num_examples:
                continue
            here = tf.logical_and(position >= first, position < first + part.num_examples)
            own = part.visits(tf.where(here, cycle, 0), tf.where(here, position - first, 0))
            record = tf.where(here, begin + own.record, record)
            if own.occurrence is not None:
                occurrence = tf.where(here, own.occurrence, occurrence)
        return Found(record, cycle, occurrence if any(part.sampled is not None for part in self.parts) else None)

    def laid(self, epoch: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Empty: an epoch holds several passes."""
        return ()
