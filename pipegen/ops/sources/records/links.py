"""Resolves links of an archive to files of the same archive, as after unpacking."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pipegen.ops.sources.listing.strings import Strings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.records.members import Members

_MOST = 40
"""Links in a row that Linux follows."""


class Link(NamedTuple):
    """A link of an archive.

    Attributes:
        at: Its place among the members.
        name: Its path.
        target: Its target, relative to the archive's top if `hard`, else to its folder.
        hard: Whether it is another name of an earlier file.
    """

    at: int
    name: bytes
    target: bytes
    hard: bool


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
    import numpy as np

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
            if not there or there.startswith("/") or followed > _MOST:
                return ""
            parts += there.split("/")[::-1]
            done = []
    return "/".join(done)
