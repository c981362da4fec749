"""Datasets of HDF5 files: h5py opens them, and data without compression and filters is read in place.

The library takes 30 to 60 µs per value behind one lock, and can loop forever in a damaged file; reading at the offset takes 5 µs. Layout of
variable-length values: HDF5 File Format Specification, version 3, sections III.E and VIII. An element is a length, the address of a
collection on the global heap and a number in it; a collection is a list of numbered objects.
"""

from __future__ import annotations

import struct
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.errors import InternalError
from pipegen.ops.sources.stores.base import Extents, Store, byte_strings, one_line, row_count
from pipegen.ops.sources.stores.field_types import BYTES, TEXT, FieldType, MissingLibrary, StoreError
from pipegen.ops.sources.stores.hdf5_whole import check_beside, check_end, check_found, check_set

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipegen.ops.sources.records.findings import Findings
    from pipegen.ops.sources.stores.base import Array

_ELEMENT = np.dtype([("length", "<u4"), ("heap", "<u8"), ("number", "<u4")])
_COLLECTION = struct.Struct("<4sB3xQ")
_OBJECT = struct.Struct("<HH4xQ")
_CONTIGUOUS, _CHUNKED = 1, 2
_lock = threading.Lock()
"""One thread at a time calls the library."""


class Hdf5Sets(Store):
    """An HDF5 file. Columns are its datasets with as many rows as the first of `keys`; a key is a path such as `train/image`.

    Args:
        path: The file.
        keys: The datasets of records; by default all in the file.
    """

    def __init__(self, path: str, *keys: str) -> None:
        try:
            import h5py
        except ImportError as error:
            raise MissingLibrary("`h5py`", "hdf5", error) from None
        with _lock:
            try:
                file = h5py.File(path, "r")
                found = {key: file.get(key) for key in keys}
                if not keys or None in found.values():  # to suggest one
                    found |= _every(file)
                sets = {key: one for key, one in found.items() if isinstance(one, h5py.Dataset) and one.shape}
                lengths = {key: len(one) for key, one in sets.items()}
                self._extents, base = Extents(path), int(file.userblock_size)
                self._sets = {key: _set(one, path, self._extents, base) for key, one in sets.items() if _readable(one)}
            except (OSError, RuntimeError, ValueError, KeyError) as error:
                raise StoreError(one_line(error)) from None
            self._path, self._keys = path, keys
            self._spread = tuple(key for key in keys if key in sets and (sets[key].external or sets[key].is_virtual))
            # The library confuses a rewritten file with the one that it has open.
            self._file = file if any(isinstance(held, _ByLibrary) for held in self._sets.values()) else file.close()
        self.check_beside()
        self.rows = row_count(lengths, keys, "datasets")
        self.at_once = max((held.at_once for held in self._sets.values()), default=1)

    def check(self) -> Findings:
        """Checks the end of the file, and the chunks of the datasets of records."""
        check_end(self._path)
        self._each(self._keys, check_set)
        return {}

    def check_beside(self) -> None:
        """Checks that sources of virtual datasets, and files of raw values, exist: for a missing one, fill values are read."""
        if self._spread:
            self._each(self._spread, check_beside)

    def _each(self, keys: Sequence[str], check: Callable[[str, Any], None]) -> None:
        """Opens the file again, and checks some of its datasets."""
        import h5py

        with _lock:
            try:
                with h5py.File(self._path, "r") as file:
                    for key in keys:
                        one = file.get(key)
                        if isinstance(one, h5py.Dataset) and one.shape:
                            check(key, one)
            except StoreError:
                raise
            except (OSError, RuntimeError, ValueError, KeyError) as error:
                raise StoreError(one_line(error)) from None

    def columns(self) -> Mapping[str, FieldType]:
        return {key: held.stored for key, held in self._sets.items()}

    def read(self, keys: Sequence[str], rows: Array) -> list[Array]:
        if any(key not in self._sets for key in keys):
            raise InternalError(f"the file lacks a dataset of {keys}")
        return [self._sets[key].read(rows) for key in keys]

    def close(self) -> None:
        self._extents.close()
        with _lock:
            if self._file is not None:
                self._file.close()


def _every(file: Any) -> dict[str, Any]:
    """Returns the datasets of a file by path, in path order."""
    found: dict[str, Any] = {}
    file.visititems(found.__setitem__)
    return found


def _readable(one: Any) -> bool:
    """Tells whether a dataset holds numbers or byte strings, not references or records of several fields."""
    import h5py

    kind = one.dtype
    if h5py.check_ref_dtype(kind) is not None or kind.names is not None:
        return False
    if kind.kind in "SV" or h5py.check_string_dtype(kind) is not None:
        return bool(one.ndim == 1)
    inner = h5py.check_vlen_dtype(kind)
    if inner is not None:
        return one.ndim == 1 and np.dtype(inner).kind in "ui" and np.dtype(inner).itemsize == 1
    return kind.kind in "uifb"


def _set(one: Any, path: str, extents: Extents, base: int) -> _Set:
    variable = one.dtype.kind == "O"
    size = _ELEMENT.itemsize if variable else one.dtype.itemsize * int(np.prod(one.shape[1:], dtype=np.int64))
    elsewhere = one.external or one.is_virtual or one.file.filename != path
    places = None if elsewhere else _places(one, size)
    if places is None:
        return _ByLibrary(one)
    return _Heap(one, places, extents, base) if variable else _Plain(one, places, extents)


