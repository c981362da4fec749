"""Reads the table of contents of a ZIP archive: where the bytes of each member lie, and what is to come out of them.

The layout is that of PKWARE's application note (APPNOTE.TXT, 4.3), with the 64-bit fields of large archives.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pipegen.mounts import Opened
from pipegen.ops.sources.listing.strings import Strings
from pipegen.ops.sources.records.ahead import Ahead
from pipegen.ops.sources.records.members import Members

if TYPE_CHECKING:
    from pipegen.ops.sources.listing.strings import Ints

_END, _END64, _LOCATOR, _LOCAL = 22, 56, 20, 30
"""Bytes of the end of the table, of its 64-bit form and of what leads there; and of a member's own header before its name."""
_LONGEST_COMMENT = 1 << 16
_ENTRY = [
    ("magic", "<u4"), ("versions", "<u4"), ("flags", "<u2"), ("method", "<u2"), ("time", "<u4"), ("crc", "<u4"), ("stored", "<u4"),
    ("size", "<u4"), ("name", "<u2"), ("extra", "<u2"), ("comment", "<u2"), ("disk", "<u2"), ("inside", "<u2"), ("outside", "<u4"),
    ("offset", "<u4"),
]  # fmt: skip
"""An entry of the table, before the name, the extra fields and the comment of the member."""
_ENTRY_BYTES, _MAGIC = 46, int.from_bytes(b"PK\1\2", "little")
_ENCRYPTED, _UTF8 = 1, 1 << 11
_STORED, _DEFLATED = 0, 8
_MASK = 0xFFFFFFFF
"""What stands in a field of 32 bits whose value an extra field has."""
_LARGE = 0x0001
"""The extra field with values of 64 bits."""


class _Damaged(ValueError):
    """The table of contents cannot be read."""


def zip_members(path: str, size: int) -> tuple[Members, str]:
    """Lists the files of a ZIP archive in the order of their places, and says what is wrong behind them."""
    import numpy as np

    with Opened(path) as file:
        try:
            directory, shift = _directory(file, size)
            names, entries = _entries(directory)
        except _Damaged as error:
            none: Ints = np.zeros(0, np.int64)
            return Members(Strings.hold(()), none, none, none), f"at byte {size:,}, member 0: its table of contents cannot be read: {error}"
        ends: Ints = names.bounds[1:].astype(np.int64) - 1
        files = np.flatnonzero(names.blob[ends] != ord("/"))
        order = files[np.argsort(entries["offset"][files], kind="stable")]
        names, entries = names.take(order).packed(), {field: values[order] for field, values in entries.items()}
        stored, sizes = entries["stored"], entries["size"]
        offsets: Ints = entries["offset"] + shift
        starts, whole = _starts(file, offsets, size)
    problems = {
        "{} is encrypted": entries["flags"] & _ENCRYPTED != 0,
        "{} is compressed by method {}, which is not deflate": ~np.isin(entries["method"], (_STORED, _DEFLATED)),
        "the header of {} is damaged": ~whole,
        "the archive ends within {}": starts + stored > size,
        "{} has more than 2 GiB": sizes >= 1 << 31,
    }
    wrong = np.stack([*problems.values()])
    count, damage = len(names), ""
    if wrong.any():
        count = int(wrong.any(0).argmax())
        said = [*problems][int(wrong[:, count].argmax())].format(repr(names[count]), entries["method"][count])
        damage = f"at byte {int(offsets[count]):,}, member {count:,}: {said}"
    checks = sizes[:count] << 32 | entries["crc"][:count]
    plain = (entries["method"][:count] == _STORED) | (sizes[:count] == 0)
    lengths = np.where(sizes[:count] == 0, 0, stored[:count])
    return Members(names[:count], starts[:count], lengths, np.where(plain, ~checks, checks)), damage


