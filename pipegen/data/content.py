"""Hashes what is in the files of a listing, every byte of it: what a fingerprint, which knows names and sizes, may miss."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

from pipegen.memory import available_cores
from pipegen.mounts import Opened
from pipegen.ops.sources.listing.strings import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipegen.ops.sources.listing.base import Listing

_BLOCK = 2**20
_AT_ONCE = 256
"""Files that are handed to the threads at a time, so that ten million take no memory."""


def content_digest(listing: Listing, progress: Callable[[int], None] | None = None) -> str:
    """SHA-256, in hexadecimal, over the keys of the records and the SHA-256 of their files; of rows without files, over what they hold.

    Args:
        listing: The listing.
        progress: Called with the number of files read so far, now and then.

    Raises:
        OSError: For a file that cannot be read.
    """
    digest = hashlib.sha256()
    if listing.numbered:
        for split, reader in sorted(listing.readers.items()):
            digest.update(f"{split} {reader.digest(whole=True)}\n".encode())
        return digest.hexdigest()
    if not listing.in_files:
        return _archived_digest(listing, progress)
    named, done = _named(listing), 0
    with ThreadPoolExecutor(available_cores()) as threads:
        while some := list(islice(named, _AT_ONCE)):
            for (name, _), found in zip(some, threads.map(_file_digest, [path for _, path in some]), strict=True):
                digest.update(b"%b\0%b\n" % (name, found))
            done += len(some)
            if progress is not None:
                progress(done)
    return digest.hexdigest()


def _archived_digest(listing: Listing, progress: Callable[[int], None] | None) -> str:
    """The same of the members of archives, which are read by their numbers: that of the unpacked files."""
    import numpy as np

    digest = hashlib.sha256()
    splits = None if listing.parts is None else list(listing.parts)
    for done, record in enumerate(sorted(range(len(listing.keys)), key=lambda i: encode(listing.keys[i]))):
        reader: Any = listing.reader(splits[record] if splits is not None else "")
        if reader.archived:
            found = hashlib.sha256(reader.stored("image", np.array([listing.row(record)]))[0]).digest()
        else:
            found = _file_digest(encode(listing.path(record)))
        digest.update(b"\0%b\0%b\n" % (encode(listing.keys[record]), found))
        if progress is not None and not done % _AT_ONCE:
            progress(done)
    return digest.hexdigest()


def _named(listing: Listing) -> Iterator[tuple[bytes, bytes]]:
    """Yields the files, by what they are known as: sorted, so that the order of a listing leaves the digest alone."""
    columns = [("", listing.keys, listing.files()), *((name, files.keys, files.paths) for name, files in sorted(listing.beside.items()))]
    for feature, keys, paths in columns:
        order = keys.order()
        rising, beside = (keys, paths) if order is None else (keys.take(order), paths.take(order))
        for some, places in zip(rising.blocks(), beside.blocks(), strict=True):
            yield from ((b"%b\0%b" % (feature.encode(), key), place) for key, place in zip(some, places, strict=True))


def _file_digest(path: bytes) -> bytes:
    digest, at = hashlib.sha256(), 0
    with Opened(os.fsdecode(path)) as stream:
        while block := stream.pread(_BLOCK, at):
            digest.update(block)
            at += len(block)
    return digest.digest()
