"""Finds images and the annotation file of each, which has the same name but for its ending."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipegen.errors import OpError
from pipegen.ops.sources.annotations.source import unpaired
from pipegen.ops.sources.folders.reports import nothing_found, tally_notes
from pipegen.ops.sources.folders.scan import Scan, is_hidden
from pipegen.ops.sources.listing.wording import count, find_root

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipegen.ops.sources.listing.base import Note


def below(path: str, named: str | None, usual: Sequence[str], field: str, otherwise: str) -> str:
    """Returns a folder below another: the one that is named, or the first of the usual ones that is there, or one that is given.

    Raises:
        OpError: `PG401` where there is none that is called so.
    """
    if named is not None:
        return find_root(path, named, field=field)
    return next((f"{path}/{name}" for name in usual if os.path.isdir(f"{path}/{name}")), otherwise)


def listed_images(root: str, progress: Callable[[int], None] | None, ending: str) -> tuple[list[str], list[Note]]:
    """Returns the paths of all images below a folder, sorted, and notes on what else lies there, but for files of an ending.

    Raises:
        OpError: `PG402` where there is none.
    """
    scan = Scan(root, progress=progress)
    keys = [*scan.tree().paths]
    if not keys:
        raise nothing_found(scan)
    scan.tally.foreign.pop(ending, None)
    return keys, [*tally_notes(scan.tally)]


def without_ending(path: str) -> str:
    """Returns a path without the ending of the file."""
    return os.path.splitext(path)[0]


def files_below(folder: str, ending: str) -> list[str]:
    """Returns the relative paths of all files of an ending below a folder, sorted.

    Raises:
        OpError: `PG406` for a folder that cannot be read.
    """

    def unread(error: OSError) -> None:
        message = f"the folder {error.filename!r} cannot be read: {error.strerror or error}"
        raise OpError("PG406", message, field="path", help="give this process the right to read it") from error

    found = []
    for at, folders, names in os.walk(folder, onerror=unread):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        within = os.path.relpath(at, folder).replace(os.sep, "/")
        found += [name if within == "." else f"{within}/{name}" for name in names if name.lower().endswith(ending) and not is_hidden(name)]
    return sorted(found)


def annotated(root: str, keys: Sequence[str], folder: str, ending: str) -> tuple[dict[str, str], int, list[Note]]:
    """Pairs images with their files: the path of the file of each image that has one, how many files there are, and notes on others.

    Raises:
        OpError: `PG424` where two images would share a file; `PG402` where no image has one.
    """
    images: dict[str, str] = {}
    for key in keys:
        other = images.setdefault(without_ending(key), key)
        if other != key:
            message = f"{other!r} and {key!r} have the same name, so that it is not known whose annotations are whose"
            raise OpError("PG424", message, field="path", help="rename one of them, and its annotations")
    files = {without_ending(name): name for name in files_below(folder, ending)}
    if not files.keys() & images.keys():
        message = f"no image below {root!r} has annotations: {count(len(files), f'{ending} file')} below {folder!r}"
        raise OpError("PG402", message, field="path", help="an image and its annotations have the same name but for the ending")
    lost = [f"{folder}/{files[stem]}" for stem in files if stem not in images]
    found = {images[stem]: f"{folder}/{name}" for stem, name in files.items() if stem in images}
    return found, len(files), unpaired(lost, "annotation file", "path")
