"""Files of other machines that are read as they are needed: which folder stands for which address, and what reads below it.

A source lists such files as it lists any folder: each has a stand-in on the disk, of its name and its size and without content. What
reads them asks here first, by the path of the stand-in or by the address.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from pipegen.files import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class ChangedError(OSError):
    """A file was written anew after it was listed."""


class Mount(Protocol):
    """Reads files below an address.

    Attributes:
        address: The address, without secrets.
        direct: Whether TensorFlow reads the addresses itself, in the graph.
    """

    address: str
    direct: bool

    def read(self, key: str, offset: int, length: int) -> bytes:
        """Reads bytes of a file, and waits for what has to be fetched.

        Args:
            key: Its path below the address.
            offset: The first byte.
            length: How many; -1 for all from there on.

        Raises:
            ChangedError: Where it is no longer what was listed.
            OSError: Where it cannot be fetched.
        """

    def read_all(self, places: Sequence[tuple[str, int, int]]) -> list[bytes]:
        """Reads several stretches as `read`, and fetches those that are not here at the same time."""

    def along(self, key: str, offset: int, length: int) -> bytes:
        """Reads bytes as `read`, on the way through a file: while not much lies between two reads, what follows is fetched beforehand."""

    def size(self, key: str) -> int:
        """Returns the bytes of a file.

        Raises:
            OSError: Where there is none.
        """

    def ahead(self, places: Iterable[tuple[str, int, int]]) -> None:
        """Begins to fetch what will be read soon: keys, offsets and lengths as of `read`. It does not wait, and reports nothing."""

    def check(self, keys: Sequence[str]) -> None:
        """Asks whether files are still what was listed.

        Raises:
            ChangedError: Where one is not.
            OSError: Where that cannot be found out.
        """

    def whole(self, keys: Sequence[str]) -> list[str]:
        """Fetches files as a whole, and returns their paths on this machine.

        Raises:
            OSError: Where they cannot be fetched, or do not fit.
        """


_MOUNTS: dict[str, Mount] = {}


def mount(folder: str, of: Mount) -> None:
    """Lets a folder, and the address itself, stand for what `of` reads."""
    _MOUNTS[folder.rstrip("/")] = _MOUNTS[of.address.rstrip("/")] = of


def mounted(path: str) -> tuple[Mount, str] | None:
    """Returns what reads a path, and its key there; `None` for a file of this machine."""
    at = len(path) if _MOUNTS else -1
    while at > 0:
        if (found := _MOUNTS.get(path[:at])) is not None:
            return found, path[at:].strip("/")
        at = path.rfind("/", 0, at)
    return None


def shown(path: str) -> str:
    """Returns the address that a path stands for, or the path."""
    found = mounted(path)
    return path if found is None else f"{found[0].address}/{found[1]}"


def content_of(path: str | bytes, most: int = -1) -> bytes:
    """Reads a file, or `most` bytes at its beginning, wherever it lies; on this machine only a regular one.

    Raises:
        OSError: Where it cannot be read.
    """
    path = os.fsdecode(path)
    found = mounted(path)
    if found is not None:
        return found[0].read(found[1], 0, most)
    return read_regular(path, most)


def size_of(path: str) -> int:
    """Returns the bytes of a file, wherever it lies.

    Raises:
        OSError: Where there is none.
    """
    found = mounted(path)
    return os.stat(path).st_size if found is None else found[0].size(found[1])


class Opened:
    """Reads a file at any place, wherever it lies; closed by `with`.

    Args:
        path: Its path.

    Raises:
        OSError: Where it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._mounted, self.at = mounted(path), 0
        self._number = os.open(path, os.O_RDONLY) if self._mounted is None else -1
        self._size = size_of(path)

    def pread(self, count: int, offset: int) -> bytes:
        """Reads up to `count` bytes from `offset` on."""
        if self._mounted is None:
            return os.pread(self._number, count, offset)
        return self._mounted[0].along(self._mounted[1], offset, max(0, min(count, self._size - offset)))

    # What `zipfile` and `tarfile` ask of a file

    def read(self, count: int = -1) -> bytes:
        """Reads on from where the last one ended."""
        found = self.pread(self._size - self.at if count < 0 else count, self.at)
        self.at += len(found)
        return found

    def seek(self, offset: int, whence: int = 0) -> int:
        """Goes to a place."""
        self.at = offset + (0, self.at, self._size)[whence]
        return self.at

    def tell(self) -> int:
        """Returns where it reads on."""
        return self.at

    def seekable(self) -> bool:
        """Yes."""
        return True

    def close(self) -> None:
        """Closes it."""
        if self._number >= 0:
            os.close(self._number)
            self._number = -1

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
