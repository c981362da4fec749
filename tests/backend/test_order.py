"""The order of an epoch: a permutation, another one every epoch, started anywhere and cut into shards without a buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]


def order(n: int, batch: int = 4, **own: Any) -> Any:
    from pipegen.backend.index.order import Order

    defaults = {"remainder": "keep", "shard": (0, 1), "epoch_steps": None, "kind": "global", "window": 1, "seed": 0}
    return Order(num_examples=n, batch=batch, **(defaults | own))


def one_pass(o: Any, cycle: int = 0) -> Array:
    """The records of a pass by position."""
    import tensorflow as tf

    position = tf.range(o.num_examples, dtype=tf.int64)
    return o.records(tf.zeros_like(position) + cycle, position).numpy()


def step_of(o: Any, epoch: int, step: int) -> tuple[Array, Array]:
    """The records and the weights of one batch on one host."""
    import tensorflow as tf

    cycle, position, weight = o.at(tf.constant(epoch, tf.int64), o.slots_of(tf.constant(step, tf.int64)))
    return o.records(cycle, position).numpy(), weight.numpy()


def epoch_of(o: Any, epoch: int) -> list[Array]:
    """The records of each batch of an epoch."""
    import tensorflow as tf

    if not o.steps:
        return []
    steps = tf.range(o.steps, dtype=tf.int64)
    low, high = (edge.numpy() for edge in o.block(steps))
    slots = np.concatenate([step * o.batch + np.arange(a, b) for step, (a, b) in enumerate(zip(low, high, strict=True))])
    cycle, position, _ = o.at(tf.constant(epoch, tf.int64), tf.constant(slots, tf.int64))
    return np.split(o.records(cycle, position).numpy(), np.cumsum(high - low)[:-1])


@pytest.mark.smoke
@settings(max_examples=15)
@given(n=st.integers(1, 3000), seed=st.integers(0, 2**63 - 1), cycle=st.integers(0, 2**40))
def test_an_epoch_is_a_permutation(n: int, seed: int, cycle: int) -> None:
    assert sorted(one_pass(order(n, seed=seed), cycle)) == list(range(n))


def test_a_large_set_is_permuted_too() -> None:
    shuffled = one_pass(order(70_001, seed=3), 5)
    assert np.array_equal(np.sort(shuffled), np.arange(70_001))
    assert abs(np.corrcoef(shuffled, np.arange(70_001))[0, 1]) < 0.02


@pytest.mark.smoke
@pytest.mark.parametrize(("n", "seed"), [
    *(pytest.param(n, seed, marks=pytest.mark.nightly) for n, seed in ((13, 0), (16, 1), (43, 2**40 + 1), (60, 2**63 - 1))), (17, 17),
])  # fmt: skip
def test_a_thousand_epochs_have_a_thousand_orders(n: int, seed: int) -> None:
    import tensorflow as tf

    o = order(n, seed=seed)
    epochs = 1000
    cycle = tf.repeat(tf.range(epochs, dtype=tf.int64), n)
    position = tf.tile(tf.range(n, dtype=tf.int64), [epochs])
    orders = o.records(cycle, position).numpy().reshape(epochs, n)
    np.testing.assert_array_equal(np.sort(orders, 1), np.broadcast_to(np.arange(n), (epochs, n)))
    assert len({row.tobytes() for row in orders}) == epochs


@pytest.mark.smoke
def test_a_global_shuffle_costs_no_memory() -> None:
    """A place in the order of 2^40 records is worked out by itself, in whatever epoch and from whatever step on."""
    import tensorflow as tf

    n, batch = 2**40, 256
    o = order(n, batch, seed=7)
    records, _ = step_of(o, 10**6, o.steps - 1)
    assert len(np.unique(records)) == batch
    assert records.min() >= 0
    assert records.max() < n
    assert np.ptp(records) > n // 2
    position = tf.constant(records[:3])
    alone = [int(o.records(tf.constant([5], tf.int64), position[i : i + 1])[0]) for i in range(3)]
    assert alone == list(o.records(tf.constant([5] * 3, tf.int64), position).numpy())


def test_every_record_comes_first_about_equally_often() -> None:
    import tensorflow as tf

    n, epochs = 24, 6000
    first = order(n, seed=2).records(tf.range(epochs, dtype=tf.int64), tf.zeros([epochs], tf.int64)).numpy()
    counts = np.bincount(first, minlength=n)
    chi = ((counts - epochs / n) ** 2 / (epochs / n)).sum()
    assert chi < 60, f"23 degrees of freedom, got {chi:.1f}: {counts}"


def test_another_seed_is_another_order() -> None:
    orders = {one_pass(order(40, seed=seed), 3).tobytes() for seed in [*range(20), 2**32, 2**32 + 1, 2**62]}
    assert len(orders) == 23


def test_the_shuffle_op_reads_only_low_bytes_on_small_sets() -> None:
    """What `permuted._order_key` is built around: up to 65,536 records, three bytes are all that the op takes from a key."""
    import tensorflow as tf

    def shuffled(n: int, key: list[int]) -> bytes:
        op = tf.raw_ops.RandomIndexShuffle
        index = tf.range(n, dtype=tf.int64)
        return op(index=index, seed=tf.constant(key, tf.uint32), max_index=tf.constant(n - 1, tf.int64), rounds=8).numpy().tobytes()

    for n in (43, 1000, 65_536):
        assert shuffled(n, [1, 2, 3]) == shuffled(n, [0xABCDEF01, 0x12345602, 0xFFFFFF03])
        assert len({shuffled(n, key) for key in ([1, 2, 3], [2, 2, 3], [1, 3, 3], [1, 2, 4])}) == 4
    assert shuffled(131_072, [1, 2, 3]) != shuffled(131_072, [0x101, 2, 3])


def test_low_bytes_of_keys_never_repeat() -> None:
    import tensorflow as tf

    from pipegen.backend.index.draws import keys

    cycles = tf.range(200_000, dtype=tf.int64)
    low = keys(99)(cycles, tf.zeros_like(cycles)).numpy() & 0xFF
    packed = low[:, 0].astype(np.int64) | low[:, 1].astype(np.int64) << 8 | low[:, 2].astype(np.int64) << 16
    assert len(np.unique(packed)) == len(cycles)


@pytest.mark.nightly  # by day 200,000 of them are looked at
def test_low_bytes_are_mixed_by_a_bijection() -> None:
    import tensorflow as tf

    from pipegen.backend.index.draws import _mix24

    every = _mix24(tf.cast(tf.range(1 << 24), tf.uint32), tf.constant(12345, tf.uint32)).numpy()
    assert np.bincount(every, minlength=1 << 24).max() == 1, "a bijection of 24 bits"


def test_stored_order_is_the_source_s() -> None:
    o = order(11, kind="stored")
    assert [list(b) for b in epoch_of(o, 7)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]


@settings(max_examples=15)
@given(n=st.integers(2, 200), window=st.integers(1, 60), seed=st.integers(0, 2**63 - 1), cycle=st.integers(0, 9999))
def test_a_window_shuffle_stays_in_its_windows(n: int, window: int, seed: int, cycle: int) -> None:
    shuffled = one_pass(order(n, kind="window", window=window, seed=seed), cycle)
    for first in range(0, n, window):
        assert sorted(shuffled[first : first + window]) == list(range(first, min(first + window, n)))


def test_windows_differ_from_each_other_and_from_epoch_to_epoch() -> None:
    import tensorflow as tf

    o = order(120, kind="window", window=20, seed=4)
    first, second = one_pass(o, 0), one_pass(o, 1)
    assert not np.array_equal(first, second)
    inside = first.reshape(6, 20) % 20
    assert len({row.tobytes() for row in inside}) == 6
    epochs, n = 300, 26
    cycle, position = tf.repeat(tf.range(epochs, dtype=tf.int64), n), tf.tile(tf.range(n, dtype=tf.int64), [epochs])
    orders = order(n, kind="window", window=13, seed=1).records(cycle, position).numpy().reshape(epochs, 2, 13)
    assert len({row.tobytes() for row in orders[:, 0]}) == epochs
    assert len({row.tobytes() for row in orders[:, 1]}) == epochs


@settings(max_examples=15)
@given(n=st.integers(3, 50), batch=st.integers(1, 9), steps=st.integers(1, 12), epochs=st.integers(1, 5))
def test_an_epoch_of_steps_goes_on_through_the_permutation(n: int, batch: int, steps: int, epochs: int) -> None:
    o = order(n, batch, epoch_steps=steps, remainder="drop", seed=6)
    assert o.steps == steps
    served = np.concatenate([b for e in range(epochs) for b in epoch_of(o, e)])
    whole = order(n, n, remainder="drop", seed=6)
    passes = np.concatenate([epoch_of(whole, c)[0] for c in range(-(-len(served) // n))])
    np.testing.assert_array_equal(served, passes[: len(served)])


@settings(max_examples=20)
@given(
    n=st.integers(4, 60),
    local=st.integers(1, 4),
    count=st.integers(1, 4),
    remainder=st.sampled_from(["drop", "keep", "pad"]),
    kind=st.sampled_from(["global", "stored", "window"]),
    fixed=st.booleans(),
)
def test_shards_are_disjoint_and_make_up_the_global_batch(n: int, local: int, count: int, remainder: Any, kind: str, fixed: bool) -> None:
    assume(not 0 < n % (local * count) < count)  # PG412 stops those: a host would have no share of the last batch
    own: dict[str, Any] = {"remainder": remainder, "kind": kind, "window": 7, "epoch_steps": 5 if fixed else None, "seed": 8}
    whole = order(n, local * count, **own)
    hosts = [order(n, local * count, shard=(i, count), **own) for i in range(count)]
    assert {h.steps for h in hosts} == {whole.steps}
    for a, *shares in zip(epoch_of(whole, 2), *(epoch_of(h, 2) for h in hosts), strict=True):
        np.testing.assert_array_equal(np.concatenate(shares), a)
    if whole.steps:
        step = whole.steps - 1
        records, weights = step_of(whole, 2, step)
        shares = [step_of(h, 2, step) for h in hosts]
        np.testing.assert_array_equal(np.concatenate([r for r, _ in shares]), records)
        np.testing.assert_array_equal(np.concatenate([w for _, w in shares]), weights)
        if remainder != "keep" or fixed:
            assert {len(r) for r, _ in shares} == {local}
        else:
            assert max(len(r) for r, _ in shares) - min(len(r) for r, _ in shares) <= 1


@pytest.mark.parametrize(("remainder", "steps", "last"), [("drop", 2, [4, 5, 6, 7]), ("keep", 3, [8, 9]), ("pad", 3, [8, 9, 0, 1])])
def test_remainders(remainder: Any, steps: int, last: list[int]) -> None:
    o = order(10, 4, remainder=remainder, kind="stored")
    assert o.steps == steps
    records, weights = step_of(o, 0, steps - 1)
    assert list(records) == last
    assert list(weights) == [1.0] * len(last) if remainder != "pad" else [1.0, 1.0, 0.0, 0.0]


def test_the_remainder_moves_nothing() -> None:
    streams = [np.concatenate(epoch_of(order(43, 8, remainder=r, seed=1), 4)) for r in ("drop", "keep", "pad")]
    assert [len(s) for s in streams] == [40, 43, 48]
    np.testing.assert_array_equal(streams[0], streams[1][:40])
    np.testing.assert_array_equal(streams[1], streams[2][:43])


@pytest.mark.parametrize("batch", [8, 12])
@pytest.mark.parametrize("shard", [(0, 1), (1, 2)])
def test_stand_ins_come_from_the_eight_that_stand_together_in_the_order(batch: int, shard: tuple[int, int]) -> None:
    """Neither the batch nor the share has a say; the last group of 29 begins so that it has eight, too."""
    import tensorflow as tf

    whole = np.concatenate(epoch_of(order(29, 1, seed=5), 3)).tolist()
    o = order(29, batch // shard[1], shard=shard, remainder="drop", seed=5)
    for slot, first in ((14, 8), (27, 21)):
        records = o.alternates(tf.constant(3, tf.int64), tf.constant(slot, tf.int64), 8).record
        assert list(records.numpy()) == [whole[first + (slot - first + 1 + i) % 8] for i in range(8)]
