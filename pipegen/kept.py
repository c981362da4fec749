"""Files that pipegen keeps for later runs: in the cache folder of a spec, else of the user."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

from pipegen.files import is_part, open_folder, open_owned, write_whole
from pipegen.terminal import log

SPLITS = "splits"  # folder, and file ending, of split assignments that take long to compute
LOOKS = "looks"  # folder, and file ending, of measurements of images (`pipegen report`)
COLUMNS = "columns"  # folder, and file ending, of columns of the data that are too large for a graph
INDEXES = "index"  # folder, and file ending, of the offsets and labels of records
REMOTE = "remote"  # folder of files fetched from other machines
STATISTICS = "statistics"  # folder of what steps have learned from a training split; the ending of a file is the kind of numbers


MARKER = ".pipegen-folder"  # the file that marks a folder as pipegen's own
_MARK = b"This folder belongs to pipegen, which writes and deletes files in it.\n"


_claimed: set[str] = set()  # folders named by specs that were marked or empty when this process checked them


class ForeignFolderError(Exception):
    """A folder contains files that are not pipegen's; the argument names one."""


def kept_folder(cache: object, name: str) -> Path | None:
    """Path of a folder in the cache folder of the spec, given by `runtime.cache`, else of the user; `None` without either."""
    disk: str | None = getattr(cache, "disk", None)
    return Path(disk) / name if disk is not None else user_folder(name)


def user_folder(name: str) -> Path | None:
    """Path of a folder in the user's cache folder; `None` without one."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        caches = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return None
    return caches / "pipegen" / name


def claim(folder: Path) -> None:
    """Claims a folder that a spec names: one that is marked, missing, or empty. It is marked when the first file is written to it. Raises
    `ForeignFolderError` when it contains files without the mark, or a link, which would lead out of it: a marked folder may come with a
    spec from elsewhere."""
    held = _held(folder)
    if held and not is_claimed(folder):  # in this order: another process marks the folder before it writes
        raise ForeignFolderError(f"{held[0]!r}, and no {MARKER!r}")
    for name in held:
        if os.path.islink(folder / name):
            raise ForeignFolderError(f"the link {name!r}")
    _claimed.add(os.path.abspath(folder))


def make_folder(folder: Path) -> None:
    """Makes a folder, and marks the claimed folder that it is, or that contains it; raises `OSError` when it cannot be made."""
    for root in (folder, *folder.parents):
        if os.path.abspath(root) in _claimed and not is_claimed(root) and not _held(root):
            root.mkdir(parents=True, exist_ok=True)
            with Inside(root) as inside:
                inside.put(MARKER, [_MARK])
    folder.mkdir(parents=True, exist_ok=True)


def _held(folder: Path) -> list[str]:
    """Names in a folder except the mark; empty if it cannot be read, since writing then fails with the reason."""
    try:
        return [name for name in sorted(os.listdir(folder)) if name != MARKER and not is_part(name)]
    except (OSError, ValueError):
        return []


def is_claimed(folder: Path) -> bool:
    """Checks if a folder has the mark."""
    try:
        number = os.open(folder / MARKER, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError):
        return False
    try:
        return os.read(number, len(_MARK) + 1) == _MARK
    except OSError:
        return False
    finally:
        os.close(number)


def below(root: Path, path: str | os.PathLike[str]) -> bool:
    """Checks that the path from a folder to a file below it has no links, so that writes stay inside the folder."""
    at = os.fspath(root)
    for name in os.path.relpath(path, root).split(os.sep):
        at = os.path.join(at, name)
        if os.path.islink(at):
            return False
    return True


def make_below(root: Path, folder: Path) -> None:
    """Makes a folder below another; removes files in the way. See `below` for links."""
    at = root
    for name in folder.relative_to(root).parts:
        at /= name
        if at.is_file():
            at.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)


class Inside:
    """Access to files of a folder that others may write to: without links, and only files of this user or of the folder's owner."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = -1
        self._owners = {0, os.geteuid()}
        with suppress(OSError):
            self._owners = {0, os.stat(folder.parent).st_uid}

    def __enter__(self) -> Inside:
        # The user may link the cache folder, but not folders in it: a marked folder may come with a spec from elsewhere.
        linked = not is_claimed(self._folder.parent)
        self._number = open_folder(self._folder, self._owners, linked=linked)
        self._owners |= {os.fstat(self._number).st_uid}
        return self

    def __exit__(self, *_about: object) -> None:
        os.close(self._number)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        return open_owned(name, flags, within=self._number, owners=self._owners, mode=mode)

    def put(self, name: str, content: Iterable[bytes | memoryview], mode: int = 0o666) -> None:
        """Writes a file atomically."""
        write_whole(name, content, mode=mode, within=self._number)


def open_kept(folder: Path, name: str) -> IO[bytes]:
    """Opens a file written by `keep`; raises `OSError` when it cannot be opened, or was replaced by another user."""
    with Inside(folder) as inside:
        return os.fdopen(inside.open(name, os.O_RDONLY), "rb")


def keep(folder: Path, name: str, content: Iterable[bytes | memoryview]) -> None:
    """Writes a file for this user; makes the folder if needed.

    Raises `OSError` when it cannot be written.
    """
    make_folder(folder)
    with Inside(folder) as inside:
        inside.put(name, content, 0o600)


def keep_or_warn(folder: Path | None, name: str, content: Iterable[bytes | memoryview], what: str) -> bool:
    """Keeps a file like `keep`, if there is a folder, and returns true if it is kept; logs a warning if it cannot be written."""
    if folder is None:
        return False
    try:
        keep(folder, name, content)
    except OSError as error:
        log.warning("%s cannot be kept in %s: %s", what, folder, (error.strerror or str(error)).lower())
        return False
    return True
