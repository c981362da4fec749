"""Paths in the cells of a table: Windows separators, missing endings, and reasons for missing files."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
_MOST = 200
"""Folders below the root that are searched for a missing file."""


def paths_of(cells: Sequence[str], root: str, ending: str | None) -> Sequence[str]:
    """Converts cells to paths: adds a missing `ending`, and replaces backslashes by `/` if the files have that."""
    if ending is not None:
        cells = [cell if not cell or cell.endswith(ending) else f"{cell}{ending}" for cell in cells]
    first = next((cell for cell in cells if "\\" in cell), None)
    if first is not None and not _is_file(root, first) and _is_file(root, first.replace("\\", "/")):
        return [cell.replace("\\", "/") for cell in cells]
    return cells


def why_missing(path: str) -> str:
    """Suggests another name for a missing file, or why its cell is not a path; "" if unknown."""
    folder, name = os.path.split(path)
    at = path.find("://")
    if at > 0:
        return "cells are local paths; put the address into `root`, and the rest into the cells"
    if "\\" in path and os.path.isfile(path.replace("\\", "/")):
        return "the file exists with `/` for `\\`; cells are converted only if the first one needs it"
    names = os.listdir(folder) if os.path.isdir(folder) else []
    longer = sorted(other for other in names if other.startswith(f"{name}."))
    if name and longer:
        ending = longer[0][len(name) :]
        return f"{longer[0]!r} exists; use `ending: {ending}`"
    other = next((other for other in names if other.casefold() == name.casefold()), None)
    if other is not None:
        return f"{folder!r} holds {other!r}, which differs in upper and lower case"
    stem = os.path.splitext(name)[0]
    other = next((other for other in sorted(names) if stem and os.path.splitext(other)[0] == stem), None)
    if other is not None:
        return f"{folder!r} holds {other!r}; correct the ending in the column"
    return ""


def where_instead(path: str, root: str) -> str:
    """Finds a missing file below the root, under as much of its path as possible; else ""."""
    relative = path.removeprefix(os.path.join(root, "")).replace("\\", "/")
    parts, folders = [part for part in relative.split("/") if part], [os.path.normpath(folder) for folder in _folders(root)]
    for i in range(len(parts)):
        end = "/".join(parts[i:])
        there = next((folder for folder in folders if os.path.isfile(os.path.join(folder, end))), None)
        if there is not None:
            begin = relative[: len(relative) - len(end)]
            cut = f", without {begin!r} in the cells" if begin else ""
            return f"{end!r} is in {there!r}; use `root: {there}`{cut}"
    return ""


def _folders(root: str) -> Iterator[str]:
    """Yields a folder and those below it, level by level, up to a limit."""
    queue, seen = deque([root]), 1
    while queue:
        folder = queue.popleft()
        yield folder
        try:
            below = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
        except OSError:
            continue
        taken = below[: _MOST - seen]
        seen += len(taken)
        queue.extend(taken)


def _is_file(root: str, cell: str) -> bool:
    try:
        return os.path.isfile(os.path.join(root, cell))
    except ValueError:
        return False
