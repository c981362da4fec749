"""Reads the table of contents of a ZIP archive: place, size and checksum of each member.

The layout is that of PKWARE's application note (APPNOTE.TXT, 4.3), with the 64-bit fields of large archives.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import replace
from typing import Any, NamedTuple

from pipegen.lazy import np
from pipegen.mounts import Opened
from pipegen.ops.fields.strings import Ints, Strings, taken_bytes
from pipegen.ops.sources.shards.members import Ahead, Link, Members, linked

_END, _END64, _LOCATOR, _LOCAL = 22, 56, 20, 30
"""Bytes of the end record, its 64-bit form and the locator of that; and of a member's local header before its name."""
_LONGEST_COMMENT = 1 << 16
_ENTRY = [
    ("magic", "<u4"), ("versions", "<u4"), ("flags", "<u2"), ("method", "<u2"), ("time", "<u4"), ("crc", "<u4"), ("stored", "<u4"),
    ("size", "<u4"), ("name", "<u2"), ("extra", "<u2"), ("comment", "<u2"), ("disk", "<u2"), ("inside", "<u2"), ("outside", "<u4"),
    ("offset", "<u4"),
]  # fmt: skip
"""Fixed part of an entry, before name, extra fields and comment."""
_LOCAL_ENTRY = [("magic", "<u4"), ("version", "<u2"), *_ENTRY[2:10]]
"""Fixed part of a local header, before name and extra fields."""
_ENTRY_BYTES, _MAGIC, _LOCAL_MAGIC = 46, b"PK\1\2", int.from_bytes(b"PK\3\4", "little")
_WIDTHS, _WIDTHS_AT = struct.Struct("<HHH"), 28
"""The bytes of the name, the extra fields and the comment of an entry, and where it has them."""
_READ = ("versions", "flags", "method", "crc", "stored", "size", "name", "extra", "outside", "offset")  # the fields that are used
_ENCRYPTED, _LATER, _UTF8 = 1, 1 << 3, 1 << 11
_MEANT = _ENCRYPTED | _LATER | _UTF8  # flags that affect reading: encryption, sums after the member, encoding of the name
_UNIX, _LINK = 3, 0o12
"""The Unix system of an entry, whose attributes hold a file mode, and the upper bits of the mode of a link."""
_LONGEST_LINK, _LONGEST_GAP = 4096, 1 << 20
_BEGIN = (b"PK\3\4", b"PK\5\6")  # first bytes of an archive
_STORED, _DEFLATED = 0, 8
_MASK = 0xFFFFFFFF  # value of a 32-bit field whose real value is in an extra field
_LARGE = 0x0001  # the extra field with 64-bit values


class _Damaged(ValueError):
    """The table of contents cannot be read."""


def zip_members(path: str, size: int) -> tuple[Members, str]:
    """Lists the files of a ZIP archive in the order of their places, and describes damage after them."""
    with Opened(path) as file:
        try:
            table = _directory(file, size)
            entries = _entries(table)
            names = taken_bytes(np.frombuffer(table.content, np.uint8), entries["begin"], entries["name"])
            texts = _decoded(table, entries, names)
        except _Damaged as error:
            none: Ints = np.zeros(0, np.int64)
            empty = Members(Strings.hold(()), none, none, none)
            return empty, f"at byte {size:,}, member 0: its table of contents cannot be read: {error}"
        stored, sizes = entries["stored"], entries["size"]
        offsets: Ints = entries["offset"] + table.shift
        starts, whole = _starts(file, offsets, entries, names)
        seen = _around(file, table, size, offsets, starts + stored)
        unix = (entries["versions"] >> 8 & 255 == _UNIX) & (entries["outside"] >> 28 == _LINK)
        links = [
            Link(place, _name(table, entries, place), file.pread(min(_LONGEST_LINK, int(stored[place])), int(starts[place])), hard=False)
            for place in np.flatnonzero(unix & whole & (entries["method"] == _STORED)).tolist()
        ]
    folder = names[entries["name"].cumsum() - 1] == ord("/")
    problems = {
        "{} is encrypted": entries["flags"] & _ENCRYPTED != 0,
        "{} is compressed by method {}; only deflate is supported": ~np.isin(entries["method"], (_STORED, _DEFLATED)),
        "the header of {} is damaged": ~whole,
        "the archive ends within {}": starts + stored > size,
        "{} overlaps what follows it": starts + stored > np.append(offsets[1:], table.begin),
        "the sizes of {} differ": (entries["method"] == _STORED) & (entries["flags"] & _ENCRYPTED == 0) & (stored != sizes),
        "{} has more than 2 GiB": sizes >= 1 << 31,
    }
    wrong = np.stack([*problems.values()]) & ~folder
    wrong[2] |= ~whole  # folders, too: what follows may be misplaced
    count, damage = len(texts), ""
    if wrong.any():
        count = int(wrong.any(0).argmax())
        said = [*problems][int(wrong[:, count].argmax())].format(repr(texts[count]), entries["method"][count])
        damage = f"at byte {int(offsets[count]):,}, member {count:,}: {said}"
    checks = sizes << 32 | entries["crc"]
    plain = (entries["method"] == _STORED) | (sizes == 0)
    every = Members(texts, starts, np.where(sizes == 0, 0, stored), np.where(plain, ~checks, checks))
    listed = ~folder
    listed[[link.at for link in links]] = False
    kept = np.flatnonzero(listed[:count])
    members = every.take(kept) if len(kept) < len(texts) else every
    if links:
        members, unresolved = linked(members, kept, links, [_name(table, entries, place) for place in np.flatnonzero(folder).tolist()])
        seen += unresolved
    return replace(members, seen=tuple(seen)), damage


