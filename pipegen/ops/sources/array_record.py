"""`array_record`: records of ArrayRecord files, read by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.sources.records.by_library import StoreReader, StoreSource
from pipegen.ops.sources.records.messages import MessageReader, MessageSource
from pipegen.ops.sources.stores.field_types import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.ops.sources.records.index import Indexed, InShard


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
    store: ClassVar[str] = "array_records.ArrayRecords"
    reads: ClassVar[type[StoreReader]] = _Messages

    def first_message(self, found: Indexed) -> bytes:
        try:
            (record,) = self.first(found).read(("",), np.zeros(1, np.int64))[0]
        except StoreError as error:
            message = f"record 0 of {found.first.file.path!r} cannot be read: {error}"
            raise OpError("PG430", message, field="path") from None
        return record

    def messages(self, name: str, records: InShard) -> Iterator[bytes]:
        return self.column(name, "", records.file)
