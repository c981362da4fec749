"""Compares the files of a prepared store with the checksums that were written down when they were."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from pipegen.ops.sources.prepared_store.layout import column_file, shard_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipegen.ops.sources.prepared_store.layout import StoreAbout

_BLOCK = 1 << 22


def checksum(file: Path) -> int:
    """Computes the CRC-32 of a file, a block at a time."""
    found = 0
    with open(file, "rb") as stream:
        while block := stream.read(_BLOCK):
            found = zlib.crc32(block, found)
    return found


def damaged_files(root: Path, about: StoreAbout) -> Iterator[tuple[Path, str]]:
    """Reads every file of a store, and yields those whose bytes are not those that were written, and what is wrong.

    Raises:
        OSError: When one cannot be read.
    """
    wanted: dict[Path, int] = {column_file(root, name): found for name, found in about.columns.items()}
    for shard, files in zip(about.shards, shard_files(root, about.shards, about.pixels, about.suffix), strict=True):
        wanted |= {file: shard.sums[held] for held, file in files.items()}
    for file, sum_ in wanted.items():
        if not file.is_file():
            yield file, "it is not there"
        elif (found := checksum(file)) != sum_:
            yield file, f"its CRC-32 is {found:08x}, and was {sum_:08x} when it was written"
