"""Writes small files of records, byte by byte, as the formats say: no library that reads them has a part in it."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import struct
import tarfile
import zipfile
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from pipegen.ops.sources.tfrecord import masked_crc32c

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


def png(*pixel: int, size: tuple[int, int] = (2, 2)) -> bytes:
    """A picture of one colour."""
    stream = io.BytesIO()
    Image.new("RGB", size, tuple(pixel)).save(stream, "PNG")  # type: ignore[arg-type]
    return stream.getvalue()


def examples(shard: int, count: int, classes: int = 4) -> list[dict[str, Any]]:
    """Records whose picture has one colour: the shard, the row and the class; they have numbers as well."""
    found = []
    for row in range(count):
        label = (shard + row) % classes
        found.append({"image": png(shard, row, label), "label": label, "name": f"class {label}", "point": [float(shard), float(row)]})
    return found


@lru_cache(maxsize=256)
def checksum(content: bytes) -> bytes:
    return struct.pack("<I", int(masked_crc32c(np.frombuffer(content, np.uint8)[None])[0]))


def framed(record: bytes) -> bytes:
    """A record as a TFRecord file holds it."""
    length = struct.pack("<Q", len(record))
    return length + checksum(length) + record + checksum(record)


def write_tfrecord(path: Path, records: Iterable[Mapping[str, Any] | bytes]) -> Path:
    """Writes a file of `tf.Example` messages, or of plain bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(framed(record if isinstance(record, bytes) else example(record)) for record in records))
    return path


def example(record: Mapping[str, Any]) -> bytes:
    """A `tf.Example`."""
    entries = b"".join(_message(1, _message(1, key.encode()) + _message(2, _feature(value))) for key, value in record.items())
    return _message(1, entries)


def _feature(value: Any) -> bytes:
    items: Sequence[Any] = value if isinstance(value, (list, tuple)) else [value]
    if not items:
        return b""
    if isinstance(items[0], (bytes, str)):
        return _message(1, b"".join(_message(1, item if isinstance(item, bytes) else item.encode()) for item in items))
    if isinstance(items[0], float):
        return _message(2, _message(1, struct.pack(f"<{len(items)}f", *items)))
    return _message(3, _message(1, b"".join(_varint(item) for item in items)))


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def members(records: Iterable[Mapping[str, Any]], folder: str = "") -> list[tuple[str, bytes]]:
    """Records as files: `0000.KEY` and so on, each with its content; numbers as text, several of them as `.npy`."""
    found = []
    for row, record in enumerate(records):
        for key, value in record.items():
            content = value if isinstance(value, bytes) else str(value).encode()
            if isinstance(value, list):
                stream = io.BytesIO()
                np.save(stream, np.array(value, np.float32))
                content = stream.getvalue()
            found.append((f"{folder}{row:04}.{key}", content))
    return found


def write_tar(path: Path, records: Iterable[Mapping[str, Any]], *, folder: str = "", form: int = tarfile.USTAR_FORMAT) -> Path:
    """Writes an archive by the standard library."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=form) as archive:
        for name, content in members(records, folder):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def write_zip(path: Path, records: Iterable[Mapping[str, Any]], *, folder: str = "", deflated: bool = False) -> Path:
    """Writes an archive by the standard library."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED) as archive:
        for name, content in members(records, folder):
            archive.writestr(zipfile.ZipInfo(name), content, archive.compression)
    return path


