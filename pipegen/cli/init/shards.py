"""Says which source of records reads a file or a folder, by what files are called, and where names say nothing by their first bytes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipegen.ops.sources.folders.sniff import IMAGE_EXTENSIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

ENDINGS = {
    ".tfrecord": "tfrecord", ".tfrecords": "tfrecord", ".tfrec": "tfrecord", ".tar": "webdataset", ".zip": "zip", ".mds": "mds",
    ".array_record": "array_record", ".arrayrecord": "array_record", ".arrow": "arrow", ".feather": "arrow", ".h5": "hdf5", ".hdf5": "hdf5",
    ".hdf": "hdf5", ".lmdb": "lmdb", ".mdb": "lmdb", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".db": "sqlite",
}  # fmt: skip
"""By the ending of a file, the source that reads it."""
_UNNAMED = {"*-of-*": re.compile(r"-\d+-of-\d+\Z"), "*.gz": re.compile(r"\.gz\Z", re.IGNORECASE)}
"""Names that TFRecord files may have beside their ending: the pattern that finds them in a folder, and what tells them."""


@dataclass(frozen=True)
class Shards:
    """Says what reads files of records.

    Attributes:
        op: The source.
        path: A file, a folder, or a pattern of files in one.
        first: The first of the files.
        options: Further arguments of the source.
    """

    op: str
    path: str
    first: str
    options: dict[str, Any] = field(default_factory=dict)

    def beside(self, pattern: str) -> str:
        """Returns a pattern of files in the same folder."""
        return os.path.join(self.path if os.path.isdir(self.path) else os.path.dirname(self.path), pattern)


def shards_in(path: str) -> Shards | None:
    """Returns what reads a file, or a folder that holds such files, none of another source, and no images; `None` where there is none."""
    if not os.path.isdir(path):
        op = ENDINGS.get(_ending(path))
        named = any(told.search(path) for told in _UNNAMED.values())
        return Shards(op, path, path, _options(op, path)) if op is not None else _unnamed([path], path) if named else None
    names = sorted(entry.name for entry in os.scandir(path) if entry.is_file() and not entry.name.startswith("."))
    if any(_ending(name).lstrip(".") in IMAGE_EXTENSIONS for name in names):
        return None
    found = {op: os.path.join(path, name) for name in reversed(names) if (op := ENDINGS.get(_ending(name)))}
    if found:
        op, first = next(iter(found.items()))
        return Shards(op, path, first, _options(op, first)) if len(found) == 1 else None
    for pattern, told in _UNNAMED.items():
        of_pattern = [os.path.join(path, name) for name in names if told.search(name)]
        if of_pattern and (unnamed := _unnamed(of_pattern, os.path.join(path, pattern))) is not None:
            return unnamed
    return None


def _ending(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _unnamed(files: Sequence[str], path: str) -> Shards | None:
    """TFRecord files, where the first that is not empty begins as one does."""
    first = next((file for file in files if os.path.getsize(file)), None)
    options = _options("tfrecord", first) if first is not None else {}
    return Shards("tfrecord", path, first, options) if first is not None and _begins(first, options) else None


def _options(op: str | None, file: str) -> dict[str, Any]:
    from pipegen.ops.sources.records.inflated import MAGIC

    if op != "tfrecord" or not os.path.isfile(file):
        return {}
    with open(file, "rb") as stream:
        return {"compression": "gzip"} if stream.read(len(MAGIC)) == MAGIC else {}


def _begins(file: str, options: dict[str, Any]) -> bool:
    """Tells whether a file begins with the length of a record and the checksum of that."""
    import gzip
    import zlib

    import numpy as np

    from pipegen.ops.sources.records.crc32c import masked_crc32c

    try:
        with gzip.open(file) if options else open(file, "rb") as stream:
            head = stream.read(12)
    except (OSError, EOFError, zlib.error):
        return False
    return len(head) == 12 and int(masked_crc32c(np.frombuffer(head[:8], np.uint8)[None])[0]) == int.from_bytes(head[8:], "little")
