"""`.npy` and `.npz` files, mapped into memory unless compressed."""

from __future__ import annotations

import math
import os
import warnings
import zipfile
from typing import Any

from pipegen.errors import OpError
from pipegen.lazy import np

_LOCAL_HEADER = 30  # bytes of a member's local header in a ZIP file, before its name and extra field
_END, _TAIL = b"PK\5\6", 22 + 65535
"""First bytes of a ZIP file's end record, and its largest size with the comment."""
_HIGHEST = 2**63 - 1  # upper bound for the bytes of an array


def read_arrays(file: str) -> dict[str, Any]:
    """Reads every array of a `.npz` file by name, except for arrays of objects; `PG406` if it is unreadable."""
    found: dict[str, Any] = {}
    for name, info in arrays_of(file).items():
        try:
            found[name] = read_member(file, info)
        except OpError:
            continue
    return found


def read_array(file: str, field: str) -> Any:
    """Maps a `.npy` file into memory."""
    try:
        with open(file, "rb") as stream:
            if stream.read(2) == b"PK":
                help_ = "use a `.npz` file as the `path` of the source itself"
                raise OpError("PG406", f"{file!r} holds several arrays", field=field, help=help_)
            stream.seek(0)
            about, start, nbytes = _header(stream, os.fstat(stream.fileno()).st_size)
        return _mapped(file, about, start, nbytes)
    except OpError:
        raise
    except Exception as error:  # NumPy evaluates the header as Python, which raises anything
        raise OpError("PG406", f"{file!r} cannot be read: {_said(error)}", field=field) from None


def arrays_of(file: str) -> dict[str, zipfile.ZipInfo]:
    """Returns the arrays of a `.npz` file by name."""
    try:
        with zipfile.ZipFile(file) as archive:
            listed = archive.infolist()
            found = {info.filename.removesuffix(".npy"): info for info in listed}
            first, end = min((info.header_offset for info in listed), default=0), _end(archive)
        if len(found) < len(listed):
            twice = next(name for name in found if sum(info.filename.removesuffix(".npy") == name for info in listed) > 1)
            raise OpError("PG406", f"{file!r} holds several arrays {twice!r}", field="path", help="give each another name")
        if first or end < os.path.getsize(file):
            place = f"begins at byte {first:,}" if first else f"ends at byte {end:,} of {os.path.getsize(file):,}"
            message = f"{file!r} holds more than one `.npz` file; the one that is read {place}"
            raise OpError("PG406", message, field="path", help="write the arrays into one file, or split the file")
        return found
    except OpError:
        raise
    except Exception:  # a damaged table of contents raises anything
        help_ = "write it by `np.savez`; use a `.npy` file as the `path` of a feature"
        raise OpError("PG406", f"{file!r} is not a `.npz` file", field="path", help=help_) from None


def _end(archive: zipfile.ZipFile) -> int:
    """Returns the end of a ZIP file's end record and its comment."""
    stream: Any = archive.fp
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _TAIL))
    tail = stream.read()
    at = tail.rfind(_END)
    return size - len(tail) + at + 22 + int.from_bytes(tail[at + 20 : at + 22], "little") if at >= 0 else size


def read_member(file: str, info: zipfile.ZipInfo) -> Any:
    """Reads one array of a `.npz` file, mapped into memory unless compressed. Unpacks no more than its header declares."""
    try:
        with zipfile.ZipFile(file) as archive, archive.open(info) as stream:
            about, start, nbytes = _header(stream, info.file_size)
            if info.compress_type != zipfile.ZIP_STORED:
                stored = stream.read(nbytes)
                stream.read(1)  # the end triggers the checksum
                return np.ndarray(buffer=stored, **about)
        with open(file, "rb") as raw:
            raw.seek(info.header_offset)
            local = raw.read(_LOCAL_HEADER)
            names = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
            return _mapped(file, about, info.header_offset + _LOCAL_HEADER + names + start, nbytes)
    except Exception as error:  # four libraries parse it, each with its own errors
        raise OpError("PG406", f"the array {info.filename!r} of {file!r} cannot be read: {_said(error)}", field="path") from None


def _header(stream: Any, size: int) -> tuple[dict[str, Any], int, int]:
    """Reads the header of an array, and checks that its data is there.

    Args:
        stream: The stored array.
        size: Its bytes.

    Returns:
        Its shape, dtype and order, the number of bytes before its data, and those of its data.

    Raises:
        ValueError: The array cannot be used; NumPy raises other errors, too.
    """
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"its format has the version {version[0]}.{version[1]}")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for headers written by Python 2
        shape, fortran, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("its items are Python objects, which could run code")
    if any(side < 0 for side in shape):
        raise ValueError(f"its shape is {shape}")
    nbytes, start = math.prod(shape) * dtype.itemsize, stream.tell()
    if nbytes > min(size - start, _HIGHEST):
        raise ValueError(f"it has {size - start:,} of {nbytes:,} bytes")
    if nbytes < size - start:
        raise ValueError(f"its shape {shape} takes {nbytes:,} bytes, but {size - start - nbytes:,} more follow, as of a second array")
    return {"shape": tuple(map(int, shape)), "dtype": dtype, "order": "F" if fortran else "C"}, start, nbytes


def _mapped(file: str, about: dict[str, Any], at: int, nbytes: int) -> Any:
    """Maps an array of a file from byte `at` on; an empty range cannot be mapped."""
    return np.memmap(file, mode="r", offset=at, **about) if nbytes else np.empty(**about)


def _said(error: Exception) -> str:
    """Returns the first line of an error's message, else its class."""
    said = error.args[0] if error.args and isinstance(error.args[0], str) else error  # a tokenizer's error has a place, too
    return next((line.strip() for line in str(said).splitlines() if line.strip()), type(error).__name__)