class _Table(NamedTuple):
    """The table of contents: its bytes and its place; the expected number of entries, modulo 65,536 if `small`; the bytes in front of the
    archive, which shift all places; the end of the archive."""

    content: bytes
    begin: int
    due: int
    small: bool
    shift: int
    end: int


def _directory(file: Opened, size: int) -> _Table:
    """Finds the table of contents from the end of the archive."""
    tail = file.pread(_END + _LONGEST_COMMENT + _LOCATOR, max(0, size - _END - _LONGEST_COMMENT - _LOCATOR))
    place = tail.rfind(b"PK\5\6", 0, len(tail) - _END + 4)
    if place < 0:
        raise _Damaged("it does not end as a ZIP archive does")
    count, length, begin, comment = struct.unpack_from("<HIIH", tail, place + 10)
    end = size - len(tail) + place
    behind, small = end + _END + comment, True
    if tail[max(0, place - _LOCATOR) : place].startswith(b"PK\6\7"):
        at = end - _LOCATOR - _END64
        large = file.pread(_END64, at) if at >= 0 else b""
        if not large.startswith(b"PK\6\6") or len(large) < _END64:
            raise _Damaged("its end is damaged")
        end, small = at, False
        count, length, begin = struct.unpack_from("<QQQ", large, 32)
    shift = end - length - begin
    if shift < 0:
        raise _Damaged("its place is beyond the end of the archive")
    if behind > size:
        raise _Damaged("the archive ends within its comment")
    content, begin = bytearray(), begin + shift
    while len(content) < length:  # Linux reads at most 2 GiB per call
        more = file.pread(length - len(content), begin + len(content))
        if not more:
            raise _Damaged("the archive ends within it")
        content += more
    return _Table(bytes(content), begin, count, small, shift, behind)


def _around(file: Opened, table: _Table, size: int, offsets: Ints, ends: Ints) -> list[tuple[str, str]]:
    """Finds data in front of an archive, between its members and after its end; see `findings`. Headers start at `offsets`, rising; members
    end at `ends`."""
    seen = []
    if table.end < size:
        seen.append(("behind", f"{size - table.end:,} bytes from byte {table.end:,} on"))
    first = int(offsets[0]) if len(offsets) else table.begin
    if first and file.pread(4, 0) in _BEGIN:
        seen.append(("front", f"{first:,} bytes"))
    # Between members there may be sums, if they were not known before. Anything else may be an unlisted member.
    begins = np.minimum(ends, table.begin)
    gaps = np.append(offsets[1:], table.begin) - begins
    for place in np.flatnonzero(gaps >= _LOCAL).tolist():
        there = file.pread(min(int(gaps[place]), _LONGEST_GAP), int(begins[place]))
        if (at := there.find(b"PK\3\4")) >= 0:
            seen.append(("unlisted", f"byte {int(begins[place]) + at:,}"))
    return seen


def _entries(table: _Table) -> dict[str, Ints]:
    """Returns the fields of the entries, int64 `(n,)`, in the order of their members, and as `begin` the place of each name in the
    table."""
    starts, at, last = list[int](), 0, len(table.content) - _ENTRY_BYTES
    while at <= last and table.content.startswith(_MAGIC, at):
        starts.append(at)
        at += _ENTRY_BYTES + sum(_WIDTHS.unpack_from(table.content, at + _WIDTHS_AT))
    if at != len(table.content):
        raise _Damaged("one of its entries is damaged")
    if table.due != (len(starts) & 0xFFFF if table.small and table.due != 0xFFFF else len(starts)):
        raise _Damaged(f"it has {len(starts):,} entries instead of {table.due:,}")
    places: Ints = np.array(starts, np.int64)
    rows = _at_each_byte(np.frombuffer(table.content, np.uint8), f"V{_ENTRY_BYTES}")[places].view(_ENTRY)
    entries = {field: rows[field].astype(np.int64) for field in _READ} | {"begin": places + _ENTRY_BYTES}
    large = (entries["size"] == _MASK) | (entries["stored"] == _MASK) | (entries["offset"] == _MASK)
    for place in np.flatnonzero(large).tolist():
        end = int(entries["begin"][place] + entries["name"][place])
        _widen(entries, place, table.content[end : end + entries["extra"][place]])
    if not entries["name"].all():
        raise _Damaged("the name of a member is damaged")
    order = np.argsort(entries["offset"], kind="stable")
    return {field: values[order] for field, values in entries.items()}


