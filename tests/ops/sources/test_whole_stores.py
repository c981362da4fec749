"""Files that a library reads are whole, or it is told: libraries stop at damage, and give the fill value for what is gone."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from benchmarks.written_stores import write_arrow, write_hdf5, write_lmdb, write_sqlite
from pipegen.errors import OpError
from pipegen.ops.registry import sources
from pipegen.ops.sources.hdf5 import Hdf5Sets
from pipegen.ops.sources.huggingface import Huggingface
from pipegen.ops.sources.records.index import counted
from pipegen.ops.sources.table_sources import Excel
from pipegen.ops.sources.tables.files import read_table
from pipegen.ops.sources.tables.readings import JsonLinesTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

RECORDS = [(random.Random(i).randbytes(60 + 11 * i), i % 5) for i in range(40)]
FEATURES: dict[str, Any] = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 5}}


def pictures(rows: int = 47) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).integers(1, 255, (rows, 6, 5, 3), dtype=np.uint8)


def write_hdf5_arrays(path: Path, **layout: Any) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", libver=layout.pop("libver", "earliest")) as file:
        file.create_dataset("image", data=pictures(40), **layout)
        file["label"] = np.arange(40) % 5


def write_npy(path: Path) -> None:
    with path.open("wb") as stream:
        np.save(stream, pictures(40))


def write_npz(path: Path) -> None:
    with path.open("wb") as stream:
        np.savez(stream, image=pictures(40), label=np.arange(40) % 5)


def write_parquet(path: Path, **how: Any) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"image": [image for image, _ in RECORDS], "label": [label for _, label in RECORDS]})
    pq.write_table(table, path, row_group_size=9, **how)


def records(op: str) -> Callable[[Path], int]:
    def count(path: Path) -> int:
        found = sources()[op](path=str(path), features=FEATURES).index_shard(str(path), path.stat().st_size)
        if found.damage:
            raise OpError("PG430", found.damage)
        return len(found.offsets)

    return count


def rows_of_parquet(path: Path) -> int:
    table = sources()["parquet"](path=str(path), features={"image": {"kind": "image"}, "label": {"kind": "label"}}).read(path.parent)
    assert len(list(table.columns[1].read())) == table.num_rows
    return int(table.num_rows)


def rows_of_arrays(path: Path) -> int:
    own = {"path": str(path)} if path.suffix == ".npy" else {}
    source = sources()["arrays"](features={"image": {"kind": "image", **own}}, **({} if own else {"path": str(path)}))
    listing = source.list(path.parent)
    if listing.notes and not len(listing.keys):
        raise OpError(listing.notes[0].code, listing.notes[0].message)
    return len(listing.keys)


FORMS: dict[str, tuple[str, Callable[[Path], None], Callable[[Path], int]]] = {
    "arrow stream": (".arrow", lambda path: write_arrow(path, RECORDS, 7), records("arrow")),
    "arrow file": (".arrow", lambda path: write_arrow(path, RECORDS, 7, footer=True), records("arrow")),
    "hdf5": (".h5", lambda path: write_hdf5(path, RECORDS), records("hdf5")),
    "hdf5 arrays": (".h5", write_hdf5_arrays, records("hdf5")),
    "hdf5 chunks": (".h5", lambda path: write_hdf5_arrays(path, chunks=(5, 6, 5, 3), compression="gzip"), records("hdf5")),
    "hdf5 parts": (".h5", lambda path: write_hdf5_arrays(path, chunks=(5, 3, 5, 3)), records("hdf5")),
    "hdf5 latest": (".h5", lambda path: write_hdf5_arrays(path, chunks=(1, 6, 5, 3), libver="latest"), records("hdf5")),
    "sqlite": (".db", lambda path: write_sqlite(path, RECORDS), records("sqlite")),
    "lmdb": (".lmdb", lambda path: write_lmdb(path, RECORDS), records("lmdb")),
    "parquet": (".parquet", write_parquet, rows_of_parquet),
    "parquet with indexes": (".parquet", lambda path: write_parquet(path, write_page_index=True), rows_of_parquet),
    "npy": (".npy", write_npy, rows_of_arrays),
    "npz": (".npz", write_npz, rows_of_arrays),
}
"""By name: the ending, what writes 40 records to a path, and what counts them or raises an error."""
LIBRARIES = {"arrow": "pyarrow", "parquet": "pyarrow", "hdf5": "h5py", "lmdb": "lmdb"}
ABORTS = {"parquet", "lmdb"}
"""Forms of which a damaged file can end the process that PyArrow or LMDB runs in; LMDB runs in one of its own."""


@pytest.fixture
def whole(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, bytes, Callable[[Path], int]]:
    name = request.param
    if name.split()[0] in LIBRARIES:
        pytest.importorskip(LIBRARIES[name.split()[0]], exc_type=ImportError)
    ending, write, count = FORMS[name]
    path = tmp_path / f"a{ending}"
    write(path)
    assert count(path) == 40
    return path, path.read_bytes(), count


def outcome(path: Path, content: bytes, count: Callable[[Path], int]) -> int | str:
    """The number of records that are found, or `told`."""
    path.write_bytes(content)
    try:
        return count(path)
    except OpError as error:
        return "told" if error.message.strip() else "an error without a word"


def cuts(content: bytes, most: int) -> Iterator[int]:
    """Places to cut at: the ends of pages and of messages, and others."""
    draw = random.Random(len(content))
    yield from {len(content) - n for n in (1, 4, 8, 12, 16, 64, 4096) if n < len(content)}
    marks = [at for at in range(0, len(content), 8) if content[at : at + 4] == b"\xff\xff\xff\xff"]
    yield from draw.sample(marks, min(len(marks), most))
    yield from (draw.randrange(len(content)) for _ in range(most))


MANY = [pytest.param(name, 20 if name == "lmdb" else 400, marks=pytest.mark.nightly) for name in FORMS]
FEW = [(name, 12) for name in FORMS if name != "lmdb"]


@pytest.mark.parametrize(("whole", "most"), [*FEW, *MANY], indirect=["whole"])
def test_no_cut_loses_records_in_silence(whole: Any, most: int) -> None:
    path, content, count = whole
    assert {outcome(path, content[:at], count) for at in cuts(content, most)} <= {40, "told"}
    assert outcome(path, content[: len(content) // 2], count) == "told"


@pytest.mark.by_day(6)
@pytest.mark.parametrize("whole", FORMS, indirect=True)
def test_what_follows_the_end_is_told(whole: Any, request: pytest.FixtureRequest) -> None:
    path, content, count = whole
    assert outcome(path, content + content, count) == "told"
    assert outcome(path, content + b"x", count) == (40 if path.suffix == ".lmdb" else "told")  # room that was asked for
    front = b"x" * 8 + content
    assert outcome(path, front, count) == "told"


@pytest.mark.parametrize(
    ("whole", "every"),
    [
        *((name, 61) for name in FORMS if name.split()[0] not in ABORTS),  # by day `test_stores.py` damages a file of LMDB
        *(pytest.param(name, 1, marks=pytest.mark.nightly) for name in FORMS if name.split()[0] not in ABORTS),
        pytest.param("lmdb", 101, marks=pytest.mark.nightly),
    ],
    indirect=["whole"],
)
def test_eight_zeroed_bytes_lose_no_record_in_silence(whole: Any, every: int) -> None:
    """As a bad sector leaves them; also where they are in the index of chunks."""
    path, content, count = whole
    found = set()
    for at in range(0, len(content) - 8, 8 * every):
        changed = content[:at] + bytes(8) + content[at + 8 :]
        if changed != content:
            found.add(outcome(path, changed, count))
    assert found <= {40, "told"}


@pytest.mark.parametrize("whole", ["arrow stream", "hdf5 chunks", "sqlite"], indirect=True)
def test_an_index_of_an_earlier_version_hides_no_loss(whole: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, content, _ = whole
    path.write_bytes(content + content)
    op = {".arrow": "arrow", ".h5": "hdf5", ".db": "sqlite"}[path.suffix]
    source = sources()[op](path=str(path), features=FEATURES)
    source.keep_index_in(tmp_path / "kept")
    with monkeypatch.context() as before:
        before.setattr("pipegen.ops.sources.records.index.FORMAT", 0)
        before.setattr(type(source), "index_shard", lambda self, path, size: counted(40))
        assert source._indexed(tmp_path, None).index.rows.tolist() == [40]  # as it was counted then
    with pytest.raises(OpError, match="a second file") as error:
        source.list(tmp_path)
    assert error.value.code == "PG430"


# Arrow


def test_a_stream_that_is_cut_between_two_messages_is_told(tmp_path: Path) -> None:
    """`more/01`: 20 of 40 records were read. The last bytes of a batch may look like the mark of the end."""
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)
    table = pa.table(
        {"image": pa.array([b""] * 40), "label": pa.array([1, -1] * 20, pa.int32()), "end": pa.array([-1, 0] * 20, pa.int32())}
    )
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=10)
    content, count = (tmp_path / "a.arrow").read_bytes(), records("arrow")
    starts = [
        at for at in range(8, len(content), 8) if content[at : at + 4] == b"\xff\xff\xff\xff" and content[at + 4 : at + 8] != bytes(4)
    ]
    assert len(starts) >= 4
    ends = [at for at in range(8, len(content), 8) if content[at - 8 : at] == b"\xff\xff\xff\xff\0\0\0\0"]
    for at in (*starts, *ends[:-1]):
        assert outcome(tmp_path / "a.arrow", content[:at], count) == "told"
    found = sources()["arrow"](path=str(tmp_path / "b.arrow"), features=FEATURES)
    (tmp_path / "b.arrow").write_bytes(content + content)
    with pytest.raises(OpError, match="bytes follow it, as if a second file was appended"):
        found.list(tmp_path)


def test_a_damaged_schema_is_an_error_of_ours(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", exc_type=ImportError)
    write_arrow(tmp_path / "a.arrow", RECORDS, 7)
    content, draw = (tmp_path / "a.arrow").read_bytes(), random.Random(3)
    for _ in range(150):
        changed = bytearray(content)
        changed[draw.randrange(600)] ^= 1 << draw.randrange(8)
        assert outcome(tmp_path / "a.arrow", bytes(changed), records("arrow")) in (40, "told")


# Hugging Face


def test_a_set_that_was_filtered_before_it_was_saved_is_no_damage(tmp_path: Path) -> None:
    """`datasets` keeps the number of before in `dataset_info.json`."""
    pytest.importorskip("pyarrow", exc_type=ImportError)
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": list("abcde")}}
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": features, "splits": {"whole": {"num_examples": 50}}}))
    name = "data-00000-of-00001.arrow"
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}], "_split": "whole"}))
    write_arrow(tmp_path / name, RECORDS)
    source = Huggingface(path=str(tmp_path))
    (note,) = (note for note in source.list(tmp_path).notes if note.code == "PG430")
    assert (note.severity, "has 40 records, but its metadata says 50" in note.message) == ("warning", True)
    (tmp_path / "state.json").write_text(
        json.dumps({"_data_files": [{"filename": name}], "_indices_data_files": [{"filename": "i.arrow"}]})
    )
    with pytest.raises(OpError, match="a file of row indices"):
        source.list(tmp_path)


@pytest.mark.parametrize("form", ["saved", "prepared", "hub"])
def test_a_missing_file_of_a_split_is_told(tmp_path: Path, form: str) -> None:
    pytest.importorskip("pyarrow", exc_type=ImportError)
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": list("abcde")}}
    head = {"saved": "data", "prepared": "pets-train", "hub": "train"}[form]
    names = [f"{head}-{i:05}-of-00003.{'parquet' if form == 'hub' else 'arrow'}" for i in range(3)]
    for name in names:
        (write_parquet(tmp_path / name) if form == "hub" else write_arrow(tmp_path / name, RECORDS))
    if form != "hub":
        (tmp_path / "dataset_info.json").write_text(json.dumps({"features": features}))
    if form == "saved":
        (tmp_path / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names[::2]]}))
    (tmp_path / names[1]).unlink()
    with pytest.raises(OpError, match=r"1 of 3 shards is missing.*00001-of-00003"):
        Huggingface(path=str(tmp_path)).list(tmp_path)


# HDF5


def hdf5(path: Path, **features: Any) -> Any:
    return sources()["hdf5"](path=str(path), features=FEATURES | features)


def test_eight_bytes_in_the_index_of_chunks_leave_no_black_images(tmp_path: Path) -> None:
    """`attack/08`: 15 of 47 images were zeros. Each place of the index is tried, also bounds that only looking up a chunk meets."""
    h5py = pytest.importorskip("h5py")
    images = pictures()
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("image", data=images, chunks=(5, 6, 5, 3), compression="gzip")
        file["label"] = np.arange(47) % 5
    content = (tmp_path / "a.h5").read_bytes()
    tree = content.index(b"TREE\x01")
    told = 0
    for at in range(tree, tree + 24 + 11 * 56, 8):
        (tmp_path / "a.h5").write_bytes(content[:at] + bytes(8) + content[at + 8 :])
        found = hdf5(tmp_path / "a.h5").index_shard(str(tmp_path / "a.h5"), len(content))
        if found.damage:
            told += 1
            continue
        store = Hdf5Sets(str(tmp_path / "a.h5"), "image")
        try:
            for start in range(0, 47, 5):
                (read,) = store.read(("image",), np.arange(start, min(start + 5, 47)))
                assert np.array_equal(read, images[start : start + 5])
        except ValueError:
            told += 1
        finally:
            store.close()
    assert told > 20


def test_rows_that_were_never_written_are_told(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("image", (40, 6, 5, 3), np.uint8, chunks=(8, 6, 5, 3), maxshape=(None, 6, 5, 3))[:20] = pictures(20)
        file.create_dataset("label", (40,), np.int64)
        file.create_dataset("own", data=np.arange(40))
    with pytest.raises(OpError, match=r"16 of the 40 rows of `image` are not stored, from row 24 on"):
        hdf5(tmp_path / "a.h5").list(tmp_path)
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["image"][20:] = pictures(20)
    with pytest.raises(OpError, match="`label` was never written"):
        hdf5(tmp_path / "a.h5").list(tmp_path)
    assert len(hdf5(tmp_path / "a.h5", label={"kind": "tensor", "key": "own"}).list(tmp_path).shards.rows) == 1


def virtual(folder: Path, rows: int = 40) -> Path:
    h5py = pytest.importorskip("h5py")
    folder.mkdir(exist_ok=True)
    layout = h5py.VirtualLayout((rows, 6, 5, 3), np.uint8)
    for i in range(2):
        with h5py.File(folder / f"part{i}.h5", "w") as file:
            file["image"] = pictures(20)
        layout[20 * i : 20 * (i + 1)] = h5py.VirtualSource(f"part{i}.h5", "image", (20, 6, 5, 3))
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_virtual_dataset("image", layout)
        file["label"] = np.arange(rows) % 5
        file["linked"] = h5py.ExternalLink("part1.h5", "image")
    return folder / "a.h5"


def test_a_virtual_data_set_has_all_its_files(tmp_path: Path) -> None:
    """`more/01`: with one of them gone, 20 of 40 images were black. An index that was kept hides nothing."""
    h5py = pytest.importorskip("h5py")
    source = hdf5(virtual(tmp_path))
    source.keep_index_in(tmp_path / "kept")
    assert source.list(tmp_path).shards.total == 40
    part = (tmp_path / "part1.h5").read_bytes()
    (tmp_path / "part1.h5").unlink()
    with pytest.raises(OpError, match=r"its source 'part1\.h5' does not exist"):
        source.list(tmp_path)
    for write, said in (
        (lambda file: file.create_dataset("other", data=1), "is a virtual dataset, and its source"),
        (lambda file: file.create_dataset("image", data=pictures(12)), "has too few rows: 12"),
        (lambda file: file.create_dataset("image", (20, 6, 5, 3), np.uint8), "was never written"),
    ):
        with h5py.File(tmp_path / "part1.h5", "w") as file:
            write(file)
        with pytest.raises(OpError, match=said):
            hdf5(tmp_path / "a.h5").list(tmp_path)
    (tmp_path / "part1.h5").write_bytes(part)
    assert hdf5(tmp_path / "a.h5").list(tmp_path).shards.total == 40
    with pytest.raises(OpError, match=r"its sources have 3,600 of its 5,400 values"):
        hdf5(virtual(tmp_path / "longer", 60)).list(tmp_path)


def test_a_link_into_another_file_leads_to_its_values(tmp_path: Path) -> None:
    """They were looked for at their places in the file with the link."""
    store = Hdf5Sets(str(virtual(tmp_path)), "linked")
    assert np.array_equal(store.read(("linked",), np.arange(20))[0], pictures(20))


def test_values_in_another_file_are_all_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    h5py = pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    with h5py.File("a.h5", "w") as file:
        file.create_dataset("image", (40, 6, 5, 3), np.uint8, external=[("a.raw", 0, 40 * 90)])
        file["label"] = np.arange(40) % 5
    for size, said in ((None, "which does not exist"), (3000, "which is truncated: 3,000 of 3,600 bytes")):
        if size is not None:
            (tmp_path / "a.raw").write_bytes(bytes(size))
        with pytest.raises(OpError, match=said):
            hdf5(tmp_path / "a.h5").list(tmp_path)
    (tmp_path / "a.raw").write_bytes(bytes(3600))
    assert hdf5(tmp_path / "a.h5").list(tmp_path).shards.total == 40


# Zarr


def write_zarr(folder: Path, form: int, **layout: Any) -> Path:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(folder / "a.zarr"), mode="w", zarr_format=form)
    group.create_array("image", shape=(40, 6, 5, 3), chunks=(4, 6, 5, 3), dtype="uint8", **layout)[:] = pictures(40)
    group.create_array("label", shape=40, chunks=40, dtype="int64")[:] = np.arange(40) % 5
    return folder / "a.zarr"


@pytest.mark.parametrize("form", [2, 3])
def test_a_missing_chunk_is_a_warning(tmp_path: Path, form: int) -> None:
    """Zarr leaves out chunks of nothing but the fill value, so that it is no proof of a loss."""
    folder = write_zarr(tmp_path, form)
    source = sources()["zarr"](path=str(folder), features=FEATURES)
    assert source.list(tmp_path).notes == ()
    chunk = folder / "image" / ("3.0.0.0" if form == 2 else "c/3/0/0/0")
    chunk.unlink()
    (note,) = source.list(tmp_path).notes
    assert (note.code, note.severity) == ("PG430", "warning")
    assert note.message.startswith("4 records hold the fill value, since their chunks are missing: such as 'image/")
    for one in [path for path in (folder / "image").rglob("*") if path.is_file() and not path.name.startswith((".z", "zarr"))]:
        one.unlink()
    (note,) = source.list(tmp_path).notes
    assert note.message.startswith("40 records hold the fill value")


@pytest.mark.parametrize("form", [2, 3])
def test_metadata_that_hides_rows_is_told(tmp_path: Path, form: int) -> None:
    zarr = pytest.importorskip("zarr")
    folder = write_zarr(tmp_path, form)
    source = sources()["zarr"](path=str(folder), features={"image": {"kind": "image"}})
    about = folder / "image" / (".zarray" if form == 2 else "zarr.json")
    whole = about.read_text()
    told = json.loads(whole)
    told["shape"][0] = 20
    about.write_text(json.dumps(told))
    with pytest.raises(OpError, match=r"5 of its chunks are outside of it"):
        source.list(tmp_path)
    about.write_text(whole)
    zarr.consolidate_metadata(str(folder))
    told["shape"][0] = 44
    about.write_text(json.dumps(told))
    with pytest.raises(OpError, match=r"in the consolidated metadata of the group, but has \(44, 6, 5, 3\) itself"):
        source.list(tmp_path)


def test_shards_and_byte_strings_of_zarr_are_all_there(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    folder = write_zarr(tmp_path, 3, shards=(8, 6, 5, 3))
    assert sources()["zarr"](path=str(folder), features=FEATURES).list(tmp_path).notes == ()
    (folder / "image" / "c" / "1" / "0" / "0" / "0").unlink()
    (note,) = sources()["zarr"](path=str(folder), features=FEATURES).list(tmp_path).notes
    assert note.message.startswith("8 records hold the fill value")
    shutil.rmtree(folder)
    group = zarr.open_group(str(folder), mode="w")
    images: Any = np.empty(40, object)
    images[:] = [image for image, _ in RECORDS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a type that is not yet in the specification
        group.create_array("image", shape=40, chunks=8, dtype="variable_length_bytes")[:] = images
    (folder / "image" / "c" / "2").unlink()
    with pytest.raises(OpError, match="1 of the 5 chunks of `image` are missing, such as 'c/2', so its records would be empty"):
        sources()["zarr"](path=str(folder), features={"image": {"kind": "image"}}).list(tmp_path)


# SQLite and LMDB


def test_rows_in_a_log_beside_an_sqlite_file_are_told(tmp_path: Path) -> None:
    write_sqlite(tmp_path / "a.db", RECORDS[:20])
    opened = sqlite3.connect(tmp_path / "a.db")
    opened.execute("PRAGMA journal_mode=WAL")
    opened.executemany("INSERT INTO examples VALUES (?, ?)", RECORDS[20:])
    opened.commit()
    source = sources()["sqlite"](path=str(tmp_path / "a.db"), features=FEATURES)
    with pytest.raises(OpError, match=r"'a\.db-wal' beside it has changes") as error:
        source.list(tmp_path)
    assert "wal_checkpoint" in str(error.value.help)
    opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert source.list(tmp_path).shards.total == 40
    opened.close()


def test_a_journal_that_is_kept_for_the_next_time_is_no_change(tmp_path: Path) -> None:
    opened = sqlite3.connect(tmp_path / "a.db")
    opened.execute("PRAGMA journal_mode=PERSIST")
    opened.execute("CREATE TABLE examples (image BLOB, label INTEGER)")
    opened.executemany("INSERT INTO examples VALUES (?, ?)", RECORDS)
    opened.commit()
    opened.close()
    assert os.path.getsize(tmp_path / "a.db-journal")
    assert records("sqlite")(tmp_path / "a.db") == 40


def test_rows_are_counted_in_the_table_and_not_in_an_index(tmp_path: Path) -> None:
    write_sqlite(tmp_path / "a.db", RECORDS)
    with sqlite3.connect(tmp_path / "a.db") as opened:
        opened.execute("CREATE INDEX of_labels ON examples (label)")
        opened.execute("PRAGMA writable_schema=ON")
    opened.close()
    content = (tmp_path / "a.db").read_bytes()
    for page in range(1, len(content) // 4096):
        for at in (page * 4096, page * 4096 + 3, page * 4096 + 4, page * 4096 + 5):
            changed = bytearray(content)
            changed[at] ^= 1
            assert outcome(tmp_path / "a.db", bytes(changed), records("sqlite")) in (40, "told")


def test_an_older_state_of_an_lmdb_file_is_not_taken_for_the_last(tmp_path: Path) -> None:
    lmdb = pytest.importorskip("lmdb")
    opened = lmdb.open(str(tmp_path / "a.lmdb"), subdir=False, map_size=1 << 22, lock=False)
    for i, (image, label) in enumerate(RECORDS):
        with opened.begin(write=True) as transaction:
            transaction.put(b"image-%03d" % i, image)
            transaction.put(b"label-%03d" % i, b"%d" % label)
    opened.copy(str(tmp_path / "copy.lmdb"), compact=True)
    opened.close()
    content = (tmp_path / "a.lmdb").read_bytes()
    for name in ("a.lmdb", "copy.lmdb"):
        assert records("lmdb")(tmp_path / name) == 40
    for page in (0, 4096):
        changed = content[: page + 144] + bytes(8) + content[page + 152 :]
        assert outcome(tmp_path / "a.lmdb", changed, records("lmdb")) == "told"


def test_keys_of_an_lmdb_file_that_no_feature_matches_are_counted(tmp_path: Path) -> None:
    pytest.importorskip("lmdb")
    write_lmdb(tmp_path / "a.lmdb", RECORDS)
    (note,) = sources()["lmdb"](path=str(tmp_path / "a.lmdb"), features=FEATURES).list(tmp_path).notes
    assert (note.code, note.severity) == ("PG411", "info")
    assert note.message.startswith("1 key matches no feature and is ignored: 'num-samples'")


# Tables


ROWS = [f"img/{i}.png,{('cat', 'dog')[i % 2]},ok" for i in range(12)]
HEADER = "file,label,note\n"


def table(folder: Path, text: str | bytes, **how: Any) -> Any:
    (folder / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(str(folder), "t.csv", separator=how.get("separator"), header=how.get("header", True))


@pytest.mark.parametrize("column", range(3))
@pytest.mark.parametrize("header", [True, False])
def test_no_quote_swallows_rows(tmp_path: Path, column: int, header: bool) -> None:
    """`more/01`: a quote that opened in one row and closed five rows later left 7 of 12 rows. All pairs of rows are tried."""
    for first in range(12):
        for last in range(first + 1, 12):
            rows = [row.split(",") for row in ROWS]
            rows[first][column] = '"' + rows[first][column]
            rows[last][column] += '"'
            with pytest.raises(OpError, match=rf"a cell of .*:{first + 1 + header} holds {last - first} more row") as error:
                table(tmp_path, HEADER * header + "\n".join(map(",".join, rows)), header=header)
            assert error.value.code == "PG421"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('file,caption\na.png,"A dog\nrunning, fast"\nb.png,"x\ny"\nc.png,"one\ntwo\nthree, four"\n', 3),
        ('id,file,note\n7,a.jpg,"two\nlines, and a comma"\n8,b.jpg,\n', 2),
        ('"a ""b""\nc",d\n1,2\n', 1),
    ],
)
def test_cells_of_several_lines_are_text(tmp_path: Path, text: str, rows: int) -> None:
    found = table(tmp_path, text)
    assert (found.num_rows, found.notes) == (rows, ())


def test_a_cell_that_may_hold_rows_is_a_warning(tmp_path: Path) -> None:
    found = table(tmp_path, 'caption,label\n"A cat, red\nsitting",dog\nfoo,dog\nbar,cat\n')
    (note,) = found.notes
    assert (found.num_rows, note.code, note.severity) == (3, "PG421", "warning")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEADER + "\n".join(ROWS) + "\n" + HEADER + "\n".join(ROWS), "repeats the header"),
        ((HEADER + ROWS[0] + "\n").encode("utf-8-sig") * 2, "begins with a byte order mark"),
        (HEADER + ROWS[0].replace("cat", "c\0t"), "holds a zero byte"),
        (HEADER + 'img/3.png,cat,"broken\nimg/4.png,dog,ok', "unexpected end of data"),
        (HEADER + 'a.png,dog,"x" y\n', "expected after"),
        ('file,label,"note\n' + "\n".join(ROWS) + '"\n', "holds 12 more rows"),
        ('file\n"a.png\nb.png"\nc.png\n', "holds 1 more row"),
        (HEADER + "\n".join(ROWS)[: -len("0,ok") - 2], "the rows before it have 3"),
    ],
)
def test_tables_that_would_lose_rows_are_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(OpError, match=said) as error:
        table(tmp_path, text)
    assert error.value.code == "PG421"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"file": "a"}\n{"file": ', ":2:.* is not JSON"),
        ('{"file": "a"} {"file": "b"}\n', "is not JSON: Extra data"),
        ('{"file": "a"}{"file": "b"}\n', "is not JSON: Extra data"),
        ('[{"file": "a"}, {"file": "b"}]\n', "holds a list, not an object"),
        ('{"file": "a", "label": 1, "file": "b"}\n', "has two values for the key 'file'"),
        ('{"meta": {"a": 1, "a": 2}}\n', "has two values for the key 'a'"),
        ('{"file": "a"}\n\0\0\0\0\n{"file": "b"}\n', ":2:1 is not JSON"),
        ('{"file": "a"}\n\ufeff{"file": "b"}\n', ":2:1 is not JSON"),
    ],
)
def test_json_lines_that_would_lose_rows_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "t.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(OpError, match=said):
        JsonLinesTable(path="t.jsonl").read(tmp_path)


def workbook(folder: Path, *sheets: tuple[str, list[list[Any]]]) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets:
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(folder / "t.xlsx")


def excel(folder: Path, **how: Any) -> Any:
    return Excel(path="t.xlsx", features={"image": {"kind": "image", "column": "file"}}, **how).read(folder)


def test_other_sheets_with_rows_are_named(tmp_path: Path) -> None:
    """`more/01`: 6 of 12 rows were read."""
    rows = [["file", "label"], *([f"{i}.png", "cat"] for i in range(6))]
    workbook(tmp_path, ("one", rows), ("two", rows), ("notes", [["read me"]]), ("none", []))
    found = excel(tmp_path)
    (note,) = found.notes
    assert (found.num_rows, note.code, note.severity) == (6, "PG411", "warning")
    assert "1 other sheet with rows, 'two'; only the first, 'one', is read" in note.message
    assert (excel(tmp_path, sheet="two").notes, excel(tmp_path, sheet=0).notes) == ((), ())


def test_rows_of_a_sheet_that_would_be_lost_are_told(tmp_path: Path) -> None:
    rows = [["file", "label"], *([f"{i}.png", "cat"] for i in range(6))]
    workbook(tmp_path, ("one", [*rows, [], ["x.png", "dog"]]))
    assert excel(tmp_path).num_rows == 7
    workbook(tmp_path, ("one", [*rows, [], *rows]))
    with pytest.raises(OpError, match="row 9 repeats the header"):
        excel(tmp_path)
    for behind in ([], [["x.png", "dog"]]):
        workbook(tmp_path, ("one", [*rows, ["=A1", "=B1"], *behind]))
        with pytest.raises(OpError, match="row 8 holds formulas that were never computed, such as '=A1'"):
            excel(tmp_path)


@pytest.mark.parametrize("behind", [b"x", None], ids=["a byte", "a copy"])
def test_what_follows_the_end_of_a_workbook_or_a_database_is_told(tmp_path: Path, behind: bytes | None) -> None:
    workbook(tmp_path, ("one", [["file"], ["a.png"]]))
    content = (tmp_path / "t.xlsx").read_bytes()
    (tmp_path / "t.xlsx").write_bytes(content + (behind or content))
    with pytest.raises(OpError) as error:
        excel(tmp_path)
    assert error.value.code == "PG421"
    pytest.importorskip("sqlalchemy")
    write_sqlite(tmp_path / "a.db", RECORDS)
    content = (tmp_path / "a.db").read_bytes()
    (tmp_path / "a.db").write_bytes(content + (behind or content))
    features = {"label": {"kind": "tensor"}}
    source = sources()["sql"](url="sqlite:///a.db", query="select label from examples", features=features)
    with pytest.raises(OpError, match="bytes follow") as error:
        source.list(tmp_path)
    assert error.value.code == "PG430"


# Arrays and annotations


def test_two_arrays_of_one_name_and_archives_that_were_joined_are_told(tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "a.npz"
    write_npz(path)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("image.npy", archive.read("image.npy"))
    with pytest.raises(OpError, match="holds several arrays 'image'"):
        rows_of_arrays(path)


def test_a_list_that_an_annotation_file_has_twice_is_told(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "a.json").write_text('{"images": [], "annotations": [{"id": 1}], "categories": [], "annotations": []}')
    source = sources()["coco"](images="images", annotations="a.json")
    with pytest.raises(OpError, match="an object has the key 'annotations' twice"):
        source.list(tmp_path)
    (tmp_path / "a.json").write_text('{"images": [], "annotations": [{"id": 1}, ')
    with pytest.raises(OpError, match="is not JSON"):
        source.list(tmp_path)