def _directory(file: Opened, size: int) -> tuple[bytes, int]:
    """The table of contents, and by how much all places are further back: what was put in front of the archive."""
    tail = file.pread(_END + _LONGEST_COMMENT + _LOCATOR, max(0, size - _END - _LONGEST_COMMENT - _LOCATOR))
    place = tail.rfind(b"PK\5\6", 0, len(tail) - _END + 4)
    if place < 0:
        raise _Damaged("it does not end as a ZIP archive does")
    length, begin = struct.unpack_from("<II", tail, place + 12)
    end = size - len(tail) + place
    locator = tail[max(0, place - _LOCATOR) : place]
    if locator.startswith(b"PK\6\7"):
        at = end - _LOCATOR - _END64
        large = file.pread(_END64, at) if at >= 0 else b""
        if not large.startswith(b"PK\6\6") or len(large) < _END64:
            raise _Damaged("the end of it is damaged")
        end = at
        length, begin = struct.unpack_from("<QQ", large, 40)
    shift = end - length - begin
    if shift < 0:
        raise _Damaged("it should lie where the archive has ended")
    return _whole(file, begin + shift, length), shift


def _whole(file: Opened, at: int, length: int) -> bytes:
    """Reads so many bytes: Linux gives 2 GiB at most in one call."""
    found = bytearray()
    while len(found) < length:
        more = file.pread(length - len(found), at + len(found))
        if not more:
            raise _Damaged("the archive ends within it")
        found += more
    return bytes(found)


def _entries(directory: bytes) -> tuple[Strings, dict[str, Ints]]:
    """The names of the members in a table of contents, and the fields of their entries, int64."""
    import numpy as np

    starts: list[int] = []
    at, lengths = 0, struct.Struct("<HHH").unpack_from
    while at + _ENTRY_BYTES <= len(directory):
        starts.append(at)
        name, extra, comment = lengths(directory, at + 28)
        at += _ENTRY_BYTES + name + extra + comment
    if at != len(directory):
        raise _Damaged("one of its entries is damaged")
    content, places = np.frombuffer(directory, np.uint8), np.array(starts, np.int64)
    table = np.ascontiguousarray(content[places[:, None] + np.arange(_ENTRY_BYTES)]).view(_ENTRY).ravel()
    entries = {field: table[field].astype(np.int64) for field, _ in _ENTRY}
    if (entries["magic"] != _MAGIC).any():
        raise _Damaged("one of its entries is damaged")
    begins = places + _ENTRY_BYTES
    ends = begins + entries["name"]
    large = (entries["size"] == _MASK) | (entries["stored"] == _MASK) | (entries["offset"] == _MASK)
    for place in np.flatnonzero(large).tolist():
        _widen(entries, place, directory[ends[place] : ends[place] + entries["extra"][place]])
    inside: Ints = np.zeros(len(content) + 1, np.int8)
    inside[begins] += 1
    inside[ends] -= 1
    blob = content[inside.cumsum(dtype=np.int8)[:-1].view(bool)]
    if (blob & 128).any() or (blob == 0).any():
        about = zip(begins.tolist(), ends.tolist(), (entries["flags"] & _UTF8 != 0).tolist(), strict=True)
        return Strings.hold(_text(directory[begin:end], utf8) for begin, end, utf8 in about), entries
    return Strings.of_bytes(blob, entries["name"]), entries


def _text(name: bytes, utf8: bool) -> str:
    try:
        return name.decode("utf-8" if utf8 else "cp437").partition("\0")[0]
    except UnicodeDecodeError:
        raise _Damaged("the name of a member is damaged") from None


def _widen(entries: dict[str, Ints], place: int, extras: bytes) -> None:
    """Takes the fields of an entry that are too narrow from the extra field that has just these, in this order."""
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


def _starts(file: Opened, offsets: Ints, size: int) -> tuple[Ints, Ints]:
    """Finds where the bytes of each member begin, behind its own header: int64 `(n,)`; and which of these headers are whole."""
    import numpy as np

    ahead, headers = Ahead(file), []
    block, begin, nothing = b"", 0, bytes(_LOCAL)
    for at in offsets.tolist():
        here = at - begin
        if here + _LOCAL > len(block):
            block, begin, here = ahead.block(at) if at + _LOCAL <= size else b"", at, 0
        header = block[here : here + _LOCAL]
        headers.append(header if len(header) == _LOCAL else nothing)  # one that lies outside is as good as empty
    table = np.frombuffer(b"".join(headers), np.uint8).reshape(-1, _LOCAL)
    named = np.ascontiguousarray(table[:, 26:30]).view("<u2").astype(np.int64).sum(1)
    return offsets + _LOCAL + named, (table[:, :4] == list(b"PK\3\4")).all(1)
