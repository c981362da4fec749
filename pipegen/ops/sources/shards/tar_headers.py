"""Reads the headers of a tar archive: name and place of each member.

Headers are those of POSIX (`ustar`, `pax`) and of GNU tar; see the documentation of `pax` and of Python's `tarfile`, which gives the same
results. `tarfile` takes ten times as long, and stops at a damaged header without an error. Here the end of an archive is verified: two
empty blocks (or one, at the very end of the file), then only zeros.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from pipegen.lazy import np
from pipegen.mounts import Opened
from pipegen.ops.fields.strings import Ints, Strings
from pipegen.ops.sources.shards.members import Ahead, Link, Members, linked, path_text

_BLOCK = 512
_AFTER_DIGITS = b" \0"
_FILES, _FOLDERS = b"07\0", b"5D"
"""Types of members: three for files, two for folders."""
_LINKS, _HARD = b"12", ord("1")
_BESIDE = b"xgXLK"  # types of headers that describe the next member
_VOLUME = ord("V")
_SPARSE = ord("S")
_EMPTY = b"123456"  # types of members without content, whatever length their headers give
_USTAR = tuple(b"ustar")
_POWERS = tuple(8**digit for digit in range(10, -1, -1))
_MANY = 1 << 16  # block size from which lengths are decoded together: members are small there, and most headers are looked at anyway
_AT_ONCE = 1 << 11  # headers decoded at once
_TOGETHER = 4  # consecutive headers from which on they are decoded together
_LONGEST = 1 << 24  # largest extended header that is read, in bytes
_PADDED = 20 * _BLOCK  # size that writers pad archives to a multiple of by default
_CHUNK = 1 << 20
_ENDS_WITHIN = "the archive ends within it"
_ENDS_OPEN = "the archive ends without its closing empty blocks"
_NO_LENGTH = "the length in its header is not a number"
_DESCRIBED = "its extended header is damaged"
_NOT_FOLLOWED = "no member follows its extended header"
_CHECKSUM = "the checksum of its header is wrong"


class _About(NamedTuple):
    """Description of a member by extended headers: its path, if they give one; its target, if it is a link; whether holes are left out."""

    name: bytes | None
    target: bytes | None
    sparse: bool


def tar_members(path: str, size: int) -> tuple[Members, str]:
    """Lists the files of a tar archive, and describes damage after them. A link to a file of it is a member with the bytes of that file."""
    walk, found, damage = _Walk(size), _Collected(), ""
    with Opened(path) as file:
        for headers, starts, lengths in walk.headers(file):
            sound = found.add(headers, starts, lengths, walk)
            if sound < len(starts) - walk.within:
                damage, walk.at = _CHECKSUM, starts[sound]
                break
        damage = damage or walk.damage
    if damage:
        not_one = "" if found.count else "; it is not a tar archive"
        damage = f"at byte {min(walk.at, size):,}, member {found.count:,}: {damage}{not_one}"
    else:
        found.seen += walk.behind
    return found.members(), damage


class _Collected:
    """The members found so far: their number, of every type, and those `seen` that are not listed; see `findings`."""

    def __init__(self) -> None:
        self.count = 0
        self.seen: list[tuple[str, str]] = []
        self._files: list[tuple[Ints, Ints, Ints, Ints]] = []
        self._links: list[Link] = []
        self._folders: list[bytes] = []

    def add(self, headers: bytearray, starts: array[int], lengths: array[int], walk: _Walk) -> int:
        """Adds members up to the first damaged header; returns their number."""
        table = np.frombuffer(headers, np.uint8).reshape(-1, _BLOCK)
        wrong = _wrong_sums(table)
        sound = int(wrong.argmax()) if wrong.any() else len(table) - walk.within
        table, told, walk.about = table[:sound], [walk.about.get(start) for start in starts[:sound]] if walk.about else [], {}
        kinds, content = table[:, 156], np.array(lengths, np.int64)[:sound]
        names, widths = _names(table, (table[:, 257:262] == _USTAR).all(1))
        if told:
            names, widths = _renamed(names, widths, told)
        ends = np.cumsum(widths)
        begins = ends - widths
        slashed = np.append(names, 0)[ends - 1] == ord("/")
        files = np.isin(kinds, [*_FILES]) & ~(slashed & (content == 0))
        for place in [i for i, about in enumerate(told) if about is not None and about.sparse]:
            files[place] = False
        for place in np.flatnonzero(~files & ~np.isin(kinds, [*_BESIDE, _VOLUME])).tolist():
            name, about = names[begins[place] : ends[place]].tobytes(), told[place] if told else None
            if about is not None and about.sparse:
                self.seen.append(("sparse", path_text(name)))
            elif kinds[place] in _LINKS:
                given = about.target if about is not None else None
                target = given if given is not None else table[place, 157:257].tobytes().partition(b"\0")[0]
                self._links.append(Link(starts[place], name, target, hard=bool(kinds[place] == _HARD)))
            elif kinds[place] in _FOLDERS or kinds[place] in _FILES:
                self._folders.append(name)
            else:
                self.seen.append(("special", path_text(name)))
        self._files.append((names[np.repeat(files, widths)], widths[files], np.array(starts, np.int64)[:sound][files], content[files]))
        self.count += sound - int(np.isin(kinds, [*_BESIDE]).sum())
        return sound

    def members(self) -> Members:
        """Returns the files, including targets of links."""
        none: Ints = np.zeros(0, np.int64)
        blob, widths, starts, sizes = (
            np.concatenate(part) for part in zip((none.view(np.uint8), none, none, none), *self._files, strict=True)
        )
        found, seen = Members(Strings.of_bytes(blob, widths), starts + _BLOCK, sizes), self.seen
        if self._links:
            found, unresolved = linked(found, starts, self._links, self._folders)
            seen = seen + unresolved
        return replace(found, seen=tuple(seen))


class _Walk:
    """A walk from header to header, some at a time: an archive of many members has more bytes of headers than of names.

    Attributes:
        at: The current place; at the end, the place of the end.
        damage: Damage at that place.
        within: Whether the damage is in the last header yielded.
        about: Extended headers of members, by place.
        behind: Findings after the end of the archive; see `findings`.
    """

    def __init__(self, size: int) -> None:
        self.at, self.damage, self.within = 0, _ENDS_OPEN, False
        self.about: dict[int, _About] = {}
        self.behind: list[tuple[str, str]] = []
        self._size = size
        self._headers, self._starts, self._lengths = bytearray(), array("q"), array("q")
        self._of_all: dict[str, bytes] = {}
        self._next: dict[str, bytes] = {}

    def headers(self, file: Opened) -> Iterator[tuple[bytearray, array[int], array[int]]]:
        """Yields complete headers, their places, and the lengths of their contents."""
        ahead, goes_on = Ahead(file), True
        while goes_on:
            goes_on = self._take(file, ahead)
            yield self._headers, self._starts, self._lengths
            self._headers, self._starts, self._lengths = bytearray(), array("q"), array("q")

    def _take(self, file: Opened, ahead: Ahead) -> bool:
        """Collects some headers from the current place; returns whether more may follow. With large members each header is a system
        call."""
        headers, starts, lengths, size, at = self._headers, self._starts, self._lengths, self._size, self.at
        while at + _BLOCK <= size and len(starts) < _AT_ONCE:
            block, begin, here = ahead.block(at), at, 0
            last = len(block) - _BLOCK
            if last < 0:
                self.at = at
                return False  # the file was truncated meanwhile
            known = _Plain(block, self._size - begin) if len(block) >= _MANY else None
            while here <= last:
                if known is not None and not self._next and len(rows := known.rows(here // _BLOCK)) >= _TOGETHER:
                    here = self._plain(known, begin, rows)
                    continue
                if not block[here] and not block[here : here + _BLOCK].strip(b"\0"):
                    return self._close(file, begin + here)
                header = block[here : here + _BLOCK]
                headers += header
                starts.append(begin + here)
                length = _length(header[124:136])
                extra = 0
                if header[156] not in _FILES or self._next or self._of_all:
                    length, extra = self._told(file, header, begin + here, length)
                lengths.append(length)
                if length < 0:
                    return self._end(begin + here, {-1: _NO_LENGTH, -2: _DESCRIBED}[length])
                if begin + here + _BLOCK + extra + length > size:
                    return self._end(begin + here, _ENDS_WITHIN)
                here += _BLOCK + extra + (length + _BLOCK - 1 & -_BLOCK)
            at = begin + here
        self.at = at
        if at + _BLOCK <= size:
            return True
        if self._next:
            self.damage = _NOT_FOLLOWED
        return False

    def _told(self, file: Opened, header: bytes, at: int, length: int) -> tuple[int, int]:
        """Reads an extended header, or applies earlier ones; returns the length of the content, negative if damaged, and of extra headers
        before it."""
        kind = header[156]
        if kind in _BESIDE:
            if not 0 <= length <= min(_LONGEST, max(0, self._size - at - _BLOCK)):
                return length if length < 0 or at + _BLOCK + length > self._size else -2, 0
            content = file.pread(length, at + _BLOCK)
            told = _described(kind, content)
            if told is None:
                return -2, 0
            (self._of_all if kind == ord("g") else self._next).update(told)
            return length, 0
        told, self._next = {**self._of_all, **self._next}, {}
        if kind in _EMPTY:
            length = 0
        elif "size" in told:
            length = int(told["size"]) if told["size"].isdigit() and len(told["size"]) < 19 else -2
        extra = 0
        if kind == _SPARSE:
            more = header[482]
            while more:
                more_at = at + _BLOCK + extra
                following = file.pread(_BLOCK, more_at)
                extra += _BLOCK
                more = following[504] if len(following) == _BLOCK else 0
        sparse = kind == _SPARSE or any(key.startswith("GNU.sparse.") for key in told)
        if told or sparse:
            self.about[at] = _About(told.get("GNU.sparse.name", told.get("path")), told.get("linkpath"), sparse)
        return length, extra

    def _end(self, at: int, damage: str) -> bool:
        self.at, self.damage, self.within = at, damage, True
        return False

    def _close(self, file: Opened, at: int) -> bool:
        """Checks that only zeros follow the first empty block."""
        self.at, self.damage = at, _NOT_FOLLOWED if self._next else ""
        place = at
        while place < self._size:
            chunk = file.pread(min(_CHUNK, self._size - place), place)
            if not chunk:
                self.damage = _ENDS_WITHIN
                return False  # the file was truncated meanwhile
            if chunk.count(0) < len(chunk):
                place += len(chunk) - len(chunk.lstrip(b"\0"))
                break
            place += len(chunk)
        zeros = (place - at) // _BLOCK
        if place >= self._size:
            if self._size - at >= 2 * _BLOCK + _PADDED and not self.damage:
                self.behind.append(("zeros", f"{self._size - at:,} from byte {at:,} on"))
            return False
        follows = at + zeros * _BLOCK
        header = np.frombuffer(file.pread(_BLOCK, follows), np.uint8)
        if zeros >= 2 and len(header) == _BLOCK and not _wrong_sums(header[None]).any() and not self.damage:
            self.behind.append(("joined", f"byte {follows:,} of {self._size:,}"))
        else:
            blocks = f"{zeros:,} empty block{'s' if zeros > 1 else ''}" if zeros else "a block that begins with zeros"
            self.damage = f"{blocks} in place of a header, with other bytes from byte {place:,} on"
        return False

    def _plain(self, known: _Plain, begin: int, rows: list[int]) -> int:
        """Collects consecutive plain headers of a block at `begin`, by number of its units; returns the place after the last."""
        taken = np.array(rows, np.int64)
        self._headers += known.table[taken].data
        self._starts.frombytes((taken * _BLOCK + begin).tobytes())
        self._lengths.frombytes(known.lengths[taken].tobytes())
        return known.following[rows[-1]] * _BLOCK


class _Plain:
    """A block of an archive, each 512 bytes decoded as if they were the header of a file.

    Args:
        block: The bytes.
        room: Bytes of the archive from there on.

    Attributes:
        table: The units of 512 bytes.
        lengths: The length in each, -1 unless it is eleven octal digits and a terminator.
        following: The number of the unit after each and its content; 0 if it is not plain, or the archive is too short.
    """

    def __init__(self, block: bytes, room: int) -> None:
        self.table: Ints = np.frombuffer(block, np.uint8, len(block) // _BLOCK * _BLOCK).reshape(-1, _BLOCK)
        table = self.table
        digits = table[:, 124:135] - np.uint8(ord("0"))  # smaller characters wrap to above 7
        plain = (digits < 8).all(1) & ((table[:, 135] == 0) | (table[:, 135] == ord(" "))) & (table[:, 0] != 0)
        plain &= (table[:, 156] == ord("0")) | (table[:, 156] == 0)
        self.lengths: Ints = np.where(plain, digits @ np.array(_POWERS), -1)
        ends = np.arange(len(table)) + (self.lengths + 2 * _BLOCK - 1) // _BLOCK
        self.following: list[int] = np.where(plain & (ends <= room // _BLOCK), ends, 0).tolist()

    def rows(self, row: int) -> list[int]:
        """Returns the consecutive plain headers from one on."""
        found = []
        while row < len(self.following) and (after := self.following[row]):
            found.append(row)
            row = after
        return found


def _length(field: bytes) -> int:
    """Parses a number of a header, octal or in GNU tar's binary form; -1 if it is neither."""
    if field[0] & 128:
        value = int.from_bytes(field, "big") & (1 << 8 * len(field) - 1) - 1
        return value if field[0] != 255 and value < 1 << 62 else -1
    digits = field.lstrip(b" ").rstrip(_AFTER_DIGITS)
    if not digits:
        return 0
    return int(digits, 8) if digits.isdigit() and max(digits) < ord("8") else -1


