"""Shards of a prepared store, mapped into memory one after another, so that a multiplication finds a record."""

from __future__ import annotations

import ctypes
import mmap
import os
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.sources.listing.blocks import by_block
from pipegen.ops.sources.listing.reader import Reader
from pipegen.ops.sources.prepared_store.layout import PAGE, PREPARE_AGAIN, RECORDS, StoreAbout, damaged_files, read_column, shard_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pipegen.ops.fields.strings import Ints
    from pipegen.ops.sources.listing.reader import Hold, Read, Together
    from pipegen.ops.sources.stores.base import Store


@dataclass(frozen=True)
class StoredShards:
    """The files of a feature's shards, read as one array of bytes."""

    files: tuple[str, ...]  # one per shard, in order
    sizes: tuple[int, ...]  # the bytes of each
    starts: tuple[int, ...]  # the start of each in the array: multiples of a page
    row: int = 0  # bytes of a row; 0 for contents of any length
    rows: int = 0  # rows of a full shard

    @property
    def total(self) -> int:
        """The bytes from the start of the first to the end of the last."""
        return self.starts[-1] + self.sizes[-1]

    def mapped(self) -> Any:
        """Maps them as one array of bytes, padded to words of 64 bits; nothing is read before it is needed. Reserves a range of addresses
        first, and maps the files into it. Uncovered bytes are zeros."""
        held = mmap.mmap(-1, -(-self.total // PAGE) * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0))
        start = ctypes.addressof(ctypes.c_char.from_buffer(held))
        system = ctypes.CDLL(None, use_errno=True)
        system.mmap.restype = ctypes.c_void_p
        system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
        for file, size, at in zip(self.files, self.sizes, self.starts, strict=True):
            number = os.open(file, os.O_RDONLY)
            try:
                flags = mmap.MAP_PRIVATE | _FIXED
                if size and system.mmap(start + at, size, mmap.PROT_READ, flags, number, 0) != start + at:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), file)
            finally:
                os.close(number)
        return np.frombuffer(held, np.uint8)[: -(-self.total // 8) * 8]


_FIXED = 0x10  # `MAP_FIXED`, which Python's `mmap` lacks: use the given address


def places(about: StoreAbout) -> Ints:
    """Returns the row of each record; a shard begins at a multiple of the rows of a full one, int64 `(n,)`."""
    parts: list[Ints] = [np.arange(shard.count) + number * about.rows for number, shard in enumerate(about.shards)]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


class StoredRows(Reader):
    """A reader of the pixels of a prepared store."""

    in_place = True

    def __init__(self, root: Path, about: StoreAbout) -> None:
        self.root, self.about, self.checksums = root, about, "those of each file of the store"
        self._open: dict[str, Read] = {}
        self._mapped: dict[str, tuple[int, Any, Any]] = {}

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        from pipegen.ops.lowering.stored_readers import StoredFiles, StoredPixels

        if feature not in self._open:
            pixels, held = self.about.pixels[feature], (hold(self._shards(feature)), hold(self._by_row(feature)))
            made: Read = StoredPixels(*held, pixels.canvas, pixels.dtype) if len(pixels.canvas) == 3 else StoredFiles(*held)
            self._open.setdefault(feature, made)
        return self._open[feature]

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        (rows,), pixels = place, self.about.pixels[feature]
        if feature not in self._mapped:
            shards = self._shards(feature)
            self._mapped[feature] = shards.row, shards.mapped(), self._by_row(feature)
        row, held, about = self._mapped[feature]
        if not row:
            return [held[at : at + length].tobytes() for at, length in about[rows].tolist()]
        canvases = [held[row * one : row * (one + 1)].view(np.dtype(pixels.dtype)).reshape(pixels.canvas) for one in rows.tolist()]
        return [canvas[:height, :width] for canvas, (height, width) in zip(canvases, about[rows].tolist(), strict=True)]

    def _by_row(self, feature: str) -> Any:
        """Returns the size of each canvas, or the place of each file, by row; rows without records are zeros."""
        at = places(self.about)
        column = read_column(self.root, f"@{'size' if len(self.about.pixels[feature].canvas) == 3 else 'place'}.{feature}")
        spread = np.zeros((int(at[-1]) + 1 if len(at) else 0, *column.shape[1:]), column.dtype)
        spread[at] = column
        return spread

    def _shards(self, feature: str) -> StoredShards:
        about, pixels = self.about, self.about.pixels[feature]
        held = RECORDS if pixels.form == "records" else feature
        files = tuple(str(own[held]) for own in shard_files(self.root, about.shards, about.pixels, about.suffix))
        sizes = tuple(shard.bytes[held] for shard in about.shards)
        if pixels.form == "rows":
            starts = tuple(i * about.rows * pixels.row for i in range(len(files)))
            return StoredShards(files, sizes, starts, pixels.row, about.rows)
        ends = accumulate((-(-size // PAGE) * PAGE for size in sizes), initial=0)
        return StoredShards(files, sizes, tuple(ends)[:-1])

    def damaged_files(self) -> Iterator[tuple[str, str]]:
        for file, problem in damaged_files(self.root, self.about):
            yield str(file), f"{problem}; delete it and `store.json`, and prepare again"

    def digest(self, *, whole: bool = False) -> str:
        import hashlib
        import json

        sums = [[shard.split, shard.count, dict(shard.sums)] for shard in self.about.shards]
        text = json.dumps([sums, dict(self.about.columns)], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()


ENCODED = "/encoded"  # suffix of a feature's name that makes the key of its encoded file in a `tf.Example`


class StoredMessages(StoredRows):
    """A reader of encoded files in `tf.Example` records, in one call into Python for all features."""

    def __init__(self, root: Path, about: StoreAbout) -> None:
        super().__init__(root, about)
        self._files = [str(own[RECORDS]) for own in shard_files(root, about.shards, about.pixels, about.suffix)]

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        from pipegen.ops.lowering.stored_readers import called

        return called(self._take, dict.fromkeys(features, ("string", ())))

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        return list(self._take((feature,), place[0])[0])

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return "records of ArrayRecord files"

    def examine(self) -> None:
        """Opens the first file; `PG440` without the library, `PG570` if it is damaged."""
        from pipegen.ops.sources.stores.field_types import MissingLibrary, StoreError

        try:
            self._store(0)
        except MissingLibrary as error:
            raise error.diagnosed("ArrayRecord") from None
        except StoreError as error:
            message = f"{self._files[0]!r} cannot be read: {error}"
            raise OpError("PG570", message, field="path", help=PREPARE_AGAIN) from None

    def _store(self, shard: int) -> Store:
        from pipegen.ops.sources.array_record import ArrayRecords
        from pipegen.ops.sources.stores.base import opened

        return opened(ArrayRecords, self._files[shard])

    def _take(self, names: Sequence[str], rows: Any) -> list[Any]:
        """Reads features of some rows: arrays `(n,)` of byte strings; `StoreError` if one is unreadable."""
        from pipegen.ops.sources.records.messages import read_key
        from pipegen.ops.sources.stores.base import byte_strings

        each = self.about.rows
        messages = by_block(rows // each, lambda shard, here: self._store(shard).read(("",), rows[here] % each)[0])
        found = []
        for name in names:
            values = [read_key(message, f"{name}{ENCODED}".encode()) for message in messages]
            found.append(byte_strings([value.items[0] if value is not None and value.items else b"" for value in values]))  # type: ignore[misc]
        return found
