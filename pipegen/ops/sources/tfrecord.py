"""`tfrecord`: records of TFRecord files, each a `tf.Example` or the bytes of one feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.sources.records.messages import Buffer, MessageSource
from pipegen.ops.sources.records.reader import MappedReader, stretches
from pipegen.ops.sources.records.tfrecords import InflatedReader, index_inflated, index_tfrecord, inflate, inflated_size
from pipegen.ops.sources.stores.field_types import JSON_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipegen.ops.fields.strings import Ints
    from pipegen.ops.sources.listing.reader import Hold, Together
    from pipegen.ops.sources.records.index import Indexed, InShard, ShardRecords
    from pipegen.ops.sources.records.labels import LabelColumn
    from pipegen.ops.sources.records.reader import RecordReader


class TFRecord(MessageSource):
    """TFRecord files. Each record is a `tf.Example` whose keys hold the features, or, with `content: bytes`, the only feature itself. A key
    may name a field of JSON text: `about.label`, `about.boxes`. The field gives a label, a weight, a tensor, boxes or keypoints.

    Files are mapped into memory and read in the graph, in any order. Indexing checks the checksum of each record's length; `pipegen
    validate --data=all` checks those of the records.
    """

    op: ClassVar[str] = "tfrecord"
    checksums: ClassVar[str] = "those of each record"
    suffixes: ClassVar[tuple[str, ...]] = (".tfrecord", ".tfrecords", ".tfrec")
    unpacks: ClassVar[Mapping[str, str]] = {"gzip": ".gz"}

    verify: bool = False
    """Whether reading checks the checksum of each record, with TensorFlow's own reader, which takes twice as long."""

    compression: Literal["none", "gzip"] = "none"
    """`gzip` for compressed files. A file is then unpacked as a whole: shuffling permutes the files, then the records within a window of
    several files."""

    def reads_addresses(self) -> bool:
        return self.compression == "none"

    def fetched_as_read(self) -> frozenset[str]:
        return frozenset({"path"} if self.compression == "none" else ())

    def index_shard(self, path: str, size: int) -> ShardRecords:
        return index_inflated(path) if self.compression == "gzip" else index_tfrecord(path, size)

    def shard_endings(self) -> tuple[str, ...]:
        return self.suffixes if self.compression == "none" else tuple(f"{suffix}.gz" for suffix in self.suffixes)

    def index_options(self) -> str:
        return "" if self.compression == "none" else self.compression

    def record_bytes(self, found: Indexed) -> Ints:
        """Returns the uncompressed size of each file."""
        if self.compression == "none":
            return super().record_bytes(found)
        return np.array([inflated_size(found.index, shard) for shard in range(len(found.shards))], np.int64)

    def first_message(self, found: Indexed) -> bytes:
        try:
            return bytes(next(self.messages("", found.first)))
        except OSError as error:
            raise OpError("PG430", str(error), field="path") from None

    def messages(self, name: str, records: InShard) -> Iterator[Buffer]:
        shard, offsets, lengths = records
        places = offsets[:, 0].tolist(), lengths[:, 0].tolist()
        if self.compression == "none":
            return stretches(shard.path, *places)
        content = memoryview(inflate(shard.path, places[0][-1] + places[1][-1]) if len(offsets) else b"")
        return (content[at : at + length] for at, length in zip(*places, strict=True))

    def reader(self, found: Indexed, labels: Mapping[str, LabelColumn]) -> RecordReader:
        return (InflatedReader if self.compression == "gzip" else _Records)(self, found, labels)


class _Records(MappedReader):
    """Records mapped into memory, parsed in the graph."""

    source: TFRecord

    def __init__(self, source: TFRecord, found: Indexed, labels: Mapping[str, LabelColumn]) -> None:
        super().__init__(source, found, labels)
        # TensorFlow's only reader that can start anywhere checks checksums.
        self.verifies = source.verify or (self.away is not None and self.away[0].direct)
        self.fetches = self.fetches and not self.verifies

    def verifying(self) -> MappedReader:
        made = super().verifying()
        made.fetches = False
        return made

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        if not self.verifies:
            return super().open_together(features, ram_budget, hold)
        from pipegen.ops.lowering.stored_readers import VerifiedRecords

        self.check()
        paths = [shard.path for shard in self.shards]
        if self.away is not None:  # by address, or fetched as a whole
            mount, keys = self.away
            paths = [f"{mount.address}/{key}" for key in keys] if mount.direct else mount.whole(keys)
        files = [(path, shard.size) for path, shard in zip(paths, self.shards, strict=True)]
        return VerifiedRecords(files, self.index, self.parts, hold, self.parts_of, self.parse)

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        said = "" if self.verifies else super().python(features, ram_budget)
        return said or JSON_FIELDS * any(self.types[name].path for name in features)

    def unpacked(self, feature: str, content: bytes, number: int) -> bytes:
        return self.source.feature_in(feature, content)

    def parse(self, features: Sequence[str], parts: dict[str, Any], places: dict[str, Any]) -> dict[str, Any]:
        return self.source.parse(self.types, self.label_columns, features, parts[""])
