"""`zarr`: the rows of arrays in Zarr groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pipegen.ops.sources.records.array_stores import ArrayStoreSource

if TYPE_CHECKING:
    from pipegen.ops.sources.stores.base import Store


class Zarr(ArrayStoreSource):
    """Zarr groups, of version 2 or 3, each a folder: row number i of each array is one example, and the key of a feature is the path of an
    array, such as `train/image`. The library of the same name reads them: `pip install 'pipegen[zarr]'`.

    Images are arrays `(n, height, width, channels)` or `(n, height, width)` of uint8, uint16 or float32, or the bytes of image files in an
    array of byte strings. Chunks are read whole, and shuffled, then what lies in a window of several; arrays of numbers up to 64 MiB are
    read once. A chunk that does not exist holds the fill value, as the format has it, and is a warning. Pickled objects are refused.
    """

    op: ClassVar[str] = "zarr"
    checksums: ClassVar[str] = "those of chunks, where a codec such as `crc32c` writes them"
    indexed_from: ClassVar[int] = 2
    suffixes: ClassVar[tuple[str, ...]] = (".zarr",)
    marks: ClassVar[tuple[str, ...]] = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")
    called: ClassVar[str] = "Zarr"
    unit: ClassVar[str] = "chunks"

    def store(self) -> type[Store]:
        """Return what reads a group."""
        from pipegen.ops.sources.stores.zarr_arrays import ZarrArrays

        return ZarrArrays
