"""`zarr`: the rows of arrays in Zarr groups."""

from __future__ import annotations

from typing import ClassVar

from pipegen.ops.sources.records.by_library import ArrayStoreSource


class Zarr(ArrayStoreSource):
    """Zarr groups of version 2 or 3, each a folder: row i of each array is one example. The key of a feature is the path of an array, such
    as `train/image`. Needs the library `zarr`: `pip install 'pipegen[zarr]'`.

    Images are arrays `(n, height, width, channels)` or `(n, height, width)` of uint8, uint16 or float32, or the bytes of image files in an
    array of byte strings. Chunks are read whole; shuffling permutes the chunks, then the rows within a window of several chunks. Arrays of
    numbers up to 64 MiB are read once. A missing chunk holds the fill value, as in the format, and gives a warning. Pickled objects are
    refused.
    """

    op: ClassVar[str] = "zarr"
    checksums: ClassVar[str] = "those of chunks, where a codec such as `crc32c` writes them"
    suffixes: ClassVar[tuple[str, ...]] = (".zarr",)
    marks: ClassVar[tuple[str, ...]] = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")
    called: ClassVar[str] = "Zarr"
    store: ClassVar[str] = "zarr_arrays.ZarrArrays"
    unit: ClassVar[str] = "chunks"