def write_mds(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    """Writes a shard of Streaming's; see its `MDSWriter`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    first = records[0] if records else {}
    encodings = {key: _encoding(value) for key, value in first.items()}
    sizes = {key: 8 if how == "int" else 4 * len(first[key]) if how.startswith("ndarray") else None for key, how in encodings.items()}
    names = sorted(encodings)
    about = {"column_names": names, "column_encodings": [encodings[n] for n in names], "column_sizes": [sizes[n] for n in names]}
    config = json.dumps({"version": 2, "format": "mds", "compression": None, "hashes": [], "size_limit": 1 << 26, **about}).encode()
    samples = [_sample(record, names, sizes) for record in records]
    start = 4 + 4 * (len(samples) + 1) + len(config)
    places = np.cumsum([start, *map(len, samples)]).astype("<u4")
    path.write_bytes(struct.pack("<I", len(samples)) + places.tobytes() + config + b"".join(samples))
    return path


def _encoding(value: Any) -> str:
    if isinstance(value, list):
        return f"ndarray:float32:{len(value)}"
    return {bytes: "bytes", int: "int", str: "str", dict: "json"}[type(value)]


def _sample(record: Mapping[str, Any], names: Sequence[str], sizes: Mapping[str, int | None]) -> bytes:
    contents = []
    for name in names:
        value = json.dumps(record[name]) if isinstance(record[name], dict) else record[name]
        if isinstance(value, list):
            contents.append(np.array(value, "<f4").tobytes())
        else:
            contents.append(value if isinstance(value, bytes) else struct.pack("<q", value) if isinstance(value, int) else value.encode())
    heads = b"".join(struct.pack("<I", len(content)) for name, content in zip(names, contents, strict=True) if sizes[name] is None)
    return heads + b"".join(contents)


def described(content: str) -> tuple[list[Any], bool]:
    """The records that a page of the catalogue describes, see `tests/diagnostics/spec_pages.py`, and whether their file is cut. A record
    with the key `@` is what that holds."""
    count, *words = content.split()
    cut = words[-1:] == ["cut"]
    keys = [re.fullmatch(r"([\w/.@]+)=(jpeg|int|float):(\w+)", word).groups() for word in words[: len(words) - cut]]  # type: ignore[union-attr]
    records = [{key: _made(what, size, row) for key, what, size in keys} for row in range(int(count))]
    return [record.get("@", record) for record in records], cut


def _made(what: str, size: str, row: int) -> Any:
    if what == "jpeg":
        return jpeg(size)
    return row % int(size) if what == "int" else [0.5] * int(size)


@cache
def jpeg(size: str) -> bytes:
    """A photograph of no one, `WIDTHxHEIGHT`."""
    gradient = Image.linear_gradient("L").resize((int(size.split("x")[0]), int(size.split("x")[1])))
    stream = io.BytesIO()
    Image.merge("RGB", (gradient, gradient, gradient)).save(stream, "JPEG")
    return stream.getvalue()


def write_tfds(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Writes a data set as TensorFlow Datasets does."""
    from tfds_files import write_page  # here, since that writes its records by this module

    write_page(path, records)


def write_array_record(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Writes a file of `tf.Example` messages."""
    from array_record.python.array_record_module import ArrayRecordWriter

    writer = ArrayRecordWriter(str(path), "group_size:1")
    for record in records:
        writer.write(example(record))
    writer.close()


def write_sqlite(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Writes a table `examples` with a column for each key, and a table `notes`."""
    with sqlite3.connect(path) as opened:
        opened.execute("CREATE TABLE notes (text TEXT)")
        opened.execute(f"CREATE TABLE examples ({', '.join(records[0])})")
        opened.executemany(f"INSERT INTO examples VALUES ({', '.join('?' * len(records[0]))})", [tuple(r.values()) for r in records])
    opened.close()


def write_lmdb(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Writes keys such as `image-000000`."""
    import lmdb

    opened = lmdb.open(str(path), subdir=False, map_size=1 << 24, lock=False)
    with opened.begin(write=True) as transaction:
        for row, record in enumerate(records):
            for key, value in record.items():
                transaction.put(f"{key}-{row:06}".encode(), value if isinstance(value, bytes) else str(value).encode())
    opened.close()


def write_hdf5(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Writes a data set for each key."""
    import h5py

    with h5py.File(path, "w") as file:
        for key, first in records[0].items():
            if isinstance(first, bytes):
                held = file.create_dataset(key, (len(records),), h5py.vlen_dtype(np.uint8))
                for row, record in enumerate(records):
                    held[row] = np.frombuffer(record[key], np.uint8)
            else:
                file[key] = np.array([record[key] for record in records])


WRITERS: Mapping[str, Any] = {
    "array_record": write_array_record,
    "hdf5": write_hdf5,
    "lmdb": write_lmdb,
    "mds": write_mds,
    "sqlite": write_sqlite,
    "tfds": write_tfds,
    "tfrecord": write_tfrecord,
    "webdataset": write_tar,
    "zip": write_zip,
}
"""By the name of a source, what writes a file of it."""


def write_described(path: Path, kind: str, content: str) -> None:
    """Writes a file of records that a page describes."""
    records, cut = described(content)
    WRITERS[kind](path, records)
    if cut:
        path.write_bytes(path.read_bytes()[:-9])
