"""Keeps which records a split has once they are counted, and maps them into memory when they are asked for again."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.fingerprint import fingerprint
from pipegen.data.shards.bitmap import BLOCK, Bitmap
from pipegen.kept import SPLITS, keep, open_kept
from pipegen.log import log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipegen.ops.sources.listing.base import Listing
    from pipegen.spec.models import Splits

Array = np.ndarray[Any, Any]

FORMAT = 1
_ALIGNED = 64
LEAST = 10**7
"""Records of which it is worth while: fewer are counted in a second."""


def bitmaps_key(splits: Splits, listing: Listing, source_name: str) -> str:
    """Makes 32 hexadecimal digits that name the bitmaps: they cover the data, the ids and the section."""
    covered = {"data": fingerprint(listing), "source": source_name, "splits": splits.model_dump(mode="json"), "format": FORMAT}
    return hashlib.sha256(json.dumps(covered, sort_keys=True).encode()).hexdigest()[:32]


def kept_or_counted(folder: Path, key: str, names: Sequence[str], size: int, count: Callable[[], dict[str, Bitmap]]) -> dict[str, Bitmap]:
    """Reads the bitmaps of `size` records from a file, or else counts and keeps them."""
    name = f"{key}.{SPLITS}"
    try:
        return _mapped(folder, name, names, size)
    except (OSError, ValueError):
        found = count()
    try:
        keep(folder, name, (part for split in names for part in _parts(found[split])))
    except OSError as error:
        log.warning("which record is in which split cannot be kept in %s: %s", folder, (error.strerror or str(error)).lower())
    return found


def _parts(bitmap: Bitmap) -> Iterator[bytes | memoryview]:
    """Yields the directory, filled up so that the bits lie where memory is aligned, and the bits."""
    yield bitmap.before.data.cast("B")
    yield bytes(-bitmap.before.nbytes % _ALIGNED)
    yield bitmap.bits.data.cast("B")


def _mapped(folder: Path, name: str, names: Sequence[str], size: int) -> dict[str, Bitmap]:
    """The bitmaps of a file: for each split, the directory and then the bits.

    Raises:
        OSError: When there is none.
        ValueError: When it is not whole.
    """
    blocks = max(1, -(-size // BLOCK))
    directory, bits = -(-8 * (blocks + 1) // _ALIGNED) * _ALIGNED, blocks * BLOCK // 8
    found = {}
    with open_kept(folder, name) as stream:
        if os.fstat(stream.fileno()).st_size != len(names) * (directory + bits):
            raise ValueError(f"{name} is not whole")
        for i, split in enumerate(names):
            at = i * (directory + bits)
            before: Array = np.fromfile(stream, np.int64, blocks + 1, offset=at - stream.tell())
            found[split] = Bitmap(np.memmap(stream, np.uint8, "r", at + directory, (blocks, BLOCK // 8)), before)
    return found
