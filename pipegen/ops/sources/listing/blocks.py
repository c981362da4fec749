"""Reads records that are stored in blocks, such as row groups or chunks: a block is read whole, and kept while records of it are in use."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

from pipegen.ops.sources.listing.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pipegen.ops.sources.listing.reader import Hold, Together
    from pipegen.ops.sources.listing.strings import Ints

_RETRY = 5.0
"""Seconds for which a block that could not be read is not tried again: each of its records would try it."""
_WINDOWS = 2
"""Windows that are in memory at a time: batches of one are on their way while the first of the next are read."""
_BESIDE = 4
"""Blocks that are kept whatever their size, since several threads each read one."""
_USUAL = 2**28
"""Bytes of blocks that are kept where no order jumps about, as far as the budget goes."""


class Block(Protocol):
    """Holds one feature of the records of a block."""

    nbytes: int

    def take(self, rows: Ints) -> Any:
        """Returns the values of some rows, counted within the block: an array `(n, ...)`, of objects for encoded bytes."""


class ArrayBlock:
    """Holds the rows of a block in an array `(rows, ...)`."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.nbytes = int(values.nbytes)

    def take(self, rows: Ints) -> Any:
        """Returns rows of the array."""
        return self.values[rows]


class BytesBlock:
    """Holds the encoded bytes of each row."""

    def __init__(self, values: list[bytes]) -> None:
        self.values = values
        self.nbytes = sum(map(len, values))

    def take(self, rows: Ints) -> Any:
        """Returns the bytes of some rows as objects."""
        import numpy as np

        found: Any = np.empty(len(rows), object)
        found[:] = [self.values[row] for row in rows.tolist()]
        return found


class Window:
    """Keeps blocks in memory. Each is read once for all threads that ask; what was unused for longest goes first.

    Attributes:
        limit: The bytes to keep; a few blocks are kept in any case.
    """

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self._held: OrderedDict[tuple[int, str], Future[Block]] = OrderedDict()
        self._bytes = 0
        self._failed: dict[tuple[int, str], tuple[float, BaseException]] = {}
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Returns the bytes of the blocks that are held."""
        return self._bytes

    def get(self, block: int, feature: str, load: Callable[[int, str], Block]) -> Block:
        """Returns a feature of a block, read if it is not at hand.

        Raises:
            Exception: Whatever `load` raises; for a few seconds the same again.
        """
        key = block, feature
        with self._lock:
            future = self._held.get(key)
            if future is None:
                since, error = self._failed.get(key, (0.0, None))
                if error is not None and time.monotonic() - since < _RETRY:
                    raise error
                mine = self._held[key] = Future()
            else:
                self._held.move_to_end(key)
        if future is not None:
            return future.result()
        try:
            found = load(block, feature)
        except BaseException as error:
            with self._lock:
                self._held.pop(key, None)
                self._failed[key] = time.monotonic(), error
            mine.set_exception(error)
            raise
        mine.set_result(found)
        with self._lock:
            self._failed.pop(key, None)
            self._bytes += found.nbytes
            self._drop()
        return found

    def _drop(self) -> None:
        """Lets go of the blocks that were unused for longest, as far as there are too many."""
        for key in [key for key, future in self._held.items() if future.done()][:-_BESIDE]:
            if self._bytes <= self.limit:
                return
            self._bytes -= self._held.pop(key).result().nbytes


def window_limit(num_bytes: int, ram_budget: int) -> int:
    """Returns the bytes to keep of a window of so many bytes of records, and of the one that follows it, within the budget."""
    return min(max(_USUAL, _WINDOWS * num_bytes), ram_budget)


class Stamp:
    """Remembers the size of a file and when it was written, so that a reader notices when it is another one."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._seen = self._now()

    def check(self) -> None:
        """Looks at the file again.

        Raises:
            OSError: When it was changed, or is gone.
        """
        if self._now() != self._seen:
            raise OSError(f"{self.file} was changed while it was in use; build the pipeline again")

    def _now(self) -> tuple[int, int]:
        found = os.stat(self.file)
        return found.st_size, found.st_mtime_ns


class BlockReader(Reader):
    """Reads records whose blocks can be read only whole. Subclasses say which blocks there are, and read one.

    A window of an order keeps its blocks in memory, so that each is read once an epoch; what is resumed reads those of its window again.

    Args:
        sizes: Records of each block, int64 `(blocks,)`.
    """

    called: str = "blocks"
    """What a reader's blocks are called in its format."""

    def __init__(self, sizes: Ints) -> None:
        import numpy as np

        self.starts: Ints = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
        self.at_once = max(2, int(sizes.max(initial=0)))
        self._window = Window()

    def load(self, block: int, feature: str) -> Block:
        """Reads one feature of a block's records."""
        raise NotImplementedError

    def row_sizes(self) -> Ints:
        """Returns the bytes that each record takes in memory, int64 `(n,)`."""
        raise NotImplementedError

    def value_type(self, feature: str) -> tuple[str, tuple[int | None, ...]]:
        """Returns the dtype and the shape of one record's value; `string` for encoded bytes."""
        return "string", ()

    def find(self, *place: Ints) -> tuple[Ints, Ints]:
        """Finds the block of each place `(n,)`, and the row in it; by default a place is a number among all records."""
        import numpy as np

        block: Ints = np.searchsorted(self.starts, place[0], side="right") - 1
        return block, place[0] - self.starts[block]

    def hold_window(self, num_bytes: int, ram_budget: int) -> None:
        """Makes room for the blocks of a window of so many bytes of records, and of the one that follows it, within the budget."""
        self._window.limit = max(self._window.limit, window_limit(num_bytes, ram_budget))

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        """Returns what reads several features of records in one call."""
        from pipegen.ops.lowering.stored import called

        def take(names: Sequence[str], *place: Any) -> list[Any]:
            return [self.take(name, *place) for name in names]

        return called(take, {feature: self.value_type(feature) for feature in features})

    def take(self, feature: str, *place: Any) -> Any:
        """Reads a feature of records, stacked as their places are: NumPy scalars, or `(n,)`.

        Raises:
            OSError: When a block cannot be read.
        """
        import numpy as np

        several = [np.atleast_1d(np.asarray(part)) for part in place]
        block, row = self.find(*several)
        parts: dict[int, Any] = {}
        for one in dict.fromkeys(block.tolist()):
            try:
                parts[one] = self._window.get(one, feature, self.load).take(row[block == one])
            except (OSError, ValueError):
                raise
            except Exception as error:  # of a library's own kind, which nobody else knows
                raise OSError(f"{type(error).__name__}: {error}") from error
        found: Any = np.empty((len(block), *next(iter(parts.values())).shape[1:]), next(iter(parts.values())).dtype)
        for one, values in parts.items():
            found[block == one] = values
        return found if np.ndim(place[0]) else found[0]

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        """Return what `take` reads."""
        found: Sequence[Any] = self.take(feature, *place)
        return found

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        """Says what is read."""
        return self.called
