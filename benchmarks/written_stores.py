"""Writes the same records as files of each format that a library reads: an image and its class."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Record = tuple[bytes, int]


def write_array_record(path: Path, records: Sequence[Record], group: int = 1) -> None:
    """An ArrayRecord file of `tf.Example`, with the keys `image` and `label`."""
    from array_record.python.array_record_module import ArrayRecordWriter

    writer = ArrayRecordWriter(str(path), f"group_size:{group}")
    for image, label in records:
        writer.write(example(image, label))
    writer.close()


def example(image: bytes, label: int) -> bytes:
    """A `tf.Example` with the keys `image` and `label`, as its wire format has it."""
    features = b""
    for key, kind, content in (("image", 1, _field(1, image)), ("label", 3, _field(1, _varint(label)))):
        features += _field(1, _field(1, key.encode()) + _field(2, _field(kind, content)))
    return _field(1, features)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def write_arrow(path: Path, records: Sequence[Record], rows: int = 1000, footer: bool = False) -> None:
    """An Arrow stream as Hugging Face's `save_to_disk` writes it, or with `footer` an Arrow file."""
    import pyarrow as pa

    images = pa.array([{"bytes": image, "path": None} for image, _ in records], pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    table = pa.table({"image": images, "label": pa.array([label for _, label in records], pa.int64())})
    with pa.OSFile(str(path), "wb") as out, (pa.ipc.new_file if footer else pa.ipc.new_stream)(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)


def write_lmdb(path: Path, records: Sequence[Record]) -> None:
    """An LMDB file with the keys `image-000000000`, `label-000000000` and so on, and `num-samples`."""
    import lmdb

    size = sum(len(image) for image, _ in records) * 2 + len(records) * 9000 + (1 << 20)
    opened = lmdb.open(str(path), subdir=False, map_size=size, lock=False)
    with opened.begin(write=True) as transaction:
        transaction.put(b"num-samples", str(len(records)).encode())
        for i, (image, label) in enumerate(records):
            transaction.put(b"image-%09d" % i, image)
            transaction.put(b"label-%09d" % i, str(label).encode())
    opened.close()


def write_hdf5(path: Path, records: Sequence[Record], **layout: object) -> None:
    """An HDF5 file whose data set `image` has byte strings of any length."""
    import h5py

    with h5py.File(path, "w") as file:
        images = file.create_dataset("image", (len(records),), h5py.vlen_dtype(np.uint8), **layout)
        for i, (image, _) in enumerate(records):
            images[i] = np.frombuffer(image, np.uint8)
        file["label"] = np.array([label for _, label in records])


def write_sqlite(path: Path, records: Sequence[Record]) -> None:
    """An SQLite file with a table `examples`."""
    with sqlite3.connect(path) as opened:
        opened.execute("CREATE TABLE examples (image BLOB, label INTEGER)")
        opened.executemany("INSERT INTO examples VALUES (?, ?)", records)
    opened.close()


WRITERS: dict[str, tuple[str, Callable[..., None]]] = {
    "array_record": (".array_record", write_array_record),
    "arrow": (".arrow", write_arrow),
    "lmdb": (".lmdb", write_lmdb),
    "hdf5": (".h5", write_hdf5),
    "sqlite": (".sqlite", write_sqlite),
}
"""By the name of the source: the ending of its files, and what writes one."""
