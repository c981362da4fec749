"""`hdf5`: the rows of datasets in HDF5 files. h5py opens them, and data without compression and filters is read in place.

The library takes 30 to 60 µs per value behind one lock, and can loop forever in a damaged file; reading at the offset takes 5 µs. Layout of
variable-length values: HDF5 File Format Specification, version 3, sections III.E and VIII. An element is a length, the address of a
collection on the global heap and a number in it; a collection is a list of numbered objects. Layout of the superblock: section II.A.
"""

from __future__ import annotations

import math
import os
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, product, repeat
from operator import add
from typing import Any, ClassVar, NamedTuple

from pipegen.lazy import np
from pipegen.ops.sources.records.by_library import ArrayStoreSource
from pipegen.ops.sources.shards.findings import Findings
from pipegen.ops.sources.stores.base import Array, Extents, Store, Translated, byte_strings, needs, one_line, row_count
from pipegen.ops.sources.stores.field_types import BYTES, TEXT, FieldType, StoreError

_ELEMENT = struct.Struct("<IQI")
_COLLECTION = struct.Struct("<4sB3xQ")
_OBJECT = struct.Struct("<HH4xQ")
_CONTIGUOUS, _CHUNKED = 1, 2
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_BLOCK = "%b"  # the placeholder of a number in the name of a virtual dataset's source
_lock, _errors = threading.Lock(), Translated(OSError, RuntimeError, ValueError, KeyError)
"""One thread at a time calls the library, and its errors are translated."""


def _library() -> Any:
    with needs("`h5py`", "hdf5"):
        import h5py
    return h5py


class Hdf5Sets(Store):
    """An HDF5 file. Columns are its datasets with as many rows as the first of `keys` (by default all); a key is a path such as
    `train/image`."""

    def __init__(self, path: str, *keys: str) -> None:
        h5py = _library()
        with _lock, _errors:
            file = h5py.File(path, "r")
            found: dict[str, Any] = {key: file.get(key) for key in keys}
            if not keys or None in found.values():  # to suggest one
                file.visititems(found.__setitem__)
            sets = {key: one for key, one in found.items() if isinstance(one, h5py.Dataset) and one.shape}
            lengths = {key: len(one) for key, one in sets.items()}
            self._extents, base = Extents(path), int(file.userblock_size)
            types = {key: _type_of(one) for key, one in sets.items()}
            self._sets = {key: _set(sets[key], held, path, self._extents, base) for key, held in types.items() if held is not None}
            self._path, self._keys = path, keys
            self._spread = tuple(key for key in keys if key in sets and (sets[key].external or sets[key].is_virtual))
            # The library confuses a rewritten file with the one that it has open.
            self._file = file if any(isinstance(held, _ByLibrary) for held in self._sets.values()) else file.close()
        self.check_beside()
        self.rows = row_count(lengths, keys, "datasets")
        self.at_once = max((held.at_once for held in self._sets.values()), default=1)

    def check(self) -> Findings:
        """Checks the end of the file, and the chunks of the datasets of records."""
        _check_end(self._path)
        self._each(self._keys, _check_set)
        return {}

    def check_beside(self) -> None:
        """Checks that sources of virtual datasets, and files of raw values, exist: for a missing one, fill values are read."""
        if self._spread:
            self._each(self._spread, _check_beside)

    def _each(self, keys: Sequence[str], check: Callable[[str, Any], None]) -> None:
        """Opens the file again, and checks some of its datasets."""
        import h5py

        with _lock, _errors, h5py.File(self._path, "r") as file:
            for key in keys:
                one = file.get(key)
                if isinstance(one, h5py.Dataset) and one.shape:
                    check(key, one)

    def columns(self) -> Mapping[str, FieldType]:
        return {key: held.stored for key, held in self._sets.items()}

    def read(self, keys: Sequence[str], rows: Array) -> list[Array]:
        return [self._sets[key].read(rows) for key in keys]

    def close(self) -> None:
        self._extents.close()
        with _lock:
            if self._file is not None:
                self._file.close()


def read_sets(path: str, wanted: Sequence[str | int]) -> dict[str, Any]:
    """Reads datasets of numbers or texts as arrays, by their paths in a file: those of `wanted` that exist, else all. Those that are stored
    as they are stay in the file. Raises `StoreError` for a damaged file, and `MissingLibrary`."""
    h5py = _library()
    _check_end(path)
    found: dict[str, Any] = {}
    with _lock, _errors, h5py.File(path, "r") as file:
        sets: dict[str, Any] = {}
        file.visititems(lambda name, one: sets.__setitem__(name, one) if isinstance(one, h5py.Dataset) and one.shape else None)
        for key in [key for key in sets if key in wanted] or [*sets]:
            one, held = sets[key], _type_of(sets[key])
            if held is None:
                continue
            _check_set(key, one)
            at = one.id.get_offset() if not one.is_virtual and not one.external else None
            if at is not None and one.size and not held.encoded:
                found[key] = np.memmap(path, one.dtype, "r", at, one.shape)
            else:
                found[key] = one.asstr()[:] if held.dtype == TEXT and h5py.check_string_dtype(one.dtype) is not None else one[:]
    return found