class _Places:
    """The places of a dataset's rows in the file."""

    def __init__(self, starts: Array, rows: int, size: int) -> None:
        self._starts, self._rows, self._size = starts, rows, size

    def __call__(self, rows: Array) -> Array:
        found: Array = self._starts[rows // self._rows] + rows % self._rows * self._size
        return found


def _places(one: Any, size: int) -> _Places | None:
    """Finds the places of rows stored as they are: contiguous, or in chunks of whole rows."""
    plan = one.id.get_create_plist()
    layout = plan.get_layout()
    if plan.get_nfilters() or not one.id.get_storage_size():
        return None
    if layout == _CONTIGUOUS:
        offset = one.id.get_offset()
        return None if offset is None else _Places(np.array([offset]), max(len(one), 1), size)
    if layout != _CHUNKED or one.chunks[1:] != one.shape[1:]:
        return None
    per = one.chunks[0]
    chunks = [one.id.get_chunk_info(i) for i in range(one.id.get_num_chunks())]
    if len(chunks) != -(-len(one) // per):  # some were never written
        return None
    starts: Array = np.zeros(len(chunks), np.int64)
    for chunk in chunks:
        starts[chunk.chunk_offset[0] // per] = chunk.byte_offset
    return _Places(starts, per, size)


class _Set:
    """One dataset.

    Attributes:
        stored: Its type.
        at_once: Number of records unpacked together.
    """

    stored: FieldType
    at_once = 1

    def read(self, rows: Array) -> Array:
        """Reads rows, in any order."""
        raise NotImplementedError


class _Plain(_Set):
    """Numbers, or byte strings of one length, at known offsets."""

    def __init__(self, one: Any, places: _Places, extents: Extents) -> None:
        self.stored, self._dtype = _stored(one), one.dtype
        self._places, self._extents = places, extents
        self._size = self._dtype.itemsize * int(np.prod(self.stored.shape, dtype=np.int64))

    def read(self, rows: Array) -> Array:
        found = [self._extents.read(offset, self._size) for offset in self._places(rows).tolist()]
        if self.stored.encoded:
            return byte_strings([value.rstrip(b"\0") for value in found] if self.stored.dtype == TEXT else found)
        return np.frombuffer(b"".join(found), self._dtype).reshape(len(rows), *self.stored.shape).astype(self.stored.dtype)


class _Heap(_Set):
    """Byte strings of any length, on the global heap."""

    def __init__(self, one: Any, places: _Places, extents: Extents, base: int) -> None:
        self.stored = _stored(one)
        self._places, self._extents, self._base = places, extents, base

    def read(self, rows: Array) -> Array:
        return byte_strings([self._value(offset) for offset in self._places(rows).tolist()])

    def _value(self, offset: int) -> bytes:
        element = np.frombuffer(self._extents.read(offset, _ELEMENT.itemsize), _ELEMENT)[0]
        length, number = int(element["length"]), int(element["number"])
        if not length:
            return b""
        at = self._base + int(element["heap"])
        magic, version, size = _COLLECTION.unpack(self._extents.read(at, _COLLECTION.size))
        if magic != b"GCOL" or version != 1:
            raise StoreError("the file is damaged: the global heap has no collection at the place of the value")
        end, at = at + size, at + _COLLECTION.size
        while at + _OBJECT.size <= end:
            found, _, held = _OBJECT.unpack(self._extents.read(at, _OBJECT.size))
            if found == number:
                if held < length:
                    raise StoreError(f"the file is damaged: the value has {length:,} bytes, but its place on the global heap {held:,}")
                return self._extents.read(at + _OBJECT.size, length)
            if not found:  # the rest of the collection is free
                break
            at += _OBJECT.size + -(-held // 8) * 8
        raise StoreError(f"the file is damaged: its global heap has no object {number} for the value")


class _ByLibrary(_Set):
    """A dataset that h5py reads: compressed, filtered, or made of other files."""

    def __init__(self, one: Any) -> None:
        self.stored, self._one = _stored(one), one
        self.at_once = one.chunks[0] if one.chunks else 1

    def read(self, rows: Array) -> Array:
        with _lock:
            try:
                first, last = int(rows.min(initial=0)), int(rows.max(initial=-1))
                runs_on = len(rows) > 1 and last - first + 1 == len(rows) and bool((np.diff(rows) == 1).all())
                blocks = [(first, self._one[first : last + 1])] if runs_on else [(row, self._one[row : row + 1]) for row in rows.tolist()]
                if self._one.chunks and not self.stored.encoded:
                    for row, block in blocks:
                        check_found(self._one, row, block)
                found = [value for _, block in blocks for value in block]
            except StoreError:
                raise
            except (OSError, RuntimeError, ValueError) as error:
                raise StoreError(one_line(error)) from None
        if self.stored.encoded:
            return byte_strings([value if isinstance(value, bytes) else value.tobytes() for value in found])
        return np.array(found, self.stored.dtype).reshape(len(rows), *self.stored.shape)


def _stored(one: Any) -> FieldType:
    import h5py

    if h5py.check_vlen_dtype(one.dtype) is not None or one.dtype.kind == "V":
        return FieldType(BYTES)
    if h5py.check_string_dtype(one.dtype) is not None:
        return FieldType(TEXT)
    return FieldType(one.dtype.newbyteorder("=").name, tuple(one.shape[1:]))
