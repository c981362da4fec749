"""Records of compressed files, each unpacked into memory as a whole and cached while the order needs it."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.ops.sources.listing.blocks import BytesBlock, Window
from pipegen.ops.sources.records.crc32c import masked_crc32c
from pipegen.ops.sources.records.index import LONGEST, ShardRecords
from pipegen.ops.sources.records.messages import MessageReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipegen.ops.sources.records.index import RecordIndex
    from pipegen.ops.sources.records.messages import MessageSource
    from pipegen.ops.sources.stores.field_types import FieldType

MAGIC = b"\x1f\x8b"
"""First bytes of a gzip file."""
_HEAD, _TAIL = 12, 4
_ELSEWHERE = "a record does not begin where it should"
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


def index_inflated(path: str) -> ShardRecords:
    """Finds the records of a gzip-compressed TFRecord file by unpacking it once; offsets are uncompressed.

    Raises:
        OpError: `PG430` for a file that is not compressed by gzip.
    """
    import numpy as np

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
    table = np.frombuffer(heads, np.uint8).reshape(-1, _HEAD)
    wrong = masked_crc32c(table[:, :8]) != np.ascontiguousarray(table[:, 8:]).view("<u4").ravel()
    if wrong.any():
        count, damage = int(wrong.argmax()), _ELSEWHERE
        at, starts, table = starts[count], starts[:count], table[:count]
    lengths = np.ascontiguousarray(table[:, :8]).view("<u8").ravel()
    offsets = np.array(starts, np.int64)[:, None] + _HEAD
    place = f"at byte {at:,} of the unpacked data, record {len(starts):,}: {damage}" if damage else ""
    return ShardRecords(offsets, lengths.astype(np.int32)[:, None], place)


def inflate(path: str, size: int, *, whole: bool = False) -> bytes:
    """Unpacks the first `size` bytes of a file; for its `whole` records gzip's checksum is checked.

    Raises:
        OSError: The file is damaged or too short.
    """
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
    """Messages of compressed files.

    Args:
        source: The source.
        types: The type of each feature, from the first record.
        index: Places of records in the unpacked data.
        about: As for `RecordReader`.
    """

    def __init__(self, source: MessageSource, types: Mapping[str, FieldType], index: RecordIndex, *about: Any) -> None:
        super().__init__(*about)
        self.source, self.types, self.index = source, types, index
        self.at_once = max(2, int(index.rows.max(initial=0)))
        self._window = Window()

    def hold_window(self, num_bytes: int, ram_budget: int) -> None:
        self._window.reserve(num_bytes, ram_budget)

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return "compressed files"

    def messages(self, shards: Any, rows: Any) -> Any:
        import numpy as np

        found: Any = np.empty(len(rows), object)
        for shard in np.unique(shards).tolist():
            here = shards == shard
            found[here] = self._window.get(shard, "", self._load).take(rows[here])
        return found

    def _load(self, shard: int, _: str) -> BytesBlock:
        content = inflate(self.shards[shard].path, inflated_size(self.index, shard), whole=True)
        places = zip(*(part[:, 0].tolist() for part in self.index.of(shard)), strict=True)
        return BytesBlock([content[offset : offset + length] for offset, length in places])


def inflated_size(index: RecordIndex, shard: int) -> int:
    """Returns the unpacked size of a file, up to its last record."""
    offsets, lengths = index.of(shard)
    return int(offsets[-1, 0]) + int(lengths[-1, 0]) if len(offsets) else 0
