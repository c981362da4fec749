"""Files of records that a library reads: what they hold, in any order, and what becomes of damaged ones. No TensorFlow."""

from __future__ import annotations

import io
import os
import random
import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipegen
from benchmarks.written_stores import example, write_array_record, write_arrow, write_hdf5, write_lmdb, write_sqlite
from pipegen.ops.sources.array_record import ArrayRecords
from pipegen.ops.sources.arrow import ArrowTables
from pipegen.ops.sources.hdf5 import Hdf5Sets
from pipegen.ops.sources.stores import base
from pipegen.ops.sources.stores.base import Store
from pipegen.ops.sources.stores.field_types import FieldType, StoreError
from pipegen.ops.sources.stores.lmdb_keys import list_values
from pipegen.ops.sources.stores.sqlite_rows import SqliteRows
from pipegen.phases.compilation import collect_data

RECORDS = [(random.Random(i).randbytes(30 + 7 * i) + b"\0" * (i % 3), i % 5) for i in range(60)]
"""Images that are none, of which some end in zeros, and their classes."""
FORMATS: list[tuple[type[Store], Any, dict[str, Any]]] = [
    (ArrowTables, write_arrow, {"rows": 7}),
    (ArrowTables, write_arrow, {"rows": 25, "footer": True}),
    (Hdf5Sets, write_hdf5, {}),
    (Hdf5Sets, write_hdf5, {"chunks": (8,)}),
    (Hdf5Sets, write_hdf5, {"chunks": (8,), "compression": "gzip"}),
    (SqliteRows, write_sqlite, {}),
]
IDS = ["arrow stream", "arrow file", "hdf5", "hdf5 in chunks", "hdf5 compressed", "sqlite"]


@pytest.fixture(params=FORMATS, ids=IDS, scope="module")
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    kind, write, options = request.param
    path = tmp_path_factory.mktemp("store") / "file"
    write(path, RECORDS, **options)
    return kind(str(path))


@given(st.lists(st.integers(0, len(RECORDS) - 1), min_size=1, max_size=12))
def test_rows_are_read_in_any_order(store: Store, rows: list[int]) -> None:
    images, labels = store.read(("image", "label"), np.array(rows))
    assert images.tolist() == [RECORDS[row][0] for row in rows]
    assert labels.tolist() == [RECORDS[row][1] for row in rows]


def test_it_says_what_it_holds(store: Store) -> None:
    assert store.rows == 60
    columns = store.columns()
    assert columns["image"] == FieldType("bytes")
    assert columns["label"] == FieldType("int64")
    assert np.concatenate([*store.whole("label")]).tolist() == [label for _, label in RECORDS]
    assert np.concatenate([*store.whole("image")]).tolist() == [image for image, _ in RECORDS]


@pytest.mark.parametrize("group", [1, 8])
def test_array_records_are_whole_messages(tmp_path: Path, group: int) -> None:
    pytest.importorskip("array_record")
    write_array_record(tmp_path / "a", RECORDS, group)
    store = ArrayRecords(str(tmp_path / "a"))
    (found,) = store.read(("",), np.array([59, 0, 7, 59]))
    assert found.tolist() == [example(*RECORDS[row]) for row in (59, 0, 7, 59)]
    assert (store.rows, store.at_once) == (60, group)
    with pytest.raises(StoreError, match="out of bound"):
        store.read(("",), np.array([60]))


def test_a_cut_array_record_file_is_told(tmp_path: Path) -> None:
    pytest.importorskip("array_record")
    write_array_record(tmp_path / "a", RECORDS)
    whole = (tmp_path / "a").read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"junk" * 99):
        (tmp_path / "a").write_bytes(content)
        with pytest.raises(StoreError, match="no index at its end"):
            ArrayRecords(str(tmp_path / "a"))


def test_what_is_flipped_in_an_array_record_is_found_by_its_checksum(tmp_path: Path) -> None:
    pytest.importorskip("array_record")
    write_array_record(tmp_path / "a", RECORDS)
    content = bytearray((tmp_path / "a").read_bytes())
    content[bytes(content).find(RECORDS[40][0][8:20])] ^= 255
    (tmp_path / "a").write_bytes(content)
    store = ArrayRecords(str(tmp_path / "a"))
    with pytest.raises(StoreError, match="chunk data hash mismatch"):
        store.read(("",), np.array([40]))
    assert store.read(("",), np.array([41, 39]))[0].tolist() == [example(*RECORDS[41]), example(*RECORDS[39])]


