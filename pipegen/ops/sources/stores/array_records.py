"""ArrayRecord files, read by the library of the same name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipegen.ops.sources.stores.base import Store, Translated, byte_strings, needs
from pipegen.ops.sources.stores.field_types import BYTES, FieldType, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipegen.ops.sources.stores.base import Array

_OPTIONS = "readahead_buffer_size:0,max_parallelism:0"  # options that the library's documentation recommends for random access


class ArrayRecords(Store):
    """An ArrayRecord file: byte strings in compressed chunks with checksums, and an index of them at its end."""

    def __init__(self, path: str) -> None:
        with needs("`array_record`", "array-record"):
            from array_record.python.array_record_module import ArrayRecordReader
        with Translated(RuntimeError, ValueError, said=_told):
            self._reader = ArrayRecordReader(path, _OPTIONS)
            self.rows = self._reader.num_records()
        if not self._reader.ok():
            raise StoreError("it has no index at its end; it is truncated, damaged, or not an ArrayRecord file")
        group = re.search(r"group_size:(\d+)", self._reader.writer_options_string() or "")
        self.at_once = int(group[1]) if group is not None else 1

    def columns(self) -> Mapping[str, FieldType]:
        return {"": FieldType(BYTES)}

    def read(self, keys: Sequence[str], rows: Array) -> list[Array]:
        """Reads records one at a time, which is fastest: for several the library uses its threads. See `Store.read`."""
        with Translated(RuntimeError, ValueError, IndexError, said=_told):
            found = [self._reader.read([row])[0] for row in rows.tolist()]
        return [byte_strings(found) for _ in keys]

    def close(self) -> None:
        self._reader.close()


def _told(error: Exception) -> str:
    """Shortens a library's message to its cause."""
    return str(error).split("; ")[0].splitlines()[0] if str(error) else type(error).__name__
