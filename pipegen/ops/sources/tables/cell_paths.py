"""Paths as the cells of a table have them: of Windows, without their ending; and why a file is not where one of them says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def paths_of(cells: Sequence[str], root: str, ending: str | None) -> Sequence[str]:
    """Returns cells as paths: with the `ending` that they lack, and with `/` for backslashes of Windows where the files have that."""
    if ending is not None:
        cells = [cell if not cell or cell.endswith(ending) else f"{cell}{ending}" for cell in cells]
    first = next((cell for cell in cells if "\\" in cell), None)
    if first is not None and not _is_file(root, first) and _is_file(root, first.replace("\\", "/")):
        return [cell.replace("\\", "/") for cell in cells]
    return cells


def why_missing(path: str) -> str:
    """Returns what a file that does not exist is called instead, or why its cell is no path; "" where that is not known."""
    folder, name = os.path.split(path)
    at = path.find("://")
    if at > 0:
        return "cells are paths of this machine: an address goes into `root`, and the cells hold what follows it"
    if "\\" in path and os.path.isfile(path.replace("\\", "/")):
        return "the file exists with `/` for `\\`, which is taken for all cells where the first one has it"
    names = os.listdir(folder) if os.path.isdir(folder) else []
    longer = sorted(other for other in names if other.startswith(f"{name}."))
    if name and longer:
        ending = longer[0][len(name) :]
        return f"{longer[0]!r} is there: `ending: {ending}` adds what the column lacks"
    other = next((other for other in names if other.casefold() == name.casefold()), None)
    return f"{folder!r} holds {other!r}: small and capital letters differ" if other is not None else ""


def _is_file(root: str, cell: str) -> bool:
    try:
        return os.path.isfile(os.path.join(root, cell))
    except ValueError:
        return False