def damaged(content: bytes, how: random.Random) -> bytes:
    """Content with a piece cut off its end, a few bits flipped, or a stretch zeroed."""
    changed = bytearray(content)
    kind = how.choice(["cut", "flip", "zero"])
    if kind == "cut":
        return bytes(changed[: how.randrange(len(changed))])
    if kind == "flip":
        for _ in range(how.choice([1, 8, 64])):
            changed[how.randrange(len(changed))] ^= 1 << how.randrange(8)
    else:
        at = how.randrange(len(changed))
        length = min(how.choice([8, 64, 1000]), len(changed) - at)
        changed[at : at + length] = bytes(length)
    return bytes(changed)


@pytest.mark.parametrize(("kind", "write", "seed"), [(SqliteRows, write_sqlite, 1)])
def test_damage_is_an_error_or_a_wrong_value_and_never_the_end(tmp_path: Path, kind: type[Store], write: Any, seed: int) -> None:
    write(tmp_path / "a", RECORDS)
    content, how, told = (tmp_path / "a").read_bytes(), random.Random(seed), 0
    for _ in range(25):
        (tmp_path / "a").write_bytes(damaged(content, how))
        try:
            store = kind(str(tmp_path / "a"))
            store.read(("image", "label"), np.arange(min(store.rows, 60)))
            store.close()
        except (StoreError, KeyError):
            told += 1
    assert told, "some damage shows"


def test_values_of_lmdb_are_found_in_the_file(tmp_path: Path) -> None:
    pytest.importorskip("lmdb")
    write_lmdb(tmp_path / "a", RECORDS)
    content, found = (tmp_path / "a").read_bytes(), list_values(str(tmp_path / "a"))
    values = [content[at : at + n] for at, n in zip(found.offsets.tolist(), found.lengths.tolist(), strict=True)]
    images = {b"image-%09d" % i: image for i, (image, _) in enumerate(RECORDS)}
    labels = {b"label-%09d" % i: b"%d" % label for i, (_, label) in enumerate(RECORDS)}
    assert dict(zip(found.keys, values, strict=True)) == images | labels | {b"num-samples": b"60"}


def too_long(content: bytes) -> bytes:
    """Lets the node of a key say that its value has 2 GiB."""
    head = len(RECORDS[59][0]).to_bytes(2, "little")  # a node is the length, its upper half, flags, the length of the key, and the key
    at = next(m.start() for m in re.finditer(b"image-000000059", content) if content[m.start() - 8 : m.start() - 6] == head)
    return content[: at - 6] + b"\xff\x3f" + content[at - 4 :]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content[: len(content) // 2], "the file is truncated: it has"),
        (lambda content: content[:8192] + bytes(len(content) - 8192), "MDB_CORRUPTED"),
        (too_long, "is outside of it|MDB_CORRUPTED"),
        (lambda content: b"junk" * 3000, "not an LMDB file"),
    ],
    ids=["cut", "zeroed", "a length", "junk"],
)
def test_a_damaged_lmdb_file_ends_a_process_that_is_not_ours(tmp_path: Path, change: Any, said: str) -> None:
    pytest.importorskip("lmdb")
    write_lmdb(tmp_path / "a", RECORDS)
    (tmp_path / "a").write_bytes(change((tmp_path / "a").read_bytes()))
    with pytest.raises(StoreError, match=said):
        list_values(str(tmp_path / "a"))


def test_offsets_of_an_arrow_file_are_checked_before_they_are_followed(tmp_path: Path) -> None:
    write_arrow(tmp_path / "a", RECORDS, rows=60)
    content = (tmp_path / "a").read_bytes()
    ends = np.cumsum([len(image) for image, _ in RECORDS]).astype("<i4")
    at = content.find(ends[:4].tobytes())
    wrong = content[: at + 40] + np.array([2**30], "<i4").tobytes() + content[at + 44 :]
    (tmp_path / "a").write_bytes(wrong)
    store = ArrowTables(str(tmp_path / "a"))
    assert store.read(("image",), np.array([3]))[0][0] == RECORDS[3][0]
    with pytest.raises(StoreError, match="the file is damaged: the value has the bytes"):
        store.read(("image",), np.array([10]))
    (tmp_path / "a").write_bytes(content[:-2000])
    with pytest.raises(StoreError, match="Expected to be able to read"):
        ArrowTables(str(tmp_path / "a"))


