"""Reads the headers of a tar archive: the name of each member, and where its bytes lie."""

from __future__ import annotations

import tarfile
from array import array
from typing import TYPE_CHECKING

from pipegen.mounts import Opened
from pipegen.ops.sources.listing.strings import Strings
from pipegen.ops.sources.records.ahead import Ahead
from pipegen.ops.sources.records.members import Members

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.ops.sources.listing.strings import Ints

_BLOCK = 512
_FOLDER = ord("5")
_AFTER_DIGITS = b" \0"
_READ = [0, ord("0"), _FOLDER]
"""Types of members: files, by two names for them, and folders. What else there is makes a name longer, or is a link."""
_USTAR = tuple(b"ustar")
_POWERS = tuple(8**digit for digit in range(10, -1, -1))
_MANY = 1 << 16
"""Bytes of a block from which on lengths are read together: members are small there, and most of its 512 bytes are looked at anyway."""
_AT_ONCE = 1 << 11
"""Headers that are taken apart together."""
_ENDS_WITHIN = "the archive ends within it"
_ENDS_OPEN = "the archive ends without the empty blocks that close one"


def tar_members(path: str, size: int) -> tuple[Members, str]:
    """Lists the files of a tar archive, and says what is wrong behind them.

    Headers as POSIX has them (`ustar`) are read here; an archive that has other ones, such as those that long names need, is read by
    `tarfile`, which takes ten times as long.
    """
    import numpy as np

    walk, found, count, damage = _Walk(size), [], 0, ""
    with Opened(path) as file:
        for headers, starts, lengths in walk.headers(file):
            table = np.frombuffer(headers, np.uint8).reshape(-1, _BLOCK)
            posix = (table[:, 257:262] == _USTAR).all(1)
            if (posix & (~np.isin(table[:, 156], _READ) | (table[:, 124] >= 128))).any():
                return _by_library(path, size)
            wrong = _octals(table[:, 148:156]) != _sums(table)
            sound = int(wrong.argmax()) if wrong.any() else len(table) - (walk.damage == _ENDS_WITHIN)
            files = np.flatnonzero(table[:sound, 156] != _FOLDER)
            found.append((*_names(table, posix, files), np.array(starts, np.int64)[files] + _BLOCK, np.array(lengths, np.int64)[files]))
            count += sound
            if wrong.any():
                damage, walk.at = "the checksum of its header is wrong", starts[sound]
                break
    damage = damage or walk.damage
    where = f"at byte {min(walk.at, size):,}, member {count:,}: " if damage else ""
    if count == 0 and damage:
        damage = f"{damage}; it is no tar archive, or a compressed one"
    none: Ints = np.zeros(0, np.int64)
    blob, widths, begins, sizes = (np.concatenate(part) for part in zip((none.view(np.uint8), none, none, none), *found, strict=True))
    return Members(Strings.of_bytes(blob, widths), begins, sizes), where + damage


