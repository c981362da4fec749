"""Remote files, fetched whole or block by block with retries, in a folder of limited size that processes share.

fsspec reads the remote files. Its caches of blocks and of whole files are not used: they have no limit to their size, no lock between
processes and no retries, and note which blocks are there when a file is closed, so that a killed process loses them.

Blocks are small files in `blocks/`. `files/` mirrors the remote folders, so that readers of folders can read it; `about/` has the version
of each of its files. One process at a time changes the files of an address, while others wait.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import math
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from pipegen.files import is_part, open_lock, put_in_place, write_whole
from pipegen.kept import below, make_below, make_folder
from pipegen.terminal import log, masked

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


FETCHED_AT_ONCE = 8 * 2**20  # bytes of a request for a part of a whole file
TRIES = 6
_QUIET = 2  # tries after which retries are logged
WAITS = 0.25  # seconds before the second try; doubled for each further one, times a random 0.5 to 1, so that processes spread
_REFUSED = (401, 403, 407)  # HTTP statuses of a refused permission
_LATER = (408, 425, 429)  # HTTP statuses below 500 after which a retry may help


class Remote(NamedTuple):
    """A remote file, in bytes; `key` is its path relative to the address that it belongs to.

    `version` is its ETag, or something else that changes with its contents; "" if its file system has nothing.
    """

    name: str
    key: str
    size: int
    version: str

    @property
    def described(self) -> str:
        """The version and size as JSON, to be kept beside its contents."""
        return json.dumps({"version": self.version, "size": self.size})


class DroppedError(Exception):
    """A file could not be fetched; the argument is the reason."""


def version_of(info: dict[str, Any]) -> str:
    """Extracts the version of a file from its file system's facts: an ETag, a checksum, or the time of writing; else ""."""
    for name in ("ETag", "etag", "blob_id", "sha256", "md5", "checksum", "generation", "LastModified", "last_modified", "mtime"):
        if info.get(name):
            return f"{name}:{info[name]}"
    return ""


def patiently(ask: Callable[[], Any]) -> Any:
    """Calls `ask`, and retries errors that may pass. Raises `FileNotFoundError` at once, like `PermissionError` and other errors that
    retrying cannot fix; `DroppedError` after `TRIES` failures."""
    for attempt in range(1, TRIES + 1):
        try:
            return ask()
        except (PermissionError, IsADirectoryError, NotImplementedError, ImportError, ValueError, MemoryError):
            raise
        except Exception as error:  # clients raise errors of their own for a dropped connection
            # fsspec's HTTP client turns every failure into FileNotFoundError with only the address.
            met = error.__cause__ or error if isinstance(error, FileNotFoundError) else error
            # 500 stands for a dropped connection, 0 for an error of another client than aiohttp.
            status = int(getattr(met, "status", 500)) if type(met).__module__.partition(".")[0] == "aiohttp" else 0
            if status in _REFUSED:
                raise PermissionError(_line(met)) from error
            # Else the connection dropped, or the server fails or has too much to do.
            final = status < 500 and status not in _LATER and not isinstance(met, (TimeoutError, asyncio.TimeoutError, ConnectionError))
            if isinstance(error, FileNotFoundError) and final:
                raise
            if attempt == TRIES:
                raise DroppedError(_line(met)) from error
            if attempt > _QUIET:
                log.warning("no response (%s); retry %d of %d", _line(met), attempt + 1, TRIES)
            time.sleep(WAITS * 2 ** (attempt - 1) * random.uniform(0.5, 1))  # noqa: S311 - nothing secret
    raise AssertionError


def _line(error: BaseException) -> str:
    return masked(" ".join(str(error).split()) or type(error).__name__)


def fetch(fs: AbstractFileSystem, file: Remote, to: Path, progress: Callable[[int], None]) -> None:
    """Fetches a whole file to `to`, whose folder exists; it appears there once it is complete. Continues a part of the same version. Raises
    `DroppedError` if the connection drops again and again, or the file changes meanwhile."""
    begun, about, done = to.with_name(f"{to.name}.part"), to.with_name(f"{to.name}.part.json"), 0
    with suppress(OSError, ValueError):
        if file.version and about.read_text() == file.described and begun.stat().st_size < file.size:
            done = begun.stat().st_size // FETCHED_AT_ONCE * FETCHED_AT_ONCE
    if not done:
        begun.unlink(missing_ok=True)  # it may be of another version
        about.write_text(file.described)
    progress(done)
    with open(begun, "r+b" if done else "wb") as stream:
        stream.truncate(done)
        stream.seek(done)
        while done < file.size:
            end = min(done + FETCHED_AT_ONCE, file.size)
            block = patiently(partial(_requested, fs, file, done, end))
            if len(block) == file.size:  # a server without support for ranges sends the whole file
                block = block[done:end]
            stream.write(block)
            stream.flush()
            done += len(block)
            progress(len(block))
    fs.invalidate_cache(file.name)
    now = patiently(lambda: fs.info(file.name))
    if int(now.get("size") or 0) != file.size or (file.version and version_of(now) not in ("", file.version)):
        begun.unlink()
        raise DroppedError("it changed while it was fetched")
    about.unlink(missing_ok=True)
    put_in_place(begun, to)


