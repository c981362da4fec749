"""The contents of a listing's files: hashes, checksums, and equal files of two splits."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np

from pipegen.data.manifest import Manifest
from pipegen.errors import OpError
from pipegen.memory import available_cores
from pipegen.mounts import Opened
from pipegen.ops.data_test import Copies
from pipegen.ops.fields.strings import encode
from pipegen.ops.sources.listing.base import Listing

Array = np.ndarray[Any, Any]
_AT_ONCE = 256  # files handed to the threads at a time, so that ten million take no memory
_BLOCK = 2**20
_CHUNK = 64  # files between two reports of progress


def content_digest(listing: Listing, progress: Callable[[int], None] | None = None) -> str:
    """Hashes the keys of the records and the SHA-256 of their files, or the contents of rows: SHA-256 in hexadecimal. Columns are in the
    fingerprint.

    `progress` is called now and then with the number of files read. Raises `OSError` for a file that cannot be read."""
    digest = hashlib.sha256()
    if listing.by_split:
        for split, own in listing.by_split.items():
            digest.update(f"{split} {content_digest(own, progress)}\n".encode())
        return digest.hexdigest()
    if listing.location.kind in ("row", "memory"):
        for split, reader in sorted(listing.readers.items()):
            digest.update(f"{split} {reader.digest(whole=True)}\n".encode())
        return digest.hexdigest()
    if listing.location.kind != "file":
        return _archived_digest(listing, progress)
    named, done = _named(listing), 0
    with ThreadPoolExecutor(available_cores()) as threads:
        while some := list(islice(named, _AT_ONCE)):
            hashed = threads.map(lambda path: _hash_file(path, hashlib.sha256()), [path for _, path in some])
            for (name, _), found in zip(some, hashed, strict=True):
                digest.update(b"%b\0%b\n" % (name, found))
            done += len(some)
            if progress is not None:
                progress(done)
    return digest.hexdigest()


def _archived_digest(listing: Listing, progress: Callable[[int], None] | None) -> str:
    """Computes the `content_digest` of members of archives, perhaps beside files or rows: that of members as of the unpacked files."""
    digest = hashlib.sha256()
    whole = {reader: reader.digest(whole=True) for _, reader in sorted(listing.readers.items())}  # of rows, which are no members
    digest.update("".join(f"{own}\n" for own in whole.values() if own).encode())
    for done, record in enumerate(sorted(range(len(listing.keys)), key=lambda i: encode(listing.keys[i]))):
        reader, place, path = listing.place_of(record)
        if not whole[reader]:
            found = hashlib.sha256(reader.stored("image", *place)[0]).digest() if place else _hash_file(path, hashlib.sha256())
            digest.update(b"\0%b\0%b\n" % (encode(listing.keys[record]), found))
        if progress is not None and not done % _AT_ONCE:
            progress(done)
    return digest.hexdigest()


def _named(listing: Listing) -> Iterator[tuple[bytes, bytes]]:
    """Yields the name and path of each file, sorted by name, so that the digest does not depend on the order of the listing."""
    for feature, files in [("", listing.location), *sorted(listing.beside.items())]:
        order = files.keys.order()
        rising, beside = (texts if order is None else texts.take(order) for texts in (files.keys, files.paths))
        for some, places in zip(rising.blocks(), beside.blocks(), strict=True):
            yield from ((b"%b\0%b" % (feature.encode(), key), place) for key, place in zip(some, places, strict=True))


def _hash_file(path: str | bytes, state: Any) -> bytes:
    at = 0
    with Opened(os.fsdecode(path)) as stream:
        while block := stream.pread(_BLOCK, at):
            state.update(block)
            at += len(block)
    return state.digest()


def damaged_files(manifest: Manifest) -> Iterator[str]:
    """Compares the checksums of all files that have one, and describes each damaged file; skips those that the spec excludes."""
    for part in manifest.by_part().values():
        excluded = {f"{part.listing.root}/{key}" for key in part.excluded}
        for reader in dict.fromkeys(part.listing.readers.values()):
            try:
                for path, problem in reader.damaged_files():
                    if path not in excluded:
                        yield f"{path!r} is damaged: {problem}"
            except OSError as error:
                yield f"a file cannot be read: {error}"


def compared_checksums(manifest: Manifest) -> Iterator[str]:
    """Describes, for each format of shards, the checksums that `damaged_files` compares."""
    readers = [reader for part in manifest.by_part().values() for reader in part.listing.readers.values()]
    for which in dict.fromkeys(reader.checksums for reader in readers if reader.checksums is not None):
        yield f"checksums compared: {which}" if which else "the format has no checksums"


def same_files(
    manifest: Manifest, splits: Sequence[str], workers: int, progress: Callable[[int], None] | None = None
) -> tuple[list[Copies], int]:
    """Finds pairs of records of two splits whose files are equal; also returns the number of records compared.

    Of several equal ones, each is paired with the first of another split. Of several files of a record, the first is compared.
    `workers` threads read; `progress` is called with the number of records done. Raises
    `OpError`: `PG702` for a file that cannot be read."""
    names = [(split, key, path) for split in splits for key, path in zip(manifest.keys(split), manifest.files(split), strict=True)]
    sizes = [manifest.listing.location.sizes[manifest.members[split]] for split in splits]
    # Only files whose size occurs in two splits are read.
    known, counts = np.unique(np.concatenate([*map(np.unique, sizes)]), return_counts=True)
    wanted = np.flatnonzero(np.isin(np.concatenate(sizes), known[counts > 1]))
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
            found.append(Copies(other, seen[other], split, key))
        seen.setdefault(split, key)
    return found, len(names)


def _digest(path: str) -> bytes:
    try:
        return _hash_file(path, hashlib.blake2b(digest_size=16))
    except OSError as error:
        raise OpError("PG702", f"{path!r} cannot be read: {(error.strerror or str(error)).lower()}") from None
