"""Reads the headers of a tar archive: the name of each member, and where its bytes lie."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

from pipegen.mounts import Opened
from pipegen.ops.sources.listing.strings import Strings
from pipegen.ops.sources.records.ahead import Ahead
from pipegen.ops.sources.records.members import Members

if TYPE_CHECKING:
    from pipegen.ops.sources.listing.strings import Ints

_BLOCK = 512
_FOLDER = ord("5")
_READ = [0, ord("0"), _FOLDER]
"""Types of members: files, by two names for them, and folders. What else there is makes a name longer, or is a link."""
_ENDS_WITHIN = "the archive ends within it"
_ENDS_OPEN = "the archive ends without the empty blocks that close one"


def tar_members(path: str, size: int) -> tuple[Members, str]:
    """Lists the files of a tar archive, and says what is wrong behind them.

    Headers as POSIX has them (`ustar`) are read here; an archive that has other ones, such as those that long names need, is read by
    `tarfile`, which takes ten times as long.
    """
    import numpy as np

    with Opened(path) as file:
        headers, starts, lengths, at, damage = _headers(file, size)
    table = np.frombuffer(headers, np.uint8).reshape(-1, _BLOCK)
    posix = (table[:, 257:262] == list(b"ustar")).all(1)
    if (posix & (~np.isin(table[:, 156], _READ) | (table[:, 124] >= 128))).any():
        return _by_library(path, size)
    count = len(table)
    wrong = _octals(table[:, 148:156]) != table.sum(1, dtype=np.uint32) - table[:, 148:156].sum(1, dtype=np.uint32) + 8 * 32
    if wrong.any():
        count, damage = int(wrong.argmax()), "the checksum of its header is wrong"
    elif damage == _ENDS_WITHIN:
        count -= 1
    where = f"at byte {starts[count] if count < len(starts) else min(at, size):,}, member {count:,}: " if damage else ""
    if count == 0 and damage:
        damage = f"{damage}; it is no tar archive, or a compressed one"
    files = np.flatnonzero(table[:count, 156] != _FOLDER)
    begins, sizes = np.array(starts, np.int64)[files] + _BLOCK, np.array(lengths, np.int64)[files]
    return Members(_names(table, posix, files), begins, sizes), where + damage


def _headers(file: Opened, size: int) -> tuple[bytes, list[int], list[int], int, str]:
    """Walks from header to header: all of them, where they begin and the lengths they say, where the walk ends, and what is wrong there."""
    ahead, found, starts, lengths = Ahead(file), [], [], []
    block, begin, at, damage = b"", 0, 0, _ENDS_OPEN
    while at + _BLOCK <= size:
        here = at - begin
        if here + _BLOCK > len(block):
            block, begin, here = ahead.block(at), at, 0
            if len(block) < _BLOCK:
                break  # the file was cut meanwhile
        header = block[here : here + _BLOCK]
        if not header[0] and not header.strip(b"\0"):
            damage = ""
            break
        try:
            length = int(header[124:136].rstrip(b" \0"), 8)
        except ValueError:
            length = _unusual(header[124:136], size)
        if length < 0:
            damage = "the length in its header is no number"
            break
        found.append(header)
        starts.append(at)
        lengths.append(length)
        if at + _BLOCK + length > size:
            damage = _ENDS_WITHIN
            break
        at += _BLOCK + (length + _BLOCK - 1 & -_BLOCK)
    return b"".join(found), starts, lengths, at, damage


def _unusual(field: bytes, size: int) -> int:
    """A length that is no octal number: none at all, one of another notation, which the library knows, or -1 for what is neither."""
    return size if field[0] >= 128 else -1 if field.strip(b" \0") else 0


def _names(table: Ints, posix: Ints, files: Ints) -> Strings:
    """The names in some headers; in front of a long one stand a part that lies elsewhere, up to 155 bytes, and a slash."""
    import numpy as np

    names = table[files, :100]
    prefixed = np.flatnonzero((posix & (table[:, 345] != 0))[files])
    there = _text_of(names)
    if len(prefixed):
        parts = table[files[prefixed], 345:500]
        wide: Ints = np.zeros((len(files), 256), np.uint8)
        before: Ints = np.zeros((len(files), 256), bool)
        wide[:, 156:], wide[prefixed, :155], wide[prefixed, 155] = names, parts, ord("/")
        before[:, 156:], before[prefixed, :155], before[prefixed, 155] = there, _text_of(parts), True
        names, there = wide, before
    return Strings.of_bytes(names[there], there.sum(1))


def _text_of(table: Ints) -> Ints:
    """Tells which bytes of fields are before the first zero."""
    import numpy as np

    zero = table == 0
    lengths = np.where(zero.any(1), zero.argmax(1), table.shape[1])
    found: Ints = np.arange(table.shape[1]) < lengths[:, None]
    return found


def _octals(table: Ints) -> Ints:
    """Reads a number of each header, uint8 `(n, digits)`; what is no digit is passed over."""
    found: Ints = table[:, 0].astype("int64") * 0
    for column in table.T.astype("int64"):
        digit = (column >= ord("0")) & (column <= ord("7"))
        found[digit] = found[digit] * 8 + column[digit] - ord("0")
    return found


def _by_library(path: str, size: int) -> tuple[Members, str]:
    import numpy as np

    names: list[str] = []
    offsets: list[int] = []
    lengths: list[int] = []
    damage = ""
    try:
        with Opened(path) as file, tarfile.open(fileobj=file, mode="r:") as archive:  # type: ignore[call-overload]
            for info in archive:
                if info.isreg() and not info.issparse():
                    if info.offset_data + info.size > size:
                        damage = f"at byte {info.offset:,}, member {len(names):,}: {_ENDS_WITHIN}"
                        break
                    names.append(info.name)
                    offsets.append(info.offset_data)
                    lengths.append(info.size)
                vars(archive)["members"] = []  # it would keep all of them
            if not damage and size - archive.offset < _BLOCK:
                damage = f"at byte {archive.offset:,}, member {len(names):,}: {_ENDS_OPEN}"
    except tarfile.TarError as error:
        damage = f"behind member {len(names):,}: {error}"
    return Members(Strings.hold(names), np.array(offsets, np.int64), np.array(lengths, np.int64)), damage
