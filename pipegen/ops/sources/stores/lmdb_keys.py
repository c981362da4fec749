"""Lists the keys of an LMDB environment, and where in its file each value lies, in a process of its own.

LMDB keeps no checksums and follows what its pages say, so on a damaged file it ends the process that reads it. Here that is a child's end,
and an error of ours. Values lie in one piece, so whoever knows where needs no LMDB to read them.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.ops.sources.stores.base import MissingLibrary, StoreError

if TYPE_CHECKING:
    from pipegen.ops.sources.stores.base import Array

_FILE = "data.mdb"
"""The file of an environment that is a folder."""
_NO_LIBRARY, _FAILED = 3, 4
_PAGE_HEAD, _MAGIC = 16, 0xBEEFC0DE
_META = struct.Struct("<I20xI48xH50xQ")
"""What counts of the page of a state: a mark, the size of pages, the flags of the keys, and the number of the transaction."""
_OTHER_ORDER = 0x02 | 0x04 | 0x08
"""Keys compared from their ends or as numbers, and several values for a key."""


@dataclass(frozen=True, eq=False)
class Values:
    """Holds what an environment has, in the order of its keys.

    Attributes:
        keys: The keys.
        offsets: Where each value begins in the file, int64 `(n,)`.
        lengths: Bytes of each, int64 `(n,)`.
    """

    keys: list[bytes]
    offsets: Array
    lengths: Array


def data_file(path: str) -> str:
    """Returns the file that holds the pages of an environment, which is a folder or a file."""
    return os.path.join(path, _FILE) if os.path.isdir(path) else path


def list_values(path: str) -> Values:
    """Lists an environment.

    Raises:
        StoreError: When it cannot be read; what was damaged may have ended the process that tried.
        MissingLibrary: Without LMDB.
    """
    with tempfile.TemporaryDirectory(prefix="pipegen-") as folder:
        out = os.path.join(folder, "values.npz")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}
        command = [sys.executable, "-m", __name__, path, out]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False)  # noqa: S603
        said = (done.stderr.decode(errors="replace").strip().splitlines() or [""])[-1]
        if done.returncode == _NO_LIBRARY:
            raise MissingLibrary("`lmdb`", "lmdb", ImportError(said))
        if done.returncode == _FAILED:
            raise StoreError(said)
        if done.returncode:
            raise StoreError(f"the file is damaged: LMDB cannot read all of it ({_ended(done.returncode, said)})")
        with np.load(out, allow_pickle=False) as found:
            ends, blob = found["ends"], found["blob"].tobytes()
            return Values([blob[a:b] for a, b in pairwise([0, *ends.tolist()])], found["offsets"], found["lengths"])


def _ended(code: int, said: str) -> str:
    return f"it was ended by signal {-code}" if code < 0 else said


def _list(path: str) -> tuple[list[bytes], Array, Array]:
    """The same here and now. It may end the process."""
    import lmdb

    file = os.path.realpath(data_file(path))
    size = os.path.getsize(file)
    flags = _check_snapshots(file)
    opened = lmdb.open(path, subdir=os.path.isdir(path), readonly=True, lock=False, readahead=False, max_dbs=0)
    used = (opened.info()["last_pgno"] + 1) * opened.stat()["psize"]
    if used > size:
        raise StoreError(f"the file is cut short: it should have {used:,} bytes, and has {size:,}")
    with open(file, "rb") as stream:  # which may be longer, by room that was asked for
        stream.seek(used + _PAGE_HEAD)
        if stream.read(4) == _MAGIC.to_bytes(4, sys.byteorder):
            raise StoreError(f"it ends at byte {used:,}, where a second file begins")
    keys: list[bytes] = []
    addresses: list[int] = []
    lengths: list[int] = []
    with opened.begin(buffers=True) as transaction:
        for key, value in transaction.cursor():
            keys.append(bytes(key))
            lengths.append(len(value))
            addresses.append(np.frombuffer(value, np.uint8).__array_interface__["data"][0] if len(value) else 0)
        start = _mapped_at(file) if keys else 0
    if len(keys) != opened.stat()["entries"]:
        raise StoreError(f"the file is damaged: it should have {opened.stat()['entries']:,} keys, and {len(keys):,} were found")
    if not flags & _OTHER_ORDER:
        wrong = next((key for before, key in pairwise(keys) if key <= before), None)
        if wrong is not None:
            raise StoreError(f"the file is damaged: the key {wrong!r} does not stand in the order of the keys")
    held = np.array(lengths, np.int64)
    offsets = np.where(held > 0, np.array(addresses, np.int64) - start, 0)
    outside = np.flatnonzero((offsets < 0) | (offsets + held > size))
    if len(outside):
        raise StoreError(f"the file is damaged: the value of the key {keys[outside[0]]!r} does not lie in it")
    return keys, offsets, held


def _check_snapshots(file: str) -> int:
    """Compares the two pages that lead to the data, which are written in turns; returns the flags of the keys.

    LMDB reads what the younger one leads to: where its number is damaged, that is what there was before the last transaction.

    Raises:
        StoreError: When one of them is damaged.
    """
    with open(file, "rb") as stream:
        head = stream.read(_META.size + _PAGE_HEAD)
        if len(head) < _META.size + _PAGE_HEAD:
            return 0  # which LMDB refuses
        magic, size, flags, _ = _META.unpack_from(head, _PAGE_HEAD)
        if magic != _MAGIC:
            return 0
        stream.seek(size + _PAGE_HEAD)
        other = stream.read(_META.size)
    numbers = [_META.unpack_from(head, _PAGE_HEAD)[-1], _META.unpack(other)[-1] if len(other) == _META.size else -1]
    if abs(numbers[0] - numbers[1]) != 1 and numbers != [0, 0]:
        raise StoreError(
            f"the file is damaged: its two states have the numbers {numbers[0]:,} and {numbers[1]:,}, which should follow each other"
        )
    return int(flags)


def _mapped_at(file: str) -> int:
    """The address that this process has a file mapped at."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            where, _, offset, _, _, *path = line.split(maxsplit=5)
            if path and path[0].rstrip("\n") == file.replace("\n", "\\012"):
                return int(where.split("-")[0], 16) - int(offset, 16)
    raise StoreError("the system does not say where the file is mapped")


def main(path: str, out: str) -> int:
    """Writes what an environment has into a file; returns the exit code."""
    try:
        import lmdb
    except ImportError as error:
        print(error, file=sys.stderr)
        return _NO_LIBRARY
    try:
        keys, offsets, lengths = _list(path)
    except (lmdb.Error, StoreError, OSError) as error:
        print(" ".join(str(error).splitlines()), file=sys.stderr)
        return _FAILED
    ends: Any = np.cumsum([len(key) for key in keys], dtype=np.int64)
    np.savez(out, blob=np.frombuffer(b"".join(keys), np.uint8), ends=ends, offsets=offsets, lengths=lengths)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
