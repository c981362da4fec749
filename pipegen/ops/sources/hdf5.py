"""`hdf5`: the rows of datasets in HDF5 files."""

from __future__ import annotations

from typing import ClassVar

from pipegen.ops.sources.records.by_library import ArrayStoreSource


class Hdf5(ArrayStoreSource):
    """HDF5 files: row i of each dataset is one example. The key of a feature is the path of a dataset, such as `train/image`.

    Images are the bytes of image files in a dataset of variable-length uint8, or arrays `(n, height, width, channels)` or
    `(n, height, width)` of uint8, uint16 or float32. Contiguous data and chunks without compression or filters are read in place. A
    compressed chunk is unpacked as a whole.
    """

    op: ClassVar[str] = "hdf5"
    checksums: ClassVar[str] = "those of chunks that were written with `fletcher32`"
    suffixes: ClassVar[tuple[str, ...]] = (".h5", ".hdf5", ".hdf")
    called: ClassVar[str] = "HDF5"
    store: ClassVar[str] = "hdf5_sets.Hdf5Sets"
    unit: ClassVar[str] = "chunks"
