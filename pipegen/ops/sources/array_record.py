"""`array_record`: records of ArrayRecord files, read by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.sources.records.by_library import StoreReader, StoreSource
from pipegen.ops.sources.records.messages import MessageReader, MessageSource
from pipegen.ops.sources.stores.field_types import FieldType, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipegen.ops.sources.listing.reader import Reader
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.records.index import RecordIndex
    from pipegen.ops.sources.records.labels import LabelColumn
    from pipegen.ops.sources.shards.paths import Found


class ArrayRecord(MessageSource, StoreSource):
    """ArrayRecord files. Each record is a `tf.Example` whose keys hold the features, or, with `content: bytes`, the only feature itself.
    Needs the library `array-record`: `pip install 'pipegen[array-record]'`. A key may name a field of JSON text: `about.label`.

    The format finds a record by its number and checks a checksum for each record read. In a file written with a `group_size` above 1,
    reading one record unpacks its whole group.
    """

    op: ClassVar[str] = "array_record"
    checksums: ClassVar[str] = "those of each record"
    labels_of_one_type: ClassVar[bool] = True
    suffixes: ClassVar[tuple[str, ...]] = (".array_record", ".arrayrecord")
    called: ClassVar[str] = "ArrayRecord"
    store: ClassVar[str] = "array_records.ArrayRecords"

    def first_message(self, shards: Sequence[Found], index: RecordIndex) -> bytes:
        try:
            (record,) = self.first(shards, index).read(("",), np.zeros(1, np.int64))[0]
        except StoreError as error:
            message = f"record 0 of {shards[index.first_filled].path!r} cannot be read: {error}"
            raise OpError("PG430", message, field="path") from None
        return record

    def messages(self, name: str, shard: Found, offsets: Ints, lengths: Ints) -> Iterator[bytes]:
        return self.column(name, "", shard)

    def reader(self, shards: Sequence[Found], index: RecordIndex, labels: Mapping[str, LabelColumn]) -> Reader:
        return _Messages(self, self.types(shards, index), self.first(shards, index).at_once, shards, labels)


class _Messages(MessageReader, StoreReader):
    """Messages read by the library."""

    source: ArrayRecord

    def __init__(self, source: ArrayRecord, types: Mapping[str, FieldType], *about: Any) -> None:
        StoreReader.__init__(self, source, source.infer(), *about)
        self.types = types

    def messages(self, shards: Any, rows: Any) -> Any:
        return self.values(("",), shards, rows)[0]
