"""`Members`: the files of an archive, with names, places and checks; links to them; and reading of headers that lie between them."""

from __future__ import annotations

import posixpath
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.mounts import Opened
from pipegen.ops.fields.strings import Ints, Strings


@dataclass(frozen=True, eq=False)
class Members:
    """The files of an archive, in its order."""

    names: Strings  # their paths in the archive
    offsets: Ints  # start of the bytes of each, int64 `(n,)`
    lengths: Ints  # stored bytes of each, int64 `(n,)`
    checks: Ints | None = None
    """CRC-32 of the unpacked bytes and, above its 32 bits, their number, int64 `(n,)`; the complement (`~`) for members that are not
    compressed. `None` if the archive has none."""
    seen: tuple[tuple[str, str], ...] = ()  # pairs of kind and name of other findings, such as broken links; see `findings`

    def take(self, places: Ints) -> Members:
        checks = self.checks[places] if self.checks is not None else None
        return Members(self.names.take(places).packed(), self.offsets[places], self.lengths[places], checks, self.seen)

    @property
    def sizes(self) -> Ints:
        """Unpacked bytes of each, int64 `(n,)`."""
        return self.lengths if self.checks is None else np.where(self.checks > 0, self.checks >> 32, self.lengths)


def unpacked_member(content: bytes, check: int) -> bytes:
    """Decompresses a member; see `Members.checks`. `ValueError` if it is damaged."""
    if check <= 0:
        return content
    try:
        found = zlib.decompress(content, -15, check >> 32)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if zlib.crc32(found) != check & 0xFFFFFFFF:
        raise ValueError("the checksum of a compressed member is wrong")
    return found


_LINKS = 40  # links in a row that Linux follows


class Link(NamedTuple):
    """A link of an archive."""

    at: int  # its place among the members
    name: bytes  # its path
    target: bytes  # its target, relative to the archive's top if `hard`, else to its folder
    hard: bool  # whether it is another name of an earlier file


def linked(members: Members, places: Ints, links: Sequence[Link], folders: Iterable[bytes] = ()) -> tuple[Members, list[tuple[str, str]]]:
    """Adds links to files as members with the bytes of their targets.

    Args:
        members: The files of an archive.
        places: The place of each, rising.
        links: The links, likewise.
        folders: Paths of folders, besides those with files.

    Returns:
        The members, and the unresolved links; see `findings`.
    """
    tree: dict[str, int | str] = {}
    known = {posixpath.normpath(path_text(folder)) for folder in folders}
    names = list(members.names)
    inside = dict.fromkeys(name.rpartition("/")[0] for name in names)
    for folder in map(posixpath.normpath, inside):
        parts = folder.split("/")
        known.update("/".join(parts[: i + 1]) for i in range(len(parts)))
    rows, at = places.tolist(), 0
    for link in links:
        while at < len(rows) and rows[at] < link.at:
            tree[_normal(names[at])] = at
            at += 1
        own, target = _normal(path_text(link.name)), path_text(link.target)
        if link.hard:
            tree[own] = tree.get(_normal(target), "")  # the file of that name so far
        else:
            tree[own] = target if target.startswith("/") else posixpath.join(posixpath.dirname(own), target)
    tree |= {_normal(name): number for number, name in enumerate(names[at:], at)}
    found: list[tuple[int, str, int]] = []
    unresolved: list[tuple[str, str]] = []
    for link in links:
        name = path_text(link.name)
        reached = _resolved(_normal(name), tree)
        if isinstance(reached, int):
            found.append((link.at, name, reached))
        else:
            unresolved.append(("folder link" if not link.hard and reached in known else "link", name))
    if not found:
        return members, unresolved
    order = np.argsort(np.concatenate([places, np.array([one for one, _, _ in found], np.int64)]), kind="stable")
    whose = np.concatenate([np.arange(len(names)), np.array([number for _, _, number in found], np.int64)])[order]
    every = Strings.join([members.names, Strings.hold(name for _, name, _ in found)]).take(order).packed()
    return replace(members.take(whose), names=every), unresolved


def path_text(name: bytes) -> str:
    """Decodes a path; invalid UTF-8 becomes surrogates, as in Python's file names."""
    return name.decode("utf-8", "surrogateescape")


def _normal(path: str) -> str:
    return posixpath.normpath(path.lstrip("/"))


def _resolved(path: str, tree: dict[str, int | str]) -> int | str:
    """Follows links to the number of a file, else to the final path; "" if that is outside of the archive or a loop."""
    followed = 0
    parts, done = path.split("/")[::-1], list[str]()
    while parts:
        part = parts.pop()
        if part == "..":
            if not done:
                return ""
            done.pop()
            continue
        if part in ("", "."):
            continue
        done.append(part)
        there = tree.get("/".join(done))
        if isinstance(there, int):
            return there if not parts else ""
        if there is not None:
            followed += 1
            if not there or there.startswith("/") or followed > _LINKS:
                return ""
            parts += there.split("/")[::-1]
            done = []
    return "/".join(done)


_LEAST, _MOST = 1 << 12, 1 << 18
"""Bytes per read: if large contents lie between the headers, and if small ones do."""


class Ahead:
    """A file read at rising offsets. It is not mapped: a file truncated meanwhile would raise a signal."""

    def __init__(self, file: Opened) -> None:
        self._file, self._end, self._ahead = file, 0, _LEAST

    def block(self, at: int) -> bytes:
        """Reads at an offset: 4 KiB, or more if the last block ended shortly before; less at the end of the file."""
        self._ahead = min(2 * self._ahead, _MOST) if at - self._end <= _LEAST else _LEAST
        found = self._file.pread(self._ahead, at)
        self._end = at + len(found)
        return found