class _Walk:
    """Walks from header to header, and hands out some at a time: an archive of many members has more bytes of headers than of names.

    Attributes:
        at: Where the walk has come to; in the end, where it ends.
        damage: What is wrong there.
    """

    def __init__(self, size: int) -> None:
        self.at, self.damage = 0, _ENDS_OPEN
        self._size = size
        self._headers, self._starts, self._lengths = bytearray(), array("q"), array("q")

    def headers(self, file: Opened) -> Iterator[tuple[bytearray, array[int], array[int]]]:
        """Yields headers that are whole, where they begin, and the lengths of what follows them."""
        ahead, goes_on = Ahead(file), True
        while goes_on:
            goes_on = self._take(ahead)
            yield self._headers, self._starts, self._lengths
            self._headers, self._starts, self._lengths = bytearray(), array("q"), array("q")

    def _take(self, ahead: Ahead) -> bool:
        """Takes some headers from where the walk has come to; returns whether others may follow.

        Everything is local: where members are large there is a call of the system for each, and what is done beside that counts.
        """
        headers, starts, lengths, size, at = self._headers, self._starts, self._lengths, self._size, self.at
        while at + _BLOCK <= size and len(starts) < _AT_ONCE:
            block, begin, here = ahead.block(at), at, 0
            last = len(block) - _BLOCK
            if last < 0:
                self.at = at
                return False  # the file was cut meanwhile
            known = _plain_lengths(block) if len(block) >= _MANY else None
            while here <= last:
                if known is not None and (there := self._plain(block, known, begin, here)) > here:
                    here = there
                    continue
                if not block[here] and not block[here : here + _BLOCK].strip(b"\0"):
                    return self._end(begin + here, "")
                try:
                    length = int(block[here + 124 : here + 136].rstrip(_AFTER_DIGITS), 8)
                except ValueError:
                    length = _unusual(block[here + 124 : here + 136], size)
                if length < 0:
                    return self._end(begin + here, "the length in its header is no number")
                headers += block[here : here + _BLOCK]
                starts.append(begin + here)
                lengths.append(length)
                if begin + here + _BLOCK + length > size:
                    return self._end(begin + here, _ENDS_WITHIN)
                here += _BLOCK + (length + _BLOCK - 1 & -_BLOCK)
            at = begin + here
        self.at = at
        return at + _BLOCK <= size

    def _end(self, at: int, damage: str) -> bool:
        self.at, self.damage = at, damage
        return False

    def _plain(self, block: bytes, lengths: Ints, begin: int, here: int) -> int:
        """Takes the headers from a place in a block on whose lengths are known, up to the last that the archive has room for; returns the
        place behind them.

        Args:
            block: Bytes of the archive.
            lengths: From `_plain_lengths`.
            begin: Where the block begins.
            here: The place, in the block.
        """
        import numpy as np

        rows, row = list[int](), here // _BLOCK
        ends = np.arange(len(lengths)) + (lengths + 2 * _BLOCK - 1) // _BLOCK
        following = np.where((lengths >= 0) & (ends <= (self._size - begin) // _BLOCK), ends, 0).tolist()
        while row < len(following) and (after := following[row]):
            rows.append(row)
            row = after
        table, taken = np.frombuffer(block, np.uint8, len(lengths) * _BLOCK).reshape(-1, _BLOCK), np.array(rows, np.int64)
        self._headers += table[taken].data
        self._starts.frombytes((taken * _BLOCK + begin).tobytes())
        self._lengths.frombytes(lengths[taken].tobytes())
        return row * _BLOCK


def _plain_lengths(block: bytes) -> Ints:
    """Reads each 512 bytes as if they were a header: the length in it, -1 where that is not written as eleven octal digits and an end."""
    import numpy as np

    table = np.frombuffer(block, np.uint8, len(block) // _BLOCK * _BLOCK).reshape(-1, _BLOCK)
    digits = table[:, 124:135] - np.uint8(ord("0"))  # what is less comes out above 7
    plain = (digits < 8).all(1) & ((table[:, 135] == 0) | (table[:, 135] == ord(" "))) & (table[:, 0] != 0)
    found: Ints = np.where(plain, digits @ np.array(_POWERS), -1)
    return found


def _unusual(field: bytes, size: int) -> int:
    """A length that is no octal number: none at all, one of another notation, which the library knows, or -1 for what is neither."""
    return size if field[0] >= 128 else -1 if field.strip(_AFTER_DIGITS) else 0


def _names(table: Ints, posix: Ints, files: Ints) -> tuple[Ints, Ints]:
    """The bytes of the names in some headers, and how many each has; in front of a long one stand a part that lies elsewhere, up to 155
    bytes, and a slash."""
    import numpy as np

    used = np.flatnonzero(table[:, :100].any(0))
    names = table[files, : int(used[-1]) + 1 if len(used) else 0]
    prefixed = np.flatnonzero((posix & (table[:, 345] != 0))[files])
    there = _text_of(names)
    if len(prefixed):
        parts = table[files[prefixed], 345:500]
        wide: Ints = np.zeros((len(files), 156 + names.shape[1]), np.uint8)
        before: Ints = np.zeros(wide.shape, bool)
        wide[:, 156:], wide[prefixed, :155], wide[prefixed, 155] = names, parts, ord("/")
        before[:, 156:], before[prefixed, :155], before[prefixed, 155] = there, _text_of(parts), True
        names, there = wide, before
    return names[there], there.sum(1)


def _text_of(table: Ints) -> Ints:
    """Tells which bytes of fields are before the first zero."""
    import numpy as np

    found: Ints = np.logical_and.accumulate(table != 0, axis=1)
    return found


def _sums(table: Ints) -> Ints:
    """The sum of the bytes of each header, where those of the checksum itself count as spaces: int64 `(n,)`.

    Eight bytes are added at a time, as four numbers of 16 bits: 64 words of at most 2 · 255 stay below 2¹⁶.
    """
    import numpy as np

    words: Ints = table.view(np.uint64)
    words = words[:, np.bitwise_or.reduce(words, 0) != 0]  # most bytes of a header are zero in all of them
    low = np.uint64(0x00FF00FF00FF00FF)
    lanes = ((words & low) + (words >> np.uint64(8) & low)).sum(1).view(np.uint16)
    own: Ints = table[:, 148:156].sum(1, dtype=np.int64)
    return lanes.reshape(-1, 4).sum(1, dtype=np.int64) - own + 8 * ord(" ")


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
