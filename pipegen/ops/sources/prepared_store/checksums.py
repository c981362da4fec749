"""Checks the files of a prepared store against their checksums."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from pipegen.errors import OpError
from pipegen.ops.sources.prepared_store.layout import PREPARE_AGAIN, column_file, shard_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pipegen.ops.sources.prepared_store.layout import StoreAbout

_BLOCK = 1 << 22


def checksum(file: Path) -> int:
    """Computes the CRC-32 of a file."""
    found = 0
    with open(file, "rb") as stream:
        while block := stream.read(_BLOCK):
            found = zlib.crc32(block, found)
    return found


def check_columns(root: Path, about: StoreAbout) -> None:
    """Raises `PG570` if columns of the records are damaged: they have places and labels, and nothing else would notice."""
    try:
        for file, problem in _damaged(_columns(root, about)):
            raise OpError("PG570", f"{str(file)!r} is damaged: {problem}", field="path", help=PREPARE_AGAIN)
    except OSError as error:
        raise OpError("PG570", f"{error.filename!r} cannot be read: {error.strerror}", field="path", help=PREPARE_AGAIN) from None


def damaged_files(root: Path, about: StoreAbout) -> Iterator[tuple[Path, str]]:
    """Reads every file of a store, and yields the damaged ones with their problem; `OSError` if one is unreadable."""
    yield from _damaged(_columns(root, about))
    for shard, files in zip(about.shards, shard_files(root, about.shards, about.pixels, about.suffix), strict=True):
        yield from _damaged({file: shard.sums[held] for held, file in files.items()})


def _columns(root: Path, about: StoreAbout) -> dict[Path, int]:
    return {column_file(root, name): found for name, found in about.columns.items()}


def _damaged(wanted: Mapping[Path, int]) -> Iterator[tuple[Path, str]]:
    for file, sum_ in wanted.items():
        if not file.is_file():
            yield file, "it is missing"
        elif (found := checksum(file)) != sum_:
            yield file, f"its CRC-32 is {found:08x}, but was {sum_:08x} when it was written"
