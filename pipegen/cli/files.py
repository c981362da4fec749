"""Finds the specs that a command line means."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipegen.cli.failures import CannotRun
from pipegen.regular import is_irregular

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SUFFIX = ".pipegen.yaml"
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "pipegen.lock.d"})


def spec_files(given: Iterable[str]) -> list[str]:
    """The specs: files as they are named, folders searched for `*.pipegen.yaml`, `-` for standard input.

    Raises:
        CannotRun: If a folder holds none.
    """
    wanted = list(given)
    found: dict[str, None] = {}
    for name in wanted or ["."]:
        if name == "-" or not os.path.isdir(name):
            found[name] = None
            continue
        inside = sorted(_below(name))
        if not inside:
            where = "the working directory" if name == "." else name
            hint = "name the files, or write one: `pipegen init FOLDER`"
            raise CannotRun(f"there is no *{SUFFIX} in or below {where}", hint)
        found.update(dict.fromkeys(inside))
    return list(found)


def _below(folder: str) -> Iterator[str]:
    """Specs at any depth; pipes and devices, hidden folders, virtual environments and installed packages are not searched."""
    for root, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in _SKIPPED and not _is_environment(os.path.join(root, f))]
        yield from (
            os.path.normpath(os.path.join(root, f)) for f in files if f.endswith(SUFFIX) and not is_irregular(os.path.join(root, f))
        )


def _is_environment(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, "pyvenv.cfg"))
