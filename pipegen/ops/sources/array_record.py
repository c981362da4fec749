"""`array_record`: records of ArrayRecord files, read by number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pipegen.lazy import np
from pipegen.ops.sources.records.by_library import StoreReader, StoreSource
from pipegen.ops.sources.records.index import Indexed, InShard
from pipegen.ops.sources.records.messages import MessageReader, MessageSource
from pipegen.ops.sources.stores.base import Array, Store, Translated, byte_strings, needs, translated
from pipegen.ops.sources.stores.field_types import BYTES, FieldType, StoreError

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


class _Messages(MessageReader, StoreReader):
    """Messages read by the library."""

    source: ArrayRecord

    def messages(self, shards: Any, rows: Any) -> Any:
        return self.values(("",), shards, rows)[0]


class ArrayRecord(MessageSource, StoreSource):
    """ArrayRecord files. Each record is a `tf.Example` whose keys hold the features, or, with `content: bytes`, the only feature itself.
    Needs the library `array-record`: `pip install 'pipegen[array-record]'`. A key may name a field of JSON text: `about.label`.

    The format finds a record by its number and checks a checksum for each record read. In a file written with a `group_size` above 1,
    reading one record unpacks its whole group.
    """

    op: ClassVar[str] = "array_record"
    checksums: ClassVar[str] = "those of each record"
    suffixes: ClassVar[tuple[str, ...]] = (".array_record", ".arrayrecord")
    called: ClassVar[str] = "ArrayRecord"
    store: ClassVar[type[Store]] = ArrayRecords
    reads: ClassVar[type[StoreReader]] = _Messages

    def first_message(self, found: Indexed) -> bytes:
        with translated(self.called, f"record 0 of {found.first.file.path!r}", "path", "PG430"):
            return bytes(self.first(found).read(("",), np.zeros(1, np.int64))[0][0])

    def contents(self, name: str, records: InShard) -> Iterator[bytes]:
        return self.column(name, "", records.file)
