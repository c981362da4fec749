"""Remote files block by block: fetched, tried again, and kept in small files that processes share."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import random
import re
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pipegen.files import is_part, open_lock, put_in_place, write_whole
from pipegen.kept import make_folder
from pipegen.terminal import log, masked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fsspec import AbstractFileSystem


FETCHED_AT_ONCE = 8 * 2**20
"""Bytes that are asked for at a time."""
TRIES = 6
_QUIET = 2
"""Tries after which it is said that there is another one."""
WAITS = 0.25
"""Seconds before the second try; twice as long before each further one, times 0.5 to 1 by chance, so that processes spread."""
_REFUSED = (401, 403, 407)
"""What servers of the web say where somebody else might read."""
_LATER = (408, 425, 429)
"""What servers of the web say where the same question may be answered later."""


class Remote(NamedTuple):
    """Describes a file elsewhere.

    Attributes:
        name: How its file system calls it.
        key: Its path relative to the address that it belongs to.
        size: In bytes.
        version: Differs once it was written anew: its ETag, or what else its file system says.
    """

    name: str
    key: str
    size: int
    version: str


class DroppedError(Exception):
    """A file could not be fetched; says why."""


def version_of(info: dict[str, Any]) -> str:
    """Returns what a file system says of the version of a file: an ETag or a checksum, else when it was written."""
    for name in ("ETag", "etag", "blob_id", "sha256", "md5", "checksum", "generation", "LastModified", "last_modified", "mtime"):
        if info.get(name):
            return f"{name}:{info[name]}"
    return ""


def patiently(ask: Callable[[], Any]) -> Any:
    """Returns what `ask` gives, and asks again while it fails for a reason that may pass.

    Raises:
        FileNotFoundError: At once, as `PermissionError` and what else no patience mends.
        DroppedError: When it has failed `TRIES` times.
    """
    for attempt in range(1, TRIES + 1):
        try:
            return ask()
        except (PermissionError, IsADirectoryError, NotImplementedError, ImportError, ValueError, MemoryError):
            raise
        except Exception as error:  # clients raise errors of their own for a dropped connection
            # fsspec's client of the web calls every failure a file that is not there, and says its address alone.
            met = error.__cause__ or error if isinstance(error, FileNotFoundError) else error
            if _status(met) in _REFUSED:
                raise PermissionError(_line(met)) from error
            if isinstance(error, FileNotFoundError) and not _is_no_answer(met):
                raise
            if attempt == TRIES:
                raise DroppedError(_line(met)) from error
            if attempt > _QUIET:
                log.warning("a server does not answer (%s); asking again, %d of %d", _line(met), attempt + 1, TRIES)
            time.sleep(WAITS * 2 ** (attempt - 1) * random.uniform(0.5, 1))  # noqa: S311 - nothing secret
    raise AssertionError


def _is_no_answer(cause: BaseException) -> bool:
    """Tells whether what is behind an error is a connection that dropped, or a server that is out of order or has too much to do."""
    status = _status(cause)
    return status >= 500 or status in _LATER or isinstance(cause, (TimeoutError, asyncio.TimeoutError, ConnectionError))


def _status(error: BaseException) -> int:
    """Returns what a server of the web has answered: 500 where the connection dropped, 0 for errors that are not of aiohttp."""
    return int(getattr(error, "status", 500)) if type(error).__module__.partition(".")[0] == "aiohttp" else 0


def _line(error: BaseException) -> str:
    return masked(" ".join(str(error).split()) or type(error).__name__)


def fetch(fs: AbstractFileSystem, file: Remote, to: Path, progress: Callable[[int], None]) -> None:
    """Fetches a file into `to`, in a folder that is there; it appears once it is whole. A part of this version is gone on with.

    Raises:
        DroppedError: When the connection drops again and again, or the file changes meanwhile.
    """
    begun, about = to.with_name(f"{to.name}.part"), to.with_name(f"{to.name}.part.json")
    done = _done(begun, about, file)
    if not done:
        begun.unlink(missing_ok=True)  # what it holds is of another version than `about` says next
        about.write_text(json.dumps({"version": file.version, "size": file.size}))
    progress(done)
    with open(begun, "r+b" if done else "wb") as stream:
        stream.truncate(done)
        stream.seek(done)
        while done < file.size:
            end = min(done + FETCHED_AT_ONCE, file.size)
            block = patiently(partial(_block, fs, file, done, end))
            stream.write(block)
            stream.flush()
            done += len(block)
            progress(len(block))
    fs.invalidate_cache(file.name)
    now = patiently(lambda: fs.info(file.name))
    if int(now.get("size") or 0) != file.size or (file.version and version_of(now) not in ("", file.version)):
        begun.unlink()
        raise DroppedError("it was written anew while it was fetched")
    about.unlink(missing_ok=True)
    put_in_place(begun, to)


def _block(fs: AbstractFileSystem, file: Remote, start: int, end: int) -> bytes:
    found: bytes = fs.cat_file(file.name, start=start, end=end)
    if len(found) == file.size:  # a server that knows no ranges sends the whole
        found = found[start:end]
    if len(found) != end - start:
        raise OSError(f"{len(found)} of {end - start} bytes came")
    return found


def _done(part: Path, about: Path, file: Remote) -> int:
    """The bytes that are there of this version."""
    try:
        known = json.loads(about.read_text())
        here = part.stat().st_size
    except (OSError, ValueError):
        return 0
    fits = known == {"version": file.version, "size": file.size} and bool(file.version) and here <= file.size
    return here // FETCHED_AT_ONCE * FETCHED_AT_ONCE if fits and here < file.size else 0


try:
    import fcntl
except ImportError:  # Windows: processes that begin at the same time fetch twice
    fcntl = None  # type: ignore[assignment]

BLOCK = 256 * 2**10
"""Bytes of a block."""
RUN = 32
"""Blocks that one request asks for at most."""
AT_ONCE = 32
"""Requests that are under way at a time."""
AHEAD = 1024
"""Requests that wait at most for blocks which nothing waits for yet."""
FREED = 0.1
"""The part of the cache that is made free at a time."""
_STRIPES = 1024
_FOLDER = re.compile(r"[0-9a-f]{3}")
_BLOCK = re.compile(r"[0-9a-f]{32}-[0-9a-f]+")
"""The name of a block, and of one that was begun: nothing else is removed."""
_TOUCHED = 600
"""Seconds after which a block that is read counts as used anew."""
_LEFT = 3600
"""Seconds after which a block that was begun was left behind."""


class BlockCache:
    """Keeps blocks of files of other machines in a folder.

    Args:
        folder: The folder; it is made if needed.
        size: The most that they may take, in bytes; 0 keeps nothing.
    """

    def __init__(self, folder: Path, size: int) -> None:
        self._folder, self._locks, self.size = folder / "blocks", folder / "locks", size
        self._pool = ThreadPoolExecutor(AT_ONCE, "pipegen-blocks")
        self._begun = threading.Semaphore(AHEAD)
        self._counted = False
        self._wholes, self._beside, self._looked = folder / "files", 0, -math.inf

    def read(self, fs: AbstractFileSystem, file: Remote, offset: int, length: int) -> bytes:
        """Reads bytes of a file, from here as far as they are here.

        Raises:
            DroppedError: When they cannot be fetched.
            OSError: Likewise, for a reason that no patience mends.
        """
        if length <= 0:
            return b""
        numbers = range(offset // BLOCK, (offset + length - 1) // BLOCK + 1)
        name = self._name(fs, file)
        parts: dict[int, bytes] = {}
        for number in numbers:
            low, high = max(offset - number * BLOCK, 0), min(offset + length - number * BLOCK, BLOCK)
            found = self._here(name, file, number, low, high)
            if found is not None:
                parts[number] = found
        missing = [number for number in numbers if number not in parts]
        runs = _runs(missing)
        fetched = [self.fetch(fs, file, runs[0])] if len(runs) == 1 else self._pool.map(partial(self.fetch, fs, file), runs)
        for blocks in fetched if runs else ():
            for number, block in blocks.items():
                low, high = max(offset - number * BLOCK, 0), min(offset + length - number * BLOCK, BLOCK)
                if number in numbers:
                    parts[number] = block[low:high]
        return b"".join(parts[number] for number in numbers)

    def here(self, fs: AbstractFileSystem, file: Remote, offset: int, length: int) -> bytes | None:
        """Reads bytes of a file that are here; `None` where some are not."""
        name, parts = self._name(fs, file), []
        for number in range(offset // BLOCK, (offset + length - 1) // BLOCK + 1):
            low, high = max(offset - number * BLOCK, 0), min(offset + length - number * BLOCK, BLOCK)
            part = self._here(name, file, number, low, high)
            if part is None:
                return None
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def ahead(self, fs: AbstractFileSystem, file: Remote, offset: int, length: int) -> None:
        """Begins to fetch bytes that are not here; it does not wait."""
        if length <= 0 or not self.size:
            return
        name = self._name(fs, file)
        missing = [n for n in range(offset // BLOCK, (offset + length - 1) // BLOCK + 1) if not os.path.exists(self._path(name, n))]
        for run in _runs(missing):
            if self._begun.acquire(blocking=False):
                self._pool.submit(self._quietly, fs, file, run)

    def fetch(self, fs: AbstractFileSystem, file: Remote, run: Sequence[int]) -> dict[int, bytes]:
        """Returns blocks that follow each other, all in one run, by their numbers, and keeps them; one process at a time asks for them.

        Raises:
            DroppedError: As `read`.
        """
        name = self._name(fs, file)
        with self._locked(f"{name}{run[0] // RUN}"):
            here = {number: self._here(name, file, number, 0, BLOCK) for number in run}
            found = {number: block for number, block in here.items() if block is not None}
            for part in _runs([number for number in run if number not in found]):
                start, end = part[0] * BLOCK, min((part[-1] + 1) * BLOCK, file.size)
                content = patiently(partial(_asked, fs, file, start, end))
                first = 0 if len(content) == file.size else part[0]  # a server that knows no ranges sends the whole, which is worth keeping
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
        """Removes the blocks that were used the longest time ago, until those that stay and `need` other bytes fit."""
        with self._locked("room"):
            (self._folder / "used").unlink(missing_ok=True)
            self._evict(max(0, self.size - need))

    def _quietly(self, fs: AbstractFileSystem, file: Remote, run: Sequence[int]) -> None:
        try:
            if threading.main_thread().is_alive():
                self.fetch(fs, file, run)
        except Exception:  # whoever reads it asks again, and says what is wrong
            return
        finally:
            self._begun.release()

    def _here(self, name: str, file: Remote, number: int, low: int, high: int) -> bytes | None:
        """Bytes of a block; `None` where it is not here as a whole."""
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
        """Writes blocks; where the disk is full, they are read anew when they are needed again."""
        if not self.size:
            return
        with suppress(OSError):
            for number, block in blocks.items():
                path = self._path(name, number)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if os.path.islink(os.path.dirname(path)):
                    continue  # it leads out of the cache
                write_whole(path, block, durable=False)  # training waits for it, and what a power cut takes is fetched again
            self._count(sum(map(len, blocks.values())))

    def _count(self, more: int) -> None:
        """Adds up what all processes have written, and makes room where that is too much."""
        with self._locked("room"):
            used = self._used() + more if self._counted else self._evict(self._limit())
            self._counted = True
            if used > self._limit():
                used = self._evict(int(self._limit() * (1 - FREED)))
            (self._folder / "used").write_text(str(used))

    def _used(self) -> int:
        try:
            return int((self._folder / "used").read_text())
        except (OSError, ValueError):
            return self._evict(self._limit())

    def _limit(self) -> int:
        """The bytes that blocks may take beside the whole files, which are counted now and then."""
        if time.monotonic() - self._looked > _TOUCHED:
            wholes = (os.path.join(folder, name) for folder, _, names in os.walk(self._wholes) for name in names)
            self._beside, self._looked = sum(map(os.path.getsize, wholes)), time.monotonic()
        return max(0, self.size - self._beside)

    def _evict(self, limit: int) -> int:
        """Removes blocks until the rest takes `limit` bytes at most; returns what it takes."""
        found, now = [], time.time()
        for path, is_begun in self._blocks():
            with suppress(OSError):
                about = os.lstat(path)
                if not is_begun:
                    found.append((about.st_mtime_ns, about.st_size, path))
                elif now - about.st_mtime > _LEFT:
                    os.unlink(path)
        used = sum(size for _, size, _ in found)
        for _, size, path in sorted(found) if used > limit else ():
            if used <= limit:
                break
            with suppress(OSError):
                os.unlink(path)
            used -= size
        return used

    def _blocks(self) -> Iterator[tuple[str, bool]]:
        """Yields the files that this cache made, and whether each was only begun; no link leads out of its folder."""
        if os.path.islink(self._folder):
            return
        for folder, _, names in os.walk(self._folder):
            if _FOLDER.fullmatch(os.path.relpath(folder, self._folder)):
                yield from ((os.path.join(folder, name), is_part(name)) for name in names if is_part(name) or _BLOCK.fullmatch(name))

    def _name(self, fs: AbstractFileSystem, file: Remote) -> str:
        known = f"{fs.protocol}\0{file.name}\0{file.version}\0{file.size}"
        return hashlib.blake2b(known.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

    def _path(self, name: str, number: int) -> str:
        return f"{self._folder}/{name[:3]}/{name}-{number:x}"

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """Waits until no other thread and no other process holds this name, or one of its stripe."""
        stripe = "room" if name == "room" else str(int(hashlib.blake2b(name.encode(), digest_size=4).hexdigest(), 16) % _STRIPES)
        make_folder(self._locks)
        with os.fdopen(open_lock(self._locks / f"blocks-{stripe}"), "r+") as stream:
            if fcntl is not None:
                fcntl.flock(stream, fcntl.LOCK_EX)
            yield


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Rising numbers, parted where one is missing between them and at every multiple of `RUN`."""
    found: list[list[int]] = []
    for number in numbers:
        if not found or number != found[-1][-1] + 1 or number % RUN == 0:
            found.append([])
        found[-1].append(number)
    return found


def _asked(fs: AbstractFileSystem, file: Remote, start: int, end: int) -> bytes:
    """Bytes of a file; all of them where its server knows no ranges."""
    found: bytes = fs.cat_file(file.name, start=start, end=end)
    if len(found) not in (end - start, file.size):
        raise OSError(f"{len(found):,} of {end - start:,} bytes came")
    return found
