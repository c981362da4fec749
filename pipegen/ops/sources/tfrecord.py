"""`tfrecord`: records of TFRecord files, each a `tf.Example` or the bytes of one feature."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pipegen.errors import OpError
from pipegen.mounts import Opened
from pipegen.ops.sources.records.crc32c import masked_crc32c
from pipegen.ops.sources.records.index import LONGEST, ShardRecords
from pipegen.ops.sources.records.inflated import InflatedReader, index_inflated, inflate, inflated_size
from pipegen.ops.sources.records.messages import MessageSource
from pipegen.ops.sources.records.reader import MappedReader, stretches
from pipegen.ops.sources.stores.field_types import JSON_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipegen.ops.sources.listing.reader import Hold, Reader, Together
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.records.index import RecordIndex
    from pipegen.ops.sources.records.labels import LabelColumn
    from pipegen.ops.sources.records.messages import MessageSource
    from pipegen.ops.sources.records.paths import Found
    from pipegen.ops.sources.records.tf_example import Buffer
    from pipegen.ops.sources.stores.field_types import FieldType

_HEAD, _TAIL = 12, 4
"""Bytes before a record (its length and the checksum of that) and after it (its own checksum)."""
_SMALL = 4096
"""Largest record, in bytes, whose file is read a block at a time; of larger records only the heads are read."""
_BLOCK = 1 << 18


class TFRecord(MessageSource):
    """TFRecord files. Each record is a `tf.Example` whose keys hold the features, or, with `content: bytes`, the only feature itself. A key
    may name a field of JSON text: `about.label`, `about.boxes`. The field gives a label, a weight, a tensor, boxes or keypoints.

    Files are mapped into memory and read in the graph, in any order. Indexing checks the checksum of each record's length; `pipegen
    validate --data=all` checks those of the records.
    """

    op: ClassVar[str] = "tfrecord"
    checksums: ClassVar[str] = "those of each record"
    labels_of_one_type: ClassVar[bool] = True
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

    def record_bytes(self, shards: Sequence[Found], index: RecordIndex) -> Ints:
        """Returns the uncompressed size of each file."""
        import numpy as np

        if self.compression == "none":
            return super().record_bytes(shards, index)
        return np.array([inflated_size(index, shard) for shard in range(len(shards))], np.int64)

    def first_message(self, shards: Sequence[Found], index: RecordIndex) -> bytes:
        shard = index.first_filled
        try:
            return bytes(next(self.messages("", shards[shard], *(part[:1] for part in index.of(shard)))))
        except OSError as error:
            raise OpError("PG430", str(error), field="path") from None

    def messages(self, name: str, shard: Found, offsets: Ints, lengths: Ints) -> Iterator[Buffer]:
        places = offsets[:, 0].tolist(), lengths[:, 0].tolist()
        if self.compression == "none":
            return stretches(shard.path, *places)
        content = memoryview(inflate(shard.path, places[0][-1] + places[1][-1]) if len(offsets) else b"")
        return (content[at : at + length] for at, length in zip(*places, strict=True))

    def reader(self, shards: Sequence[Found], index: RecordIndex, labels: Mapping[str, LabelColumn]) -> Reader:
        types = self.types(shards, index)
        if self.compression == "gzip":
            return InflatedReader(self, types, index, shards, labels)
        return _Records(self, types, shards, index, self.parts(), labels)


class _Records(MappedReader):
    """Records mapped into memory, parsed in the graph."""

    def __init__(self, source: TFRecord, types: Mapping[str, FieldType], *about: Any) -> None:
        super().__init__(*about)
        self.source, self.types = source, types
        # TensorFlow's only reader that can start anywhere checks checksums.
        self.verifies = source.verify or (self.away is not None and self.away[0].direct)
        self.fetches = self.fetches and not self.verifies

    def verifying(self) -> _Records:
        """Returns a reader that checks the checksum of each record."""
        made = copy(self)
        made.verifies, made.fetches = True, False
        return made

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        if not self.verifies:
            return super().open_together(features, ram_budget, hold)
        from pipegen.ops.lowering.stored_readers import VerifiedRecords

        self.check()
        return VerifiedRecords(self._checked_files(), self.index, self.parts, hold, self.parts_of, self.parse)

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        said = "" if self.verifies else super().python(features, ram_budget)
        return said or JSON_FIELDS * any(self.types[name].path for name in features)

    def _checked_files(self) -> list[tuple[str, int]]:
        """Lists the files for TensorFlow's reader; remote ones by address, or fetched as a whole."""
        paths = [shard.path for shard in self.shards]
        if self.away is not None:
            mount, keys = self.away
            paths = [f"{mount.address}/{key}" for key in keys] if mount.direct else mount.whole(keys)
        return [(path, shard.size) for path, shard in zip(paths, self.shards, strict=True)]

    def unpacked(self, feature: str, content: bytes, number: int) -> bytes:
        return self.source.feature_in(feature, content)

    def parse(self, features: Sequence[str], parts: dict[str, Any], places: dict[str, Any]) -> dict[str, Any]:
        return self.source.parse(self.types, self.label_columns, features, parts[""])


def index_tfrecord(path: str, size: int) -> ShardRecords:
    """Finds the records of a TFRecord file by walking from length to length.

    Format: length, its masked CRC-32C, bytes, their masked CRC-32C; see `tensorflow/tsl/lib/io/record_writer.h`.
    """
    import numpy as np

    starts: list[int] = []
    heads = bytearray()
    at, damage = 0, ""
    with Opened(path) as stream:
        block, begins, ahead = b"", 0, _HEAD
        while at < size:
            if at + _HEAD - begins > len(block):
                block, begins = stream.pread(ahead, at), at
            head = block[at - begins : at - begins + _HEAD]
            length = int.from_bytes(head[:8], "little")
            after = at + _HEAD + length + _TAIL
            if len(head) < _HEAD or after > size:
                damage = f"at byte {at:,}, record {len(starts):,}: the file ends within it"
                break
            starts.append(at)
            heads += head
            ahead = _HEAD if length > _SMALL else _BLOCK
            at = after
    table = np.frombuffer(heads, np.uint8).reshape(-1, _HEAD)
    lengths = np.ascontiguousarray(table[:, :8]).view("<u8").ravel()
    wrong = masked_crc32c(table[:, :8]) != np.ascontiguousarray(table[:, 8:]).view("<u4").ravel()
    offsets = np.array(starts, np.int64)[:, None] + _HEAD
    if wrong.any() or damage.startswith("at byte 0,"):
        first = int(wrong.argmax()) if len(wrong) else 0
        begin = starts[first] if starts else 0
        what = "it is not a TFRecord file" if first == 0 else "the checksum of its length is wrong"
        return ShardRecords(offsets[:first], lengths[:first].astype(np.int32)[:, None], f"at byte {begin:,}, record {first:,}: {what}")
    large = lengths > LONGEST
    if large.any():
        first = int(large.argmax())
        damage = f"at byte {starts[first]:,}, record {first:,}: it has {int(lengths[first]):,} bytes; the limit is {LONGEST:,}"
        offsets, lengths = offsets[:first], lengths[:first]
    return ShardRecords(offsets, lengths.astype(np.int32)[:, None], damage)
