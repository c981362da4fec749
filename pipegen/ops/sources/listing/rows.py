"""`Rows`, the reader of arrays with a row for each record: held in memory, or mapped from a file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipegen.lazy import np
from pipegen.ops.fields.strings import Ints, aligned
from pipegen.ops.sources.listing.reader import Hold, Read, Reader

_HASHED_WHOLE = 2**28
_MOST = 2**18  # rows that are hashed one by one; of more, blocks of rows are


class Rows(Reader):
    """A reader of array rows. Each array is held once for all splits and datasets, or stays in its mapped file if that is large for the RAM
    budget.

    Args:
        arrays: Images by feature, as NumPy arrays `(n, height, width, channels)`; everything else is in the listing.
        made: Those that no user can change, so that they are not copied.
        lengths: The length of each row, int64 `(n,)`, by feature, of those that are the bytes of files and differ in length.
    """

    def __init__(self, arrays: Mapping[str, Any], made: frozenset[str] = frozenset(), lengths: Mapping[str, Ints] | None = None) -> None:
        self.arrays, self._made, self._lengths = arrays, made, lengths or {}
        self._open: dict[tuple[str, bool], Read] = {}

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        from pipegen.ops.lowering.stored_readers import Mapped

        key = feature, self._stays(feature, ram_budget)
        if key not in self._open:
            array = self.arrays[feature]
            copies = array.dtype != object and not key[1] and feature not in self._made  # the user may change the original
            self._open.setdefault(key, (Mapped if key[1] else hold)(aligned([array]) if copies else array))
        return self._open[key]

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        (rows,) = place
        return [self.arrays[feature][row] for row in rows.tolist()]

    def lengths(self, feature: str) -> Ints | None:
        return self._lengths.get(feature)

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return "rows of a mapped file" if any(self._stays(name, ram_budget) for name in features if name in self.arrays) else ""

    def held_bytes(self, features: Iterable[str], ram_budget: int) -> int:
        return sum(self.arrays[name].nbytes for name in features if name in self.arrays and not self._stays(name, ram_budget))

    def _stays(self, feature: str, ram_budget: int) -> bool:
        array = self.arrays[feature]
        return isinstance(array, np.memmap) and 2 * array.nbytes > ram_budget

    def digest(self, *, whole: bool = False) -> str:
        """Identifies the images, in hexadecimal: BLAKE2b over names, dtypes, shapes and bytes.

        For an array above 256 MiB, evenly spaced rows of that total are read, with the first and the last; all of them if `whole`. Rows
        below some 2 KiB are taken in blocks.
        """
        found = hashlib.blake2b(digest_size=32)
        for name in sorted(self.arrays):
            array = self.arrays[name]
            found.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
            for block in _hashed(array, whole):
                found.update(block)
        return found.hexdigest()


def _hashed(array: Any, whole: bool) -> Iterator[Any]:
    if array.nbytes <= _HASHED_WHOLE:
        yield np.ascontiguousarray(array).data.cast("B")
        return
    step = _HASHED_WHOLE * len(array) // array.nbytes // _MOST
    if step > 1 and array.flags.c_contiguous:  # one by one they would take minutes
        blocks = len(array) // step
        yield np.ascontiguousarray(array[blocks * step :]).data.cast("B")
        array = array[: blocks * step].reshape(blocks, step, *array.shape[1:])
    n = len(array)
    taken = n if whole else max(2, _HASHED_WHOLE // (array.nbytes // n))
    for i in range(taken):
        yield np.ascontiguousarray(array[i * (n - 1) // (taken - 1)]).data.cast("B")
