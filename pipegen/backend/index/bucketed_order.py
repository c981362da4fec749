"""The order of a split with buckets: examples are permuted within their bucket, and then the batches of all buckets.

A cycle through the data has a fixed number of batches of each bucket. In the space of slots each bucket has its own range, in which its
examples stand in the order of the cycle. A batch is a part of that range, so combined groups never span two buckets. The batch of a step
is found by a permutation, so any step can be the first, and the slot of an example does not depend on the batch size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from pipegen.backend.features import last_begun
from pipegen.backend.index.draws import keys, permute, permuted
from pipegen.backend.index.order import STAND_INS, START, Found, From, Order
from pipegen.frozen import dataclass
from pipegen.ops.families.combining import GROUP

if TYPE_CHECKING:
    from pipegen.backend.reading.manifest_columns import Column

_BATCHES = -4  # in place of a window's number in the keys of the order of batches


@dataclass(frozen=True, eq=False)
class BucketedOrder(Order):
    """The order of one split on one host; `num_examples` counts all buckets, and `slots` a cycle. Its epochs end with the batch size they
    were begun with, so they have no origin."""

    members: Column | None = None  # from places to records, bucket by bucket, in stored order

    @property
    def slots(self) -> int:
        return self.bucket_starts[-1]

    def _constant(self, numbers: tuple[int, ...]) -> tf.Tensor:
        return tf.constant(numbers, tf.int64)

    def _cycle(self, epoch: tf.Tensor | int) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the cycle that an epoch begins in, and the batch in it: int64 scalars."""
        epoch = tf.convert_to_tensor(epoch, tf.int64)
        if self.epoch_steps is None:
            return epoch, tf.zeros_like(epoch)
        whole = max(sum(self.bucket_steps), 1)
        return epoch * self.epoch_steps // whole, epoch * self.epoch_steps % whole

    def _batch_of(self, step: tf.Tensor, epoch: tf.Tensor | int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Finds the batch of a step: its cycle, counted from the first one of the epoch, its bucket, its number there; like `step`."""
        total = max(sum(self.bucket_steps), 1)
        begin, offset = self._cycle(epoch)
        later, number = (offset + step) // total, (offset + step) % total
        if self.kind != "stored" and total > 1:
            flat, last = tf.reshape(number, [-1]), tf.constant(total - 1, tf.int64)
            number = tf.reshape(permuted(flat, self.seed, tf.reshape(begin + later, [-1]), _BATCHES, last), tf.shape(number))
        starts = self._constant((0, *np.cumsum(self.bucket_steps).tolist()))
        bucket = last_begun(starts, number)
        return later, bucket, number - tf.gather(starts, bucket)

    def first_slot(self, step: tf.Tensor, epoch: tf.Tensor | int = 0) -> tf.Tensor:
        later, bucket, number = self._batch_of(step, epoch)
        return later * self.slots + tf.gather(self._constant(self.bucket_starts), bucket) + number * self.batch

    def steps_of(self, since: From = START) -> tf.Tensor:
        return tf.constant(self.steps, tf.int64)

    def _rows(self, step: tf.Tensor, since: From, epoch: tf.Tensor | int) -> tf.Tensor:
        _, bucket, number = self._batch_of(step, epoch)
        here = tf.zeros_like(number) + self.batch
        if self.ends_short:
            here = tf.maximum(tf.minimum(here, tf.gather(self._constant(self.buckets), bucket) - number * self.batch), 1)
        return here

    def _place(self, slot: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Finds the place of a slot: its cycle, counted from the first one of the epoch, its bucket, its place there; like `slot`."""
        later, within = slot // self.slots, slot % self.slots
        starts = self._constant(self.bucket_starts)
        bucket = tf.minimum(last_begun(starts, within), len(self.buckets) - 1)
        return later, bucket, within - tf.gather(starts, bucket)

    def group(self, slot: tf.Tensor, since: From = START) -> tf.Tensor:
        """Returns the number of each slot's group in its bucket, with the bucket and the cycle, as slots depend on the batch size."""
        later, bucket, place = self._place(slot)
        return (later * len(self.buckets) + bucket) * (1 << 40) + place // GROUP

    def bucket_of(self, slot: tf.Tensor) -> tf.Tensor:
        """Returns the bucket of each slot: int32, like `slot`."""
        return tf.cast(self._place(slot)[1], tf.int32)

    def member(self, slot: tf.Tensor, since: From = START) -> tf.Tensor:
        _, bucket, place = self._place(slot)
        return place < tf.gather(self._constant(self.buckets), bucket)

    def every_slot(self) -> tf.Tensor:
        each = zip(self.bucket_starts, self.buckets, strict=False)
        return tf.concat([tf.range(start, start + count, dtype=tf.int64) for start, count in each], 0)

    def delivered(self, epoch: int) -> tf.Tensor:
        steps = tf.range(self.steps, dtype=tf.int64)
        begin, here = self.first_slot(steps, epoch), self._rows(steps, START, epoch)
        slots = tf.ragged.range(begin, begin + here).flat_values
        return tf.boolean_mask(slots, self.member(slots))

    def step_at(self, epoch: int, slots: tf.Tensor) -> tf.Tensor:
        begin = self.first_slot(tf.range(self.steps, dtype=tf.int64), epoch)
        rising = tf.argsort(begin)
        return tf.cast(tf.gather(rising, last_begun(tf.gather(begin, rising), slots)), tf.int64)

    def at(self, epoch: tf.Tensor, slot: tf.Tensor, since: From = START) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the cycle, the place among all examples, bucket by bucket, and the weight of each slot; see `Order.at`."""
        later, bucket, place = self._place(slot)
        count = tf.gather(self._constant(self.buckets), bucket)
        first = tf.gather(self._constant((0, *np.cumsum(self.buckets).tolist())), bucket)
        weight = tf.cast(place < count, tf.float32)
        return self._cycle(epoch)[0] + later, first + place % tf.maximum(count, 1), weight

    def alternates(self, epoch: tf.Tensor, slot: tf.Tensor, count: int, since: From = START) -> Found:
        """Finds examples that may replace a damaged one: the next ones in its group of `STAND_INS` of its bucket; see `Order`."""
        _, bucket, place = self._place(slot)
        total = tf.maximum(tf.gather(self._constant(self.buckets), bucket), 1)
        own, size = place % total, tf.minimum(total, STAND_INS)
        first = tf.minimum(own // STAND_INS * STAND_INS, total - size)
        others = first + (own - first + 1 + tf.range(count, dtype=tf.int64)) % size
        return self.found(epoch, slot - place + others)

    def records(self, cycle: tf.Tensor, position: tf.Tensor, *, laid: tuple[tf.Tensor, ...] = ()) -> tf.Tensor:
        """Returns the record at each place of a cycle: int64 `(n,)` each."""
        assert self.members is not None  # noqa: S101 - set for every such order
        if self.kind != "stored":
            firsts = self._constant((0, *np.cumsum(self.buckets).tolist()))
            bucket = last_begun(firsts, position)
            first, last = tf.gather(firsts, bucket), tf.gather(self._constant(self.buckets), bucket) - 1
            position = first + permute(position - first, keys(self.seed)(cycle, bucket), last)
        return tf.cast(self.members(position), tf.int64)

    def laid(self, epoch: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Empty: the steps of an epoch share only a key for each bucket, which takes no time."""
        return ()
