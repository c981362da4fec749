"""`zarr`: the rows of arrays in Zarr groups. Chunks are unpacked whole."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

from pipegen.lazy import np
from pipegen.ops.sources.records.by_library import ArrayStoreSource
from pipegen.ops.sources.shards.findings import Findings
from pipegen.ops.sources.stores.base import Array, Store, Translated, byte_strings, needs, row_count
from pipegen.ops.sources.stores.field_types import BYTES, TEXT, FieldType, StoreError, Unsuitable

SMALL = 2**26  # size up to which an array is read once and held, in bytes: labels and numbers have other chunk lengths than images
_CHUNK = re.compile(r"(c[/.])?\d+([/.]\d+)*\Z")
_CODECS = ("codecs", "filters", "compressor")


def _said(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


_ERRORS = Translated(Exception, said=_said)  # each version of the library, and each codec, has its own classes, which messages name


class ZarrArrays(Store):
    """A Zarr group, a folder. Columns are its arrays with as many rows as the first of `keys` (by default all); a key is a path such as
    `train/image`."""

    def __init__(self, path: str, *keys: str) -> None:
        with needs("`zarr`", "zarr"):
            import zarr
        with _ERRORS:
            group = zarr.open(path, mode="r")
            if isinstance(group, zarr.Array):
                raise Unsuitable("it is an array, not a group of arrays", "use the folder of the array; its name is the key")
            found = {key: group.get(key) for key in keys}
            if not keys or None in found.values():  # to suggest one
                found |= dict(group.members(max_depth=None))
            arrays = {key: one for key, one in found.items() if isinstance(one, zarr.Array) and one.ndim}
            self._types = {key: held for key, one in arrays.items() if (held := _type_of(one)) is not None}
            self._sets = {key: arrays[key] for key in self._types}
            lengths = {key: int(one.shape[0]) for key, one in self._sets.items()}
        self._path, self._keys = path, keys
        self.rows = row_count(lengths, keys, "arrays")
        self._held: dict[str, Array] = {}
        read = [one for key, one in self._sets.items() if not keys or key in keys]
        self.at_once = max((int(one.chunks[0]) for one in read if not _small(one)), default=1)

    def check(self) -> Findings:
        """Checks that the chunks of the arrays are stored, and that consolidated metadata is current."""
        import zarr

        with _ERRORS:
            own = zarr.open_group(self._path, mode="r", use_consolidated=False)
            for key in self._keys:
                one = own.get(key)
                if key in self._sets and (one is None or one.shape != self._sets[key].shape):
                    told = f"has {one.shape} itself" if isinstance(one, zarr.Array) else "is missing"
                    message = f"`{key}` has the shape {self._sets[key].shape} in the consolidated metadata of the group, but {told}"
                    raise StoreError(f"{message}: call `zarr.consolidate_metadata` again")
        found = [one for key in self._keys if key in self._sets for one in _missing(self._path, key, self._sets[key])]
        return {"unwritten": (len(dict(found)), found[0][1])} if found else {}

    def columns(self) -> Mapping[str, FieldType]:
        return self._types

    def read(self, keys: Sequence[str], rows: Array) -> list[Array]:
        return [self._rows(key, rows) for key in keys]

    def _rows(self, key: str, rows: Array) -> Array:
        one = self._sets[key]
        stored = self._types[key]
        found: Any
        with _ERRORS:
            if _small(one):
                if key not in self._held:
                    self._held[key] = np.asarray(one[...])
                found = self._held[key][rows]
            elif len(rows) and (np.diff(rows) == 1).all():
                found = one[int(rows[0]) : int(rows[-1]) + 1]
            else:
                found = one.oindex[rows]
        if not stored.encoded:
            return np.asarray(found, stored.dtype)
        return byte_strings([value.encode() if isinstance(value, str) else bytes(value) for value in found.tolist()])

    def close(self) -> None:
        self._held = {}


def _missing(path: str, key: str, one: Any) -> Sequence[tuple[int, str]]:
    """Returns the records with fill values, each with a missing chunk: by default Zarr does not store chunks of fill values. `StoreError`
    if that cannot be intended: for byte strings, or outside of the array."""
    if not math.prod(one.shape):
        return ()
    per = one.shards or one.chunks
    grid = [range(-(-side // chunk)) for side, chunk in zip(one.shape, per, strict=True)]
    due = {one.metadata.encode_chunk_key(at): at[0] for at in product(*grid)}
    folder = os.path.join(path, one.path)
    there = {os.path.relpath(os.path.join(inside, name), folder) for inside, _, names in os.walk(folder) for name in names}
    outside = sorted(name for name in there if _CHUNK.match(name) and name not in due)
    if outside:
        raise StoreError(f"`{key}` has the shape {one.shape}, but {len(outside):,} of its chunks are outside of it, such as {outside[0]!r}")
    gone = [name for name in due if name not in there]
    if gone and one.dtype.kind not in "biuf":
        raise StoreError(
            f"{len(gone):,} of the {len(due):,} chunks of `{key}` are missing, such as {gone[0]!r}, so its records would be empty"
        )
    blocks = sorted({due[name]: name for name in reversed(gone)}.items())
    rows = range(one.shape[0])
    return [(row, f"{one.path}/{name}") for block, name in blocks for row in rows[block * per[0] : (block + 1) * per[0]]]


def _small(one: Any) -> bool:
    return int(one.nbytes) <= SMALL and one.dtype.kind in "biuf"


def _type_of(one: Any) -> FieldType | None:
    """Returns the type of an array of numbers, byte strings or texts, `None` for others; raises for pickled objects."""
    about = one.metadata.to_dict()
    if "pickle" in json.dumps([about.get(name) for name in _CODECS], default=str).lower():
        raise Unsuitable(
            f"`{one.path}` holds pickled objects; unpickling is refused, since it could run foreign code",
            "store the bytes of image files, or numbers, instead",
        )
    kind = one.dtype.kind
    if kind in "biuf":
        return FieldType(one.dtype.newbyteorder("=").name, tuple(map(int, one.shape[1:])))
    if one.ndim != 1:
        return None
    said = "" if kind in "ST" else json.dumps(about, default=str)
    if kind == "S" or "vlen-bytes" in said:
        return FieldType(BYTES)
    return FieldType(TEXT) if kind in "TU" or "vlen-utf8" in said else None


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
    store: ClassVar[type[Store]] = ZarrArrays
    unit: ClassVar[str] = "chunks"
