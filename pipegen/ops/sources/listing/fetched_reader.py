"""A reader of records that are remote files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.ops.sources.listing.reader import FileReader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipegen.ops.sources.listing.reader import Hold, Read


class FetchedFileReader(FileReader):
    """A reader of encoded features in remote files, each fetched when it is read."""

    fetches = True

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        from pipegen.ops.lowering.fetched import FetchedFiles

        return FetchedFiles()

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return "remote files"
