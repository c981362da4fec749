"""Rank and select: the n-th member of a set of records and how many come before one, against counting them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipegen.data.shards import BLOCK, bitmap_of

Array = np.ndarray[Any, Any]


def masks() -> st.SearchStrategy[Array]:
    """Sets of records of any density, the empty and the full one among them, around the ends of blocks."""
    size = st.one_of(st.integers(1, 300), st.sampled_from([BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 77]))
    density = st.sampled_from([0.0, 0.001, 0.3, 0.99, 1.0])
    return st.builds(lambda n, p, seed: np.random.default_rng(seed).random(n) < p, size, density, st.integers(0, 99))


@pytest.mark.nightly
@given(masks())
def test_members_and_ranks_are_those_of_the_mask(mask: Array) -> None:
    bitmap = bitmap_of(mask)
    records = np.flatnonzero(mask)
    assert len(bitmap) == len(records)
    np.testing.assert_array_equal(bitmap.select(np.arange(len(records))), records)
    np.testing.assert_array_equal(bitmap.rank(np.arange(len(mask) + 1)), np.concatenate([[0], np.cumsum(mask)]))


@pytest.mark.nightly
@pytest.mark.tf
@settings(max_examples=15)
@given(masks())
def test_the_graph_finds_the_same_members(mask: Array) -> None:
    import tensorflow as tf

    from pipegen.backend.reading.sharded_records import BitmapTensors

    bitmap = bitmap_of(mask)
    member = np.random.default_rng(0).permutation(len(bitmap))
    np.testing.assert_array_equal(BitmapTensors(bitmap).select(tf.constant(member, tf.int64)).numpy(), bitmap.select(member))


def test_a_record_costs_a_bit() -> None:
    bitmap = bitmap_of(np.arange(10**6) % 3 == 0)
    assert bitmap.bits.nbytes + bitmap.before.nbytes < 10**6 / 8 * 1.025
