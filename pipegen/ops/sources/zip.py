"""`zip`: records of ZIP archives, whose members are grouped by their names."""

from __future__ import annotations

import os
import zipfile
import zlib
from typing import TYPE_CHECKING, ClassVar

from pipegen.ops.sources.records.grouped import GroupedSource, Member

if TYPE_CHECKING:
    from pipegen.ops.sources.records.index import ShardRecords

_LOCAL_HEADER = 30
"""Bytes of a member's own header before its name and its extra field."""
_ENCRYPTED = 1


class Zip(GroupedSource):
    """ZIP archives: members in one folder that have one name up to its first dot are a record, and what stands behind the dot is the key:
    `a/0001.jpg` and `a/0001.txt` hold `jpg` and `txt` of one record.

    The archives are mapped into memory and read in the graph, in any order. Deflated members are inflated there, and their checksums
    compared; those of stored members are not.
    """

    op: ClassVar[str] = "zip"
    suffixes: ClassVar[tuple[str, ...]] = (".zip",)

    def index_shard(self, path: str, size: int) -> ShardRecords:
        """Read the table of contents, and of each member the length of its own header."""
        members, damage = zip_members(path, size)
        return self.grouped(members, damage, adjacent=False)

    def keys_in(self, path: str) -> list[str]:
        members, _ = zip_members(path, os.path.getsize(path))
        return sorted({member.name.rpartition("/")[2].partition(".")[2] for member in members[:1000]})

    def unpacked_member(self, content: bytes, check: int) -> bytes:
        return unpacked_member(content, check)


def unpacked_member(content: bytes, check: int) -> bytes:
    """Returns the bytes of a member; see `Member.check`.

    Raises:
        ValueError: Where they are damaged.
    """
    if not check:
        return content
    try:
        found = zlib.decompress(content, -15, check >> 32)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if zlib.crc32(found) != check & 0xFFFFFFFF:
        raise ValueError("the checksum of a compressed member is wrong")
    return found


def zip_members(path: str, size: int) -> tuple[list[Member], str]:
    """Lists the files of a ZIP archive in the order of their places, and says what is wrong behind them."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = sorted((info for info in archive.infolist() if not info.is_dir()), key=lambda info: info.header_offset)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
        return [], f"at byte {size:,}, member 0: its table of contents cannot be read: {error}"
    found: list[Member] = []
    number = os.open(path, os.O_RDONLY)
    try:
        for info in infos:
            where = f"at byte {info.header_offset:,}, member {len(found):,}"
            if info.flag_bits & _ENCRYPTED:
                return found, f"{where}: {info.filename!r} is encrypted"
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                return found, f"{where}: {info.filename!r} is compressed by method {info.compress_type}, which is not deflate"
            local = os.pread(number, _LOCAL_HEADER, info.header_offset)
            if local[:4] != b"PK\x03\x04" or len(local) < _LOCAL_HEADER:
                return found, f"{where}: the header of {info.filename!r} is damaged"
            start = info.header_offset + _LOCAL_HEADER + int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
            if start + info.compress_size > size:
                return found, f"{where}: the archive ends within {info.filename!r}"
            check = 0 if info.compress_type == zipfile.ZIP_STORED else info.file_size << 32 | info.CRC
            if info.file_size >= 1 << 31:
                return found, f"{where}: {info.filename!r} has more than 2 GiB"
            found.append(Member(info.filename, start, info.compress_size, check))
    finally:
        os.close(number)
    return found, ""
