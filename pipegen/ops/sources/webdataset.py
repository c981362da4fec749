"""`webdataset`: records of tar archives, whose members are grouped by their names."""

from __future__ import annotations

import os
import tarfile
from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.ops.sources.records.grouped import GroupedSource, Member

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from pipegen.ops.sources.records.index import ShardRecords

_BLOCK = 512
_AHEAD = 8 * _BLOCK
"""Bytes read at a time: behind a picture lie the headers and the contents of a few small members."""
_FOLDER = b"5"
_READ = frozenset(b"\x0005")
"""Types of members: files, by two names for them, and folders. What else there is makes a name longer, or is a link."""


class WebDataset(GroupedSource):
    """Tar archives as WebDataset has them: members that follow each other and have one name up to its first dot are a record, and what
    stands behind the dot is the key: `0001.jpg` and `0001.cls` hold `jpg` and `cls` of one record.

    The archives are mapped into memory and read in the graph, in any order. The checksums of all headers are compared when an archive
    is indexed; the format has none of the contents.
    """

    op: ClassVar[str] = "webdataset"
    suffixes: ClassVar[tuple[str, ...]] = (".tar",)

    def index_shard(self, path: str, size: int) -> ShardRecords:
        """Walk from header to header."""
        members, damage = tar_members(path, size)
        return self.grouped(members, damage, adjacent=True)

    def keys_in(self, path: str) -> list[str]:
        members, _ = tar_members(path, os.path.getsize(path))
        return sorted({member.name.rpartition("/")[2].partition(".")[2] for member in members[:1000]})


def tar_members(path: str, size: int) -> tuple[list[Member], str]:
    """Lists the files of a tar archive, and says what is wrong behind them.

    Headers as POSIX has them (`ustar`) are read here; an archive that has other ones, such as those that long names need, is read by
    `tarfile`, which takes ten times as long.
    """
    import numpy as np

    starts: list[int] = []
    lengths: list[int] = []
    headers = bytearray()
    number, at, damage = os.open(path, os.O_RDONLY), 0, ""
    closed = False
    try:
        block, begins = b"", 0
        while at + _BLOCK <= size:
            if at + _BLOCK - begins > len(block):
                block, begins = os.pread(number, _AHEAD, at), at
            header = block[at - begins : at - begins + _BLOCK]
            if not header[0] and not header.strip(b"\0"):
                closed = True
                break
            if (header[156] not in _READ or header[124] & 128) and header[257:262] == b"ustar":
                return _by_library(path, size)
            length = _octal(header[124:136])
            if length is None:
                damage = "the length in its header is no number"
                break
            after = at + _BLOCK + -(-length // _BLOCK) * _BLOCK
            starts.append(at)
            lengths.append(length)
            headers += header
            if at + _BLOCK + length > size:
                damage = "the archive ends within it"
                break
            at = after
    finally:
        os.close(number)
    if not closed and not damage:
        damage = "the archive ends without the empty blocks that close one"
    table = np.frombuffer(headers, np.uint8).reshape(-1, _BLOCK)
    sums = table.sum(1, dtype=np.int64) - table[:, 148:156].sum(1, dtype=np.int64) + 8 * 32
    wrong = _octals(table[:, 148:156]) != sums
    count = len(starts)
    if wrong.any():
        count, damage = int(wrong.argmax()), "the checksum of its header is wrong"
    elif damage.startswith("the archive ends within"):
        count -= 1
    where = f"at byte {starts[count] if count < len(starts) else min(at, size):,}, member {count:,}: " if damage else ""
    if count == 0 and damage:
        damage = f"{damage}; it is no tar archive, or a compressed one"
    return [*_named(table[:count], starts, lengths)], where + damage


def _named(table: np.ndarray[Any, Any], starts: list[int], lengths: list[int]) -> Iterator[Member]:
    names, prefixes = (table[:, a:b].copy().view(f"S{b - a}").ravel().tolist() for a, b in ((0, 100), (345, 500)))
    prefixed = ((table[:, 257:262] == list(b"ustar")).all(1) & (table[:, 345] != 0)).tolist()
    folders = (table[:, 156] == _FOLDER[0]).tolist()
    for name, prefix, start, length, longer, folder in zip(names, prefixes, starts, lengths, prefixed, folders, strict=False):
        if not folder:
            yield Member((prefix + b"/" + name if longer else name).decode("utf-8", "surrogateescape"), start + _BLOCK, length)


def _octals(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Reads a number of each header, uint8 `(n, digits)`; what is no digit is passed over."""
    found: np.ndarray[Any, Any] = table[:, 0].astype("int64") * 0
    for column in table.T.astype("int64"):
        digit = (column >= ord("0")) & (column <= ord("7"))
        found[digit] = found[digit] * 8 + column[digit] - ord("0")
    return found


def _octal(field: bytes) -> int | None:
    """A number of a header, or `None` where it is none."""
    text = field.strip(b" \0")
    try:
        return int(text, 8) if text else 0
    except ValueError:
        return None


def _by_library(path: str, size: int) -> tuple[list[Member], str]:
    found: list[Member] = []
    damage = ""
    try:
        with tarfile.open(path, "r:") as archive:
            for info in archive:
                if info.isreg() and not info.issparse():
                    if info.offset_data + info.size > size:
                        damage = f"at byte {info.offset:,}, member {len(found):,}: the archive ends within it"
                        break
                    found.append(Member(info.name, info.offset_data, info.size))
                vars(archive)["members"] = []  # it would keep all of them
            if not damage and size - archive.offset < _BLOCK:
                damage = f"at byte {archive.offset:,}, member {len(found):,}: the archive ends without the empty blocks that close one"
    except tarfile.TarError as error:
        damage = f"behind member {len(found):,}: {error}"
    return found, damage