def _described(kind: int, content: bytes) -> dict[str, bytes] | None:
    """Parses the content of an extended header: `path`, `linkpath`, `size` and others; `None` if damaged."""
    if kind in b"LK":
        name = content.partition(b"\0")[0]
        return {"path" if kind == ord("L") else "linkpath": name} if name else None
    found: dict[str, bytes] = {}
    at = 0
    while at < len(content):
        space = content.find(b" ", at, at + 20)
        digits = content[at : max(at, space)]
        end = at + int(digits) if digits.isdigit() else 0
        equals = content.find(b"=", space, end)
        if end > len(content) or equals < 0 or content[end - 1] != ord("\n"):
            return None
        key = content[space + 1 : equals].decode("utf-8", "replace")
        if key in ("path", "linkpath", "size") or key.startswith("GNU.sparse."):
            found[key] = content[equals + 1 : end - 1]
        at = end
    return {key: value for key, value in found.items() if value}


def _wrong_sums(table: Ints) -> Ints:
    """Tells which headers have a wrong checksum: the sum of their bytes, with the checksum itself as spaces; some old writers summed signed
    bytes."""
    due: Ints = table.sum(1, dtype=np.uint32).astype(np.int64) - table[:, 148:156].sum(1, dtype=np.int64) + 8 * ord(" ")
    given: Ints = np.zeros(len(table), np.int64)
    for column in table[:, 148:156].T.astype(np.int64):  # an octal number; other characters are ignored
        digit = (column >= ord("0")) & (column <= ord("7"))
        given[digit] = given[digit] * 8 + column[digit] - ord("0")
    wrong: Ints = given != due
    if wrong.any():
        signed = due - 256 * ((table >= 128).sum(1) - (table[:, 148:156] >= 128).sum(1, dtype=np.int64))
        wrong &= given != signed
    return wrong


