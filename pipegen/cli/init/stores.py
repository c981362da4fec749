"""Looks into a file of records that a library reads: which of its columns or keys hold an image, and which may be labels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipegen.ops.sources.folders.sniff import sniff
from pipegen.ops.sources.records.tf_example import read_example

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipegen.ops.sources.records.tf_example import Value
    from pipegen.ops.sources.stores.base import Store

IMAGE = "image"
_DIGITS = re.compile(rb"(\d+)(?!.*\d)")
_FIRST = 50
"""Keys of a database that are looked at."""

Held = tuple[dict[str, str], set[str], dict[str, Any]]
"""What each key holds, in words; the keys that may be labels; and further arguments of the source."""


def array_record(path: str) -> Held:
    """Looks at the first record of an ArrayRecord file."""
    import numpy as np

    from pipegen.ops.sources.stores.array_records import ArrayRecords

    record = bytes(ArrayRecords(path).read(("",), np.zeros(1, np.int64))[0][0])
    if sniff(record) is not None:
        return {"image": IMAGE}, set(), {"content": "bytes"}
    return (*of_example(read_example(record)), {})


def of_example(values: Mapping[str, Value]) -> tuple[dict[str, str], set[str]]:
    """Says what a `tf.Example` holds."""
    held, whole = {}, set()
    for key, value in values.items():
        first = value.items[0] if len(value.items) == 1 else None
        held[key] = f"{len(value.items)} of type {value.held}"
        if isinstance(first, bytes) and sniff(first) is not None:
            held[key] = IMAGE
        elif len(value.items) == 1 and value.held in ("int", "bytes"):
            whole.add(key)
    return held, whole


def arrow(path: str) -> Held:
    """Looks at the columns of an Arrow file."""
    from pipegen.ops.sources.stores.arrow_tables import ArrowTables

    return (*_of_columns(ArrowTables(path)), {})


def hdf5(path: str) -> Held:
    """Looks at the data sets of an HDF5 file."""
    from pipegen.ops.sources.stores.hdf5_sets import Hdf5Sets

    return (*_of_columns(Hdf5Sets(path)), {})


def sqlite(path: str) -> Held:
    """Looks at the tables of an SQLite file: the first with an image counts."""
    import sqlite3
    from urllib.parse import quote

    from pipegen.ops.sources.stores.sqlite_rows import SqliteRows

    opened = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)
    try:
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        tables = [name for (name,) in opened.execute(query)]
    except sqlite3.Error as error:
        raise ValueError(str(error)) from None
    finally:
        opened.close()
    looked = [(*_of_columns(SqliteRows(path, table)), {"table": table} if len(tables) > 1 else {}) for table in tables]
    return next((found for found in looked if IMAGE in found[0].values()), ({}, set(), {}) if not looked else looked[0])


def lmdb(path: str) -> Held:
    """Looks at the first keys of an LMDB environment: those that differ in their last number alone belong to one feature."""
    from pipegen.ops.sources.stores.base import Extents
    from pipegen.ops.sources.stores.lmdb_keys import list_values

    values, file = list_values(path), Extents(path)
    held: dict[str, str] = {}
    whole = set()
    for place, key in enumerate(values.keys):
        pattern = _DIGITS.sub(b"*", key, count=1).decode("utf-8", "backslashreplace")
        if pattern in held or pattern.count("*") != 1:
            continue
        content = file.read(int(values.offsets[place]), int(values.lengths[place]))
        held[pattern] = IMAGE if sniff(content) is not None else f"{len(content):,} bytes"
        if content.strip().lstrip(b"-").isdigit() or content.strip().isalpha():
            whole.add(pattern)
        if len(held) == _FIRST:
            break
    return held, whole, {}


def _of_columns(store: Store) -> tuple[dict[str, str], set[str]]:
    import numpy as np

    from pipegen.ops.sources.stores.base import BYTES

    try:
        held, whole = {}, set()
        for key, column in store.columns().items():
            held[key] = f"{column.dtype} {list(column.shape)}" if column.shape else column.dtype
            if column.dtype == BYTES and store.rows:
                content = store.read((key,), np.zeros(1, np.int64))[0][0]
                held[key] = IMAGE if isinstance(content, bytes) and sniff(content) is not None else held[key]
            elif _pixels(column.dtype, column.shape):
                held[key] = IMAGE
            if not column.shape and held[key] != IMAGE and not column.dtype.startswith("float"):
                whole.add(key)
        return held, whole
    finally:
        store.close()


def _pixels(dtype: str, shape: Iterable[int]) -> bool:
    """Tells whether an array of each record is taken for an image."""
    sides = tuple(shape)
    return dtype in ("uint8", "uint16") and (len(sides) == 2 or (len(sides) == 3 and sides[2] in (1, 3)))


LOOKS = {"array_record": array_record, "arrow": arrow, "hdf5": hdf5, "lmdb": lmdb, "sqlite": sqlite}
"""By the source, what looks into a file of it."""
