"""Reads records that are files of other machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.ops.sources.listing.reader import FileReader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipegen.ops.sources.listing.reader import Hold, Read


class FetchedFileReader(FileReader):
    """Reads records whose encoded features are a file each, which is fetched when it is read."""

    fetches = True

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        """Returns what fetches the bytes of a file, from its address."""
        from pipegen.ops.lowering.fetched import FetchedFiles

        return FetchedFiles()

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return "files of other machines"