def _renamed(blob: Ints, widths: Ints, about: list[_About | None]) -> tuple[Ints, Ints]:
    """Replaces names in headers by those of extended headers."""
    content, at, names = blob.tobytes(), 0, list[bytes]()
    for width, told in zip(widths.tolist(), about, strict=True):
        names.append(told.name if told is not None and told.name is not None else content[at : at + width])
        at += width
    return np.frombuffer(b"".join(names), np.uint8), np.array([*map(len, names)], np.int64)


def _names(table: Ints, posix: Ints) -> tuple[Ints, Ints]:
    """Returns the bytes of the names in some headers and their lengths; a long name has a prefix in another field, and a slash."""
    used = np.flatnonzero(table[:, :100].any(0))
    names = table[:, : int(used[-1]) + 1 if len(used) else 0]
    prefixed = np.flatnonzero(posix & (table[:, 345] != 0) & (table[:, 262] == 0))
    there: Ints = np.logical_and.accumulate(names != 0, axis=1)  # what is before the first zero
    if len(prefixed):
        parts = table[prefixed, 345:500]
        wide: Ints = np.zeros((len(table), 156 + names.shape[1]), np.uint8)
        before: Ints = np.zeros(wide.shape, bool)
        wide[:, 156:], wide[prefixed, :155], wide[prefixed, 155] = names, parts, ord("/")
        before[:, 156:], before[prefixed, :155], before[prefixed, 155] = there, np.logical_and.accumulate(parts != 0, axis=1), True
        names, there = wide, before
    return names[there], there.sum(1)
