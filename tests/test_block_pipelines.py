"""Pipelines on records that are unpacked with their neighbours: compressed TFRecord files, chunks of HDF5 and Zarr."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from itertools import islice
from pipes import at
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from record_files import example, framed, png

import pipegen
from pipegen.errors import DataError, OpError, SpecError
from pipegen.ops.sources.tfrecord import TFRecord
from pipegen.ops.sources.zarr import Zarr

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

FILES, EACH, CHUNK = 4, 24, 6
ROWS = FILES * EACH
FEATURES: dict[str, Any] = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 3}, "number": {"kind": "tensor"}}


def rows_of(file: int) -> range:
    return range(file * EACH, (file + 1) * EACH)


def write_gzip(folder: Path, damaged: int = -1) -> dict[str, Any]:
    for file in range(FILES):
        pictures = {row: b"junk" if row == damaged else png(row % 256, row // 256, 7) for row in rows_of(file)}
        records = [example({"image": content, "label": row % 3, "number": float(row)}) for row, content in pictures.items()]
        (folder / f"{file}.tfrecord.gz").write_bytes(gzip.compress(b"".join(map(framed, records)), 1))
    return {"tfrecord": {"path": str(folder / "*.gz"), "compression": "gzip", "features": FEATURES}}


def values() -> dict[str, Any]:
    numbers = np.arange(ROWS)
    images = np.zeros((ROWS, 2, 2, 3), np.uint8) + np.stack([numbers % 256, numbers // 256, numbers * 0 + 7], -1)[:, None, None]
    return {"image": images.astype(np.uint8), "label": numbers % 3, "number": numbers.astype(np.float32)}


def write_zarr(folder: Path, version: int = 3, damaged: int = -1) -> dict[str, Any]:
    zarr = pytest.importorskip("zarr")
    for file in range(FILES):
        group = zarr.open_group(str(folder / f"{file}.zarr"), mode="w", zarr_format=version)
        for key, column in values().items():
            own = column[rows_of(file)]
            group.create_array(key, shape=own.shape, chunks=(CHUNK, *own.shape[1:]), dtype=own.dtype)[...] = own
    return {"zarr": {"path": str(folder), "features": FEATURES}}


def write_hdf5(folder: Path, damaged: int = -1) -> dict[str, Any]:
    h5py = pytest.importorskip("h5py")
    for file in range(FILES):
        with h5py.File(folder / f"{file}.h5", "w") as opened:
            for key, column in values().items():
                own = column[rows_of(file)]
                opened.create_dataset(key, data=own, chunks=(CHUNK, *own.shape[1:]), compression="gzip")
    return {"hdf5": {"path": str(folder), "features": FEATURES}}


WRITTEN = {"tfrecord": (write_gzip, EACH, "files"), "zarr": (write_zarr, CHUNK, "chunks"), "hdf5": (write_hdf5, CHUNK, "chunks")}


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of the sizes of tests are read by chunks, as large ones are."""
    monkeypatch.setattr("pipegen.ops.sources.zarr.SMALL", 0)


def build(source: dict[str, Any], **own: Any) -> pipegen.Pipeline:
    spec: dict[str, Any] = {
        "pipegen": 1,
        "source": source,
        "transforms": [{"resize": {"size": 2}}],
        "runtime": {"jit": "never", "cache": "none"},
    }
    spec |= {"splits": {"parts": {"train": 0.75, "validation": 0.25}}, "batch": {"size": 8, "remainder": "keep"}}
    return pipegen.build(
        spec | {"output": {"x": {"image": "image", "number": "number"}, "y": "label", "dtype": "uint8"}} | own, allow_write=["/"]
    )


def seen(batches: Any) -> list[int]:
    """The row of each example, which its picture, its number and its class agree on."""
    found: list[int] = []
    for x, y in batches:
        rows = x["image"].numpy()[:, 0, 0, 0].tolist()
        assert rows == x["number"].numpy().tolist()
        assert [row % 3 for row in rows] == y.numpy().tolist()
        found += rows
    return found


