"""Compares the checksums of whole files, and says which checksums the formats have."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.data.manifest import Manifest


def damaged_files(manifest: Manifest) -> Iterator[str]:
    """Reads every file that has a checksum as a whole, and says what is wrong of each that is damaged, less those that the spec leaves out.

    Args:
        manifest: The records; of a mix those of all parts.
    """
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
    """Says for each format that holds many records in a file which checksums of it are compared when all data is looked at."""
    readers = [reader for part in manifest.by_part().values() for reader in part.listing.readers.values()]
    for which in dict.fromkeys(reader.checksums for reader in readers if reader.checksums is not None):
        yield f"checksums compared: {which}" if which else "the format has no checksums"
