"""Pairs images with annotation files of the same name but for the ending."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from pipegen.errors import OpError
from pipegen.ops.sources.folders.reports import nothing_found, tally_notes
from pipegen.ops.sources.folders.scan import Scan, is_hidden, walk
from pipegen.ops.sources.listing.base import Note
from pipegen.ops.sources.listing.wording import count, find_root


def below(path: str, named: str | None, usual: Sequence[str], field: str, otherwise: str) -> str:
    """Returns a folder below another: the named one, else the first existing usual one, else `otherwise`; `PG401` if it is missing."""
    if named is not None:
        return find_root(path, named, field=field)
    return next((f"{path}/{name}" for name in usual if os.path.isdir(f"{path}/{name}")), otherwise)


def listed_images(root: str, progress: Callable[[int], None] | None, ending: str) -> tuple[list[str], list[Note]]:
    """Returns the sorted paths of all images below a folder, and notes on other files, except for an ending; `PG402` without images."""
    scan = Scan(root, progress=progress)
    keys = [*scan.tree().paths]
    if not keys:
        raise nothing_found(scan)
    scan.tally.foreign.pop(ending, None)
    return keys, [*tally_notes(scan.tally)]


def without_ending(path: str) -> str:
    """Removes the ending of a path."""
    return os.path.splitext(path)[0]


def files_below(folder: str, ending: str) -> list[str]:
    """Lists the files with an ending below a folder, as sorted relative paths; `PG406` for an unreadable folder."""
    found = []
    for at, folders, names in walk(folder):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        within = os.path.relpath(at, folder).replace(os.sep, "/")
        found += [name if within == "." else f"{within}/{name}" for name in names if name.lower().endswith(ending) and not is_hidden(name)]
    return sorted(found)


def annotated(root: str, keys: Sequence[str], folder: str, ending: str) -> tuple[dict[str, str], list[str]]:
    """Pairs images with their files: the file of each image that has one, and the files without an image; `PG424` if two images would share
    a file, `PG402` if no image has one."""
    images: dict[str, str] = {}
    for key in keys:
        other = images.setdefault(without_ending(key), key)
        if other != key:
            message = f"{other!r} and {key!r} have the same name, so their annotations are ambiguous"
            raise OpError("PG424", message, field="path", help="rename one of them, and its annotations")
    files = {without_ending(name): name for name in files_below(folder, ending)}
    if not files.keys() & images.keys():
        message = f"no image below {root!r} has annotations; found {count(len(files), f'{ending} file')} below {folder!r}"
        raise OpError("PG402", message, field="path", help="an image and its annotations must have the same name but for the ending")
    lost = [f"{folder}/{files[stem]}" for stem in files if stem not in images]
    found = {images[stem]: f"{folder}/{name}" for stem, name in files.items() if stem in images}
    return found, lost
