"""Writes the lists of records that `exclude` reads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipegen.cli.common import note
from pipegen.cli.failures import CannotRun, refused
from pipegen.whole_files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def write_exclude(file: str, header: str, section: str, known: Iterable[str], keys: Iterable[str], base: Path) -> None:
    """Writes a list of keys, those that are known to be left out already among them.

    Args:
        file: Where to.
        header: Its first line; a file that begins otherwise is not written over, unless it says nothing but what is known.
        section: The section of the spec that reads it.
        known: The keys that are left out already.
        keys: Those that are to be.
        base: What the spec's paths are relative to.

    Raises:
        CannotRun: If the file is someone else's, or cannot be written.
    """
    known = set(known)
    if os.path.exists(file) and not _is_list(file, header, known):
        raise CannotRun(f"{file} exists and is not a list that pipegen wrote; it is left alone", "name another file")
    listed = sorted(known | set(keys))
    with refused("write", file):
        write_whole(file, "".join(f"{line}\n" for line in (header, *listed)).encode(errors="surrogateescape"))
    named = os.path.relpath(file, base).replace(os.sep, "/")
    note(f"wrote {len(listed):,} {'name' if len(listed) == 1 else 'names'} to {file}; `{section}: {{exclude: {named}}}` leaves them out")


def _is_list(file: str, header: str, known: set[str]) -> bool:
    """Returns whether a file may be written over: a list of ours, or one that says nothing but what is excluded already."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return False
    return lines[:1] == [header] or {line for line in lines if line and not line.startswith("#")} <= known
