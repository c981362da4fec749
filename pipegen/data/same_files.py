"""Finds files of one split that another has, too, byte by byte; only files of a size that two splits have are read."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.errors import OpError
from pipegen.mounts import Opened, size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipegen.data.manifest import Manifest

Array = np.ndarray[Any, Any]
_BLOCK = 1 << 20
_CHUNK = 64


@dataclass(frozen=True, slots=True)
class SameFile:
    """Holds two records of different splits whose files have the same content; of several of one content, each beside the first one of
    another split."""

    split: str
    key: str
    other_split: str
    other_key: str
    same: bool = True
    mirrored: bool = False
    severity: str = "error"


def same_files(
    manifest: Manifest, splits: Sequence[str], workers: int, progress: Callable[[int], None] | None = None
) -> tuple[list[SameFile], int]:
    """Returns the pairs of records of two splits whose files are the same, and how many records were compared.

    Args:
        manifest: The records, each with a file; of several, the first is compared.
        splits: The splits that are compared.
        workers: Threads that read.
        progress: Called with how many records are done.

    Raises:
        OpError: `PG702` for a file that cannot be read.
    """
    names = [(split, key, path) for split in splits for key, path in zip(manifest.keys(split), manifest.files(split), strict=True)]
    sizes = _sizes(manifest, splits, [path for _, _, path in names])
    wanted = _shared(sizes, np.repeat(np.arange(len(splits)), [manifest.num_examples(split) for split in splits]))
    digests: dict[int, bytes] = {}
    done = len(names) - len(wanted)
    with ThreadPoolExecutor(workers) as pool:
        for start in range(0, len(wanted), _CHUNK):
            some = wanted[start : start + _CHUNK].tolist()
            digests |= zip(some, pool.map(_digest, (names[i][2] for i in some)), strict=True)
            if progress is not None:
                progress(done + len(digests))
    first: dict[bytes, dict[str, str]] = {}
    found = []
    for i, digest in digests.items():
        split, key, _ = names[i]
        seen = first.setdefault(digest, {})
        other = next((name for name in seen if name != split), None)
        if other is not None:
            found.append(SameFile(other, seen[other], split, key))
        seen.setdefault(split, key)
    return found, len(names)


def _sizes(manifest: Manifest, splits: Sequence[str], paths: Sequence[str]) -> Array:
    """Returns the bytes of each file; where a record has several, the listing knows only their sum."""
    if not manifest.listing.beside:
        return np.concatenate([manifest.listing.sizes[manifest.members[split]].astype(np.int64) for split in splits])
    try:
        return np.array([size_of(path) for path in paths], np.int64)
    except OSError as error:
        raise _unreadable(str(error.filename), error) from None


def _shared(sizes: Array, home: Array) -> Array:
    """Returns the files whose size occurs in two splits."""
    _, which = np.unique(sizes, return_inverse=True)
    least, most = np.full(which.max(initial=-1) + 1, home.max(initial=0)), np.zeros(which.max(initial=-1) + 1, np.int64)
    np.minimum.at(least, which, home)
    np.maximum.at(most, which, home)
    return np.flatnonzero((least < most)[which])


def _digest(path: str) -> bytes:
    state, at = hashlib.blake2b(digest_size=16), 0
    try:
        with Opened(path) as stream:
            while block := stream.pread(_BLOCK, at):
                state.update(block)
                at += len(block)
    except OSError as error:
        raise _unreadable(path, error) from None
    return state.digest()


def _unreadable(path: str, error: OSError) -> OpError:
    return OpError("PG702", f"{path!r} cannot be read: {(error.strerror or str(error)).lower()}")