def test_a_zeroed_heap_of_an_hdf5_file_is_an_error_and_no_endless_loop(tmp_path: Path) -> None:
    write_hdf5(tmp_path / "a", RECORDS)
    content = (tmp_path / "a").read_bytes()
    at = content.find(RECORDS[20][0])
    (tmp_path / "a").write_bytes(content[: at - 16] + bytes(16) + content[at:])
    store = Hdf5Sets(str(tmp_path / "a"))
    assert store.read(("image",), np.array([3]))[0][0] == RECORDS[3][0]
    with pytest.raises(StoreError, match="its global heap has no object"):
        store.read(("image",), np.array([20]))
    (tmp_path / "a").write_bytes(content[:-100])
    with pytest.raises(StoreError, match="truncated file"):
        Hdf5Sets(str(tmp_path / "a"))


def test_arrays_and_numbers_of_hdf5_are_read_where_they_lie(tmp_path: Path) -> None:
    import h5py

    values = np.random.default_rng(0).integers(0, 60000, (20, 3, 4)).astype(">u2")
    with h5py.File(tmp_path / "a", "w", userblock_size=512) as file:
        file["plain"] = values
        file.create_dataset("chunks", data=values, chunks=(6, 3, 4))
        file.create_dataset("tiles", data=values, chunks=(6, 2, 2))
        file.create_dataset("packed", data=values, chunks=(6, 3, 4), compression="gzip")
        file["of/two"] = np.array([b"cat", b"dogs"] * 10)
        file["names"] = np.array(["bär", "x"] * 10, dtype=h5py.string_dtype())
        file["kinds"] = np.array([1, 0] * 10, h5py.enum_dtype({"cat": 0, "dog": 1}, "u1"))
        file.create_dataset("never", (20, 2), "u1")
        file["other"] = np.arange(7)
        file["one"] = 3.0
        file["refs"] = np.array([file["one"].ref] * 20, h5py.ref_dtype)
    store = Hdf5Sets(str(tmp_path / "a"), "plain")
    assert list(store.columns()) == ["plain"]
    keys = ("plain", "chunks", "tiles", "packed", "of/two", "names", "kinds", "never")
    assert sorted(Hdf5Sets(str(tmp_path / "a"), "nothing").columns()) == sorted([*keys, "other"]), (
        "so that the one that is meant can be named"
    )
    store = Hdf5Sets(str(tmp_path / "a"), *keys, "refs", "one")
    assert tuple(store.columns()) == keys
    assert store.at_once == 6
    rows = np.array([19, 0, 6, 6])
    *arrays, two, names, kinds, never = store.read(keys, rows)
    for array in arrays:
        assert array.dtype == np.uint16
        np.testing.assert_array_equal(array, values[rows])
    assert two.tolist() == [b"dogs", b"cat", b"cat", b"cat"]
    assert names.tolist() == [b"x", "bär".encode(), "bär".encode(), "bär".encode()]
    assert kinds.tolist() == [0, 1, 1, 1]
    assert not never.any()
    with pytest.raises(StoreError, match="its datasets differ in length: `plain` has 20 rows, `other` has 7 rows"):
        Hdf5Sets(str(tmp_path / "a"), "plain", "other")


