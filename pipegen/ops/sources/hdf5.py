"""`hdf5`: the rows of data sets in HDF5 files."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pipegen.ops.sources.records.array_stores import ArrayStoreSource

if TYPE_CHECKING:
    from pipegen.ops.sources.stores.base import Store


class Hdf5(ArrayStoreSource):
    """HDF5 files: row number i of each data set is one example, and the key of a feature is the path of a data set, such as
    `train/image`.

    Images are the bytes of image files, in a data set of uint8 of variable length, or arrays `(n, height, width, channels)` or
    `(n, height, width)` of uint8, uint16 or float32. What is stored in one piece, or in chunks that are neither compressed nor filtered, is
    read where it lies; a chunk that is compressed is unpacked as a whole.
    """

    op: ClassVar[str] = "hdf5"
    checksums: ClassVar[str] = "those of chunks that were written with `fletcher32`"
    indexed_from: ClassVar[int] = 2
    suffixes: ClassVar[tuple[str, ...]] = (".h5", ".hdf5", ".hdf")
    called: ClassVar[str] = "HDF5"
    unit: ClassVar[str] = "chunks"

    def store(self) -> type[Store]:
        """Return what reads a file."""
        from pipegen.ops.sources.stores.hdf5_sets import Hdf5Sets

        return Hdf5Sets
