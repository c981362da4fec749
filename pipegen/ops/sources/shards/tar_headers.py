"""Reads the headers of a tar archive: name and place of each member.

Headers are those of POSIX (`ustar`, `pax`) and of GNU tar; see the documentation of `pax` and of Python's `tarfile`, which gives the same
results. `tarfile` takes ten times as long, and stops at a damaged header without an error. Here the end of an archive is verified: two
empty blocks (or one, at the very end of the file), then only zeros.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

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
_POSIX = b"ustar\0"
_AT_ONCE = 1 << 11  # headers checked at once
_LONGEST = 1 << 24  # largest extended header that is read, in bytes
_PADDED = 20 * _BLOCK  # size that writers pad archives to a multiple of by default
_CHUNK = 1 << 20
_ENDS_WITHIN = "the archive ends within it"
_ENDS_OPEN = "the archive ends without its closing empty blocks"
_NO_LENGTH = "the length in its header is not a number"
_DESCRIBED = "its extended header is damaged"
_NOT_FOLLOWED = "no member follows its extended header"
_CHECKSUM = "the checksum of its header is wrong"
_About: TypeAlias = Mapping[str, bytes]  # what extended headers say of a member: `path`, `linkpath`, `size` and others
_NOTHING: _About = {}


def tar_members(path: str, size: int) -> tuple[Members, str]:
    """Lists the files of a tar archive, and describes damage after them. A link to a file of it is a member with the bytes of that file."""
    with Opened(path) as file:
        walk, goes_on = _Walk(file, size), True
        while goes_on:
            goes_on = walk.take()
            goes_on = walk.settle() and goes_on
    damage = walk.damage
    if damage:
        not_one = "" if walk.count else "; it is not a tar archive"
        damage = f"at byte {min(walk.at, size):,}, member {walk.count:,}: {damage}{not_one}"
    return walk.members(), damage


class _Walk:
    """A walk from header to header, some at a time: an archive of many members has more bytes of headers than of names.

    Attributes:
        at: The current place; at the end, the place of the end.
        damage: Damage at that place.
        count: The number of members so far, of every type.
    """

    def __init__(self, file: Opened, size: int) -> None:
        self.at, self.damage, self.count = 0, _ENDS_OPEN, 0
        self._file, self._size, self._ahead = file, size, Ahead(file)
        self._headers, self._found = bytearray(), list[tuple[int, int, bytes, int, _About]]()
        """The headers since they were last checked; the place, type, path, length and description of each."""
        self._of_all: dict[str, bytes] = {}
        self._next: dict[str, bytes] = {}
        self._seen: list[tuple[str, str]] = []
        self._behind: list[tuple[str, str]] = []
        """Members that are not listed, and what follows the end of the archive; see `findings`."""
        self._files = bytearray(), array("q"), array("q"), array("q")
        """The names of the files, and of each the bytes of its name, the place of its header and the length of its content."""
        self._links: list[Link] = []
        self._folders: list[bytes] = []

    def members(self) -> Members:
        """Returns the files, including targets of links."""
        names, *columns = self._files
        widths, starts, lengths = (np.array(column, np.int64) for column in columns)
        found = Members(Strings.of_bytes(np.frombuffer(names, np.uint8), widths), starts + _BLOCK, lengths)
        seen = self._seen if self.damage else self._seen + self._behind
        if self._links:
            found, unresolved = linked(found, starts, self._links, self._folders)
            seen = seen + unresolved
        return replace(found, seen=tuple(seen))

    def settle(self) -> bool:
        """Checks the headers that were taken, and collects their members up to the first damaged one; returns whether there is none."""
        headers, found = self._headers, self._found
        self._headers, self._found = bytearray(), []
        wrong = _wrong_sums(np.frombuffer(headers, np.uint8).reshape(-1, _BLOCK))
        if wrong.any():
            found = found[: int(wrong.argmax()) + 1]
            self.damage, self.at = _CHECKSUM, found.pop()[0]
        names, widths, starts, lengths = self._files
        self.count += len(found)
        for number, (at, kind, name, length, about) in enumerate(found):
            sparse = kind == _SPARSE or (about is not _NOTHING and any(key.startswith("GNU.sparse.") for key in about))
            if kind in _FILES and (length or name[-1:] != b"/") and not sparse:
                names += name
                widths.append(len(name))
                starts.append(at)
                lengths.append(length)
            elif kind in _BESIDE:
                self.count -= 1
            elif sparse:
                self._seen.append(("sparse", path_text(name)))
            elif kind in _LINKS:
                target = about.get("linkpath", headers[number * _BLOCK + 157 : number * _BLOCK + 257].partition(b"\0")[0])
                self._links.append(Link(at, name, bytes(target), hard=kind == _HARD))
            elif kind in _FOLDERS or kind in _FILES:
                self._folders.append(name)
            elif kind != _VOLUME:
                self._seen.append(("special", path_text(name)))
        return not wrong.any()

    def take(self) -> bool:
        """Takes some headers from the current place; returns whether more may follow. With large members each header is a system call."""
        size, at, headers, found = self._size, self.at, self._headers, self._found
        while at + _BLOCK <= size and len(found) < _AT_ONCE:
            block, begin, here = self._ahead.block(at), at, 0
            last = len(block) - _BLOCK
            if last < 0:
                self.at = at
                return False  # the file was truncated meanwhile
            while here <= last:
                header = block[here : here + _BLOCK]
                if not header[0] and not header.strip(b"\0"):
                    return self._close(begin + here)
                kind, length, extra, about = header[156], _length(header[124:136]), 0, _NOTHING
                if kind not in _FILES or self._next or self._of_all:
                    length, extra, about = self._told(header, begin + here, length)
                if length < 0:
                    return self._end(begin + here, {-1: _NO_LENGTH, -2: _DESCRIBED}[length])
                if begin + here + _BLOCK + extra + length > size:
                    return self._end(begin + here, _ENDS_WITHIN)
                name = header[:100].partition(b"\0")[0]
                if header[345] and header[257:263] == _POSIX:  # a long name has a prefix in another field, and a slash
                    name = header[345:500].partition(b"\0")[0] + b"/" + name
                if about:
                    name = about.get("GNU.sparse.name", about.get("path", name))
                headers += header
                found.append((begin + here, kind, name, length, about))
                here += _BLOCK + extra + (length + _BLOCK - 1 & -_BLOCK)
            at = begin + here
        self.at = at
        if at + _BLOCK <= size:
            return True
        if self._next:
            self.damage = _NOT_FOLLOWED
        return False

    def _told(self, header: bytes, at: int, length: int) -> tuple[int, int, _About]:
        """Reads an extended header, or applies earlier ones; returns the length of the content, negative if damaged, that of extra headers
        before it, and what extended headers say of the member."""
        kind = header[156]
        if kind in _BESIDE:
            if not 0 <= length <= min(_LONGEST, max(0, self._size - at - _BLOCK)):
                return length if length < 0 or at + _BLOCK + length > self._size else -2, 0, {}
            told = _extended(kind, self._file.pread(length, at + _BLOCK))
            if told is None:
                return -2, 0, {}
            (self._of_all if kind == ord("g") else self._next).update(told)
            return length, 0, {}
        told, self._next = {**self._of_all, **self._next}, {}
        if kind in _EMPTY:
            length = 0
        elif "size" in told:
            length = int(told["size"]) if told["size"].isdigit() and len(told["size"]) < 19 else -2
        extra = 0
        if kind == _SPARSE:
            more = header[482]
            while more:
                following = self._file.pread(_BLOCK, at + _BLOCK + extra)
                extra += _BLOCK
                more = following[504] if len(following) == _BLOCK else 0
        return length, extra, told

    def _end(self, at: int, damage: str) -> bool:
        self.at, self.damage = at, damage
        return False

    def _close(self, at: int) -> bool:
        """Checks that only zeros follow the first empty block."""
        self.at, self.damage = at, _NOT_FOLLOWED if self._next else ""
        place = at
        while place < self._size:
            chunk = self._file.pread(min(_CHUNK, self._size - place), place)
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
                self._behind.append(("zeros", f"{self._size - at:,} from byte {at:,} on"))
            return False
        follows = at + zeros * _BLOCK
        header = np.frombuffer(self._file.pread(_BLOCK, follows), np.uint8)
        if zeros >= 2 and len(header) == _BLOCK and not _wrong_sums(header[None]).any() and not self.damage:
            self._behind.append(("joined", f"byte {follows:,} of {self._size:,}"))
        else:
            blocks = f"{zeros:,} empty block{'s' if zeros > 1 else ''}" if zeros else "a block that begins with zeros"
            self.damage = f"{blocks} in place of a header, with other bytes from byte {place:,} on"
        return False


def _length(field: bytes) -> int:
    """Parses a number of a header, octal or in GNU tar's binary form; -1 if it is neither."""
    if field[0] & 128:
        value = int.from_bytes(field, "big") & (1 << 8 * len(field) - 1) - 1
        return value if field[0] != 255 and value < 1 << 62 else -1
    digits = field.lstrip(b" ").rstrip(_AFTER_DIGITS)
    if not digits:
        return 0
    try:
        return int(digits, 8) if digits.isdigit() else -1
    except ValueError:  # of an 8 or a 9
        return -1


