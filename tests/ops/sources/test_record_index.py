"""The index of records: what it finds, what of it is kept, and what it says of damage."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from record_files import examples, framed, write_tfrecord

from pipegen.errors import DataError, OpError
from pipegen.ops.fields.strings import shareable
from pipegen.ops.sources.records import index as indexing
from pipegen.ops.sources.records.index import ShardRecords, build_index
from pipegen.ops.sources.shards.paths import expand, find_shards
from pipegen.ops.sources.tfrecord import TFRecord, index_tfrecord

if TYPE_CHECKING:
    from pathlib import Path

FEATURES: dict[str, Any] = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 4}}


def shards(folder: Path) -> Any:
    return find_shards(str(folder), ".", (".tfrecord",))[1]


def test_braces_stand_for_numbers_and_choices() -> None:
    assert list(expand("a-{08..10}.tar")) == ["a-08.tar", "a-09.tar", "a-10.tar"]
    assert list(expand("a-{8..10}.tar")) == ["a-8.tar", "a-9.tar", "a-10.tar"]
    assert list(expand("{x,y}/{0..1}")) == ["x/0", "x/1", "y/0", "y/1"]
    for wrong, said in (("{5..3}", "runs backwards"), ("{5}", "neither a range"), ("{0..9999999}", "more than 1,000,000")):
        with pytest.raises(ValueError, match=said):
            list(expand(wrong))


def test_paths_that_lead_nowhere_are_told_with_what_is_there(tmp_path: Path) -> None:
    write_tfrecord(tmp_path / "data" / "train-0.tfrecord", [b"x"])
    for path, code, said in (
        ("data/train-1.tfrecord", "PG401", "does not exist"),
        ("data/valid-*", "PG402", "no file matches"),
        ("dat", "PG401", "does not exist"),
        ("s3://bucket/a", "PG401", "is an address"),
    ):
        with pytest.raises(OpError, match=said) as error:
            find_shards(str(tmp_path), path, (".tfrecord",))
        assert error.value.code == code
        assert error.value.help
    root, found = find_shards(str(tmp_path), ["data/*-0.tfrecord", "data"], (".tfrecord",))
    assert ([shard.key for shard in found], root) == (["train-0.tfrecord"], str(tmp_path / "data"))


@pytest.mark.parametrize("lengths", [
    [0, 1, 5000, 3, 70000],
    *(pytest.param(lengths, marks=pytest.mark.nightly) for lengths in ([10] * 20_000, [300_000, 1])),
], ids=["mixed", "many small", "large"])  # fmt: skip
def test_lengths_lead_from_record_to_record(tmp_path: Path, lengths: list[int]) -> None:
    path = tmp_path / "a.tfrecord"
    cached: dict[int, bytes] = {}
    path.write_bytes(b"".join(cached.setdefault(n, framed(bytes(n))) for n in lengths))
    found = index_tfrecord(str(path), path.stat().st_size)
    assert found.damage == ""
    assert found.lengths[:, 0].tolist() == lengths
    assert found.offsets[:, 0].tolist() == (np.cumsum([0, *(n + 16 for n in lengths)])[:-1] + 12).tolist()


def test_every_cut_and_every_damaged_length_is_found(tmp_path: Path) -> None:
    whole = b"".join(framed(bytes([i]) * (10 + i)) for i in range(6))
    ends = np.cumsum([0, *(26 + i for i in range(6))]).tolist()
    path = tmp_path / "a.tfrecord"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        found = index_tfrecord(str(path), size)
        before = sum(end <= size for end in ends) - 1
        assert len(found.offsets) == before
        assert bool(found.damage) == (size not in ends)
        if found.damage:
            assert f"at byte {ends[before]}, record {before}" in found.damage
    for place in range(len(whole)):
        record = sum(end <= place for end in ends) - 1
        for value in (whole[place] ^ 1, whole[place] ^ 128, 0 if whole[place] else 255):
            path.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            found = index_tfrecord(str(path), len(whole))
            if place - ends[record] < 12:
                assert f"record {record}:" in found.damage
                assert len(found.offsets) == record
            else:
                assert (found.damage, len(found.offsets)) == ("", 6), "what lies in a record is no matter of the index"


def test_only_shards_that_are_new_or_changed_are_indexed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, seen = tmp_path / "kept", []

    def of(path: str, size: int) -> ShardRecords:
        seen.append(os.path.basename(path))
        return index_tfrecord(path, size)

    def indexed() -> tuple[list[str], list[int]]:
        seen.clear()
        found = build_index(shards(tmp_path / "d"), of, parts=1, name="x", folder=folder)
        again = build_index(shards(tmp_path / "d"), index_tfrecord, parts=1, name="y", folder=None)
        assert np.array_equal(found.offsets, again.offsets)
        assert np.array_equal(found.lengths, again.lengths)
        assert found.digests == again.digests
        return sorted(seen), found.rows.tolist()

    for i in range(4):
        write_tfrecord(tmp_path / "d" / f"{i}.tfrecord", [bytes(i)] * (i + 1))
    assert indexed() == (["0.tfrecord", "1.tfrecord", "2.tfrecord", "3.tfrecord"], [1, 2, 3, 4])
    assert indexed() == ([], [1, 2, 3, 4])
    write_tfrecord(tmp_path / "d" / "2.tfrecord", [b"new"] * 9)
    (tmp_path / "d" / "0.tfrecord").unlink()
    assert indexed() == (["2.tfrecord"], [2, 9, 4])
    assert len(list(folder.iterdir())) == 1
    for content in (b"", b"junk", next(folder.iterdir()).read_bytes()[:-1]):
        next(folder.iterdir()).write_bytes(content)
        assert indexed() == (["1.tfrecord", "2.tfrecord", "3.tfrecord"], [2, 9, 4]), "a damaged index is made again"


def test_sets_of_shards_in_one_folder_are_kept_apart(tmp_path: Path) -> None:
    seen: list[str] = []

    def of(path: str, size: int) -> ShardRecords:
        seen.append(os.path.basename(path))
        return index_tfrecord(path, size)

    for name in ("train-0", "train-1", "test-0"):
        write_tfrecord(tmp_path / "d" / f"{name}.tfrecord", [name.encode()])

    def indexed() -> int:
        for path in ("train-*", "test-*"):
            build_index(find_shards(str(tmp_path / "d"), path, (".tfrecord",))[1], of, parts=1, name="x", folder=tmp_path / "kept")
        return len(seen)

    assert (indexed(), indexed()) == (3, 3)
    write_tfrecord(tmp_path / "d" / "train-20.tfrecord", [b""])
    assert indexed() == 4


def test_a_kept_index_is_mapped_and_its_memory_is_shared_with_the_graph(tmp_path: Path) -> None:
    for i in range(3):
        write_tfrecord(tmp_path / "d" / f"{i}.tfrecord", [bytes(i)] * 4)
    for folder in (tmp_path / "kept", tmp_path / "kept", None):
        found = build_index(shards(tmp_path / "d"), index_tfrecord, parts=1, name="x", folder=folder)
        for column in (found.offsets, found.lengths):
            assert shareable(column) is column
            assert isinstance(column, np.memmap) is (folder is not None)


def test_what_is_indexed_before_an_interruption_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "_EVERY", 0.0)
    for i in range(6):
        write_tfrecord(tmp_path / "d" / f"{i}.tfrecord", [bytes(i)] * (i + 1))
    done: list[str] = []

    def of(path: str, size: int) -> ShardRecords:
        if path.endswith("4.tfrecord") and not done:
            raise KeyboardInterrupt
        return index_tfrecord(path, size)

    with pytest.raises(KeyboardInterrupt):
        build_index(shards(tmp_path / "d"), of, parts=1, name="x", folder=tmp_path / "kept")
    ticks: list[int] = []
    done.append("")
    found = build_index(shards(tmp_path / "d"), of, parts=1, name="x", folder=tmp_path / "kept", progress=ticks.append)
    assert found.rows.tolist() == [1, 2, 3, 4, 5, 6]
    assert ticks == [5, 6], "four were there"
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_a_source_lists_its_shards_and_what_is_damaged(tmp_path: Path) -> None:
    for i, n in enumerate((3, 0, 5)):
        write_tfrecord(tmp_path / f"{i}.tfrecord", examples(i, n))
    source = TFRecord(path="*.tfrecord", features=FEATURES)
    listing = source.list(tmp_path)
    assert listing.shards is not None
    assert listing.shards.rows.tolist() == [3, 0, 5]
    assert (list(listing.keys), listing.class_names) == (["0.tfrecord", "1.tfrecord", "2.tfrecord"], tuple("0123"))
    (note,) = listing.notes
    assert (note.code, note.severity) == ("PG411", "warning")
    assert note.message == f"1 file holds no record: {str(tmp_path / '1.tfrecord')!r}"
    assert listing.reader().column("label", np.array([2, 0])).tolist() == [2, 3, 0, 1, 2, 0, 1, 2]  # type: ignore[union-attr]
    whole, empty = (tmp_path / "2.tfrecord").read_bytes(), (tmp_path / "1.tfrecord").stat().st_mtime_ns
    (tmp_path / "2.tfrecord").write_bytes(whole[:-1])
    (note, _) = source.list(tmp_path).notes
    assert (note.code, note.severity) == ("PG430", "error")
    assert f"{str(tmp_path / '2.tfrecord')!r} is damaged at byte" in note.message
    (tmp_path / "1.tfrecord").write_bytes(b"\x1f\x8b" + bytes(100))
    with pytest.raises(OpError, match=r"1\.tfrecord' is compressed by gzip"):
        source.list(tmp_path)
    (tmp_path / "1.tfrecord").write_bytes(b"\x1f\x8c" + bytes(100))
    assert "it is not a TFRecord file" in source.list(tmp_path).notes[0].message
    (tmp_path / "1.tfrecord").write_bytes(b"")
    os.utime(tmp_path / "1.tfrecord", ns=(empty, empty))
    with pytest.raises(DataError, match=r"2\.tfrecord has .* bytes, but had"):
        listing.reader().check()
    (tmp_path / "2.tfrecord").write_bytes(whole)
    os.utime(tmp_path / "0.tfrecord", ns=(1, 1))
    with pytest.raises(DataError, match=r"0\.tfrecord was written to after it was indexed"):
        listing.reader().check()


@pytest.mark.parametrize(
    ("feature", "said"),
    [
        ({"image": {"kind": "image", "key": "picture"}}, "has no key 'picture'"),
        ({"image": {"kind": "image", "key": "label"}}, "'label' of the first record holds one int64, but `image` needs the bytes"),
        ({"label": {"kind": "label", "key": "point"}}, "holds float32 of shape \\[2\\], but `label` needs one class index"),
        ({"point": {"kind": "tensor"}}, "holds float32 of shape \\[2\\], but `point` needs one number"),
        ({"point": {"kind": "weight"}}, "`point` needs one number"),
    ],
)
def test_a_feature_that_the_records_do_not_have_is_told(tmp_path: Path, feature: dict[str, Any], said: str) -> None:
    write_tfrecord(tmp_path / "a.tfrecord", examples(0, 3))
    with pytest.raises(OpError, match=said) as error:
        TFRecord(path="a.tfrecord", features={"image": {"kind": "image"}} | feature).list(tmp_path)
    assert error.value.code == "PG431"


def test_classes_come_from_all_labels_where_none_are_given(tmp_path: Path) -> None:
    for i in range(2):
        write_tfrecord(tmp_path / f"{i}.tfrecord", examples(i, 5))
    for key, names in (("label", tuple("0123")), ("name", tuple(f"class {i}" for i in range(4)))):
        source = TFRecord(path=".", features={"image": {"kind": "image"}, "label": {"kind": "label", "key": key}})
        source.keep_index_in(tmp_path / ".kept")
        for _ in range(2):
            listing = source.list(tmp_path)
            assert listing.class_names == names
            assert listing.reader().column("label", np.array([0, 1])).tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]  # type: ignore[union-attr]
            assert [note.code for note in listing.notes if note.code != "PG411"] == ["PG432"]
    few = TFRecord(path=".", features={"image": {"kind": "image"}, "label": {"kind": "label", "classes": 3}}).list(tmp_path).reader()
    with pytest.raises(OpError, match=r"the label of .*/0\.tfrecord#3 is 3, but 3 classes are 0 to 2"):
        few.column("label", np.array([0]))