def _type_of(one: Any) -> FieldType | None:
    """Returns the type of a dataset of numbers or byte strings; `None` for references, records of several fields, and others."""
    import h5py

    kind, inner = one.dtype, h5py.check_vlen_dtype(one.dtype)
    if h5py.check_ref_dtype(kind) is not None or kind.names is not None:
        return None
    if kind.kind in "SV" or h5py.check_string_dtype(kind) is not None:
        return FieldType(BYTES if kind.kind == "V" else TEXT) if one.ndim == 1 else None
    if inner is not None:
        return FieldType(BYTES) if one.ndim == 1 and np.dtype(inner).kind in "ui" and np.dtype(inner).itemsize == 1 else None
    return FieldType(kind.newbyteorder("=").name, tuple(one.shape[1:])) if kind.kind in "uifb" else None


def _set(one: Any, stored: FieldType, path: str, extents: Extents, base: int) -> _Plain | _ByLibrary:
    variable = one.dtype.kind == "O"
    size = _ELEMENT.size if variable else one.dtype.itemsize * int(np.prod(one.shape[1:], dtype=np.int64))
    elsewhere = one.external or one.is_virtual or one.file.filename != path
    places = None if elsewhere else _places(one, size)
    if places is None:
        return _ByLibrary(stored, one)
    return _Heap(stored, places, extents, base) if variable else _Plain(stored, places, extents, one.dtype)


