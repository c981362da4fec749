"""Writes files so that they are whole or not there, whatever stops the process that writes them."""

from __future__ import annotations

import os
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipegen.ops.sources.prepared_store.layout import PART, RECORDS, SHARDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def make_folders(folder: Path) -> None:
    """Makes the folders of a store."""
    for inner in (folder / RECORDS, folder / SHARDS):
        inner.mkdir(parents=True, exist_ok=True)


@contextmanager
def fresh_files(folder: Path, files: Mapping[str, Path]) -> Iterator[dict[str, Path]]:
    """Gives names to write files under that nobody else uses; once they are on the disk, they take the place of the files."""
    fresh = {held: folder / f"{uuid.uuid4().hex}{PART}" for held in files}
    try:
        yield fresh
        for file in fresh.values():
            _settle(file)
        for held, file in fresh.items():
            os.replace(file, files[held])
    finally:
        for file in fresh.values():
            file.unlink(missing_ok=True)


def _settle(file: Path) -> None:
    """Waits until what was written is on the disk."""
    with open(file, "rb") as stream:
        os.fsync(stream.fileno())
