"""Lists keys and places of values of an LMDB environment, in a process of its own.

LMDB has no checksums and trusts its pages, so a damaged file can crash the process that reads it. Here a child crashes, and an error is
raised. Values are contiguous, so they can be read without LMDB once their places are known.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
from itertools import pairwise
from typing import Any, NamedTuple

from pipegen.lazy import np
from pipegen.ops.sources.stores.base import Array
from pipegen.ops.sources.stores.field_types import MissingLibrary, StoreError

_FILE = "data.mdb"  # the file of an environment in a folder
_NO_LIBRARY, _FAILED = 3, 4
_PAGE_HEAD, _MAGIC = 16, 0xBEEFC0DE
_META = struct.Struct("<I20xI48xH50xQ")  # used fields of a state's page: magic, page size, flags of keys, and number of the transaction
_OTHER_ORDER = 0x02 | 0x04 | 0x08  # flags for keys compared from their ends or as numbers, and for several values per key


class Values(NamedTuple):
    """The keys of an environment, in order; the start of each value in the file, and its bytes, int64 `(n,)`."""

    keys: list[bytes]
    offsets: Array
    lengths: Array


def data_file(path: str) -> str:
    """Returns the file with the pages of an environment, which is a folder or a file."""
    return os.path.join(path, _FILE) if os.path.isdir(path) else path


def list_values(path: str) -> Values:
    """Lists an environment; `StoreError` if it cannot be read, perhaps since damage crashed the child process; `MissingLibrary` without
    LMDB."""
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
            ended = f"it was ended by signal {-done.returncode}" if done.returncode < 0 else said
            raise StoreError(f"the file is damaged: LMDB cannot read all of it ({ended})")
        with np.load(out, allow_pickle=False) as found:
            ends, blob = found["ends"], found["blob"].tobytes()
            return Values([blob[a:b] for a, b in pairwise([0, *ends.tolist()])], found["offsets"], found["lengths"])


def _list(path: str) -> Values:
    """Lists an environment in this process, which damage may crash."""
    import lmdb

    file = os.path.realpath(data_file(path))
    size = os.path.getsize(file)
    flags = _check_snapshots(file)
    opened = lmdb.open(path, subdir=os.path.isdir(path), readonly=True, lock=False, readahead=False, max_dbs=0)
    used = (opened.info()["last_pgno"] + 1) * opened.stat()["psize"]
    if used > size:
        raise StoreError(f"the file is truncated: it has {size:,} of {used:,} bytes")
    with open(file, "rb") as stream:  # which may be longer, by reserved space
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
        raise StoreError(f"the file is damaged: it has {len(keys):,} of {opened.stat()['entries']:,} keys")
    if not flags & _OTHER_ORDER:
        wrong = next((key for before, key in pairwise(keys) if key <= before), None)
        if wrong is not None:
            raise StoreError(f"the file is damaged: the key {wrong!r} is out of order")
    held = np.array(lengths, np.int64)
    offsets = np.where(held > 0, np.array(addresses, np.int64) - start, 0)
    outside = np.flatnonzero((offsets < 0) | (offsets + held > size))
    if len(outside):
        raise StoreError(f"the file is damaged: the value of the key {keys[outside[0]]!r} is outside of it")
    return Values(keys, offsets, held)


def _check_snapshots(file: str) -> int:
    """Compares the two pages of states, which are written in turns; returns the flags of keys. LMDB reads the newer state; if its number is
    damaged, that is the state before the last transaction: a `StoreError`."""
    with open(file, "rb") as stream:
        head = stream.read(_META.size + _PAGE_HEAD)
        if len(head) < _META.size + _PAGE_HEAD:
            return 0  # refused by LMDB
        magic, size, flags, one = _META.unpack_from(head, _PAGE_HEAD)
        if magic != _MAGIC:
            return 0
        stream.seek(size + _PAGE_HEAD)
        page = stream.read(_META.size)
    other = _META.unpack(page)[-1] if len(page) == _META.size else -1
    if abs(one - other) != 1 and (one or other):
        raise StoreError(f"the file is damaged: its two states have the numbers {one:,} and {other:,}, which should be consecutive")
    return int(flags)


def _mapped_at(file: str) -> int:
    """Returns the address at which this process maps a file."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            where, _, offset, _, _, *path = line.split(maxsplit=5)
            if path and path[0].rstrip("\n") == file.replace("\n", "\\012"):
                return int(where.split("-")[0], 16) - int(offset, 16)
    raise StoreError("the address of the mapped file is unknown")


def main(path: str, out: str) -> int:
    """Writes the values of an environment to a file; returns the exit code."""
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
