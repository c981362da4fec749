"""`hdf5`: the rows of data sets in HDF5 files."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.records.by_library import StoreSource
from pipegen.types import BYTE_RANGE, WORD_RANGE, ElementType, FeatureType, Interval

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pipegen.ops.sources.stores.base import Store, Stored

_RANGES: dict[str, Interval | None] = {"uint8": BYTE_RANGE, "uint16": WORD_RANGE, "float32": None}


class Hdf5(StoreSource):
    """HDF5 files: row number i of each data set is one example, and the key of a feature is the path of a data set, such as
    `train/image`.

    Images are the bytes of image files, in a data set of uint8 of variable length, or arrays `(n, height, width, channels)` or
    `(n, height, width)` of uint8, uint16 or float32. What is stored in one piece, or in chunks that are neither compressed nor filtered, is
    read where it lies; a chunk that is compressed is unpacked as a whole.
    """

    op: ClassVar[str] = "hdf5"
    suffixes: ClassVar[tuple[str, ...]] = (".h5", ".hdf5", ".hdf")
    called: ClassVar[str] = "HDF5"

    def store(self) -> type[Store]:
        """Return what reads a file."""
        from pipegen.ops.sources.stores.hdf5_sets import Hdf5Sets

        return Hdf5Sets

    def store_arguments(self) -> tuple[Hashable, ...]:
        """The data sets."""
        return tuple(dict.fromkeys(self.key_of(name) for name in self.features))

    def possible(self) -> tuple[ElementType, ...]:
        """Images as the bytes of files, and as arrays."""
        encoded = self.infer()
        images = [name for name, t in encoded.items() if kind_of(t).levels]
        found = [encoded]
        for dtype, interval in _RANGES.items():
            for channels in (3, 1, 4):
                array = FeatureType("image", dtype, (None, None, channels), interval, uniform=True)
                found.append(encoded.replace(**{name: array.with_(of=encoded[name].of) for name in images}))
        return tuple(found) if images else (encoded,)

    def pictures(self, held: Stored) -> bool:
        """Byte strings, or arrays of two or three dimensions."""
        return held.dtype == "bytes" or (held.dtype in _RANGES and len(held.shape) in (2, 3))

    def record_type(self, store: Store) -> ElementType:
        """Return the type with the size of images that are arrays."""
        found, columns = self.infer(), store.columns()
        for name, t in found.items():
            held = columns[self.key_of(name)]
            if kind_of(t).levels and not held.encoded:
                shape = held.shape if len(held.shape) == 3 else (*held.shape, 1)
                image = FeatureType("image", held.dtype, shape, _RANGES[held.dtype], t.of, uniform=True)
                found = found.replace(**{name: image})
        return found