@pytest.mark.by_day(1)
@pytest.mark.parametrize("kind", ["tfrecord", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("hdf5", "zarr"))])
def test_order_resume_and_shares(kind: str, tmp_path: Path) -> None:
    write, block, called = WRITTEN[kind]
    source = write(tmp_path)
    pipe = build(source)
    assert pipe.spec.model.splits.method == "hash"
    whole, others = seen(at(pipe)), seen(pipe["validation"])
    assert sorted(whole + others) == list(range(ROWS))
    assert others == sorted(others)
    size = pipe._manifest.mean_bytes("train")
    narrow = build(source, shuffle={"window": int(2 * block * size)}, splits={})
    found = seen(at(narrow))
    assert sorted(found) == list(range(ROWS))
    assert len({row // block for row in found[: 2 * block]}) <= 3, "a window is of the blocks that stand one after another"
    assert found[: 2 * block] != sorted(found[: 2 * block])
    assert seen(at(narrow, step=5)) == found[40:]
    assert seen(islice(narrow.dataset("train", step=5, shard=(1, 2)), 2)) == found[44:48] + found[52:56]
    assert seen(at(narrow, epoch=1)) != found
    assert f"shuffle of whole {called}, then in windows of" in str(narrow.explain("train"))


@pytest.mark.nightly
def test_damaged_pictures_of_compressed_files_are_named_or_skipped(tmp_path: Path) -> None:
    source = write_gzip(tmp_path, damaged=50)
    with pytest.raises(DataError, match=rf"cannot decode {tmp_path}/2.tfrecord.gz#2 \("):
        seen(build(source, splits={}).dataset("train"))
    report = tmp_path / "damaged.jsonl"
    pipe = build(source, splits={}, errors={"decode": {"skip": {"max_fraction": 0.02, "report": str(report)}}})
    assert len(set(seen(at(pipe)))) == ROWS - 1
    assert json.loads(report.read_text().splitlines()[1])["file"] == f"{tmp_path}/2.tfrecord.gz#2"


@pytest.mark.parametrize("version", [3, pytest.param(2, marks=pytest.mark.nightly)])
def test_a_damaged_chunk_is_named(version: int, tmp_path: Path) -> None:
    source = write_zarr(tmp_path, version)
    chunk = tmp_path / "2.zarr" / "image" / ("c/1/0/0/0" if version == 3 else "1.0.0.0")
    chunk.write_bytes(chunk.read_bytes()[:10])
    with pytest.raises(DataError, match=rf"cannot read {tmp_path}/2.zarr#\d+: "):
        seen(build(source, splits={}).dataset("train"))


def test_a_chunk_that_is_written_anew_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipegen.ops.sources.zarr.SMALL", 2**26)  # labels are read once, and held
    source = write_zarr(tmp_path)
    listing = Zarr(**source["zarr"]).list(tmp_path)
    (chunk,) = (tmp_path / "1.zarr" / "label" / "c").glob("0")
    about = chunk.stat()
    os.utime(chunk, ns=(about.st_atime_ns, about.st_mtime_ns + 1))
    with pytest.raises(DataError, match=r"1\.zarr was written to after it was indexed"):
        listing.reader().check()
    again = Zarr(**source["zarr"]).list(tmp_path)
    again.reader().check()
    other = (tmp_path / "2.zarr" / "label" / "c" / "0").read_bytes()
    before = again.reader().stored("label", *(np.array([1] * 4), np.arange(4)))
    chunk.write_bytes(other)
    due = again.reader().stored("label", *(np.array([2] * 4), np.arange(4)))
    newest = Zarr(**source["zarr"]).list(tmp_path).reader()
    np.testing.assert_array_equal(newest.stored("label", *(np.array([1] * 4), np.arange(4))), due)
    assert len(before) == 4


def refusal(source: Any, folder: Path) -> tuple[str, str]:
    """The code and the message of the first error of a listing."""
    try:
        listing = source.list(folder)
    except OpError as error:
        return error.code, error.message
    return next((note.code, note.message) for note in listing.notes if note.severity == "error")


@pytest.mark.parametrize("damage", ["cut", "flipped", "zeroed", "no end"])
def test_damage_of_compressed_files_is_found_when_they_are_indexed(damage: str, tmp_path: Path) -> None:
    arguments = write_gzip(tmp_path)["tfrecord"]
    file = tmp_path / "1.tfrecord.gz"
    content = bytearray(file.read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        content[len(content) // 2] ^= 0xFF
    elif damage == "zeroed":
        content[-8:-4] = bytes(4)
    else:
        unpacked = zlib.decompress(content, 31)
        content = bytearray(gzip.compress(unpacked[:-9]))
    file.write_bytes(content)
    code, said = refusal(TFRecord(**arguments), tmp_path)
    assert code == "PG430"
    assert f"{str(file)!r} is damaged at byte " in said
    assert "record " in said


def test_another_compression_than_the_spec_says(tmp_path: Path) -> None:
    arguments = write_gzip(tmp_path)["tfrecord"]
    plain = TFRecord(**(arguments | {"compression": "none"}))
    assert refusal(plain, tmp_path) == ("PG430", f"{str(tmp_path / '0.tfrecord.gz')!r} is compressed by gzip")
    (tmp_path / "0.tfrecord.gz").write_bytes(framed(b"a"))
    assert refusal(TFRecord(**arguments), tmp_path)[1].endswith("is not compressed by gzip")
    (tmp_path / "0.tfrecord.gz").write_bytes(gzip.compress(b""))
    listing = TFRecord(**arguments).list(tmp_path)
    assert listing.shards is not None
    assert listing.shards.rows.tolist() == [0, EACH, EACH, EACH]
    classes = TFRecord(**(arguments | {"features": {"image": {"kind": "image"}, "label": {"kind": "label"}}})).list(tmp_path)
    assert classes.class_names == ("0", "1", "2")


def test_what_is_wrong_with_zarr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zarr = pytest.importorskip("zarr")
    source = write_zarr(tmp_path)["zarr"]
    assert Zarr(**(source | {"path": "2.zarr"})).list(tmp_path).keys == ["2.zarr"]
    assert Zarr(**(source | {"path": "*.zarr"})).list(tmp_path).keys == [f"{file}.zarr" for file in range(FILES)]
    assert refusal(Zarr(**(source | {"features": {"image": {"kind": "image", "key": "imag"}}})), tmp_path)[0] == "PG431"
    (tmp_path / "2.zarr" / "zarr.json").write_text("{")
    assert refusal(Zarr(**source), tmp_path)[0] == "PG430"
    pickled = tmp_path / "pickled"
    zarr.open_group(str(pickled / "a.zarr"), mode="w", zarr_format=2)
    about = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|O", "fill_value": None, "order": "C", "compressor": None}
    (pickled / "a.zarr" / "image").mkdir()
    (pickled / "a.zarr" / "image" / ".zarray").write_text(json.dumps(about | {"filters": [{"id": "pickle", "protocol": 5}]}))
    code, said = refusal(Zarr(path=str(pickled), features={"image": {"kind": "image"}}), tmp_path)  # type: ignore[arg-type]
    assert code in ("PG430", "PG441")
    assert "pickle" in said.lower()
    monkeypatch.setitem(__import__("sys").modules, "zarr", None)
    with pytest.raises(SpecError) as error:
        build({"zarr": source | {"path": str(tmp_path / "0.zarr")}})
    (found,) = error.value.diagnostics
    assert (found.code, found.help[0]) == ("PG440", "pip install 'pipegen[zarr]'")
