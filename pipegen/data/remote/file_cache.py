"""The cache of whole remote files: a folder that processes share, with a limit to its size.

`files/` mirrors the remote folders, so that readers of folders can read it; `about/` has the version of each file. One process at a time
changes the files of an address, while others wait.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pipegen.data.remote.block_cache import BlockCache, Remote, fetch, locked
from pipegen.files import open_lock, write_whole
from pipegen.kept import below, make_below, make_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsspec import AbstractFileSystem

try:
    import fcntl
except ImportError:  # Windows: processes do not wait for each other
    fcntl = None  # type: ignore[assignment]

AT_ONCE = 16
"""Files fetched at a time."""


_HELD: dict[Path, IO[str]] = {}
"""Open lock files of the addresses that this process reads; no process removes files of an address while its lock is held."""


class FullError(Exception):
    """The files of an address do not fit; the arguments are their bytes, the limit, and the bytes that processes are reading."""


class RemoteCache:
    """Keeps whole remote files in a folder, made if needed: at most `size` bytes."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder, self._files, self._about = folder, folder / "files", folder / "about"
        self._locks = folder / "locks"
        self._size, self._blocks = size, BlockCache(folder, size)

    def hold(self, place: Sequence[str], files: Sequence[Remote], fs: AbstractFileSystem, progress: Callable[[int], None]) -> Path:
        """Fetches the files that are missing or stale, and returns the folder of all.

        `place` are the folders below the cache that stand for the files' address. `progress` is called with the bytes that are cached now,
        from one thread at a time.

        Raises:
            FullError: If they need more than the limit of the cache.
            DroppedError: If one cannot be fetched.
        """
        need = sum(file.size for file in files)
        if need > self._size:
            raise FullError(need, self._size, 0)
        root = self._files.joinpath(*place)
        self._claim(place)
        with self.locked(*place):
            stale = [file for file in files if not self._is_here(place, file)]
            done = need - sum(file.size for file in stale)
            progress(done)
            if stale:
                with self.locked("size"):
                    self._make_room(need, done, {root / file.key for file in files}, place)
                total = [done]

                def more(count: int) -> None:
                    total[0] += count
                    progress(total[0])

                with ThreadPoolExecutor(AT_ONCE) as pool:
                    list(pool.map(lambda file: self._fetch(place, file, fs, more), stale))
            for file in files:
                os.utime(self._about_of(place, file.key))
        return root

    def _fetch(self, place: Sequence[str], file: Remote, fs: AbstractFileSystem, more: Callable[[int], None]) -> None:
        about = self._about_of(place, file.key)
        for path in (about, self._files.joinpath(*place, file.key)):
            if not below(self._folder, path):
                raise OSError(f"a link on the way to {path} leads out of the cache")
            make_below(self._folder, path.parent)
        about.unlink(missing_ok=True)
        fetch(fs, file, self._files.joinpath(*place, file.key), more)
        write_whole(about, json.dumps({"version": file.version, "size": file.size}))

    def _is_here(self, place: Sequence[str], file: Remote) -> bool:
        """Looks for this version of a file; without versions, sizes are compared."""
        try:
            known = json.loads(self._about_of(place, file.key).read_text())
            size = self._files.joinpath(*place, file.key).stat().st_size
        except (OSError, ValueError):
            return False
        return known == {"version": file.version, "size": file.size} and size == file.size

    def _about_of(self, place: Sequence[str], key: str) -> Path:
        return self._about.joinpath(*place, f"{key}.json")

    def _claim(self, place: Sequence[str]) -> None:
        """Marks an address as being read, until this process ends."""
        make_folder(self._locks)
        path = self._locks / f"{hashlib.sha256('/'.join(place).encode()).hexdigest()[:32]}.read"
        if path not in _HELD and fcntl is not None:
            stream = os.fdopen(open_lock(path), "r+")  # open for as long as the process lives
            fcntl.flock(stream, fcntl.LOCK_SH)
            stream.truncate(0)
            stream.write("/".join(place))
            stream.flush()
            _HELD[path] = stream

    def _read_elsewhere(self) -> list[str]:
        """Lists the folders of addresses that processes are reading."""
        found = []
        for path in self._locks.glob("*.read") if fcntl is not None else ():
            with open(path) as stream:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    found.append(f"{self._files}/{stream.read()}/")
        return found

    def _make_room(self, need: int, done: int, kept: set[Path], place: Sequence[str]) -> None:
        """Removes the least recently used files until `need` bytes fit, of which `done` exist; spares `kept` and files being read.

        Raises:
            FullError: If they do not fit even then.
        """
        known = []
        for about in self._about.rglob("*.json") if self._about.exists() else ():
            path = self._files / about.relative_to(self._about).with_suffix("")
            try:
                known.append((about.stat().st_mtime_ns, path.stat().st_size, path, about))
            except OSError:
                continue
        free = self._size - sum(size for _, size, _, _ in known) - (need - done)
        own, others = f"{self._files.joinpath(*place)}/", self._read_elsewhere()
        in_use = tuple(folder for folder in others if folder != own)
        for _, size, path, about in sorted(known):
            if free >= 0:
                break
            ours = below(self._folder, path.parent) and below(self._folder, about)
            if path not in kept and not str(path).startswith(in_use) and ours:
                about.unlink(missing_ok=True)
                path.unlink(missing_ok=True)
                free += size
        if free < 0:
            raise FullError(need, self._size, self._size - need - free)
        self._blocks.make_room(self._size - free)

    def locked(self, *place: str) -> AbstractContextManager[None]:
        """Waits for other processes that change files of a place, and keeps them waiting meanwhile."""
        return locked(self._locks, hashlib.sha256("-".join(place).encode()).hexdigest()[:32])
