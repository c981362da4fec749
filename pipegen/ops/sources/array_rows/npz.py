"""Reads `.npy` and `.npz` files, mapped into memory where they are stored plainly."""

from __future__ import annotations

import math
import os
import warnings
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.diagnostic import write
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.ops.sources.listing.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.ops.sources.features.arrays import ArrayFeature

_LOCAL_HEADER = 30
"""Bytes of a member's own header in a ZIP file, before its name and its extra field."""
_END, _TAIL = b"PK\5\6", 22 + 65535
"""What the record at the end of a ZIP file begins with, and the bytes that it takes at most with its comment."""
_HIGHEST = 2**63 - 1
"""More bytes than this no array has."""


@dataclass(frozen=True)
class _Header:
    """Holds what the header of an array says, checked; `start` counts the bytes before the array's own."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: Any
    start: int
    nbytes: int


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
    try:
        with open(file, "rb") as stream:
            if stream.read(2) == b"PK":
                help_ = "a `.npz` file is the `path` of the source itself"
                raise OpError("PG406", f"{file!r} holds several arrays", field=field, help=help_)
            stream.seek(0)
            header = _header(stream, os.fstat(stream.fileno()).st_size)
        return _mapped(file, header, header.start)
    except OpError:
        raise
    except Exception as error:  # NumPy evaluates a header as Python, and raises whatever that meets
        raise OpError("PG406", f"{file!r} cannot be read: {_said(error)}", field=field) from None


def packed_bytes(features: Mapping[str, ArrayFeature], path: str, base: str) -> int:
    """The bytes that the compressed arrays of a `.npz` file take once they are unpacked, by its table of contents; 0 where it has none."""
    try:
        members = _members(_find(base, path, "path"))
    except OpError:
        return 0  # reading it says what is wrong
    wanted = {feature.key or name for name, feature in features.items()}
    return sum(info.file_size for name, info in members.items() if name in wanted and info.compress_type != zipfile.ZIP_STORED)


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
            listed = archive.infolist()
            found = {info.filename.removesuffix(".npy"): info for info in listed}
            first, end = min((info.header_offset for info in listed), default=0), _end(archive)
        if len(found) < len(listed):
            twice = next(name for name in found if sum(info.filename.removesuffix(".npy") == name for info in listed) > 1)
            raise OpError("PG406", f"{file!r} holds several arrays {twice!r}", field="path", help="write each under a name of its own")
        if first or end < os.path.getsize(file):
            place = f"begins at byte {first:,}" if first else f"ends at byte {end:,} of {os.path.getsize(file):,}"
            message = f"{file!r} holds more than one `.npz` file: the one that is read {place}"
            raise OpError("PG406", message, field="path", help="write their arrays into one file, or give each a file of its own")
        return found
    except OpError:
        raise
    except Exception:  # of a damaged table of contents anything may come, such as a name that is no text
        help_ = "`np.savez` writes such a file; a `.npy` file is the `path` of a feature"
        raise OpError("PG406", f"{file!r} is no `.npz` file", field="path", help=help_) from None


def _end(archive: zipfile.ZipFile) -> int:
    """The byte behind the record that ends a ZIP file, which holds the length of the comment behind it."""
    stream: Any = archive.fp
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _TAIL))
    tail = stream.read()
    at = tail.rfind(_END)
    return size - len(tail) + at + 22 + int.from_bytes(tail[at + 20 : at + 22], "little") if at >= 0 else size


def _member(file: str, info: zipfile.ZipInfo) -> Any:
    """One array of a `.npz` file; mapped into memory unless it is compressed. No more is unpacked than the file says of it."""
    import numpy as np

    try:
        with zipfile.ZipFile(file) as archive, archive.open(info) as stream:
            header = _header(stream, info.file_size)
            if info.compress_type != zipfile.ZIP_STORED:
                stored = stream.read(header.nbytes)
                stream.read(1)  # at the end the checksum is compared
                return np.ndarray(header.shape, header.dtype, stored, order="F" if header.fortran else "C")
        with open(file, "rb") as raw:
            raw.seek(info.header_offset)
            local = raw.read(_LOCAL_HEADER)
            names = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
            return _mapped(file, header, info.header_offset + _LOCAL_HEADER + names + header.start)
    except Exception as error:  # what a ZIP file and its arrays may hold is parsed by four libraries, each with errors of its own
        raise OpError("PG406", f"the array {info.filename!r} of {file!r} cannot be read: {_said(error)}", field="path") from None


def _header(stream: Any, size: int) -> _Header:
    """Reads the header of an array, and checks that what it promises is there.

    Args:
        stream: The array as it is stored, from its first byte on.
        size: How many bytes there are.

    Raises:
        ValueError: Where the array cannot be used; NumPy raises more.
    """
    import numpy as np

    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"its format has the version {version[0]}.{version[1]}")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a header from Python 2 is read all the same
        shape, fortran, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("its items are Python objects, which could run code")
    if any(side < 0 for side in shape):
        raise ValueError(f"its shape is {shape}")
    nbytes, start = math.prod(shape) * dtype.itemsize, stream.tell()
    if nbytes > min(size - start, _HIGHEST):
        raise ValueError(f"it should have {nbytes:,} bytes and has {size - start:,}")
    if nbytes < size - start:
        raise ValueError(f"its shape {shape} takes {nbytes:,} bytes, and {size - start - nbytes:,} follow, as of a second array")
    return _Header(tuple(map(int, shape)), fortran, dtype, start, nbytes)


def _mapped(file: str, header: _Header, at: int) -> Any:
    """An array of a file, mapped into memory from byte `at` on."""
    import numpy as np

    if header.nbytes == 0:  # nothing can be mapped
        return np.empty(header.shape, header.dtype)
    return np.memmap(file, header.dtype, "r", at, header.shape, "F" if header.fortran else "C")


def _said(error: Exception) -> str:
    """The first line of an error's message, or its class where it has none."""
    said = error.args[0] if error.args and isinstance(error.args[0], str) else error  # a tokenizer adds a place
    return next((line.strip() for line in str(said).splitlines() if line.strip()), type(error).__name__)
