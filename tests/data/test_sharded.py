"""Files of many records: ids, splits and places, without a row a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipegen.data import shards as record_ids
from pipegen.data import shards as shard_splits
from pipegen.data.fingerprint import example_ids
from pipegen.data.manifest import ShardedManifest
from pipegen.data.shards import assign_shards, mix64, shard_bases
from pipegen.errors import InternalError, OpError
from pipegen.ops.sampling_sections import Splits
from pipegen.ops.sources.listing.base import Listing, Location, Shards
from pipegen.ops.sources.listing.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Array = np.ndarray[Any, Any]


def listing_of(
    rows: Sequence[int], *, folders: Sequence[str] = ("train", "validation"), classes: Sequence[str] = (), **own: Any
) -> Listing:
    """Files `FOLDER/NNNNN.rec` of so many records, in turn in each of the folders."""
    keys = tuple(f"{folders[i % len(folders)]}/{i:05}.rec" for i in range(len(rows)))
    shards = Shards(np.array(rows, np.int64), np.arange(len(rows)), tuple(f"d{i}" for i in range(len(rows))))
    reader = Reader()  # which reads nothing
    for name, value in own.items():
        setattr(reader, name, value)
    location = Location.below("/data", keys, [10 * n for n in rows])
    return Listing.labelled("/data", location, None, classes, shards=shards, readers={"": reader})


def manifest_of(listing: Listing, names: Sequence[str] = (), **section: Any) -> ShardedManifest:
    splits = Splits(**section)
    return ShardedManifest(listing, assign_shards(splits, listing, names or list(splits.parts) or ["train"], "records", None), "records")


def undo(value: Array) -> Array:
    """The inverse of the mix, step by step."""
    for shift, factor in zip(record_ids.MIX_SHIFTS[::-1], [None, *record_ids.MIX_FACTORS[::-1]], strict=True):
        value = value if factor is None else value * np.uint64(pow(factor, -1, 2**64))
        back = value
        for _ in range(64 // shift):
            back = value ^ (back >> np.uint64(shift))
        value = back
    return value


words = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50).map(lambda values: np.array(values, np.uint64))


@given(words)
def test_the_mix_can_be_undone(value: Array) -> None:
    np.testing.assert_array_equal(undo(mix64(value)), value)


def test_the_mix_is_that_of_splitmix64() -> None:
    """The first numbers of the reference generator from the seed 1234567."""
    state = np.uint64(1234567) + np.arange(1, 6, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    assert mix64(state).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.tf
@pytest.mark.parametrize("jit", [False, True])
def test_the_graph_mixes_the_same_bits(jit: bool) -> None:
    import tensorflow as tf

    from pipegen.backend.reading.sharded_records import mix64 as in_graph

    value = np.random.default_rng(1).integers(0, 2**64, 4000, np.uint64)
    np.testing.assert_array_equal(tf.function(in_graph, jit_compile=jit)(tf.constant(value)).numpy(), mix64(value))


def test_an_id_is_made_of_the_file_and_the_row() -> None:
    manifest = manifest_of(listing_of([3, 0, 2]))
    hashes = example_ids("records", [f"{folder}/0000{i}.rec" for i, folder, _ in _FILES]).tolist()
    origin = [hashes[i] >> 24 << 24 | row for i, _, n in _FILES for row in range(n)]
    assert manifest.ids("train").tolist() == mix64(np.array(origin, np.uint64)).tolist()
    assert list(manifest.files("train")) == [f"/data/{folder}/0000{i}.rec#{row}" for i, folder, n in _FILES for row in range(n)]
    assert manifest.mean_bytes() == manifest.mean_bytes("train") == 10


_FILES = [(0, "train", 3), (1, "validation", 0), (2, "train", 2)]


def test_a_file_of_too_many_records_is_told() -> None:
    assert len(shard_bases("records", listing_of([1 << 24]), np.array([1 << 24]))) == 1
    with pytest.raises(OpError, match=r"'validation/00001\.rec' holds 16,777,217 records, and a file may hold 16,777,216") as error:
        manifest_of(listing_of([1, (1 << 24) + 1])).bases  # noqa: B018
    assert error.value.help == "write the data as several files"


def test_two_files_whose_hashes_meet_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_ids, "example_ids", lambda _, keys: np.array([int(key[-5] in "13") << 40 for key in keys], np.uint64))
    with pytest.raises(InternalError, match=r"rename one of them: 'train/00000.rec' and 'train/00002.rec'"):
        shard_bases("records", listing_of([5, 5, 5]), np.array([5, 5, 5]))


def located(manifest: ShardedManifest, split: str) -> set[tuple[int, int]]:
    shard, row = manifest.members[split].locate(np.arange(manifest.num_examples(split)))
    return set(zip(shard.tolist(), row.tolist(), strict=True))


rows = st.lists(st.integers(0, 40), min_size=1, max_size=9).filter(any)
ways = st.sampled_from(
    [
        {"method": "hash"},
        {"method": "hash", "group": {"path": r"\d+"}},
        {"method": "random"},
    ]
)


@given(rows, ways, st.integers(0, 5))
def test_splits_are_disjoint_and_complete(n: list[int], way: dict[str, Any], seed: int) -> None:
    manifest = manifest_of(listing_of(n), parts={"train": 0.6, "validation": 0.3, "test": 0.1}, seed=seed, **way)
    found = [located(manifest, split) for split in manifest.splits]
    assert sum(map(len, found)) == sum(manifest.num_examples(split) for split in manifest.splits) == sum(n)
    assert set.union(*found) == {(shard, row) for shard, count in enumerate(n) for row in range(count)}


@given(rows)
def test_with_the_method_hash_new_files_move_no_record(n: list[int]) -> None:
    section: dict[str, Any] = {"parts": {"train": 0.6, "validation": 0.3}, "method": "hash"}
    before, after = manifest_of(listing_of(n), **section), manifest_of(listing_of([*n, 25, 3]), **section)
    for split in before.splits:
        assert {at for at in located(after, split) if at[0] < len(n)} == located(before, split)


def test_a_folder_names_the_split_of_whole_files() -> None:
    manifest = manifest_of(listing_of([4, 5, 6, 7]), parts={"train": "train", "validation": "validation"}, method="folder")
    assert [manifest.num_examples(s) for s in manifest.splits] == [10, 12]
    assert all(manifest.members[s].bitmap is None for s in manifest.splits)
    assert located(manifest, "validation") == {(1, i) for i in range(5)} | {(3, i) for i in range(7)}


def test_sizes_of_random_parts_are_exact() -> None:
    manifest = manifest_of(listing_of([400, 0, 300, 300]), parts={"train": 0.7, "validation": 0.3})
    assert [manifest.num_examples(s) for s in manifest.splits] == [700, 300]
    other = manifest_of(listing_of([400, 0, 300, 300]), parts={"train": 0.7, "validation": 0.3}, seed=1)
    assert located(manifest, "validation") != located(other, "validation")


def test_labels_are_there_where_the_source_listed_them() -> None:
    labels = np.arange(12, dtype=np.int32) % 5
    listed = manifest_of(
        listing_of([5, 0, 7], column=lambda _name, _files: labels, classes="abcde"), parts={"train": 0.7, "validation": 0.3}, method="hash"
    )
    for split in listed.splits:
        shard, row = listed.members[split].locate(np.arange(listed.num_examples(split)))
        np.testing.assert_array_equal(listed.labels(split), labels[np.array([0, 5, 5])[shard] + row])
    assert manifest_of(listing_of([5, 0, 7])).labels("train") is None


@given(rows)
def test_strata_are_exact(n: list[int]) -> None:
    labels = np.arange(sum(n)) % 3
    manifest = manifest_of(
        listing_of(n, column=lambda _name, _files: labels, classes=("a", "b", "c")),
        parts={"train": 0.5, "validation": 0.5},
        stratify="label",
    )
    for label in range(3):
        counts = [int((manifest.labels(split) == label).sum()) for split in manifest.splits]
        assert abs(counts[0] - counts[1]) <= 2


@pytest.mark.parametrize(
    ("section", "said", "advice"),
    [
        ({"parts": {"train": 0.5}}, "`method: random` puts all", "splits: {method: hash}"),
        ({"parts": {"train": 1, "b": 15_000_000}}, "`method: random`", "splits: {method: hash, parts: {train: 0.000001, b: 0.750000}}"),
        ({"parts": {"train": 0.5}, "stratify": "label"}, "`stratify` puts all", None),
        ({"folds": {"count": 5, "fold": 1}}, "`folds` puts all", None),
    ],
)
def test_more_records_than_can_be_ranked_are_told(section: dict[str, Any], said: str, advice: str | None) -> None:
    with pytest.raises(OpError, match=f"{said} records in one order" if advice is None else said) as error:
        manifest_of(listing_of([10**7, 10**7]), ["train", "validation"], **section)
    assert error.value.code == "PG302"
    assert "20,000,000 of them, more than 10,000,000" in str(error.value)
    assert getattr(error.value.help, "lines", None) == advice


def test_records_counted_in_parts_are_those_counted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    listing, splits = listing_of([5000, 0, 9000]), Splits(parts={"train": 0.7, "validation": 0.3}, method="hash")
    whole = assign_shards(splits, listing, ["train", "validation"], "records", None)
    monkeypatch.setattr(shard_splits, "_AT_ONCE", shard_splits.BLOCK)
    for split, own in assign_shards(splits, listing, ["train", "validation"], "records", None).items():
        same = whole[split].bitmap
        assert own.bitmap is not None
        assert same is not None
        np.testing.assert_array_equal(own.bitmap.bits, same.bits)
        np.testing.assert_array_equal(own.bitmap.before, same.before)


def test_what_was_counted_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_splits, "LEAST", 1000)
    listing, section = listing_of([5000, 0, 3000]), {"parts": {"train": 0.7, "validation": 0.3}, "method": "hash"}
    counted: list[int] = []
    by_hash = shard_splits.by_hash
    monkeypatch.setattr(shard_splits, "by_hash", lambda *a: counted.append(1) or by_hash(*a))

    def dealt(of: Listing = listing, **own: Any) -> dict[str, set[tuple[int, int]]]:
        splits = Splits(**(section | own))
        manifest = ShardedManifest(of, assign_shards(splits, of, list(splits.parts), "records", tmp_path / "splits"), "records")
        return {split: located(manifest, split) for split in manifest.splits}

    first = dealt()
    assert dealt() == first
    assert len(counted) == 1
    (file,) = (tmp_path / "splits").iterdir()
    assert file.stat().st_size == 2 * (64 + 1024)
    file.write_bytes(file.read_bytes()[:-1])
    assert dealt() == first, "half a file is none"
    assert len(counted) == 2
    assert dealt(seed=1) != first
    assert dealt(listing_of([5000, 1, 3000])) != first
    assert len(list((tmp_path / "splits").iterdir())) == 3


def test_where_nothing_can_be_kept_it_is_counted_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setattr(shard_splits, "LEAST", 1000)
    (tmp_path / "splits").write_text("a file")
    splits = Splits(parts={"train": 0.7, "validation": 0.3}, method="hash")
    members = assign_shards(splits, listing_of([5000, 300]), ["train", "validation"], "records", tmp_path / "splits")
    assert sum(map(len, members.values())) == 5300
    assert "which record is in which split cannot be kept in" in caplog.text
