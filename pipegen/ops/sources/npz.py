"""Reads `.npy` and `.npz` files, mapped into memory where they are stored plainly."""

from __future__ import annotations

import os
import zipfile
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.advice import write
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.ops.sources.reports import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.ops.sources.arrays import ArrayFeature

_LOCAL_HEADER = 30
"""Bytes of a member's own header in a ZIP file, before its name and its extra field."""


def read_files(features: Mapping[str, ArrayFeature], path: str | None, base: str) -> dict[str, Any]:
    """The array of each feature as NumPy arrays, read-only.

    Args:
        features: The features by name.
        path: The `.npz` file, or `None` when each feature has a file.
        base: What relative paths are relative to.

    Raises:
        OpError: `PG401` for a missing file, `PG406` for one that cannot be read, `PG418` for an array that a file lacks.
    """
    if path is None:
        return {
            name: read_array(_find(base, str(f.path), f"features.{name}.path"), f"features.{name}.path") for name, f in features.items()
        }
    file = _find(base, path, "path")
    members = _members(file)
    found: dict[str, Any] = {}
    for name, feature in features.items():
        key = feature.key or name
        if key not in members:
            near = closest(key, members)
            help_ = f"it holds {quoted(list(members))}; `key` says which is meant"
            if near:
                help_ = write(f"key: {near}", "arguments", f"is `{near}` meant? write {{}}")
            field = f"features.{name}" + (".key" if feature.key else "")
            raise OpError("PG418", f"{file!r} has no array {key!r}", field=field, help=help_)
        found[name] = _member(file, members[key])
    return found


def read_arrays(file: str) -> dict[str, Any]:
    """Every array of a `.npz` file by name, but those of objects.

    Raises:
        OpError: `PG406` for a file that cannot be read.
    """
    found: dict[str, Any] = {}
    for name, info in _members(file).items():
        try:
            found[name] = _member(file, info)
        except OpError:
            continue
    return found


def read_array(file: str, field: str) -> Any:
    """A `.npy` file, mapped into memory."""
    import numpy as np

    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise OpError("PG406", f"{file!r} cannot be read: {error}", field=field) from None
    if not isinstance(array, np.ndarray):
        raise OpError("PG406", f"{file!r} holds several arrays", field=field, help="a `.npz` file is the `path` of the source itself")
    return array


def _find(base: str, path: str, field: str) -> str:
    file = os.path.abspath(os.path.join(base, os.path.expanduser(path)))
    if os.path.isfile(file):
        return file
    what = "is a folder and not a file" if os.path.isdir(file) else "does not exist"
    raise OpError("PG401", f"{file!r} {what}", field=field, help="arrays in memory need no `path`: `pipegen.build(spec, data={…})`")


def _members(file: str) -> dict[str, zipfile.ZipInfo]:
    """The arrays of a `.npz` file by name."""
    try:
        with zipfile.ZipFile(file) as archive:
            return {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    except (OSError, zipfile.BadZipFile):
        help_ = "`np.savez` writes such a file; a `.npy` file is the `path` of a feature"
        raise OpError("PG406", f"{file!r} is no `.npz` file", field="path", help=help_) from None


def _member(file: str, info: zipfile.ZipInfo) -> Any:
    """One array of a `.npz` file; mapped into memory unless it is compressed."""
    import numpy as np

    try:
        if info.compress_type != zipfile.ZIP_STORED:
            with np.load(file, allow_pickle=False) as archive:
                return archive[info.filename.removesuffix(".npy")]
        with open(file, "rb") as stream:
            stream.seek(info.header_offset)
            header = stream.read(_LOCAL_HEADER)
            stream.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), os.SEEK_CUR)
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(stream)
            if dtype.hasobject or 0 in shape:
                stream.seek(info.header_offset)
                with np.load(file, allow_pickle=False) as archive:
                    return archive[info.filename.removesuffix(".npy")]
            return np.memmap(file, dtype, "r", stream.tell(), shape, "F" if fortran else "C")
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
        raise OpError("PG406", f"the array {info.filename!r} of {file!r} cannot be read: {error}", field="path") from None
