"""The order of a mix in the graph: exactly what `data/rounding.py` says, for every position, step and share."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, pairwise

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from mix_walk import interleave

from pipegen.backend.index.interleaving import WINDOW, Counts, MixedOrder
from pipegen.backend.index.order import Order
from pipegen.data.rounding import Mixture, mixture, part_seed

pytestmark = pytest.mark.tf

WEIGHTS = st.lists(
    st.lists(st.sampled_from([0.0, 0.001, 0.05, 0.2, 0.25, 0.3333, 0.8, 1.0, 3.0]), min_size=1, max_size=4), min_size=1, max_size=4
).filter(lambda parts: all(any(own[min(e, len(own) - 1)] for own in parts) for e in range(4)))


def mixed(made: Mixture, sizes: list[int], *, batch: int = 4, shard: tuple[int, int] = (0, 1), kind: str = "global") -> MixedOrder:
    """An order of parts of these sizes."""
    own = [Order(n, batch, "keep", shard, None, kind, 3, part_seed(7, f"part{i}")) for i, n in enumerate(sizes)]
    return MixedOrder(
        made.examples, batch, "keep", shard, None, kind, 0, 7, parts=tuple(own), counts=Counts(made), begins=(0, *accumulate(sizes))
    )


def numbers(tensor: tf.Tensor) -> list[int]:
    return [int(value) for value in np.ravel(tensor.numpy())]


@settings(max_examples=8)
@given(WEIGHTS, st.integers(1, 150), st.lists(st.integers(1, 40), min_size=4, max_size=4), st.integers(0, 9), st.integers(0, 3))
def test_an_epoch_is_what_the_counts_and_the_walk_say(
    weights: list[list[float]], examples: int, sizes: list[int], epoch: int, extra: int
) -> None:
    made = mixture(examples, weights)
    sizes = sizes[: len(weights)]
    order = mixed(made, sizes)
    epoch += extra * 1000
    cycle, position, _ = order.at(tf.constant(epoch, tf.int64), tf.range(examples, dtype=tf.int64))
    part = np.searchsorted(order.firsts, position.numpy(), side="right") - 1
    place = cycle.numpy() * np.take(sizes, part) + position.numpy() - np.take(order.firsts, part)
    wanted = []
    before, counts = made.before(epoch), made.counts(epoch)
    for t in range(examples):
        own, rank = interleave(t, counts)
        wanted.append((own, before[own] + rank))
    found = list(zip(part.tolist(), place.tolist(), strict=True))
    for first in range(0, examples, WINDOW):
        assert sorted(found[first : first + WINDOW]) == sorted(wanted[first : first + WINDOW])
    assert Counter(part.tolist()) == {i: c for i, c in enumerate(counts) if c}


@pytest.mark.parametrize("kind", ["global", "window", "stored"])
def test_each_pass_of_a_part_has_every_example_once(kind: str) -> None:
    made = mixture(30, [[0.7], [0.3]])
    order = mixed(made, [13, 5], kind=kind)
    seen: dict[int, list[tuple[int, int]]] = {0: [], 1: []}
    for epoch in range(7):
        records, cycles, _ = order.found(epoch, tf.range(30, dtype=tf.int64))
        for record, cycle in zip(numbers(records), numbers(cycles), strict=True):
            seen[int(record >= 13)].append((cycle, record))
    for part, (first, end) in enumerate(pairwise(order.firsts)):
        whole = made.before(7)[part] // (end - first)
        assert whole > 1
        for number in range(whole):
            assert sorted(record for cycle, record in seen[part] if cycle == number) == list(range(first, end))


def test_shares_are_disjoint_and_the_same_in_every_batch_size() -> None:
    made = mixture(48, [[0.8], [0.2]])
    whole = [numbers(part) for part in mixed(made, [20, 6]).found(3, tf.range(48, dtype=tf.int64))[:2]]
    for batch, count in ((8, 2), (12, 3), (16, 4)):
        found: list[list[int]] = [[], []]
        for step in range(48 // batch):
            for index in range(count):
                order = mixed(made, [20, 6], batch=batch, shard=(index, count))
                cycle, position, _ = order.at(tf.constant(3, tf.int64), order.slots_of(tf.constant(step, tf.int64)))
                found[0] += numbers(order.visits(cycle, position).record)
                found[1] += numbers(cycle)
        assert found == whole


def test_what_stands_in_for_a_damaged_record_is_of_its_part() -> None:
    order = mixed(mixture(40, [[0.5], [0.5]]), [20, 6])
    records, _, _ = order.found(2, tf.range(40, dtype=tf.int64))
    for slot in range(0, 40, 7):
        others, _, _ = order.alternates(tf.constant(2, tf.int64), tf.constant(slot, tf.int64), 8)
        assert {value >= 20 for value in numbers(others)} == {int(records[slot]) >= 20}


def test_large_numbers_of_epochs_and_examples_do_not_overflow() -> None:
    made = mixture(2**31 - 1, [[0.123457], [0.8], [1e-5]])
    for epoch in (0, 1, 2**20, 2**24):
        assert numbers(Counts(made).before(tf.constant(epoch, tf.int64))) == list(made.before(epoch))
    assert sum(made.counts(2**24)) == made.examples


def test_parts_of_one_size_go_through_their_records_in_orders_of_their_own() -> None:
    order = mixed(mixture(100, [[1.0], [1.0]]), [50, 50])
    records = numbers(order.found(0, tf.range(100, dtype=tf.int64))[0])
    assert [r for r in records if r < 50] != [r - 50 for r in records if r >= 50]