def _decoded(table: _Table, entries: dict[str, Ints], names: Ints) -> Strings:
    """Decodes the bytes of all names."""
    if not ((names & 128).any() or (names == 0).any()):
        return Strings.of_bytes(names, entries["name"])
    texts = (_text(_name(table, entries, i), flags & _UTF8 != 0) for i, flags in enumerate(entries["flags"].tolist()))
    return Strings.hold(texts)


def _name(table: _Table, entries: dict[str, Ints], place: int) -> bytes:
    """Returns the bytes of a member's name."""
    begin = int(entries["begin"][place])
    return table.content[begin : begin + int(entries["name"][place])]


def _text(name: bytes, utf8: bool) -> str:
    try:
        return name.decode("utf-8" if utf8 else "cp437").partition("\0")[0]
    except UnicodeDecodeError:
        raise _Damaged("the name of a member is damaged") from None


def _widen(entries: dict[str, Ints], place: int, extras: bytes) -> None:
    """Reads 64-bit values of an entry from its extra field, which has those that are too large, in this order."""
    wide, at = b"", 0
    while at + 4 <= len(extras):
        kind, length = struct.unpack_from("<HH", extras, at)
        wide = extras[at + 4 : at + 4 + length] if kind == _LARGE else wide
        at += 4 + length
    at = 0
    for field in ("size", "stored", "offset"):
        if int(entries[field][place]) == _MASK:
            value = int.from_bytes(wide[at : at + 8], "little")
            if at + 8 > len(wide) or value >> 62:
                raise _Damaged("one of its entries is damaged")
            entries[field][place], at = value, at + 8


def _starts(file: Opened, offsets: Ints, entries: dict[str, Ints], names: Ints) -> tuple[Ints, Ints]:
    """Finds the start of each member's bytes, after its local header: int64 `(n,)`; and which local headers agree with the table, whose
    `names` are one after another."""
    ahead, headers, place = Ahead(file), list[bytes](), 0
    longs: Ints = _LOCAL + entries["name"]
    begins, ends = offsets.tolist(), (offsets + longs).tolist()
    while place < len(begins):
        begin = begins[place]
        block = ahead.block(begin)
        if ends[place] > begin + len(block):
            block = file.pread(ends[place] - begin, begin)
        stop = max(place + 1, bisect_right(ends, begin + len(block), place))
        headers += [block[at - begin : end - begin] for at, end in zip(begins[place:stop], ends[place:stop], strict=True)]
        place = stop
    if [*map(len, headers)] != longs.tolist():  # one outside of the file counts as empty
        headers = [header if len(header) == long else bytes(long) for header, long in zip(headers, longs.tolist(), strict=True)]
    content, starts = np.frombuffer(b"".join(headers), np.uint8), longs.cumsum() - longs
    table = _at_each_byte(content, f"V{_LOCAL}")[starts].view(_LOCAL_ENTRY)
    differs = taken_bytes(content, starts + _LOCAL, entries["name"]) != names
    whole: Ints = table["magic"] == _LOCAL_MAGIC
    if differs.any():
        whole &= ~np.logical_or.reduceat(differs, entries["name"].cumsum() - entries["name"])
    flags, crc, stored, sizes = (table[field].astype(np.int64) for field in ("flags", "crc", "stored", "size"))
    whole &= (table["name"] == entries["name"]) & (flags & _MEANT == entries["flags"] & _MEANT) & (table["method"] == entries["method"])
    whole &= (flags & _LATER != 0) | (crc == entries["crc"])
    for given, field in ((stored, "stored"), (sizes, "size")):
        whole &= (flags & _LATER != 0) | (given == _MASK) | (given == entries[field])
    return offsets + _LOCAL + table["name"] + table["extra"], whole


def _at_each_byte(content: Ints, dtype: str) -> Any:
    """Returns the values of a dtype that begin at each byte."""
    return np.ndarray((max(0, len(content) - np.dtype(dtype).itemsize + 1),), dtype, content.data, strides=(1,))
