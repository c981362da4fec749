"""Finds the files and folders that arguments name, and suggests others for those that do not exist."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence

from pipegen.errors import OpError
from pipegen.ops.fields.notes import quoted

_REMOTE = "remote addresses are not supported here; copy or mount the data and give its folder"


def find_root(base: str, path: str, *, field: str = "path") -> str:
    """Returns the absolute folder of a path relative to `base`. Raises `OpError`: `PG401` if the folder does not exist; the help names the
    nearest existing folder and similar names."""
    root = os.path.abspath(os.path.join(base, os.path.expanduser(path)))
    if os.path.isdir(root):
        return root
    help_: str | None = None
    if "://" in path:
        message, help_ = f"{path!r} is an address, not a folder", _REMOTE
    elif os.path.exists(root):
        message, help_ = f"{root!r} is a file, not a folder", "give a folder; unpack archives other than ZIP and plain tar first"
    elif os.path.islink(root):
        message = f"{root!r} is a broken link: {os.readlink(root)!r}"
    else:
        message, help_ = f"the folder {root!r} does not exist", nearest_folder(root)
    raise OpError("PG401", message, field=field, help=help_)


def find_file(base: str, path: str, *, field: str = "path", what: str = "table", help: str | None = None) -> str:
    """Returns the absolute path of a file relative to `base`; `PG401` if it is missing."""
    file = os.path.abspath(os.path.join(base, os.path.expanduser(path)))
    if os.path.isfile(file):
        return file
    message = f"{file!r} {f'is a folder, not a {what}' if os.path.isdir(file) else 'does not exist'}"
    raise OpError("PG401", message, field=field, help=help)


def nearest_folder(path: str) -> str:
    """Describes how much of a path exists, and similar names."""
    parent, missing = os.path.split(path)
    while parent and not os.path.isdir(parent):
        upper, name = os.path.split(parent)
        if upper == parent:
            return "no part of this path exists; is the disk mounted?"
        parent, missing = upper, name
    try:
        names = sorted(entry.name for entry in os.scandir(parent) if entry.is_dir())
    except OSError:
        return f"{parent!r} exists but cannot be read"
    close = close_names(missing, names)
    if close:
        return f"{parent!r} holds {quoted(close)}; is it meant?"
    shown = [name for name in names if not name.startswith(".")]
    return f"{parent!r} exists and holds {f'the folders {quoted(shown)}' if shown else 'no folders'}, but not {missing!r}"


def close_names(name: str, names: Sequence[str]) -> list[str]:
    """Returns at most three names similar to `name`, ignoring case."""
    folded = {n.casefold(): n for n in names}
    return [folded[n] for n in difflib.get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.6)]
