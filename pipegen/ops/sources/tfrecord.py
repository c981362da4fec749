"""`tfrecord`: records of TFRecord files, each a `tf.Example` or the bytes of one feature. Compressed files are unpacked as a whole.

Format: length, its masked CRC-32C, bytes, their masked CRC-32C; see `tensorflow/tsl/lib/io/record_writer.h`.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Literal

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.mounts import Opened
from pipegen.ops.fields.strings import Ints
from pipegen.ops.sources.listing.blocks import Block, by_block
from pipegen.ops.sources.listing.reader import Hold, Together
from pipegen.ops.sources.records.columns import LabelColumn
from pipegen.ops.sources.records.index import LONGEST, Indexed, InShard, RecordIndex, ShardRecords
from pipegen.ops.sources.records.messages import Buffer, MessageReader, MessageSource
from pipegen.ops.sources.records.reader import MappedReader, RecordReader, stretches
from pipegen.ops.sources.stores.base import byte_strings
from pipegen.ops.sources.stores.field_types import JSON_FIELDS

MAGIC = b"\x1f\x8b"  # first bytes of a gzip file
_SMALL = 4096  # largest record, in bytes, whose file is read a block at a time; of larger records only the heads are read
_BLOCK = 1 << 18
_HEAD, _TAIL = 12, 4
"""Bytes before a record (its length and the checksum of that) and after it (its own checksum)."""
_ELSEWHERE = "a record does not begin where it should"
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)
_POLYNOMIAL = 0x82F63B78  # castagnoli's polynomial, reflected (RFC 3720, appendix B.4)
_MASK = 0xA282EAD8


@cache
def _table() -> Any:
    table: Any = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> np.uint32(1)) ^ np.uint32(_POLYNOMIAL), table >> np.uint32(1))
    return table


def masked_crc32c(texts: Ints) -> Ints:
    """Computes the CRC-32C of texts of one length, uint8 `(n, length)`, rotated and with a constant added ("masked"): uint32 `(n,)`.

    No library: google-crc32c takes one text a call, which for the lengths of a million records takes four times as long (0.2 s).
    """
    table = _table()
    found: Ints = np.full(len(texts), 0xFFFFFFFF, np.uint32)
    for column in texts.T:
        found = table[(found ^ column) & 0xFF] ^ (found >> np.uint32(8))
    found = ~found
    return ((found >> np.uint32(15)) | (found << np.uint32(17))) + np.uint32(_MASK)


def index_tfrecord(path: str, size: int) -> ShardRecords:
    """Finds the records of a TFRecord file by walking from length to length."""
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
    offsets, lengths, sound = _decoded(starts, heads)
    if sound < len(starts) or damage.startswith("at byte 0,"):
        begin = starts[sound] if starts else 0
        what = "it is not a TFRecord file" if sound == 0 else "the checksum of its length is wrong"
        return _records(offsets[:sound], lengths, f"at byte {begin:,}, record {sound:,}: {what}")
    large = lengths > LONGEST
    if large.any():
        first = int(large.argmax())
        damage = f"at byte {starts[first]:,}, record {first:,}: it has {int(lengths[first]):,} bytes; the limit is {LONGEST:,}"
        offsets = offsets[:first]
    return _records(offsets, lengths, damage)


def _decoded(starts: Sequence[int], heads: bytearray) -> tuple[Ints, Ints, int]:
    """Returns the offsets and lengths of records, and the number of those before the first wrong checksum of a length."""
    table = np.frombuffer(heads, np.uint8).reshape(-1, _HEAD)
    wrong = masked_crc32c(table[:, :8]) != np.ascontiguousarray(table[:, 8:]).view("<u4").ravel()
    lengths = np.ascontiguousarray(table[:, :8]).view("<u8").ravel()
    return np.array(starts, np.int64) + _HEAD, lengths, int(wrong.argmax()) if wrong.any() else len(starts)


def _records(offsets: Ints, lengths: Ints, damage: str) -> ShardRecords:
    return ShardRecords(offsets[:, None], lengths[: len(offsets), None].astype("int32"), damage)


def index_inflated(path: str) -> ShardRecords:
    """Finds the records of a gzip-compressed TFRecord file by unpacking it once; offsets are uncompressed. `PG430` for another file."""
    starts: list[int] = []
    heads, at, damage = bytearray(), 0, ""
    with open(path, "rb") as stream:
        begin = stream.read(len(MAGIC))
        if not begin:
            damage = "the file is empty, which a gzip file never is"
        elif begin != MAGIC:
            message = f"{path!r} is not compressed by gzip"
            raise OpError("PG430", message, field="compression", help="remove `compression`")
    with gzip.open(path) as stream:
        try:
            while head := stream.read(_HEAD):
                length = int.from_bytes(head[:8], "little")
                if len(head) < _HEAD or length > LONGEST:
                    damage = _ELSEWHERE
                    break
                if len(stream.read(length + _TAIL)) < length + _TAIL:
                    damage = "the file ends within it"
                    break
                starts.append(at)
                heads += head
                at += _HEAD + length + _TAIL
        except _DAMAGE as error:
            damage = f"the compressed data is damaged: {str(error).rstrip('.').lower()}"
    offsets, lengths, sound = _decoded(starts, heads)
    if sound < len(starts):
        at, damage = starts[sound], _ELSEWHERE
    place = f"at byte {at:,} of the unpacked data, record {sound:,}: {damage}" if damage else ""
    return _records(offsets[:sound], lengths, place)


def inflate(path: str, size: int, *, whole: bool = False) -> bytes:
    """Unpacks the first `size` bytes of a file; for its `whole` records gzip's checksum is checked. `OSError` if it is damaged or too
    short."""
    with gzip.open(path) as stream:
        try:
            content = stream.read(size)
            if whole:
                stream.read(_TAIL + 1)  # reaches the end, and so the checksum
        except _DAMAGE as error:
            raise OSError(f"{path} is damaged: {error}") from None
    if len(content) < size:
        raise OSError(f"{path} ends at byte {len(content):,} of the unpacked data; it had {size:,} when it was indexed")
    return content


class InflatedReader(MessageReader):
    """Messages of compressed files; the places of records are those in the unpacked data."""

    def __init__(self, source: MessageSource, found: Indexed, labels: Mapping[str, LabelColumn]) -> None:
        super().__init__(source, found, labels)
        self.at_once = max(2, int(self.index.rows.max(initial=0)))

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return "compressed files"

    def messages(self, shards: Any, rows: Any) -> Any:
        return by_block(shards, lambda shard, here: [self.window.get(shard, "", self._load).take(rows[here])])[0]

    def _load(self, shard: int, _: str) -> Block:
        content = inflate(self.shards[shard].path, inflated_size(self.index, shard), whole=True)
        places = zip(*(part[:, 0].tolist() for part in self.index.of(shard)), strict=True)
        return Block(byte_strings([content[offset : offset + length] for offset, length in places]))


def inflated_size(index: RecordIndex, shard: int) -> int:
    """Returns the unpacked size of a file, up to its last record."""
    offsets, lengths = index.of(shard)
    return int(offsets[-1, 0]) + int(lengths[-1, 0]) if len(offsets) else 0


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
            return bytes(next(self.contents("", found.first)))
        except OSError as error:
            raise OpError("PG430", str(error), field="path") from None

    def contents(self, name: str, records: InShard) -> Iterator[Buffer]:
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
        return VerifiedRecords(files, self, hold)

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        said = "" if self.verifies else super().python(features, ram_budget)
        return said or JSON_FIELDS * any(self.types[name].path for name in features)
