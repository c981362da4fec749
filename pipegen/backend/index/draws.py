"""The random numbers of an example, a function of only (seed, epoch, example id, occurrence, step id); with `draw: group`, of its group."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, reduce
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import tensorflow as tf

from pipegen.backend.process.traced_functions import compiled, vectors
from pipegen.ops.lowering.random import Word, threefry2x32
from pipegen.ops.transform import Policy, Transform
from pipegen.spec.step_list import step_hash

if TYPE_CHECKING:
    from pipegen.backend.reading.split_records import RecordTensors
    from pipegen.ops.stage import StepRef
    from pipegen.plan.nodes import Index


def uniform(key: tuple[Word, Word], counter: tuple[Word, Word]) -> tf.Tensor:
    """Draws float64 in [0, 1) with 53 random bits, one for each pair of key and counter words."""
    x0, x1 = threefry2x32(key, counter)
    high = tf.cast(tf.bitwise.right_shift(x0, tf.constant(5, tf.uint32)), tf.float64)
    low = tf.cast(tf.bitwise.right_shift(x1, tf.constant(6, tf.uint32)), tf.float64)
    return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0)


STANDS_IN = 1 << 31  # offset of the occurrence of an example that replaces a damaged one, in epochs with copies: more than any example has


_OF_GROUPS = 0x67726F75  # in place of an occurrence, for the keys of groups: more than any example has, and below `STANDS_IN`


class Draws:
    """The draws of a plan's random steps.

    The key of an example is Threefry of (seed; epoch, occurrence) applied to its id, that of a group Threefry of (seed; epoch of the
    order, a constant) applied to its number in the epoch. The counter is (hash of the step id, number of the draw), so that a step added
    elsewhere changes no other step's numbers. Each part of a mix has its own step ids, and its own places in the vector.
    """

    def __init__(self, seed: int, index: Index) -> None:
        self._seed = [seed & 0xFFFFFFFF, seed >> 32]
        self._scheduled, self.num_draws = index.scheduled, index.num_draws
        each = [part.draws for part in index.parts] or [index.draws]
        self._tables: list[np.ndarray] = [np.zeros((len(each), self.num_draws), dtype) for dtype in (np.uint32, np.uint32, bool)]
        steps, numbers, self._shared = self._tables
        for row, refs in enumerate(each):
            for ref in refs:
                own = row, slice(ref.start, ref.start + ref.num_draws)
                steps[own], numbers[own] = step_hash(ref.id), np.arange(ref.num_draws)
                self._shared[own] = ref.step.draw == "group"

    @property
    def shares(self) -> bool:
        """Whether the examples of a group share some of the draws."""
        return bool(self._shared.any())

    def __call__(
        self,
        records: RecordTensors,
        record: tf.Tensor,
        epoch: tf.Tensor,
        occurrence: tf.Tensor | None = None,
        *,
        calendar: tf.Tensor | None = None,
        group: tf.Tensor | None = None,
        jit: bool = False,
    ) -> tf.Tensor:
        """Draws the numbers of each record.

        Args:
            records: The split.
            record: int64 `(n,)`.
            epoch: int64 `(n,)`: the cycle through the data.
            occurrence: int64 `(n,)`: earlier occurrences of each example in this epoch; `None` for none.
            calendar: int64 `(n,)`: the epoch of the order, for schedules and groups, if that is not the cycle.
            group: int64 `(n,)`: the number of each example's group in the epoch; `None` for the first one.
            jit: Whether XLA compiles the cipher: the same bits, but one node in the graph, which TensorFlow does not inline into
                hundreds for every new iterator. It pays for draws of a whole batch.

        Returns:
            float64 `(n, num_draws)`, uniform in [0, 1); followed by the epoch if a step has a schedule.
        """
        if not self.num_draws:
            # NOTE: one unused column, since `unbatch` crashes the process on a tensor without elements.
            return tf.zeros([tf.shape(record)[0], 1], tf.float64)
        stood = tf.zeros_like(epoch, tf.uint32) if occurrence is None else tf.cast(occurrence, tf.uint32)
        # Shared by all records, `(num_draws,)` each; or those of each record's part, `(n, num_draws)`.
        part = records.part_of(record) if len(self._shared) > 1 else None  # type: ignore[attr-defined]  # `MixedTensors`
        step, number, shared = (tf.constant(table[0]) if part is None else tf.gather(tf.constant(table), part) for table in self._tables)
        seed, calendar = tf.constant(self._seed, tf.uint32), epoch if calendar is None else calendar
        drawn = _cipher(jit, step.shape.rank)(seed, step, number, epoch, *records.words(record), stood)
        if self.shares:
            words = tf.unstack(tf.bitcast(tf.zeros_like(epoch) if group is None else group, tf.uint32), axis=-1)
            stood = tf.fill(tf.shape(stood), tf.constant(_OF_GROUPS, tf.uint32))
            of_groups = _cipher(jit, step.shape.rank)(seed, step, number, calendar, *words, stood)
            drawn = tf.where(shared, of_groups, drawn)
        drawn.set_shape([None, self.num_draws])
        if not self._scheduled:
            return drawn
        return tf.concat([drawn, tf.cast(calendar, tf.float64)[:, None]], -1)


@cache
def _cipher(jit: bool, rank: int) -> Callable[..., tf.Tensor]:
    counter = tf.TensorSpec([None] * rank, tf.uint32)
    signature = [*vectors(tf.uint32), counter, counter, *vectors(tf.int64, tf.uint32, tf.uint32, tf.uint32)]
    return compiled(_numbers, signature, jit=jit)


def _numbers(
    seed: tf.Tensor, step: tf.Tensor, number: tf.Tensor, epoch: tf.Tensor, id_low: tf.Tensor, id_high: tf.Tensor, occurrence: tf.Tensor
) -> tf.Tensor:
    """Computes the random numbers of examples `(n,)` for the counters of draws: float64 `(n, draws)`."""
    visit = threefry2x32((seed[0], seed[1]), (tf.cast(epoch, tf.uint32), occurrence))
    key = threefry2x32(visit, (id_low, id_high))
    return uniform((key[0][:, None], key[1][:, None]), (step, number))


F = TypeVar("F", bound="Transform")


def own_draws(ref: StepRef, draws: tf.Tensor) -> tf.Tensor:
    """Slices the numbers of one step, without its gate: `(..., num_draws)`."""
    return draws[..., ref.start : ref.start + ref.step.num_draws()]


def step_of(ref: StepRef[F], draws: tf.Tensor) -> F:
    """Returns a step with its schedules evaluated at the epoch, which is the last number of every vector of draws if there are any.

    A batch is of one epoch, so the first example's number counts.
    """
    return ref.step.at(tf.reshape(draws[..., -1], [-1])[0]) if ref.step.schedules() else ref.step


def acts(ref: StepRef, draws: tf.Tensor) -> tf.Tensor:
    """Returns true for examples that a conditional step acts on: bool `(...)`."""
    reasons = []
    if ref.gated:
        share: tf.Tensor | float = getattr(step_of(ref, draws), "probability", 1.0)
        reasons.append(draws[..., ref.start + ref.step.num_draws()] < share)
    if ref.choice is not None:
        policy = ref.choice.policy
        if policy.conditional:
            reasons.append(acts(policy, draws))
        if ref.choice.number is not None:
            reasons.append(step_of(policy.of(Policy), draws).chosen(own_draws(policy, draws), ref.choice.number))
    return reduce(tf.logical_and, reasons)


_ORDER_DOMAIN = 0x6F726472  # constant that separates the keys of the order from those of the draws


def permuted(position: tf.Tensor, seed: int, cycle: tf.Tensor, window: int, last: tf.Tensor) -> tf.Tensor:
    """Permutes positions within 0..last, in an order for each `cycle` and `window`: int64 `(n,)`, as are all but `window`."""
    return permute(position, keys(seed)(cycle, tf.zeros_like(cycle) + window), last)


def keys(seed: int) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Makes a function from cycles and windows, int64 `(n,)` each, to keys of orders, uint32 `(n, 3)`."""
    return partial(_key_function(), tf.constant([seed & 0xFFFFFFFF, seed >> 32], tf.uint32))


