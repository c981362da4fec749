"""Mounts addresses: a folder of stand-ins for listing, and a mount that fetches blocks when they are read."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from pipegen.data.remote import block_cache
from pipegen.data.remote.block_cache import AT_ONCE, RUN
from pipegen.data.remote.blocks import DroppedError, Remote, patiently, version_of
from pipegen.data.remote.cache import FullError, RemoteCache
from pipegen.kept import below, make_below
from pipegen.mounts import ChangedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from fsspec import AbstractFileSystem

    from pipegen.data.remote.block_cache import BlockCache

CHECKED = 10.0
"""Seconds after which a file of several requests is asked for its version anew."""
_FAR = 8
"""Blocks between two reads from which on what lies between is not fetched: an index wants the heads of large records."""


class RemoteMount:
    """Reads files below an address; see `pipegen.mounts.Mount`.

    Args:
        address: The address, without secrets.
        fs: What to fetch with.
        cache: Keeps blocks.
        wholes: Keeps whole files.
        place: The folders in there that stand for the address.
        direct: Whether TensorFlow reads the addresses itself.
    """

    def __init__(
        self, address: str, fs: AbstractFileSystem, cache: BlockCache, wholes: RemoteCache, place: tuple[str, ...], *, direct: bool = False
    ) -> None:
        self.address, self.direct = address, direct
        self._fs, self._cache, self._wholes, self._place = fs, cache, wholes, place
        self._files: dict[str, Remote] = {}
        self._checked: dict[str, float] = {}
        self._read_to = threading.local()

    def add(self, files: Iterable[Remote]) -> None:
        """Learns of files, in the versions that they have now."""
        now = time.monotonic()
        for file in files:
            self._files[file.key] = file
            self._checked[file.key] = now

    def files(self) -> list[Remote]:
        """Returns the files that it knows."""
        return [*self._files.values()]

    def size(self, key: str) -> int:
        return self._file(key).size

    def read(self, key: str, offset: int, length: int) -> bytes:
        file = self._file(key)
        length = file.size - offset if length < 0 else min(length, file.size - offset)
        try:
            content = self._cache.read(self._fs, file, offset, length)
        except (DroppedError, FileNotFoundError, PermissionError) as error:
            self._confirm(file)
            raise OSError(f"{self.address}/{key} cannot be fetched: {error}") from None
        if file.size > RUN * block_cache.BLOCK and time.monotonic() - self._checked[key] > CHECKED:
            self._confirm(file)
        return content

    def read_all(self, places: Sequence[tuple[str, int, int]]) -> list[bytes]:
        here = [self._cache.here(self._fs, self._file(key), offset, length) for key, offset, length in places]
        self.ahead(place for place, content in zip(places, here, strict=True) if content is None)
        return [self.read(*place) if content is None else content for place, content in zip(places, here, strict=True)]

    def along(self, key: str, offset: int, length: int) -> bytes:
        file = self._file(key)
        last, block = getattr(self._read_to, "at", None), block_cache.BLOCK
        self._read_to.at = (key, offset + length)
        if last is not None and last[0] == key and 0 <= offset - last[1] < _FAR * block:
            begin = offset // block // RUN * RUN * block
            self._cache.ahead(self._fs, file, begin, min(2 * RUN * block, file.size - begin))
        return self.read(key, offset, length)

    def ahead(self, places: Iterable[tuple[str, int, int]]) -> None:
        for key, offset, length in places:
            file = self._files.get(key)
            if file is not None:
                self._cache.ahead(self._fs, file, offset, file.size - offset if length < 0 else length)

    def check(self, keys: Sequence[str]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in pool.map(lambda key: self._confirm(self._file(key)), keys):
                pass

    def whole(self, keys: Sequence[str]) -> list[str]:
        files = [self._file(key) for key in keys]
        try:
            root = self._wholes.hold(self._place, files, self._fs, lambda _done: None)
        except FullError as full:
            need, size, _ = full.args
            raise OSError(f"{need:,} bytes at {self.address} do not fit `remote_cache`, whose size is {size:,}") from None
        except (DroppedError, PermissionError) as error:
            raise OSError(f"{self.address} cannot be fetched: {error}") from None
        return [str(root / key) for key in keys]

    def _file(self, key: str) -> Remote:
        if key not in self._files:
            raise FileNotFoundError(2, "there was no such file when it was listed", f"{self.address}/{key}")
        return self._files[key]

    def _confirm(self, file: Remote) -> None:
        """Asks for the version of a file.

        Raises:
            ChangedError: Where it is another one, or the file is gone; its blocks are forgotten, since some may be of either.
            OSError: Where it cannot be found out.
        """
        where = f"{self.address}/{file.key}"
        try:
            self._fs.invalidate_cache()
            now = patiently(lambda: self._fs.info(file.name))
        except FileNotFoundError:
            raise ChangedError(f"{where} is gone since it was listed; build the pipeline again") from None
        except (DroppedError, PermissionError) as error:
            raise OSError(f"{where} cannot be reached: {error}") from None
        size = now.get("size")
        if (size is not None and int(size) != file.size) or (file.version and version_of(now) not in ("", file.version)):
            self._cache.forget(self._fs, file)
            raise ChangedError(f"{where} was written anew after it was listed; build the pipeline again")
        self._checked[file.key] = time.monotonic()


def stand_in(root: Path, files: Sequence[Remote], ours: Callable[[str], bool]) -> None:
    """Makes a folder list as what it stands for does: each file with its name and its size, written when its version says, and empty.

    Args:
        root: The folder.
        files: What there is.
        ours: From a relative path to whether it would be among `files`, if it still existed.
    """
    due = {file.key: file for file in files}
    here: dict[str, os.stat_result] = {}
    for folder, _, names in os.walk(root):
        inside = os.path.relpath(folder, root).replace(os.sep, "/")
        for name in names:
            key = name if inside == "." else f"{inside}/{name}"
            if key not in due and ours(key):
                with suppress(OSError):
                    os.unlink(root / key)
            elif key in due:
                here[key] = os.lstat(root / key)
    for key, file in due.items():
        written = _written(file.version)
        if key in here and (here[key].st_size, here[key].st_mtime_ns) == (file.size, written):
            continue
        path = root / key
        if not below(root, path):
            raise OSError(f"on the way to {path} is a link, which leads out of the cache")
        make_below(root, path.parent)
        with open(path, "wb") as stream:
            stream.truncate(file.size)
        os.utime(path, ns=(written, written))


def _written(version: str) -> int:
    """A time of writing that differs where versions do, in nanoseconds."""
    return int.from_bytes(hashlib.blake2b(version.encode(), digest_size=4).digest(), "little") * 1_000_000_000