def _extended(kind: int, content: bytes) -> _About | None:
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
    """Tells which headers have a wrong checksum; some old writers summed signed bytes."""
    due = _sums(table)
    given: Ints = np.zeros(len(table), np.int64)
    for column in table[:, 148:156].T.astype(np.int64):  # an octal number; other characters are ignored
        digit = (column >= ord("0")) & (column <= ord("7"))
        given[digit] = given[digit] * 8 + column[digit] - ord("0")
    wrong: Ints = given != due
    if wrong.any():
        signed = due - 256 * ((table >= 128).sum(1) - (table[:, 148:156] >= 128).sum(1, dtype=np.int64))
        wrong &= given != signed
    return wrong


def _sums(table: Ints) -> Ints:
    """Sums the bytes of each header, with the checksum field as spaces: int64 `(n,)`. Eight bytes are added at a time, as four 16-bit
    numbers: 64 words of at most 2 · 255 stay below 2¹⁶."""
    words: Ints = table.view(np.uint64)
    words = words[:, np.bitwise_or.reduce(words, 0) != 0]  # most bytes of a header are zero in all of them
    low = np.uint64(0x00FF00FF00FF00FF)
    lanes = ((words & low) + (words >> np.uint64(8) & low)).sum(1).view(np.uint16)
    own: Ints = table[:, 148:156].sum(1, dtype=np.int64)
    return lanes.reshape(-1, 4).sum(1, dtype=np.int64) - own + 8 * ord(" ")