def test_nested_columns_of_arrow_and_lists_of_numbers(tmp_path: Path) -> None:
    import pyarrow as pa

    table = pa.table(
        {
            "meta": [{"id": i, "name": f"n{i}"} for i in range(9)],
            "vector": [[i, i + 1.5] for i in range(9)],
            "grid": [[[i, 2], [3, 4], [5, 6]] for i in range(9)],
            "ragged": [[0] * (1 + i % 2) for i in range(9)],
            "flag": [i % 2 == 0 for i in range(9)],
            "kind": pa.array(["cat", "dog", "cat"] * 3).dictionary_encode(),
            "gaps": [i if i != 4 else None for i in range(9)],
            "words": [[str(i)] for i in range(9)],
        }
    )
    with pa.OSFile(str(tmp_path / "a"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table.slice(0, 5))
        writer.write_table(table.slice(5))
    store = ArrowTables(str(tmp_path / "a"))
    columns = store.columns()
    assert columns["grid"] == FieldType("int64", (3, 2))
    assert columns["meta.name"] == FieldType("text")
    assert "words" not in columns
    rows = np.array([8, 0])
    ids, names, vectors, grids, flags = store.read(("meta.id", "meta.name", "vector", "grid", "flag"), rows)
    assert (ids.tolist(), names.tolist(), flags.tolist()) == ([8, 0], [b"n8", b"n0"], [True, True])
    assert vectors.tolist() == [[8, 9.5], [0, 1.5]]
    assert grids[0].tolist() == [[8, 2], [3, 4], [5, 6]]
    assert columns["kind"] == FieldType("text")
    assert store.read(("kind",), np.array([0, 1, 8]))[0].tolist() == [b"cat", b"dog", b"cat"]
    with pytest.raises(StoreError, match="the record has no value here"):
        store.read(("gaps",), np.array([3, 4]))
    with pytest.raises(StoreError, match=r"has the shape \(2,\), but that of the first record \(1,\)"):
        store.read(("ragged",), np.array([1]))


def test_compressed_arrow_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa

    table = pa.table({"x": list(range(1000))})
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.OSFile(str(tmp_path / "a"), "wb") as out, pa.ipc.new_file(out, table.schema, options=options) as writer:
        writer.write_table(table)
    with pytest.raises(StoreError, match="its batches are compressed"):
        ArrowTables(str(tmp_path / "a"))


def test_arrays_in_sqlite(tmp_path: Path) -> None:
    """Of one shape they are numbers; lists may have any length."""

    def npy(values: Any) -> bytes:
        stream = io.BytesIO()
        np.save(stream, values)
        return stream.getvalue()

    given = np.arange(12, dtype=np.float32).reshape(4, 3)
    with sqlite3.connect(tmp_path / "a") as opened:
        opened.execute("CREATE TABLE t (v BLOB, w BLOB)")
        opened.executemany("INSERT INTO t VALUES (?, ?)", [(npy(row), npy(row[: i % 3])) for i, row in enumerate(given)])
    opened.close()
    store = SqliteRows(str(tmp_path / "a"))
    assert store.columns()["v"].numeric
    assert store.columns()["v"].shape == (3,)
    np.testing.assert_array_equal(store.read(("v",), np.array([3, 0, 1]))[0], given[[3, 0, 1]])
    assert [own.tolist() for own in store.lists("w") or ()] == [row[: i % 3].tolist() for i, row in enumerate(given)]
    with pytest.raises(StoreError, match=r"its `w` is not float32 of shape \[0\] as an `.npy` file"):
        store.read(("w",), np.array([0, 1]))


@pytest.mark.timeout(60)
def test_a_missing_label_in_sqlite_is_named(tmp_path: Path) -> None:
    """What reads the column has the error when the row is looked for."""
    with sqlite3.connect(tmp_path / "a.sqlite") as opened:
        opened.execute("CREATE TABLE t (image BLOB, label INT)")
        opened.executemany("INSERT INTO t VALUES (?, ?)", [(b"x", None if i == 5 else i % 2) for i in range(8)])
    opened.close()
    source = {"sqlite": {"path": str(tmp_path / "a.sqlite"), "features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}}
    spec = {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": 8}}], "batch": {"size": 2}}
    with pytest.raises(pipegen.SpecError, match=r"the label of .*a.sqlite#5 is missing"):
        collect_data(pipegen.load(spec))


def test_a_first_image_that_is_missing_is_an_error_of_its_record(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.sqlite") as opened:
        opened.execute("CREATE TABLE t (image BLOB, label INT)")
        opened.executemany("INSERT INTO t VALUES (?, ?)", [(None if i == 0 else b"x", i % 2) for i in range(8)])
    opened.close()
    source = {"sqlite": {"path": str(tmp_path / "a.sqlite"), "features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}}
    listing = collect_data(
        pipegen.load({"pipegen": 1, "source": source, "transforms": [{"resize": {"size": 8}}], "batch": {"size": 2}})
    ).listing
    with pytest.raises(StoreError, match="its `image` is NULL"):
        listing.reader().stored("image", np.array([0]), np.array([0]))


def test_tables_of_sqlite(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a") as opened:
        opened.execute('CREATE TABLE "my ""table" (name TEXT, "weight ""kg" REAL, size INT, anything)')
        opened.executemany('INSERT INTO "my ""table" VALUES (?, ?, ?, ?)', [(f"n{i}", i / 2, i, b"x") for i in range(30)])
        opened.execute('DELETE FROM "my ""table" WHERE size % 7 = 3')
        opened.execute("CREATE TABLE other (id INT PRIMARY KEY) WITHOUT ROWID")
    opened.close()
    with pytest.raises(StoreError, match='it has 2 tables, `my "table`, `other`'):
        SqliteRows(str(tmp_path / "a"))
    with pytest.raises(StoreError, match="it has no table `nothing`"):
        SqliteRows(str(tmp_path / "a"), "nothing")
    with pytest.raises(StoreError, match="WITHOUT ROWID"):
        SqliteRows(str(tmp_path / "a"), "other")
    store = SqliteRows(str(tmp_path / "a"), 'my "table')
    left = [i for i in range(30) if i % 7 != 3]
    assert store.rows == len(left)
    keys = ("name", 'weight "kg', "size", "anything")
    assert list(store.columns().values()) == [FieldType("text"), FieldType("float64"), FieldType("int64"), FieldType("bytes")]
    names, weights, sizes, anything = store.read(keys, np.array([25, 3]))
    assert (sizes.tolist(), names.tolist()) == ([left[25], left[3]], [b"n%d" % left[25], b"n%d" % left[3]])
    assert weights.tolist() == [left[25] / 2, left[3] / 2]
    assert anything.tolist() == [b"x", b"x"]
    with sqlite3.connect(tmp_path / "a") as opened:
        opened.execute('UPDATE "my ""table" SET size = NULL WHERE size = 0')
        opened.execute('UPDATE "my ""table" SET size = \'many\' WHERE size = 1')
    opened.close()
    with pytest.raises(StoreError, match="its `size` is NULL"):
        store.read(("size",), np.array([0]))
    with pytest.raises(StoreError, match="its `size` is b'many', but others are numbers"):
        store.read(("size",), np.array([1]))
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        store._open.execute("DELETE FROM other")


def test_a_file_is_opened_once_and_another_time_when_it_has_changed(tmp_path: Path) -> None:
    write_sqlite(tmp_path / "a", RECORDS)
    path = str(tmp_path / "a")
    listed = base.stamp(path)
    first = base.opened(SqliteRows, path, listed)
    assert base.opened(SqliteRows, path, listed) is first
    os.utime(path, ns=(1, 1))
    with pytest.raises(StoreError, match="has changed since its records were listed"):
        base.opened(SqliteRows, path, listed)
    assert base.opened(SqliteRows, path, base.stamp(path)) is not first
    os.unlink(path)
    with pytest.raises(StoreError, match="cannot be opened: No such file"):
        base.opened(SqliteRows, path, listed)


def test_a_forked_process_opens_files_of_its_own(tmp_path: Path) -> None:
    write_sqlite(tmp_path / "a", RECORDS)
    path = str(tmp_path / "a")
    first = base.opened(SqliteRows, path)
    child = os.fork()
    if not child:
        other = base.opened(SqliteRows, path)
        same = other is first or other.read(("label",), np.array([7]))[0].tolist() != [RECORDS[7][1]]
        os._exit(int(same))
    assert os.waitpid(child, 0)[1] == 0
    assert first.read(("label",), np.array([7]))[0].tolist() == [RECORDS[7][1]]


def test_the_least_used_files_are_let_go_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "MOST_OPEN", 2)
    for name in "abc":
        write_sqlite(tmp_path / name, RECORDS[:3])
    kept = base.opened(SqliteRows, str(tmp_path / "a"))
    for name in "bc":
        base.opened(SqliteRows, str(tmp_path / name))
    assert len(base.HANDLES.recent) == 2
    assert base.opened(SqliteRows, str(tmp_path / "a")) is kept, "one that is in use is not opened a second time"


def test_the_extras_that_are_named_bring_the_libraries() -> None:
    root = Path(__file__).parents[3]
    extras = (root / "pyproject.toml").read_text(encoding="utf-8").partition("[project.optional-dependencies]")[2]
    texts = "".join(file.read_text(encoding="utf-8") for file in (root / "pipegen/ops/sources").rglob("*.py"))
    named = re.findall(r'(?:needs|MissingLibrary)\("\S+, "([\w-]+)"', texts)
    assert sorted(named) == ["array-record", "arrow", "hdf5", "lmdb", "parquet", "zarr"]
    assert all(f"\n{extra} = [" in extras for extra in named)
