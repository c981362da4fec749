"""`array_record`: records of ArrayRecord files, read by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.errors import OpError
from pipegen.ops.sources.records.by_library import StoreReader, StoreSource
from pipegen.ops.sources.records.examples import ExampleSource
from pipegen.ops.sources.records.messages import bytes_in, cell_in, check_keys, first_keys, label_in, layout_of, values_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipegen.ops.sources.listing.reader import Hold, Reader, Together
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.records.index import RecordIndex
    from pipegen.ops.sources.records.labels import LabelColumn
    from pipegen.ops.sources.records.messages import Layout
    from pipegen.ops.sources.records.paths import Found
    from pipegen.ops.sources.stores.base import Store


class ArrayRecord(ExampleSource, StoreSource):
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

    def store(self) -> type[Store]:
        from pipegen.ops.sources.stores.array_records import ArrayRecords

        return ArrayRecords

    def examine(self, shards: Sequence[Found], index: RecordIndex) -> None:
        if self.content == "example":
            check_keys(self.read_features, first_keys(*self._first(shards, index)))

    def _first(self, shards: Sequence[Found], index: RecordIndex) -> tuple[bytes, str]:
        """Reads the first record and the path of its file."""
        import numpy as np

        from pipegen.ops.sources.stores.base import StoreError

        shard = index.first_filled
        try:
            (record,) = self.first(shards, index).read(("",), np.zeros(1, np.int64))[0]
        except StoreError as error:
            raise OpError("PG430", f"record 0 of {shards[shard].path!r} cannot be read: {error}", field="path") from None
        return record, shards[shard].path

    def stored_labels(self, name: str, shard: Found, offsets: Ints, lengths: Ints) -> Sequence[Any]:
        key = self.key_of(name)
        return [label_in(record, key, f"{shard.path}#{row}") for row, record in enumerate(self.column(name, "", shard))]

    def stored_values(self, name: str, key: str, shard: Found, offsets: Ints, lengths: Ints) -> Sequence[Any]:
        return [values_in(record, key, f"{shard.path}#{row}") for row, record in enumerate(self.column(name, "", shard))]

    def stored_cells(self, name: str, shard: Found, offsets: Ints, lengths: Ints) -> Sequence[Any]:
        key = self.key_of(name)
        return [cell_in(record, key, f"{shard.path}#{row}") for row, record in enumerate(self.column(name, "", shard))]

    def known_keys(self, shards: Sequence[Found], index: RecordIndex) -> Sequence[str]:
        return list(first_keys(*self._first(shards, index)))

    def has_columns(self) -> bool:
        return self.content == "example"

    def first_label(self, name: str, shards: Sequence[Found], index: RecordIndex) -> Any:
        return label_in(self._first(shards, index)[0], self.key_of(name), "the first record")

    def reader(self, shards: Sequence[Found], index: RecordIndex, labels: Mapping[str, LabelColumn]) -> Reader:
        layout = layout_of(self.read_features, first_keys(*self._first(shards, index)) if self.content == "example" else {})
        return _Messages(self, layout, self.first(shards, index).at_once, shards, labels)


class _Messages(StoreReader):
    """Messages read by the library and parsed in the graph."""

    def __init__(self, source: ArrayRecord, layout: Layout, *about: Any) -> None:
        super().__init__(source, source.infer(), *about)
        self.layout, self.content = layout, source.content

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        messages = self.values(("",), *place)[0].tolist()
        return messages if self.content == "bytes" else [bytes_in(message, self.source.key_of(feature)) for message in messages]

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        from pipegen.ops.lowering.record_values import parse_example, parsed
        from pipegen.ops.lowering.stored_readers import called

        self.check()
        messages = called(lambda _, shards, rows: self.values(("",), shards, rows), {"": ("string", ())})

        def parse(names: Sequence[str], message: Any) -> dict[str, Any]:
            if self.content == "bytes":
                return dict.fromkeys(names, message)
            classes = {name: self.label_columns[name].lookup for name in names if name in self.label_columns}
            return parse_example(message, {name: self.source.features[name] for name in names}, self.layout, classes)

        return parsed(messages, parse)