def permute(position: tf.Tensor, key: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
    """Permutes positions within 0..last by a key; 8 rounds, since 4 are visibly non-random on large sets."""
    return tf.raw_ops.RandomIndexShuffle(index=position, seed=key, max_index=last, rounds=8)


@cache
def _key_function() -> Callable[..., tf.Tensor]:
    return compiled(_order_key, vectors(tf.uint32, tf.int64, tf.int64), jit=False)


def _order_key(seed: tf.Tensor, cycle: tf.Tensor, window: tf.Tensor) -> tf.Tensor:
    """Computes keys for RandomIndexShuffle, uint32 `(n, 3)`, from the two words of the seed.

    On sets up to 65,536 that op reads only the low 8 bits of each word, so hashed words alone would sometimes repeat an order within a
    thousand epochs. The low bytes are therefore a bijection of the cycle: 2^24 consecutive cycles never share a key.
    """
    c = tf.cast(cycle, tf.uint32)
    w = tf.cast(window, tf.uint32)
    a0, a1 = threefry2x32((seed[0], seed[1]), (tf.constant(_ORDER_DOMAIN, tf.uint32), w))
    b0, b1 = threefry2x32((a0, a1), (c, tf.zeros_like(c)))
    b2, _ = threefry2x32((a0, a1), (c, tf.ones_like(c)))
    distinct = _mix24(c + a0, a1)
    keep = tf.constant(0xFFFFFF00, tf.uint32)
    byte = tf.constant(0xFF, tf.uint32)
    words = []
    for bits, shift in ((b0, 0), (b1, 8), (b2, 16)):
        part = tf.bitwise.bitwise_and(tf.bitwise.right_shift(distinct, tf.constant(shift, tf.uint32)), byte)
        words.append(tf.bitwise.bitwise_or(tf.bitwise.bitwise_and(bits, keep), part))
    return tf.stack(words, -1)


def _mix24(x: tf.Tensor, salt: tf.Tensor) -> tf.Tensor:
    """Permutes the low 24 bits, by odd multiplications and shifts by half the width."""
    mask = tf.constant(0xFFFFFF, tf.uint32)
    x = tf.bitwise.bitwise_and(x, mask)
    for factor in (0x9E3779, 0x85EBCB):
        x = tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, tf.constant(12, tf.uint32)))
        x = tf.bitwise.bitwise_and(x * tf.constant(factor | 1, tf.uint32) + salt, mask)
    return tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, tf.constant(12, tf.uint32)))
