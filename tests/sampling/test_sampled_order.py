"""The records of sampled epochs: the graph against a walk in Python, and what holds of every epoch, share and batch size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipegen.data.sampling import UNIT, balanced, easiest_first, repeated, weighted
from tests.sampling.counting import groups_of_slots

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]


def order(epochs: Any, batch: int = 5, **own: Any) -> Any:
    from pipegen.backend.index.order import Order
    from pipegen.backend.reading.sampled import sampled

    usual = {"remainder": "keep", "shard": (0, 1), "epoch_steps": None, "kind": "global", "window": 1, "seed": 3}
    return Order(num_examples=epochs.size, batch=batch, sampled=sampled(epochs), **(usual | own))


def visits(o: Any, epoch: int, slots: Any = None) -> tuple[list[int], list[int]]:
    """The records and the occurrences at slots of an epoch, or at all of them."""
    import tensorflow as tf

    slots = range(o.num_examples) if slots is None else slots
    found = o.found(epoch, tf.constant(list(slots), tf.int64))
    return found.record.numpy().tolist(), found.occurrence.numpy().tolist()


def check_copies(records: list[int], occurrences: list[int]) -> None:
    """The copies of each record are numbered from 0, each once."""
    copies: dict[int, list[int]] = {}
    for record, occurrence in zip(records, occurrences, strict=True):
        copies.setdefault(record, []).append(occurrence)
    assert all(sorted(numbers) == list(range(len(numbers))) for numbers in copies.values())


@settings(max_examples=7)
@given(
    labels=st.lists(st.integers(0, 5), min_size=1, max_size=90).map(np.array),
    rule=st.sampled_from(["balance", "power", "repeat", "weights"]),
    seed=st.integers(0, 2**63 - 1),
    epoch=st.integers(0, 2**31),
)
def test_each_record_is_seen_as_often_as_its_group_says_rounded_down_or_up(labels: Array, rule: str, seed: int, epoch: int) -> None:
    n = len(labels)
    made = {
        "balance": lambda: balanced(labels, 1.0, seed),
        "power": lambda: balanced(labels, 0.5, seed),
        "repeat": lambda: repeated(labels, 0.4, seed),
        "weights": lambda: weighted(labels + 1.0, seed),
    }[rule]()
    records, occurrences = visits(order(made), epoch)
    check_copies(records, occurrences)
    seen = np.bincount(records, minlength=n)
    slots = np.bincount(groups_of_slots(made, epoch), minlength=len(made.bounds) - 1)
    if made.sizes is None:
        assert seen.tolist() == slots.tolist()
        return
    assert np.bincount(labels[records], minlength=len(slots)).tolist() == slots.tolist(), "classes have their shares"
    for label, (slot_count, size) in enumerate(zip(slots.tolist(), made.sizes.tolist(), strict=True)):
        assert set(seen[labels == label].tolist()) <= {slot_count // max(size, 1), -(-slot_count // max(size, 1))}


def test_over_epochs_the_records_of_a_common_class_take_turns() -> None:
    """What an epoch leaves out of a class comes before what it had comes again."""
    labels = np.repeat([0, 1], [100, 10])
    o = order(balanced(labels, 1.0, 0))
    seen = np.zeros(110, int)
    for epoch in range(20):
        seen += np.bincount(visits(o, epoch)[0], minlength=110)
    assert np.ptp(seen[:100]) <= 2
    assert np.ptp(seen[100:]) <= 2


@settings(max_examples=5)
@given(n=st.integers(1, 70), share=st.floats(0.02, 1), epoch=st.integers(0, 2**31), size=st.integers(1, 150))
def test_the_easiest_are_seen_equally_often_and_no_other(n: int, share: float, epoch: int, size: int) -> None:
    values = np.random.default_rng(n).normal(size=n)
    easiest = easiest_first(values, np.arange(n, dtype=np.uint64), (share,), size, 9)
    records, occurrences = visits(order(easiest), epoch)
    check_copies(records, occurrences)
    k = int(easiest.counts[0])
    assert set(records) <= set(easiest.members[:k].tolist())
    assert set(np.bincount(records, minlength=n)[easiest.members[:k]].tolist()) <= {size // k, -(-size // k)}


def test_the_pace_goes_by_the_epoch_and_its_last_share_stays() -> None:
    easiest = easiest_first(np.arange(20.0), np.arange(20, dtype=np.uint64), (0.1, 0.5, 1.0), 20, 0)
    reach = [max(visits(order(easiest), epoch)[0]) for epoch in range(5)]
    assert reach == [1, 9, 19, 19, 19]


@settings(max_examples=4)
@given(hosts=st.sampled_from([2, 3]), batch=st.sampled_from([6, 12]), steps=st.none() | st.integers(1, 9), seed=st.integers(0, 99))
def test_shares_join_to_the_whole_and_batches_of_other_sizes_are_cut_from_one_order(hosts: int, batch: int, steps: Any, seed: int) -> None:
    import tensorflow as tf

    made = repeated(np.arange(26) % 7 % 5, 0.5, seed)
    whole = order(made, batch, epoch_steps=steps)
    parts = [order(made, batch, epoch_steps=steps, shard=(i, hosts)) for i in range(hosts)]
    for step in range(whole.steps):
        joined = [visit for o in parts for visit in zip(*visits(o, 2, o.slots_of(tf.constant(step, tf.int64)).numpy()), strict=True)]
        assert joined == list(zip(*visits(whole, 2, whole.slots_of(tf.constant(step, tf.int64)).numpy()), strict=True))
    assert visits(order(made, 7), 1) == visits(order(made, 20), 1)


def test_another_epoch_has_another_order_and_another_seed_too() -> None:
    made = balanced(np.arange(60) % 4, 1.0, 0)
    first = visits(order(made), 0)[0]
    assert first != visits(order(made), 1)[0]
    assert first != visits(order(made, seed=4), 0)[0]


@pytest.mark.nightly
def test_many_records_and_late_epochs() -> None:
    labels = np.repeat(np.arange(3), [1_500_000, 90_000, 4]).astype(np.int32)
    made = balanced(labels, 1.0, 0)
    o = order(made, 256)
    records, occurrences = visits(o, 10**6, range(0, o.num_examples, 97))
    shares = np.bincount(labels[records]) / len(records)
    assert shares == pytest.approx([1 / 3] * 3, abs=0.01)
    assert max(occurrences) == pytest.approx(o.num_examples / 3 / 4, rel=0.01)
    assert made.bounds[-1] == o.num_examples * UNIT
