"""Files that pipegen keeps for the next run: in the folder of a spec's caches, or else in the user's cache folder."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from pipegen.regular import open_folder, open_owned
from pipegen.whole_files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable

SPLITS = "splits"
"""The folder, and the ending of the files, of split assignments that take long to count."""
LOOKS = "looks"
"""Likewise of what was seen of each picture (`pipegen report`)."""
COLUMNS = "columns"
"""Likewise of columns of the data that are too large for a graph."""
INDEXES = "index"
"""Likewise of where in its file each record stands, and what its label is."""
REMOTE = "remote"
"""The folder of files that were fetched from other machines."""
STATISTICS = "statistics"
"""The folder of what steps have learned from a training split; how a file ends says what it is."""


class Caching(Protocol):
    """Says where caches lie: the section `runtime` of a spec."""

    @property
    def cache(self) -> object: ...


def kept_folder(runtime: Caching, name: str) -> Path | None:
    """Returns a folder of this name in that of the spec's caches, else in the user's cache folder, if there is one."""
    disk: str | None = getattr(runtime.cache, "disk", None)
    return Path(disk) / name if disk is not None else user_folder(name)


def user_folder(name: str) -> Path | None:
    """Returns a folder of this name in the user's cache folder, if there is one."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        caches = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return None
    return caches / "pipegen" / name


class Inside:
    """Opens files of a folder that others may write to: none through a link, and only those of this user or of the folder's owner."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = -1
        self._owners = {0, _owner(folder.parent)}

    def __enter__(self) -> Inside:
        self._number = open_folder(self._folder, self._owners)
        self._owners |= {os.fstat(self._number).st_uid}
        return self

    def __exit__(self, *_about: object) -> None:
        os.close(self._number)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Opens one of its files."""
        return open_owned(name, flags, within=self._number, owners=self._owners, mode=mode)

    def put(self, name: str, content: Iterable[bytes | memoryview], mode: int = 0o666) -> None:
        """Writes a file, which is there whole or not at all, whatever happens meanwhile and whoever else writes it."""
        write_whole(name, content, mode=mode, within=self._number)


def open_kept(folder: Path, name: str) -> IO[bytes]:
    """Opens a file that `keep` has written.

    Raises:
        OSError: When it cannot be opened, or someone else has laid something in its place.
    """
    with Inside(folder) as inside:
        return os.fdopen(inside.open(name, os.O_RDONLY), "rb")


def keep(folder: Path, name: str, content: Iterable[bytes | memoryview]) -> None:
    """Writes a file for this user, and the folder where there is none.

    Raises:
        OSError: When it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with Inside(folder) as inside:
        inside.put(name, content, 0o600)


def _owner(folder: Path) -> int:
    with suppress(OSError):
        return os.stat(folder).st_uid
    return os.geteuid()
