"""Of a file of records a part may count: its records keep their numbers, ids and classes, whichever part they are listed with."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipegen.data.manifest import ShardedManifest
from pipegen.data.shards import assign_shards
from pipegen.ops.sampling_sections import Splits
from pipegen.ops.sources.listing.base import Listing, Location, Parts, Shards
from pipegen.ops.sources.listing.reader import Reader

Array = np.ndarray[Any, Any]


class Classed(Reader):
    """The class of a record is its file's number and its row's, modulo 3."""

    def __init__(self, rows: list[int]) -> None:
        self.rows = rows

    def column(self, name: str, files: Array) -> Array:
        return np.concatenate([(np.arange(self.rows[file]) + file) % 3 for file in files]).astype(np.int32)


def manifest_of(rows: list[int], pieces: list[tuple[str, int, int, int]] | None = None, **section: Any) -> ShardedManifest:
    """Files of so many records, whole; or parts of them: the split, the file, the first record and how many."""
    given = pieces or [("train", file, 0, n) for file, n in enumerate(rows)]
    splits, files, firsts, counts = zip(*given, strict=True)
    offsets = None if pieces is None else np.array(firsts, np.int64)
    shards = Shards(np.array(counts, np.int64), np.array(files, np.int64), ("",) * len(files), offsets=offsets)  # type: ignore[arg-type]
    parts = None if pieces is None or section else Parts.hold(splits)
    keys = tuple(f"{file:05}.rec" for file in files)
    location = Location.below("/data", keys, counts)
    listing = Listing.labelled("/data", location, None, "abc", parts=parts, shards=shards, readers={"": Classed(rows)})
    own = Splits(**section)
    names = list(own.parts) or list(dict.fromkeys(splits))
    return ShardedManifest(listing, assign_shards(own, listing, names, "records", None), "records")


def known(manifest: ShardedManifest, split: str) -> dict[str, tuple[int, int]]:
    """The id and the class of each record, by its name."""
    labels = manifest.labels(split)
    assert labels is not None
    return dict(zip(manifest.keys(split), zip(manifest.ids(split).tolist(), labels.tolist(), strict=True), strict=True))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.data())
def test_a_record_is_the_same_in_any_part(rows: list[int], data: st.DataObject) -> None:
    whole = known(manifest_of(rows), "train")
    pieces = []
    for file, n in enumerate(rows):
        cut = data.draw(st.integers(0, n))
        pieces += [("train", file, 0, cut), ("validation", file, cut, n - cut)]
    pieces = sorted((piece for piece in pieces if piece[3]), key=lambda piece: piece[0])
    parted = manifest_of(rows, pieces)
    found = {name: value for split in parted.splits for name, value in known(parted, split).items()}
    assert found == whole
    assert sum(parted.num_examples(split) for split in parted.splits) == sum(rows)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.integers(0, 2**31), st.sampled_from(["hash", "random"]))
def test_parts_of_files_are_split_as_whole_files_are(rows: list[int], seed: int, method: str) -> None:
    """Two parts that make up each file are split as the file is, by hash also where one is missing."""
    section: dict[str, Any] = {"parts": {"a": 0.5, "b": 0.5}, "method": method, "seed": seed}
    halves = [("train", file, first, count) for file, n in enumerate(rows) for first, count in ((0, n // 2), (n // 2, n - n // 2)) if count]
    whole, parted = manifest_of(rows, **section), manifest_of(rows, halves, **section)
    for split in ("a", "b"):
        assert known(parted, split) == known(whole, split)
        assert parted.blocks(split)[-1] == parted.num_examples(split)
        np.testing.assert_array_equal(parted.numbers(split), whole.numbers(split))
    if method == "hash":
        second = [piece for piece in halves if piece[2]] or halves
        for split in ("a", "b"):
            assert known(manifest_of(rows, second, **section), split).items() <= known(whole, split).items()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=4), st.integers(1, 5))
def test_blocks_of_parts_are_those_of_the_files(pieces: list[tuple[int, int]], each: int) -> None:
    listed = [("train", file, first, count) for file, (first, count) in enumerate(pieces)]
    manifest = manifest_of([first + count for first, count in pieces], listed)
    selected = manifest.members["train"]
    starts = selected.blocks(np.full(len(pieces), each))
    shard, row = selected.locate(np.arange(len(selected)))
    blocks = list(zip(shard.tolist(), (row // each).tolist(), strict=True))
    runs = [blocks[a:b] for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
    assert all(len(set(run)) == 1 for run in runs)
    assert len({run[0] for run in runs}) == len(runs)
