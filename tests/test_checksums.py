"""`validate --data=all` compares what checksums a format has, and says of one that has none that it has none."""

from __future__ import annotations

import gzip
import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from record_files import framed, png, write_mds, write_tar, write_tfrecord, write_zip
from typer.testing import CliRunner

import pipegen
from benchmarks.written_stores import WRITERS, example
from pipegen.cli.commands import app
from pipegen.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.tf

COUNT, AT = 8, 3
TAIL = b"what stands behind a picture, number "
FEATURES: dict[str, Any] = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 4}}


def pictures() -> list[bytes]:
    """Pictures with a text behind them that decoders pass over: a byte of it can be another one, and nothing else notices."""
    return [png(row, 0, 0) + TAIL + str(row).encode() * 20 for row in range(COUNT)]


def rows() -> list[dict[str, Any]]:
    return [{"image": picture, "label": row % 4} for row, picture in enumerate(pictures())]


def by_library(kind: str) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        pytest.importorskip({"arrow": "pyarrow"}.get(kind, kind if kind != "sqlite" else "sqlite3"))
        ending, writer = WRITERS[kind]
        writer(folder / f"a{ending}", [(row["image"], row["label"]) for row in rows()])
        return f"a{ending}"

    return write


def write_zipped_folder(folder: Path) -> str:
    return write_zip(folder / "a.zip", [{"png": picture} for picture in pictures()], folder="cat/").name


def write_gzip(folder: Path) -> str:
    (folder / "a.gz").write_bytes(gzip.compress(b"".join(framed(example(row["image"], row["label"])) for row in rows()), 0))
    return "a.gz"


def write_hashed_mds(folder: Path) -> str:
    path = write_mds(folder / "a.mds", rows())
    shard = {"basename": path.name, "hashes": {"sha1": hashlib.sha1(path.read_bytes()).hexdigest(), "unheard": "0"}}
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": [{"raw_data": shard}]}))
    return path.name


def arrays() -> np.ndarray[Any, Any]:
    """Images that each hold the number of their row and one text."""
    images = np.zeros((COUNT, 4, 16, 3), np.uint8)
    for row in range(COUNT):
        images[row].flat[: len(TAIL) + 1] = [*TAIL, row]
    return images


def write_hdf5(folder: Path) -> str:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("image", data=arrays(), chunks=(1, 4, 16, 3), fletcher32=True)
        file["label"] = np.arange(COUNT) % 4
    return "a.h5"


def write_zarr(folder: Path) -> str:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(folder / "a.zarr"), mode="w")
    images = arrays()
    stored = group.create_array(
        "image", shape=images.shape, chunks=(1, 4, 16, 3), dtype="uint8", compressors=zarr.codecs.Crc32cCodec(), filters=None
    )
    stored[...] = images
    group.create_array("label", shape=COUNT, chunks=COUNT, dtype="int64")[...] = np.arange(COUNT) % 4
    return "a.zarr/image/c/3/0/0/0"


def write_parquet(folder: Path) -> str:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"image": pictures(), "label": [row % 4 for row in range(COUNT)]})
    pq.write_table(
        table,
        folder / "a.parquet",
        row_group_size=2,
        write_page_checksum=True,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
    )
    return "a.parquet"


FORMATS: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "tfrecord": ("tfrecord", lambda folder: write_tfrecord(folder / "a.tfrecord", rows()).name, "#3: corrupted record"),
    "gzip": ("tfrecord", write_gzip, "is damaged"),
    "zip": ("zip", lambda folder: write_zip(folder / "a.zip", rows()).name, "a.zip#3"),
    "zip of files": ("image_folder", write_zipped_folder, "0003.png"),
    "mds": ("mds", write_hashed_mds, "its sha1 is"),
    "array_record": ("array_record", by_library("array_record"), "#3"),
    "hdf5": ("hdf5", write_hdf5, "a.h5#3"),
    "zarr": ("zarr", write_zarr, "a.zarr#3"),
    "parquet": ("parquet", write_parquet, "CRC"),
    "webdataset": ("webdataset", lambda folder: write_tar(folder / "a.tar", rows()).name, ""),
    "arrow": ("arrow", by_library("arrow"), ""),
    "lmdb": ("lmdb", by_library("lmdb"), ""),
    "sqlite": ("sqlite", by_library("sqlite"), ""),
}
"""By name: the source, what writes a file, and what is said of it when a byte is another; nothing of formats without checksums."""


def spec_of(folder: Path, op: str, **own: Any) -> dict[str, Any]:
    source: dict[str, Any] = {"path": str(folder), "features": FEATURES}
    if op == "image_folder":
        source = {"path": str(folder / "a.zip")}
    elif op == "parquet":
        source = {"path": str(folder / "a.parquet"), "features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}
    elif (folder / "a.gz").exists():
        source |= {"path": str(folder / "*.gz"), "compression": "gzip"}
    return {"pipegen": 1, "source": {op: source | own}, "transforms": [{"resize": {"size": 2}}], "batch": {"size": 2}}


def validated(folder: Path, op: str) -> Any:
    (folder / "spec").mkdir(exist_ok=True)
    (folder / "spec" / "a.pipegen.yaml").write_text(json.dumps(spec_of(folder, op)))
    return CliRunner().invoke(app, ["validate", str(folder / "spec" / "a.pipegen.yaml"), "--data=all"], prog_name="pipegen")


def flip(path: Path) -> None:
    """Changes a byte of the text behind picture 3."""
    content = bytearray(path.read_bytes())
    place = -1
    for _ in range(AT + 1 if content.count(TAIL) > 1 else 1):
        place = content.index(TAIL, place + 1)
    content[place + 5] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == "zip" else [pytest.mark.nightly]) for name in FORMATS])
def test_a_byte_that_no_decoder_reads_is_noticed_where_the_format_can(tmp_path: Path, name: str) -> None:
    op, write, said = FORMATS[name]
    for folder in ("whole", "damaged"):
        (tmp_path / folder).mkdir()
        written = write(tmp_path / folder)
    whole = validated(tmp_path / "whole", op)
    assert whole.exit_code == 0, whole.output
    assert ("the format has no" in whole.output or "of headers, since" in whole.output) == (not said), whole.output
    assert "checksums" in whole.output
    flip(tmp_path / "damaged" / written)
    damaged = validated(tmp_path / "damaged", op)
    assert damaged.exit_code == int(bool(said)), damaged.output
    assert said in damaged.output.replace("\n", "").replace("  | ", ""), damaged.output


@pytest.mark.nightly
def test_stored_members_are_compared_in_the_graph(tmp_path: Path) -> None:
    large = [{"image": png(row, 0, 0) + bytes([row]) * size, "label": 0} for row, size in enumerate((0, 65_000, 65_535, 70_000, 400_000))]
    path = write_zip(tmp_path / "a.zip", large)
    own = {"batch": {"size": 1}, "output": {"dtype": "uint8"}}

    def read(verify: bool) -> list[int]:
        return sorted(int(x[0, 0, 0, 0]) for x, _ in pipegen.build(spec_of(tmp_path, "zip", verify=verify) | own).dataset("train"))

    assert read(verify=False) == read(verify=True) == [*range(5)]
    content = bytearray(path.read_bytes())
    content[content.index(bytes([4]) * 100) + 99] = 5
    path.write_bytes(content)
    assert read(verify=False) == [*range(5)]
    with pytest.raises(DataError, match=r"a\.zip#4"):
        read(verify=True)
