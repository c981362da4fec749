"""The order in two levels: blocks permuted whole, then windows permuted within, as a function of position."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]

sizes = st.lists(st.integers(0, 30), min_size=1, max_size=12).filter(any)
seeds = st.integers(0, 2**63 - 1)


def order(rows: list[int], batch: int = 4, **own: Any) -> Any:
    import tensorflow as tf

    from pipegen.backend.index.order import Order

    starts = tf.constant(np.cumsum([0, *rows]), tf.int64)
    defaults = {"remainder": "keep", "shard": (0, 1), "epoch_steps": None, "kind": "window", "window": 7, "seed": 0, "blocks": starts}
    return Order(num_examples=sum(rows), batch=batch, **(defaults | own))


def one_pass(o: Any, cycle: int = 0) -> Array:
    """The records of a pass by position."""
    import tensorflow as tf

    position = tf.range(o.num_examples, dtype=tf.int64)
    return o.records(tf.zeros_like(position) + cycle, position).numpy()


def passes(o: Any, count: int) -> Array:
    """The records of the first passes, a row each, asked for all at once."""
    import tensorflow as tf

    cycle, position = np.divmod(np.arange(count * o.num_examples), o.num_examples)
    return o.records(tf.constant(cycle), tf.constant(position)).numpy().reshape(count, -1)


def step_of(o: Any, epoch: int, step: int) -> Array:
    import tensorflow as tf

    cycle, position, _ = o.at(tf.constant(epoch, tf.int64), o.slots_of(tf.constant(step, tf.int64)))
    return o.records(cycle, position).numpy()


def blocks_of(rows: list[int], records: Array) -> Array:
    """Which block each record is in."""
    return np.searchsorted(np.cumsum(rows), records, side="right")


@settings(max_examples=30)
@given(rows=sizes, window=st.integers(1, 50), seed=seeds, cycle=st.integers(0, 2**40))
def test_a_pass_is_a_permutation_of_any_blocks_and_windows(rows: list[int], window: int, seed: int, cycle: int) -> None:
    assert sorted(one_pass(order(rows, window=window, seed=seed), cycle)) == list(range(sum(rows)))


@settings(max_examples=20)
@given(rows=sizes, seed=seeds, cycle=st.integers(0, 99))
def test_blocks_stay_whole_and_in_their_own_order_where_a_window_is_one_record(rows: list[int], seed: int, cycle: int) -> None:
    served = one_pass(order(rows, window=1, seed=seed), cycle)
    blocks = blocks_of(rows, served)
    runs = [int(blocks[0]), *(int(b) for a, b in pairwise(blocks) if a != b)]
    assert len(runs) == len(set(runs)), "each block is one run"
    for block in runs:
        assert list(served[blocks == block]) == sorted(served[blocks == block])


@settings(max_examples=20)
@given(rows=sizes, window=st.integers(1, 50), seed=seeds, cycle=st.integers(0, 99))
def test_a_window_holds_a_stretch_of_the_permuted_blocks(rows: list[int], window: int, seed: int, cycle: int) -> None:
    stretch = one_pass(order(rows, window=1, seed=seed), cycle)
    served = one_pass(order(rows, window=window, seed=seed), cycle)
    for first in range(0, len(served), window):
        assert sorted(served[first : first + window]) == sorted(stretch[first : first + window])


@settings(max_examples=10)
@given(n=st.integers(1, 40), window=st.integers(1, 50), seed=seeds)
def test_a_single_block_is_the_order_of_windows(n: int, window: int, seed: int) -> None:
    np.testing.assert_array_equal(
        one_pass(order([n], window=window, seed=seed)), one_pass(order([n], window=window, seed=seed, blocks=None))
    )


@pytest.mark.parametrize("count", [60, pytest.param(200, marks=pytest.mark.nightly)])
def test_epochs_and_seeds_have_orders_of_their_own(count: int) -> None:
    rows = [5, 1, 0, 9, 4, 6, 6, 3]
    first = {tuple(dict.fromkeys(blocks_of(rows, served).tolist())) for served in passes(order(rows, window=1, seed=2), count)}
    assert len(first) > 0.95 * count, "of 5,040 orders of seven blocks"
    assert len({one_pass(order(rows, seed=seed)).tobytes() for seed in range(count // 10)}) == count // 10
    assert len({served.tobytes() for served in passes(order(rows, seed=3), 3 * count // 2)}) == 3 * count // 2


def test_a_global_and_the_stored_order_know_no_blocks() -> None:
    rows = [5, 1, 0, 9, 4]
    np.testing.assert_array_equal(one_pass(order(rows, kind="global"), 3), one_pass(order(rows, kind="global", blocks=None), 3))
    assert list(one_pass(order(rows, kind="stored"))) == list(range(19))


def test_what_an_epoch_has_in_common_is_worked_out_once() -> None:
    import tensorflow as tf

    o = order([5, 1, 0, 9, 4, 6], window=4, seed=3)
    position = tf.range(25, dtype=tf.int64)
    laid = o.laid(tf.constant(7, tf.int64))
    np.testing.assert_array_equal(o.records(tf.fill([25], tf.constant(7, tf.int64)), position, laid=laid), one_pass(o, 7))
    o = order([25], kind="global", seed=3)
    laid = o.laid(tf.constant(7, tf.int64))
    np.testing.assert_array_equal(o.records(tf.fill([25], tf.constant(7, tf.int64)), position, laid=laid), one_pass(o, 7))
    for other in ({"kind": "stored"}, {"blocks": None}, {"epoch_steps": 3}):
        assert order([5, 1, 0, 9], **other).laid(tf.constant(7, tf.int64)) == ()


@pytest.mark.parametrize("epochs", [900, pytest.param(3000, marks=pytest.mark.nightly)])
def test_every_block_comes_first_about_equally_often(epochs: int) -> None:
    import tensorflow as tf

    rows = [3, 8, 1, 12, 5, 7]
    o = order(rows, window=1, seed=5)
    records = o.records(tf.range(epochs, dtype=tf.int64), tf.zeros([epochs], tf.int64)).numpy()
    counts = np.bincount(blocks_of(rows, records), minlength=len(rows))
    chi = ((counts - epochs / 6) ** 2 / (epochs / 6)).sum()
    assert chi < 25, f"5 degrees of freedom, got {chi:.1f}: {counts}"


@settings(max_examples=15)
@given(rows=sizes, local=st.integers(1, 4), hosts=st.integers(1, 4), fixed=st.booleans(), epoch=st.integers(0, 9), data=st.data())
def test_shares_make_up_the_batch_and_any_step_is_where_it_was(
    rows: list[int], local: int, hosts: int, fixed: bool, epoch: int, data: st.DataObject
) -> None:
    batch, n = local * hosts, sum(rows)
    assume(not 0 < n % batch < hosts)
    own: dict[str, Any] = {"seed": 8, "epoch_steps": 5 if fixed else None}
    whole = order(rows, batch, **own)
    step = data.draw(st.integers(0, whole.steps - 1))
    shares = [step_of(order(rows, batch, shard=(i, hosts), **own), epoch, step) for i in range(hosts)]
    np.testing.assert_array_equal(np.concatenate(shares), step_of(whole, epoch, step))
    if fixed:
        first = epoch * 5 * batch + step * batch
        served = np.concatenate([one_pass(whole, c) for c in range(first // n, (first + batch - 1) // n + 1)])
        np.testing.assert_array_equal(step_of(whole, epoch, step), served[first % n : first % n + batch])
    else:
        np.testing.assert_array_equal(step_of(whole, epoch, step), one_pass(whole, epoch)[step * batch : (step + 1) * batch])
