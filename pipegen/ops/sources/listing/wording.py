"""Words that reports on any source share: counts, a few names of many, and where a path that leads nowhere may have meant to lead."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING

from pipegen.errors import OpError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN = 5
_REMOTE = "a remote address is not read; copy or mount the data and give the folder"


def find_root(base: str, path: str, *, field: str = "path") -> str:
    """The absolute folder of a path that is relative to `base`.

    Raises:
        OpError: `PG401` when there is no such folder; the help shows the nearest folder that exists and close names.
    """
    root = os.path.abspath(os.path.join(base, os.path.expanduser(path)))
    if os.path.isdir(root):
        return root
    if "://" in path:
        raise OpError("PG401", f"{path!r} is an address and not a folder", field=field, help=_REMOTE)
    if os.path.exists(root):
        raise OpError(
            "PG401",
            f"{root!r} is a file and not a folder",
            field=field,
            help="give the folder; archives other than ZIP and plain tar have to be unpacked first",
        )
    if os.path.islink(root):
        raise OpError("PG401", f"{root!r} is a link that leads nowhere: {os.readlink(root)!r}", field=field)
    raise OpError("PG401", f"there is no folder {root!r}", field=field, help=nearest_folder(root))


def nearest_folder(path: str) -> str:
    """Says how far a path that leads nowhere leads, and what may be meant."""
    parent, missing = os.path.split(path)
    while parent and not os.path.isdir(parent):
        upper, name = os.path.split(parent)
        if upper == parent:
            return "nothing of this path exists; is the disk mounted?"
        parent, missing = upper, name
    try:
        names = sorted(entry.name for entry in os.scandir(parent) if entry.is_dir())
    except OSError:
        return f"{parent!r} exists, and cannot be read"
    close = close_names(missing, names)
    if close:
        return f"{parent!r} holds {quoted(close)}: is that the one?"
    shown = [name for name in names if not name.startswith(".")]
    return f"{parent!r} exists and holds {f'the folders {quoted(shown)}' if shown else 'no folder'}, but not {missing!r}"


def close_names(name: str, names: Sequence[str]) -> list[str]:
    """The names most like `name`, at most three, whatever their case."""
    folded = {n.casefold(): n for n in names}
    return [folded[n] for n in difflib.get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.6)]


def quoted(names: Sequence[str]) -> str:
    """A few names in quotes, and how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(repr(name) for name in names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def count(n: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun: `1 file`, `3 files`."""
    return f"{n} {noun if n == 1 else plural or noun + 's'}"
