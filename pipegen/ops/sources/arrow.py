"""`arrow`: the rows of Arrow files, read in place."""

from __future__ import annotations

from typing import ClassVar

from pipegen.ops.sources.records.by_library import StoreSource


class Arrow(StoreSource):
    """Arrow files, such as those of a folder written by Hugging Face's `save_to_disk`. Each row is an example. Needs PyArrow:
    `pip install 'pipegen[arrow]'`.

    The key of a feature is a column, or a field of a struct: `outer.inner`. For an image that Hugging Face stored, the column's name is
    enough. Files are mapped into memory and must be uncompressed. Lists of numbers become tensors if all have the same shape.
    """

    op: ClassVar[str] = "arrow"
    suffixes: ClassVar[tuple[str, ...]] = (".arrow", ".feather")
    called: ClassVar[str] = "Arrow"
    store: ClassVar[str] = "arrow_tables.ArrowTables"