class _Places(NamedTuple):
    """The places of a dataset's rows in the file: the starts of its pieces, the rows of each, and the bytes of a row."""

    starts: Array
    rows: int
    size: int

    def of(self, rows: Array) -> list[int]:
        return (self.starts[rows // self.rows] + rows % self.rows * self.size).tolist()


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
    chunks = _chunks(one)
    if len(chunks) != -(-len(one) // per):  # some were never written
        return None
    starts: Array = np.zeros(len(chunks), np.int64)
    starts[chunks[:, 0] // per] = chunks[:, -1]
    return _Places(starts, per, size)


def _chunks(one: Any) -> Array:
    """Lists the chunks of a dataset: the first row, column and so on of each, and its place in the file, int64 `(n, dimensions + 1)`."""
    found: list[tuple[int, ...]] = []
    if hasattr(one.id, "chunk_iter"):
        one.id.chunk_iter(lambda chunk: found.append((*chunk.chunk_offset, chunk.byte_offset)))
    else:
        every = map(one.id.get_chunk_info, range(one.id.get_num_chunks()))
        found += [(*chunk.chunk_offset, chunk.byte_offset) for chunk in every]
    return np.array(found, np.int64).reshape(-1, one.ndim + 1)


class _Plain:
    """A dataset of numbers of a dtype, or byte strings of one length, at known offsets."""

    at_once = 1  # the number of records that are unpacked together

    def __init__(self, stored: FieldType, places: _Places, extents: Extents, about: Any) -> None:
        self.stored, self._places, self._extents, self._about = stored, places, extents, about

    def read(self, rows: Array) -> Array:
        """Reads rows, in any order."""
        found = [self._extents.extent(offset, self._places.size) for offset in self._places.of(rows)]
        if self.stored.encoded:
            return byte_strings([value.rstrip(b"\0") for value in found] if self.stored.dtype == TEXT else found)
        return np.frombuffer(b"".join(found), self._about).reshape(len(rows), *self.stored.shape).astype(self.stored.dtype)


class _Heap(_Plain):
    """A dataset of byte strings of any length, on the global heap of a file that begins at a byte."""

    def read(self, rows: Array) -> Array:
        return byte_strings([self._value(offset) for offset in self._places.of(rows)])

    def _value(self, offset: int) -> bytes:
        length, heap, number = _ELEMENT.unpack(self._extents.extent(offset, _ELEMENT.size))
        if not length:
            return b""
        at = self._about + heap
        magic, version, size = _COLLECTION.unpack(self._extents.extent(at, _COLLECTION.size))
        if magic != b"GCOL" or version != 1:
            raise StoreError("the file is damaged: the global heap has no collection at the place of the value")
        end, at = at + size, at + _COLLECTION.size
        while at + _OBJECT.size <= end:
            found, _, held = _OBJECT.unpack(self._extents.extent(at, _OBJECT.size))
            if found == number:
                if held < length:
                    raise StoreError(f"the file is damaged: the value has {length:,} bytes, but its place on the global heap {held:,}")
                return self._extents.extent(at + _OBJECT.size, length)
            if not found:  # the rest of the collection is free
                break
            at += _OBJECT.size + -(-held // 8) * 8
        raise StoreError(f"the file is damaged: its global heap has no object {number} for the value")


class _ByLibrary:
    """A dataset that h5py reads: compressed, filtered, or made of other files."""

    def __init__(self, stored: FieldType, one: Any) -> None:
        self.stored, self._one, self.at_once = stored, one, one.chunks[0] if one.chunks else 1

    def read(self, rows: Array) -> Array:
        first, last = int(rows.min(initial=0)), int(rows.max(initial=-1))
        runs_on = len(rows) > 1 and last - first + 1 == len(rows) and bool((np.diff(rows) == 1).all())
        with _lock, _errors:
            blocks = [(first, self._one[first : last + 1])] if runs_on else [(row, self._one[row : row + 1]) for row in rows.tolist()]
            if self._one.chunks and not self.stored.encoded:
                for row, block in blocks:
                    _check_found(self._one, row, block)
            found = [value for _, block in blocks for value in block]
        if self.stored.encoded:
            return byte_strings([value if isinstance(value, bytes) else value.tobytes() for value in found])
        return np.array(found, self.stored.dtype).reshape(len(rows), *self.stored.shape)


# Whether a file is complete: the library returns the fill value for missing parts, which are black images and class 0.


def _check_end(path: str) -> None:
    """Raises `StoreError` if bytes follow the end that the superblock gives."""
    with open(path, "rb") as stream:
        size, at = os.fstat(stream.fileno()).st_size, 0
        while at < size:
            stream.seek(at)
            head = stream.read(96)
            if head.startswith(_SIGNATURE):
                break
            at = max(512, 2 * at)
        else:
            return
    version = head[8]
    wide, addresses = (head[13], 24 + 4 * version) if version < 2 else (head[9], 12)
    end = int.from_bytes(head[addresses + 2 * wide : addresses + 3 * wide], "little")
    if size > end:
        raise StoreError(f"by its superblock it ends at byte {end:,}, but {size - end:,} bytes follow, as if a second file was appended")


def _check_beside(key: str, one: Any) -> None:
    """Checks, without opening them, that other files with values of a dataset exist and are long enough."""
    if one.is_virtual:
        for file in dict.fromkeys(source.file_name for source in one.virtual_sources()):
            if file != "." and _found(file.replace(_BLOCK, "0"), one.file.filename) is None:
                raise StoreError(f"`{key}` is a virtual dataset, and its source {file!r} does not exist")
    needed = math.prod(one.shape) * one.id.get_type().get_size() if one.external else 0
    for name, start, size in one.external or ():
        file = name if isinstance(name, str) else os.fsdecode(name)
        own = min(needed, size)
        if not os.path.isfile(file):  # relative to the working directory, as for the library
            raise StoreError(f"`{key}` is stored in another file, which does not exist: {os.path.abspath(file)!r}")
        held = os.path.getsize(file) - start
        if held < own:
            raise StoreError(f"`{key}` is stored in {os.path.abspath(file)!r}, which is truncated: {max(held, 0):,} of {own:,} bytes")
        needed -= own
    if needed:
        raise StoreError(f"`{key}` is stored in other files, which lack {needed:,} bytes of it")


def _check_set(key: str, one: Any, seen: frozenset[tuple[str, str]] = frozenset()) -> None:
    """Checks that every value of a dataset was written, without reading values; `seen` has files and names of datasets made of this one."""
    rows = math.prod(one.shape)
    if not rows and one.id.get_storage_size():
        raise StoreError(f"`{key}` has the shape {one.shape}, but {one.id.get_storage_size():,} bytes are stored")
    if not rows:
        return
    _check_beside(key, one)
    if one.is_virtual:
        _check_sources(key, one, seen | {(os.path.realpath(one.file.filename), one.name)})
    elif one.id.get_create_plist().get_layout() == _CHUNKED:
        _check_chunks(key, one)
    elif not one.external:
        held, due = one.id.get_storage_size(), rows * one.id.get_type().get_size()
        if not held:
            raise StoreError(f"`{key}` was never written: all of its {len(one):,} rows would be the fill value")
        if held != due and not one.dtype.hasobject:  # texts and lists are stored elsewhere
            raise StoreError(f"`{key}` has the shape {one.shape}, which takes {due:,} bytes, but {held:,} are stored")


def _check_chunks(key: str, one: Any) -> None:
    """Checks that the file lists the chunks that the shape needs."""
    grid = tuple(-(-side // chunk) for side, chunk in zip(one.shape, one.chunks, strict=True))
    places = _chunks(one)
    at = tuple(places[:, : one.ndim].T // np.array(one.chunks, np.int64)[:, None])
    outside = sum(int(((own < 0) | (own >= side)).sum()) for own, side in zip(at, grid, strict=True))
    if outside:
        raise StoreError(f"`{key}` has the shape {one.shape}, but {outside:,} of its {len(places):,} chunks are outside of it")
    found = np.zeros(grid, bool)
    found[at] = True
    if not found.all():
        lacking = ~found.reshape(grid[0], -1).all(1)
        first = int(lacking.argmax()) * one.chunks[0]
        rows = int(np.minimum(one.chunks[0], len(one) - np.flatnonzero(lacking) * one.chunks[0]).sum())
        told = f"{rows:,} of the {len(one):,} rows of `{key}` are not stored, from row {first:,} on"
        raise StoreError(f"{told}: they were never written, or the index of chunks is damaged; write or remove them")
    if len(np.unique(places[:, one.ndim])) < found.size:
        raise StoreError(f"the index of the chunks of `{key}` is damaged: several have the same place or the same rows")


def _check_found(one: Any, first: int, values: Array) -> None:
    """Checks that chunks which hold fill values in rows read from `first` on are stored so: a damaged index may hide a listed chunk."""
    own = first - first % one.chunks[0]
    sides = (range(own, first + len(values), one.chunks[0]), *map(range, repeat(0), one.shape[1:], one.chunks[1:]))
    for corner in product(*sides):
        inside = (
            slice(max(corner[0] - first, 0), corner[0] + one.chunks[0] - first),
            *map(slice, corner[1:], map(add, corner[1:], one.chunks[1:])),
        )
        part = values[inside]
        if part[(0,) * part.ndim] == one.fillvalue and (part == one.fillvalue).all():
            try:
                one.id.read_direct_chunk(corner)
            except (OSError, RuntimeError, ValueError) as error:
                raise StoreError(f"the file is damaged: the chunk of row {corner[0]:,} cannot be found: {one_line(error)}") from None


def _check_sources(key: str, one: Any, seen: frozenset[tuple[str, str]]) -> None:
    """Checks the sources of a virtual dataset, and that they cover it."""
    import h5py

    covered: float = 0
    own = one.file.filename
    by_file: dict[str, list[Any]] = {}
    for source in one.virtual_sources():
        by_file.setdefault(source.file_name, []).append(source)
        points = source.vspace.get_select_npoints()
        covered += points if 0 <= points <= math.prod(one.shape) and _BLOCK not in source.file_name else math.inf
    if covered < math.prod(one.shape):
        raise StoreError(f"`{key}` is a virtual dataset, and its sources have {int(covered):,} of its {math.prod(one.shape):,} values")
    for name, sources in by_file.items():
        for path in _files_of(name, own):
            with h5py.File(path, "r") as file:
                for source in sources:
                    inner = file.get(source.dset_name)
                    called = f"{source.dset_name}` of `{path}"
                    if not isinstance(inner, h5py.Dataset):
                        raise StoreError(f"`{key}` is a virtual dataset, and its source `{called}` does not exist")
                    needed = _needed(source)
                    short = needed is not None and any(side < due for side, due in zip(inner.shape, needed, strict=False))
                    if short or (needed is None and math.prod(inner.shape) < min(source.vspace.get_select_npoints(), math.prod(one.shape))):
                        raise StoreError(f"`{key}` is a virtual dataset, and its source `{called}` has too few rows: {len(inner):,}")
                    if (os.path.realpath(path), inner.name) not in seen:
                        _check_set(called, inner, seen)


def _needed(source: Any) -> tuple[int, ...] | None:
    """Returns the smallest shape that a partly used source must have."""
    import h5py

    if source.src_space.get_select_type() == h5py.h5s.SEL_ALL:
        return None
    try:
        return tuple(int(last) + 1 for last in source.src_space.get_select_bounds()[1])
    except (ValueError, RuntimeError):  # up to the end of the source
        return ()


def _files_of(name: str, own: str) -> Iterator[str]:
    """Lists the files of a source's name; of numbered ones, the library reads up to the first that is missing."""
    for number in count() if _BLOCK in name else (0,):
        path = own if name == "." else _found(name.replace(_BLOCK, str(number)), own)
        if path is None:
            return
        yield path


def _found(name: str, own: str) -> str | None:
    """Finds another file as the library does: beside the file that names it, or from the working directory."""
    short = os.path.basename(name) if os.path.isabs(name) else name
    beside = (os.path.join(os.path.dirname(file), short) for file in (own, os.path.realpath(own)))
    return next((path for path in (name if os.path.isabs(name) else "", *beside, name) if os.path.isfile(path)), None)


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
    store: ClassVar[type[Store]] = Hdf5Sets
    unit: ClassVar[str] = "chunks"
