"""Files that pipegen keeps for the next run: in the folder of a spec's caches, or else in the user's cache folder."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from pipegen.files import is_part, open_folder, open_owned, write_whole

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


MARKER = ".pipegen-folder"
"""The file that says that a folder is pipegen's own."""
_MARK = b"This folder belongs to pipegen, which writes and deletes files in it.\n"


_claimed: set[str] = set()
"""Folders that specs name, and that this process found to be its own, or free."""


class ForeignFolderError(Exception):
    """A folder holds what is not pipegen's; the argument names it."""


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


def claim(folder: Path) -> None:
    """Claims a folder that a spec names: one that is marked, does not exist yet, or is empty. It is marked once something is kept in it.

    Raises:
        ForeignFolderError: When it holds something, and no mark; or a link, which would lead out of it: a spec can bring a marked folder
            along.
    """
    held = _held(folder)
    if held and not is_claimed(folder):  # looked at after the list: another process may just have marked it, and then written
        raise ForeignFolderError(f"{held[0]!r}, and no {MARKER!r}")
    for name in held:
        if os.path.islink(folder / name):
            raise ForeignFolderError(f"the link {name!r}")
    _claimed.add(os.path.abspath(folder))


def make_folder(folder: Path) -> None:
    """Makes a folder, and marks the claimed one that it is or lies in.

    Raises:
        OSError: When that does not work.
    """
    for root in (folder, *folder.parents):
        if os.path.abspath(root) in _claimed and not is_claimed(root) and not _held(root):
            root.mkdir(parents=True, exist_ok=True)
            with Inside(root) as inside:
                inside.put(MARKER, [_MARK])
    folder.mkdir(parents=True, exist_ok=True)


def _held(folder: Path) -> list[str]:
    """Names in a folder besides the mark; none where it cannot be read: what is to be written there then fails, and says why."""
    try:
        return [name for name in sorted(os.listdir(folder)) if name != MARKER and not is_part(name)]
    except (OSError, ValueError):
        return []


def is_claimed(folder: Path) -> bool:
    """Tells whether a folder has the mark."""
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
    """Tells whether no link stands on the way from a folder to what lies below it, so that whoever writes there writes nowhere else."""
    at = os.fspath(root)
    for name in os.path.relpath(path, root).split(os.sep):
        at = os.path.join(at, name)
        if os.path.islink(at):
            return False
    return True


def make_below(root: Path, folder: Path) -> None:
    """Makes a folder, and removes files that stand where it or a folder on the way to it has to be. See `below` for links."""
    at = root
    for name in folder.relative_to(root).parts:
        at /= name
        if at.is_file():
            at.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)


class Inside:
    """Opens files of a folder that others may write to: none through a link, and only those of this user or of the folder's owner."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = -1
        self._owners = {0, _owner(folder.parent)}

    def __enter__(self) -> Inside:
        # The folder of the caches may be a link of its user, and what lies in it may not: a spec can bring a folder along.
        linked = not is_claimed(self._folder.parent)
        self._number = open_folder(self._folder, self._owners, linked=linked)
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
    make_folder(folder)
    with Inside(folder) as inside:
        inside.put(name, content, 0o600)


def _owner(folder: Path) -> int:
    with suppress(OSError):
        return os.stat(folder).st_uid
    return os.geteuid()
