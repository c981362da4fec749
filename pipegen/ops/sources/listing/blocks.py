"""A reader of records stored in blocks, such as row groups or chunks, which are read whole and cached."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from pipegen.lazy import np
from pipegen.ops.fields.strings import Ints
from pipegen.ops.sources.listing.reader import Hold, Reader, Together

_RETRY = 5.0  # seconds before a block that failed is tried again; else each of its records would try it
_WINDOWS = 2  # windows in memory at a time: batches of one are in flight while the next is being read
_BESIDE = 4  # blocks kept whatever their size, since several threads read one each
_USUAL = 2**28  # bytes of blocks kept for a sequential order, within the budget


class Block:
    """One feature of the records of a block, in an array `(rows, ...)`, of objects for encoded bytes."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.nbytes = sum(map(len, values)) if values.dtype == object else int(values.nbytes)

    def take(self, rows: Ints) -> Any:
        """Returns the values of some rows: an array `(n, ...)`, of objects for encoded bytes."""
        return self.values[rows]


class Window:
    """A cache of blocks, least recently used first out. Each block is read once for all threads.

    Attributes:
        limit: The bytes to keep; a few blocks are kept in any case.
    """

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self._held: OrderedDict[tuple[int, str], Future[Block]] = OrderedDict()
        self._bytes = 0
        self._failed: dict[tuple[int, str], float] = {}  # when blocks failed
        self._lock = threading.Lock()

    def reserve(self, num_bytes: int, ram_budget: int) -> None:
        """Raises the limit, within the budget, to a window of `num_bytes` of records and the next one."""
        self.limit = max(self.limit, min(max(_USUAL, _WINDOWS * num_bytes), ram_budget))

    def get(self, block: int, feature: str, load: Callable[[int, str], Block]) -> Block:
        """Returns a feature of a block, reading it on a miss. Raises whatever `load` raises; for a few seconds the same error
        again."""
        key = block, feature
        with self._lock:
            mine = key not in self._held or time.monotonic() - self._failed.get(key, math.inf) >= _RETRY
            if mine:
                self._failed.pop(key, None)
                self._held[key] = Future()
            future = self._held[key]
            self._held.move_to_end(key)
        if not mine:
            return future.result()
        try:
            found = load(block, feature)
        except BaseException as error:
            self._failed[key] = time.monotonic()
            future.set_exception(error)
            raise
        future.set_result(found)
        with self._lock:
            self._bytes += found.nbytes
            there = [other for other, own in self._held.items() if own.done() and other not in self._failed]
            for other in there[:-_BESIDE]:  # least recently used first
                if self._bytes > self.limit:
                    self._bytes -= self._held.pop(other).result().nbytes
        return found


def by_block(blocks: Ints, take: Callable[[int, Ints], Sequence[Any]]) -> list[Any]:
    """Takes records block by block: `take` gets the number of a block and the places of its records in `blocks`, and returns arrays of
    their values, `(n, ...)` each. Returns those of all records, in order."""
    found: list[Any] = []
    for block in np.unique(blocks).tolist():
        here = np.flatnonzero(blocks == block)
        values = take(block, here)
        found = found or [np.empty((len(blocks), *own.shape[1:]), own.dtype) for own in values]
        for every, own in zip(found, values, strict=True):
            every[here] = own
    return found


class TakingReader(Reader):
    """A reader that takes features of records in Python: one call for all requested ones."""

    def taken_types(self, features: Iterable[str]) -> Mapping[str, tuple[str, tuple[int | None, ...]]]:
        """Returns the dtype and the shape in one record of features; by default all are encoded."""
        return dict.fromkeys(features, ("string", ()))

    def take_each(self, features: Sequence[str], *place: Any) -> list[Any]:
        """Reads several features of records; see `take`."""
        return [self.take(name, *place) for name in features]

    def take(self, feature: str, *place: Any) -> Any:
        """Reads the bytes of a feature of records at places `(n,)`, as objects `(n,)`; `OSError` or `ValueError` if one cannot be read."""
        raise NotImplementedError

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        from pipegen.ops.lowering.stored_readers import called

        self.check()
        return called(self.take_each, self.taken_types(features))

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        return self.take_each((feature,), *place)[0]


class BlockReader(TakingReader):
    """A reader of blocks that must be read whole. Subclasses define the blocks and read one.

    The cache holds the window of an order, so that each block is read once per epoch; a resumed run reads the blocks of its window again.

    Args:
        sizes: Records of each block, int64 `(blocks,)`.
    """

    called: str = "blocks"  # the format's word for blocks

    def __init__(self, sizes: Ints) -> None:
        self.starts: Ints = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
        self.at_once = max(2, int(sizes.max(initial=0)))
        self._window = Window()

    def load(self, block: int, feature: str) -> Block:
        """Reads one feature of a block's records."""
        raise NotImplementedError

    def row_sizes(self) -> Ints:
        """Returns the bytes that each record takes in memory, int64 `(n,)`."""
        raise NotImplementedError

    def hold_window(self, num_bytes: int, ram_budget: int) -> None:
        self._window.reserve(num_bytes, ram_budget)

    def take(self, feature: str, *place: Any) -> Any:
        """Reads a feature of records by their numbers, a NumPy scalar or `(n,)`. Raises `OSError` if a block cannot be read."""
        numbers = np.atleast_1d(np.asarray(place[0]))
        block: Ints = np.searchsorted(self.starts, numbers, side="right") - 1
        row = numbers - self.starts[block]

        def take(one: int, here: Ints) -> list[Any]:
            try:
                return [self._window.get(one, feature, self.load).take(row[here])]
            except (OSError, ValueError):
                raise
            except Exception as error:  # a library's own class, unknown to callers
                raise OSError(f"{type(error).__name__}: {error}") from error

        (found,) = by_block(block, take)
        return found if np.ndim(place[0]) else found[0]

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return self.called
