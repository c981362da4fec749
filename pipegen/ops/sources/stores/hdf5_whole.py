"""Checks that datasets of HDF5 files are complete. The library returns the fill value for missing parts: black images, class 0.

Layout of the superblock: HDF5 File Format Specification, version 3, section II.A.
"""

from __future__ import annotations

import math
import os
from itertools import product, repeat
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.ops.sources.stores.base import one_line
from pipegen.ops.sources.stores.field_types import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.ops.sources.stores.base import Array

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_CHUNKED = 2
_BLOCK = "%b"
"""The placeholder of a number in the name of a virtual dataset's source."""


def check_end(path: str) -> None:
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


def check_beside(key: str, one: Any) -> None:
    """Checks, without opening them, that other files with values of a dataset exist.

    Raises:
        StoreError: One is missing, or too short.
    """
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


def check_set(key: str, one: Any, seen: frozenset[tuple[str, str]] = frozenset()) -> None:
    """Checks that every value of a dataset was written, from places in the file; reads no values.

    Args:
        key: Its name in messages.
        one: The dataset.
        seen: Files and names of datasets made of this one.

    Raises:
        StoreError: Values are missing.
    """
    rows = math.prod(one.shape)
    if not rows and one.id.get_storage_size():
        raise StoreError(f"`{key}` has the shape {one.shape}, but {one.id.get_storage_size():,} bytes are stored")
    if not rows:
        return
    check_beside(key, one)
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


def _chunks(one: Any) -> Array:
    """Lists the places of chunks in the dataset and in the file: int64 `(n, dimensions + 1)`."""
    found: list[tuple[int, ...]] = []
    if hasattr(one.id, "chunk_iter"):
        one.id.chunk_iter(lambda chunk: found.append((*chunk.chunk_offset, chunk.byte_offset)))
    else:
        chunks = (one.id.get_chunk_info(i) for i in range(one.id.get_num_chunks()))
        found += [(*chunk.chunk_offset, chunk.byte_offset) for chunk in chunks]
    return np.array(found, np.int64).reshape(-1, one.ndim + 1)


def check_found(one: Any, first: int, values: Array) -> None:
    """Checks that chunks read as fill values only are stored so: a damaged index may hide a listed chunk.

    Args:
        one: The dataset, of numbers.
        first: The first row read.
        values: The rows.

    Raises:
        StoreError: One is not found.
    """
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
        for path in _blocks(name, own):
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
                        check_set(called, inner, seen)


def _needed(source: Any) -> tuple[int, ...] | None:
    """Returns the smallest shape that a partly used source must have."""
    import h5py

    if source.src_space.get_select_type() == h5py.h5s.SEL_ALL:
        return None
    try:
        return tuple(int(last) + 1 for last in source.src_space.get_select_bounds()[1])
    except (ValueError, RuntimeError):  # up to the end of the source
        return ()


def _blocks(name: str, own: str) -> Iterator[str]:
    """Lists the files of a source's name; of numbered ones, the library reads up to the first that is missing."""
    if name == ".":
        yield own
        return
    number = 0
    while (path := _found(name.replace(_BLOCK, str(number)), own)) is not None:
        yield path
        if _BLOCK not in name:
            return
        number += 1


def _found(name: str, own: str) -> str | None:
    """Finds another file as the library does: beside the file that names it, or from the working directory."""
    short = os.path.basename(name) if os.path.isabs(name) else name
    beside = (os.path.join(os.path.dirname(file), short) for file in (own, os.path.realpath(own)))
    return next((path for path in (name if os.path.isabs(name) else "", *beside, name) if os.path.isfile(path)), None)
