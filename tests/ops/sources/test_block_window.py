"""Blocks are read once for all that ask, kept while there is room, and their places in an order are right."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipegen.data.shards import Selected, bitmap_of
from pipegen.ops.sources.listing import blocks
from pipegen.ops.sources.listing.blocks import Block, BlockReader, Window


class Counted(BlockReader):
    """Blocks of numbers, which says how often each was read."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__(np.array(sizes, np.int64))
        self.read: list[int] = []

    def load(self, block: int, feature: str) -> Block:
        self.read.append(block)
        if feature == "broken":
            raise KeyError("of a library's own")
        return Block(np.arange(self.starts[block], self.starts[block + 1]))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=9).filter(any), st.data())
def test_records_are_found_whatever_the_blocks(sizes: list[int], data: st.DataObject) -> None:
    reader = Counted(sizes)
    reader.hold_window(0, 2**30)
    rows = data.draw(st.lists(st.integers(0, sum(sizes) - 1), min_size=1))
    np.testing.assert_array_equal(reader.take("image", np.array(rows)), rows)
    assert reader.take("image", np.int64(rows[0])) == rows[0]
    assert len(reader.read) == len(set(reader.read)), "no block is read twice"


def test_many_threads_read_a_block_once() -> None:
    begun, reads = threading.Barrier(8, timeout=20), []
    window = Window()

    def load(block: int, feature: str) -> Block:
        reads.append(block)
        return Block(np.array([b"a"], object))

    def ask(_: int) -> Any:
        begun.wait()
        return window.get(3, "image", load)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert reads == [3]
    assert len(set(map(id, found))) == 1


def test_what_was_unused_for_longest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Counted([100] * 12)
    monkeypatch.setattr(blocks, "_USUAL", 0)
    reader.hold_window(4 * 800, 2**30)
    reader.take("image", np.arange(0, 1200, 100))
    reader.read.clear()
    reader.take("image", np.arange(400, 1200, 100))
    assert reader.read == []
    reader.take("image", np.array([0]))
    assert reader.read == [0]
    tight = Counted([100] * 12)
    tight.hold_window(4 * 800, 1600)
    tight.take("image", np.arange(0, 1200, 100))
    tight.read.clear()
    tight.take("image", np.arange(800, 1200, 100))
    assert tight.read == [], "within the budget, but a few blocks in any case"
    tight.take("image", np.array([700]))
    assert tight.read == [7]


def test_a_block_that_cannot_be_read_is_not_tried_for_each_record(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Counted([5])
    for _ in range(3):
        with pytest.raises(OSError, match="of a library's own"):
            reader.take("broken", np.arange(5))
    assert reader.read == [0]
    monkeypatch.setattr(blocks, "_RETRY", -1.0)
    with pytest.raises(OSError, match="own"):
        reader.take("broken", np.arange(5))
    assert reader.read == [0, 0], "after a while it may be readable again"


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 4)), min_size=1, max_size=6), st.data())
def test_blocks_of_a_split_begin_where_they_begin(files: list[tuple[int, int]], data: st.DataObject) -> None:
    rows, each = (np.array(column, np.int64) for column in zip(*files, strict=True))
    total = int(rows.sum())
    numbers = [(shard, row // each[shard]) for shard, n in enumerate(rows) for row in range(n)]
    whole = Selected(rows, np.flatnonzero(rows))
    some = np.array(data.draw(st.lists(st.booleans(), min_size=total, max_size=total)), bool)
    for selected, mask in ((whole, np.ones(total, bool)), (Selected(rows, np.flatnonzero(rows), bitmap_of(some)), some)):
        starts = selected.blocks(each)
        assert starts[0] == 0
        assert starts[-1] == mask.sum() == len(selected)
        own = [number for number, member in zip(numbers, mask, strict=True) if member]
        runs = [own[a:b] for a, b in pairwise(starts) if b > a]
        assert [len(set(run)) for run in runs] == [1] * len(runs)
        assert len({run[0] for run in runs}) == len(runs), "each block is one run"
    np.testing.assert_array_equal(whole.blocks(None), whole.starts)
