"""Mounts of remote files: readers by folder and by URL.

A source lists remote files like any folder: each has an empty placeholder on the disk, of its name and size. Readers look up the mount by
the path of the placeholder or by the URL.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Protocol

from pipegen.files import read_regular


class ChangedError(OSError):
    """A file was changed after it was listed."""


class Mount(Protocol):
    """A reader of the files below a URL (`address`, without secrets); `direct` if TensorFlow reads the URLs itself, in the graph."""

    address: str
    direct: bool

    def read(self, key: str, offset: int, length: int) -> bytes:
        """Reads bytes of a file, given by its path below the URL, and waits until they are fetched. A length of -1 is the rest.

        Raises `ChangedError` if it was changed since it was listed and `OSError` if it cannot be fetched.
        """

    def read_all(self, places: Sequence[tuple[str, int, int]]) -> list[bytes]:
        """Reads several ranges as `read`; fetches them in parallel."""

    def along(self, key: str, offset: int, length: int) -> bytes:
        """Reads bytes as `read`, for sequential access: while gaps between reads are small, it fetches ahead."""

    def size(self, key: str) -> int:
        """Size of a file in bytes; raises `OSError` if it does not exist."""

    def ahead(self, places: Iterable[tuple[str, int, int]]) -> None:
        """Starts to fetch ranges that will be read soon, given as for `read`. It does not wait, and reports no errors."""

    def check(self, keys: Sequence[str]) -> None:
        """Checks that files are as they were listed.

        Raises `ChangedError` if one has changed and `OSError` if that cannot be determined.
        """

    def whole(self, keys: Sequence[str]) -> list[str]:
        """Fetches whole files, and returns their local paths; raises `OSError` if they cannot be fetched, or do not fit."""


_MOUNTS: dict[str, Mount] = {}


def mount(folder: str, of: Mount) -> None:
    """Mounts a remote reader at a folder and at its URL."""
    _MOUNTS[folder.rstrip("/")] = _MOUNTS[of.address.rstrip("/")] = of


def mounted(path: str) -> tuple[Mount, str] | None:
    """Finds the reader of a path, and its key there; `None` for a local file."""
    at = len(path) if _MOUNTS else -1
    while at > 0:
        if (found := _MOUNTS.get(path[:at])) is not None:
            return found, path[at:].strip("/")
        at = path.rfind("/", 0, at)
    return None


def shown(path: str) -> str:
    """URL of a path below a mount, else the path."""
    found = mounted(path)
    return path if found is None else f"{found[0].address}/{found[1]}"


def content_of(path: str | bytes, most: int = -1) -> bytes:
    """Reads a local or remote file, or its first `most` bytes; a local one must be regular.

    Raises `OSError` if it cannot be read.
    """
    path = os.fsdecode(path)
    found = mounted(path)
    return read_regular(path, most) if found is None else found[0].read(found[1], 0, most)


def size_of(path: str) -> int:
    """Size of a local or remote file in bytes; raises `OSError` if it does not exist."""
    found = mounted(path)
    return os.stat(path).st_size if found is None else found[0].size(found[1])


class Opened:
    """A local or remote file, open for random access; a context manager.

    Raises `OSError` if it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.name, self._mounted, self.at = path, mounted(path), 0
        self._number = os.open(path, os.O_RDONLY) if self._mounted is None else -1
        self._size = size_of(path)

    def pread(self, count: int, offset: int) -> bytes:
        """Reads up to `count` bytes from `offset` on."""
        if self._mounted is None:
            return os.pread(self._number, count, offset)
        return self._mounted[0].along(self._mounted[1], offset, max(0, min(count, self._size - offset)))

    # The interface that `zipfile` and `tarfile` need

    def read(self, count: int = -1) -> bytes:
        """Reads bytes from the current position."""
        found = self.pread(self._size - self.at if count < 0 else count, self.at)
        self.at += len(found)
        return found

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = offset + (0, self.at, self._size)[whence]
        return self.at

    def tell(self) -> int:
        return self.at

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if self._number >= 0:
            os.close(self._number)
            self._number = -1

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
