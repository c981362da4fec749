"""`arrow`: the rows of Arrow files, read where they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pipegen.ops.sources.records.by_library import StoreSource

if TYPE_CHECKING:
    from pipegen.ops.sources.stores.base import Store


class Arrow(StoreSource):
    """Arrow files, such as those in a folder that Hugging Face's `save_to_disk` wrote: each row is an example. PyArrow opens them:
    `pip install 'pipegen[arrow]'`.

    The key of a feature is a column; a field of a struct is `outer.inner`, and an image that Hugging Face stored is known by the name of
    its column alone. Files are mapped into memory and must not be compressed. Lists of numbers are tensors where all have one shape.
    """

    op: ClassVar[str] = "arrow"
    indexed_from: ClassVar[int] = 2
    suffixes: ClassVar[tuple[str, ...]] = (".arrow", ".feather")
    called: ClassVar[str] = "Arrow"

    def store(self) -> type[Store]:
        """Return what reads a file."""
        from pipegen.ops.sources.stores.arrow_tables import ArrowTables

        return ArrowTables
