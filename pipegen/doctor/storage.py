"""Measures how fast files come from where they are stored: in random order, by several threads, and in their own order.

The page cache is dropped first (`posix_fadvise`), and whether that worked is asked (`preadv2` without waiting), since files that lie in
memory are read at a speed that tells nothing of the disk.
"""

from __future__ import annotations

import glob
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

_LISTED = 50_000
"""Files that are listed at most, ..."""
_TAKEN = 3000
"""... and of them those that are read."""
_LARGE = 4 << 20
"""Bytes from which a file is no example but a shard, of which parts are read."""
_PART = 128 << 10
_CHUNK = 1 << 20
_SECONDS = 1.5
"""Time for each of the three."""

Piece = tuple[str, int, int]
"""A file, where to begin, and how many bytes to read."""


@dataclass(frozen=True)
class Rates:
    """Holds what was measured, in bytes per second.

    Attributes:
        random: One piece after another in random order.
        together: The same by several threads at a time.
        sequential: In their own order.
        files: How many files were found; at most 50,000 are listed.
        mean_bytes: Their mean size.
        shards: Whether they are so large that parts of them were read.
        kept: The share of pieces that were in memory although they were dropped.
    """

    random: float
    together: float
    sequential: float
    files: int
    mean_bytes: float
    shards: bool
    kept: float


def files_of(path: str) -> list[str]:
    """Returns files below a folder, of a pattern, or the file itself; of very many some."""
    if os.path.isdir(path):
        below = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names if not name.startswith("."))
        return list(islice(below, _LISTED))
    return list(islice(glob.iglob(path, recursive=True), _LISTED))


def measure(files: Sequence[str], threads: int, seconds: float | None = None) -> Rates | None:
    """Reads files; `None` where there is nothing to read.

    Raises:
        OSError: If one cannot be read.
    """
    seconds = _SECONDS if seconds is None else seconds
    chance = random.Random(0)  # noqa: S311 - which files are read is no secret
    taken = sorted(chance.sample(list(files), min(_TAKEN, len(files))))
    sizes = {name: os.path.getsize(name) for name in taken}
    total = sum(sizes.values())
    if not total:
        return None
    mean = total / len(taken)
    pieces = list(_pieces(sizes))
    shuffled = chance.sample(pieces, len(pieces))
    third = max(1, len(pieces) // 3)
    kept: list[bool] = []
    one = _rate(shuffled[:third], _read, kept, seconds)
    with ThreadPoolExecutor(threads) as pool:
        several = _rate_together(shuffled[third : 2 * third] or shuffled, pool, threads, kept, seconds)
    start = chance.randrange(max(1, len(pieces) - third))
    order = _rate(pieces[start : start + third], _read, kept, seconds)
    return Rates(one, several, order, len(files), mean, mean >= _LARGE, sum(kept) / len(kept))


def _pieces(sizes: dict[str, int]) -> Iterator[Piece]:
    """Returns whole files, or parts of large ones."""
    large = sum(sizes.values()) / len(sizes) >= _LARGE
    for name, size in sizes.items():
        if not large:
            yield name, 0, size
            continue
        count = min(size // _PART, 4096)
        yield from ((name, i * _PART, _PART) for i in range(count))


def _rate(pieces: Iterable[Piece], read: Callable[[Piece], tuple[int, bool]], kept: list[bool], seconds: float) -> float:
    done, begin = 0, time.perf_counter()
    for piece in pieces:
        count, was_kept = read(piece)
        done += count
        kept.append(was_kept)
        if time.perf_counter() - begin > seconds:
            break
    return done / max(time.perf_counter() - begin, 1e-9)


def _rate_together(pieces: Sequence[Piece], pool: ThreadPoolExecutor, threads: int, kept: list[bool], seconds: float) -> float:
    done, begin = 0, time.perf_counter()
    for at in range(0, len(pieces), 4 * threads):
        for count, was_kept in pool.map(_read, pieces[at : at + 4 * threads]):
            done += count
            kept.append(was_kept)
        if time.perf_counter() - begin > seconds:
            break
    return done / max(time.perf_counter() - begin, 1e-9)


def _read(piece: Piece) -> tuple[int, bool]:
    """Returns how many bytes of a piece were read, and whether they were in memory although they were dropped."""
    name, begin, size = piece
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.posix_fadvise(file, begin, size, os.POSIX_FADV_DONTNEED)
        kept = _in_memory(file, begin)
        done = 0
        with memoryview(bytearray(min(_CHUNK, size))) as room:
            while done < size and (count := os.preadv(file, [room[: size - done]], begin + done)):
                done += count
        return done, kept
    finally:
        os.close(file)


def _in_memory(file: int, begin: int) -> bool:
    try:
        return os.preadv(file, [bytearray(1)], begin, os.RWF_NOWAIT) > 0
    except OSError:  # it would have to wait; or the file system cannot tell
        return False


def place_of(path: str) -> Path:
    """Returns the nearest folder or file above a pattern or a path that is there."""
    found = Path(path).absolute()
    while not found.exists():
        found = found.parent
    return found.resolve()