def _requested(fs: AbstractFileSystem, file: Remote, start: int, end: int) -> bytes:
    """Requests a range of a file's bytes; a server without support for ranges sends the whole file."""
    found: bytes = fs.cat_file(file.name, start=start, end=end)
    if len(found) not in (end - start, file.size):
        raise OSError(f"received {len(found):,} of {end - start:,} bytes")
    return found


BLOCK = 256 * 2**10  # bytes of a block
RUN = 32  # the most blocks of one request
AT_ONCE = 32  # concurrent requests
AHEAD = 1024  # the most queued requests for look-ahead
FREED = 0.1  # the share of the cache that is freed at a time
_STRIPES = 1024
_FOLDER = re.compile(r"[0-9a-f]{3}")
_BLOCK = re.compile(r"[0-9a-f]{32}-[0-9a-f]+")  # the name of a block; other files are never removed, except for parts of blocks
_TOUCHED = 600  # seconds after which reading a block renews its time of use
_LEFT = 3600  # seconds after which a part of a block counts as left behind


@contextmanager
def locked(folder: Path, name: str) -> Iterator[None]:
    """Holds a lock file exclusively; the system releases it however the process ends."""
    make_folder(folder)
    with os.fdopen(open_lock(folder / name), "r+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


class BlockCache:
    """Keeps blocks of remote files in a folder, made if needed: at most `size` bytes; 0 keeps nothing."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder, self._locks, self.size = folder / "blocks", folder / "locks", size
        self._pool = ThreadPoolExecutor(AT_ONCE, "pipegen-blocks")
        self._begun = threading.Semaphore(AHEAD)
        self._counted = False
        self._wholes, self._beside, self._looked = folder / "files", 0, -math.inf

    def read(self, fs: AbstractFileSystem, file: Remote, offset: int, length: int) -> bytes:
        """Reads bytes of a file from the cache, and fetches the missing blocks. Raises `DroppedError` if they cannot be fetched; `OSError`
        for an error that retrying cannot fix."""
        if length <= 0:
            return b""
        spans = _spans(offset, length)
        name = self._name(fs, file)
        here = {number: self._here(name, file, number, *span) for number, span in spans.items()}
        parts = {number: found for number, found in here.items() if found is not None}
        runs = _runs([number for number in spans if number not in parts])
        fetched = [self.fetch(fs, file, runs[0])] if len(runs) == 1 else self._pool.map(partial(self.fetch, fs, file), runs)
        for blocks in fetched if runs else ():
            for number, block in blocks.items():
                if number in spans:
                    parts[number] = block[slice(*spans[number])]
        return b"".join(parts[number] for number in spans)

    def here(self, fs: AbstractFileSystem, file: Remote, offset: int, length: int) -> bytes | None:
        """Reads bytes of a file from the cache alone; `None` if some are missing."""
        name, parts = self._name(fs, file), []
        for number, (low, high) in _spans(offset, length).items():
            part = self._here(name, file, number, low, high)
            if part is None:
                return None
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def ahead(self, fs: AbstractFileSystem, file: Remote, offset: int, length: int) -> None:
        """Starts fetching missing bytes without waiting for them."""
        if length <= 0 or not self.size:
            return
        name = self._name(fs, file)
        missing = [number for number in _spans(offset, length) if not os.path.exists(self._path(name, number))]
        for run in _runs(missing):
            if self._begun.acquire(blocking=False):
                self._pool.submit(self._quietly, fs, file, run)

    def fetch(self, fs: AbstractFileSystem, file: Remote, run: Sequence[int]) -> dict[int, bytes]:
        """Fetches and keeps the missing ones of consecutive blocks of one run; returns all by number. One process at a time fetches them.
        Raises `DroppedError` as `read`."""
        name = self._name(fs, file)
        # A run shares its lock with others, which only makes these wait.
        stripe = int(hashlib.blake2b(f"{name}{run[0] // RUN}".encode(), digest_size=4).hexdigest(), 16) % _STRIPES
        with locked(self._locks, f"blocks-{stripe}"):
            here = {number: self._here(name, file, number, 0, BLOCK) for number in run}
            found = {number: block for number, block in here.items() if block is not None}
            for part in _runs([number for number in run if number not in found]):
                start, end = part[0] * BLOCK, min((part[-1] + 1) * BLOCK, file.size)
                content = patiently(partial(_requested, fs, file, start, end))
                first = 0 if len(content) == file.size else part[0]  # a whole file is kept, too
                fresh = {first + at // BLOCK: content[at : at + BLOCK] for at in range(0, len(content), BLOCK)}
                self._keep(name, fresh)
                found |= fresh
            return found

    def forget(self, fs: AbstractFileSystem, file: Remote) -> None:
        """Removes the blocks of a file."""
        name = self._name(fs, file)
        for number in range(-(-file.size // BLOCK)):
            with suppress(OSError):
                os.unlink(self._path(name, number))

    def make_room(self, need: int) -> None:
        """Removes the least recently used blocks, until the others and `need` more bytes fit."""
        with locked(self._locks, "blocks-room"):
            (self._folder / "used").unlink(missing_ok=True)
            self._evict(max(0, self.size - need))

    def _quietly(self, fs: AbstractFileSystem, file: Remote, run: Sequence[int]) -> None:
        try:
            if threading.main_thread().is_alive():
                self.fetch(fs, file, run)
        except Exception:  # reading the blocks retries, and reports the error
            return
        finally:
            self._begun.release()

    def _here(self, name: str, file: Remote, number: int, low: int, high: int) -> bytes | None:
        """Reads bytes of a block from the cache; `None` if it is missing or incomplete."""
        whole = min(BLOCK, file.size - number * BLOCK)
        try:
            stream = os.open(self._path(name, number), os.O_RDONLY)
        except OSError:
            return None
        try:
            about = os.fstat(stream)
            if about.st_size != whole:
                return None
            if time.time() - about.st_mtime > _TOUCHED:
                with suppress(OSError):
                    os.utime(self._path(name, number))
            return os.pread(stream, min(high, whole) - low, low)
        finally:
            os.close(stream)

    def _keep(self, name: str, blocks: dict[int, bytes]) -> None:
        """Writes blocks, and makes room if there are too many; if the disk is full, they are fetched again when needed."""
        if not self.size:
            return
        with suppress(OSError):
            for number, block in blocks.items():
                path = self._path(name, number)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if os.path.islink(os.path.dirname(path)):
                    continue  # it leads out of the cache
                write_whole(path, block, durable=False)  # training waits for it; a block lost in a power cut is fetched again
            with locked(self._locks, "blocks-room"):
                # The bytes that all processes have written.
                used = self._used() + sum(map(len, blocks.values())) if self._counted else self._evict(self._limit())
                self._counted = True
                if used > self._limit():
                    used = self._evict(int(self._limit() * (1 - FREED)))
                (self._folder / "used").write_text(str(used))

    def _used(self) -> int:
        with suppress(OSError, ValueError):
            return int((self._folder / "used").read_text())
        return self._evict(self._limit())

    def _limit(self) -> int:
        """The most bytes of blocks beside the whole files, which are counted now and then."""
        if time.monotonic() - self._looked > _TOUCHED:
            wholes = (os.path.join(folder, name) for folder, _, names in os.walk(self._wholes) for name in names)
            self._beside, self._looked = sum(map(os.path.getsize, wholes)), time.monotonic()
        return max(0, self.size - self._beside)

    def _evict(self, limit: int) -> int:
        """Removes blocks until the rest has at most `limit` bytes; returns the bytes of the rest."""
        found, now = [], time.time()
        # Follows no links, and leaves the files of others alone.
        walked = os.walk(self._folder) if not os.path.islink(self._folder) else ()
        own = ((folder, names) for folder, _, names in walked if _FOLDER.fullmatch(os.path.relpath(folder, self._folder)))
        for path, name in ((os.path.join(folder, name), name) for folder, names in own for name in names):
            with suppress(OSError):
                about = os.lstat(path)
                if is_part(name) and now - about.st_mtime > _LEFT:
                    os.unlink(path)
                elif not is_part(name) and _BLOCK.fullmatch(name):
                    found.append((about.st_mtime_ns, about.st_size, path))
        used = sum(size for _, size, _ in found)
        for _, size, path in sorted(found) if used > limit else ():
            if used <= limit:
                break
            with suppress(OSError):
                os.unlink(path)
            used -= size
        return used

    def _name(self, fs: AbstractFileSystem, file: Remote) -> str:
        known = f"{fs.protocol}\0{file.name}\0{file.version}\0{file.size}"
        return hashlib.blake2b(known.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

    def _path(self, name: str, number: int) -> str:
        return f"{self._folder}/{name[:3]}/{name}-{number:x}"


def _spans(offset: int, length: int) -> dict[int, tuple[int, int]]:
    """Maps the blocks of a range of bytes to their first byte and end within the block."""
    numbers = range(offset // BLOCK, (offset + length - 1) // BLOCK + 1)
    return {n: (max(offset - n * BLOCK, 0), min(offset + length - n * BLOCK, BLOCK)) for n in numbers}


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Splits rising numbers at gaps and at every multiple of `RUN`."""
    found: list[list[int]] = []
    for number in numbers:
        if not found or number != found[-1][-1] + 1 or number % RUN == 0:
            found.append([])
        found[-1].append(number)
    return found


FILES_AT_ONCE = 16  # files fetched at a time
_HELD: dict[Path, IO[str]] = {}
"""Open lock files of the addresses that this process reads; no process removes files of an address while its lock is held."""


class FullError(Exception):
    """The files of an address do not fit; the arguments are their bytes, the limit, and the bytes that processes are reading."""


class RemoteCache:
    """Keeps whole remote files in a folder, made if needed: at most `size` bytes."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder, self._files, self._about = folder, folder / "files", folder / "about"
        self._locks = folder / "locks"
        self._size, self.blocks = size, BlockCache(folder, size)

    def hold(self, place: Sequence[str], files: Sequence[Remote], fs: AbstractFileSystem, progress: Callable[[int], None]) -> Path:
        """Fetches the files that are missing or stale, and returns the folder of all.

        `place` are the folders below the cache that stand for the files' address. `progress` is called with the bytes that are cached now,
        from one thread at a time. Raises `FullError` if they need more than the limit of the cache; `DroppedError` if one cannot be
        fetched."""
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

                with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
                    list(pool.map(lambda file: self._fetch(place, file, fs, more), stale))
            for file in files:
                os.utime(self._about_of(place, file.key))
        return root

    def _fetch(self, place: Sequence[str], file: Remote, fs: AbstractFileSystem, more: Callable[[int], None]) -> None:
        about, path = self._about_of(place, file.key), self._files.joinpath(*place, file.key)
        for each in (about, path):
            if not below(self._folder, each):
                raise OSError(f"a link on the way to {each} leads out of the cache")
            make_below(self._folder, each.parent)
        about.unlink(missing_ok=True)
        fetch(fs, file, path, more)
        write_whole(about, file.described)

    def _is_here(self, place: Sequence[str], file: Remote) -> bool:
        """Looks for this version of a file; without versions, sizes are compared."""
        with suppress(OSError, ValueError):
            here = self._files.joinpath(*place, file.key).stat().st_size
            return self._about_of(place, file.key).read_text() == file.described and here == file.size
        return False

    def _about_of(self, place: Sequence[str], key: str) -> Path:
        return self._about.joinpath(*place, f"{key}.json")

    def _claim(self, place: Sequence[str]) -> None:
        """Marks an address as being read, until this process ends."""
        make_folder(self._locks)
        path = self._locks / f"{hashlib.sha256('/'.join(place).encode()).hexdigest()[:32]}.read"
        if path not in _HELD:
            stream = os.fdopen(open_lock(path), "r+")  # open for as long as the process lives
            fcntl.flock(stream, fcntl.LOCK_SH)
            stream.truncate(0)
            stream.write("/".join(place))
            stream.flush()
            _HELD[path] = stream

    def _read_elsewhere(self) -> list[str]:
        """Lists the folders of addresses that processes are reading."""
        found = []
        for path in self._locks.glob("*.read"):
            with open(path) as stream:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    found.append(f"{self._files}/{stream.read()}/")
        return found

    def _make_room(self, need: int, done: int, kept: set[Path], place: Sequence[str]) -> None:
        """Removes the least recently used files until `need` bytes fit, of which `done` exist; spares `kept` and files being read.
        Raises `FullError` if they do not fit even then."""
        known = []
        for about in self._about.rglob("*.json") if self._about.exists() else ():
            path = self._files / about.relative_to(self._about).with_suffix("")
            with suppress(OSError):
                known.append((about.stat().st_mtime_ns, path.stat().st_size, path, about))
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
        self.blocks.make_room(self._size - free)

    def locked(self, *place: str) -> AbstractContextManager[None]:
        """Waits for other processes that change files of a place, and keeps them waiting meanwhile."""
        return locked(self._locks, hashlib.sha256("-".join(place).encode()).hexdigest()[:32])
