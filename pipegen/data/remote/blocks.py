"""Fetches a file block by block: each is tried again where the connection drops, and what is there is not fetched twice."""

from __future__ import annotations

import asyncio
import json
import random
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pipegen.log import log
from pipegen.masking import masked
from pipegen.whole_files import put_in_place

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fsspec import AbstractFileSystem

BLOCK = 8 * 2**20
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
            end = min(done + BLOCK, file.size)
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
    return here // BLOCK * BLOCK if fits and here < file.size else 0
