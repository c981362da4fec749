"""The columns of a manifest as functions read them, and paths that are put together from them.

A column has the memory of the manifest's array. In this process functions know it by a variable's handle: a tensor that they capture
is copied into the graph that TensorFlow makes, and optimises, for every iterator. Only what is derived from a dataset, and may run
elsewhere, captures tensors; or, since a graph that is written has 2 GiB at most, maps a file where a column is large.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import tensorflow as tf

from pipegen.backend.process.devices import on_this_host
from pipegen.kept import COLUMNS, keep, open_kept
from pipegen.ops.lowering.graphs import may_run_elsewhere
from pipegen.ops.sources.listing.strings import Collector, Strings, shareable
from pipegen.terminal import log

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")
"""What stands in a text for a byte of a file's name that is not valid UTF-8."""
_LARGE = 2**28
"""Bytes of a column that functions do not hold themselves: all columns of a split, of which there are six at most, then fit in a graph."""
T = TypeVar("T")
_captured: ContextVar[Path | bool] = ContextVar("captured", default=False)
_saved: ContextVar[dict[int, tf.Variable] | None] = ContextVar("saved", default=None)
_below: ContextVar[tuple[bytes, tf.Tensor] | None] = ContextVar("below", default=None)
_LONGEST = 1 << 30
"""Bytes that no path has."""
_making = RLock()


class Once(cached_property[T]):
    """A property that one thread makes: of two variables one would go, whose handle a graph of the other thread may have."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        with _making:
            return super().__get__(instance, owner)


@contextmanager
def columns_captured(folder: Path | None) -> Iterator[None]:
    """Lets functions that are traced meanwhile hold their columns themselves, so that they run in any process that sees `folder`."""
    token = _captured.set(folder or True)
    try:
        with may_run_elsewhere():
            yield
    finally:
        _captured.reset(token)


@contextmanager
def columns_saved(held: dict[int, tf.Variable]) -> Iterator[None]:
    """Lets functions that are traced meanwhile read columns from variables, which are put into `held`, to be saved with the functions."""
    token = _saved.set(held)
    try:
        yield
    finally:
        _saved.reset(token)


@contextmanager
def paths_below(folder: bytes, now: tf.Tensor) -> Iterator[None]:
    """Lets functions that are traced meanwhile read paths that begin with `folder` below another, a string scalar."""
    token = _below.set((folder, now))
    try:
        yield
    finally:
        _below.reset(token)


def runs_elsewhere() -> bool:
    """Returns whether functions that are traced now may run where the variables of this process are not."""
    return bool(_captured.get()) or _saved.get() is not None


class Column:
    """An array `(n, ...)` of which functions read rows.

    Args:
        values: The array; it is held and not copied where it is `shareable`.
        of: Which of its rows these are, where they are not all: a column of numbers `(m,)`.
        mapped: Whether a file of it is mapped where it is large and runs elsewhere: not of pictures, which no disk is to hold unasked.
    """

    def __init__(self, values: np.ndarray[Any, Any], of: Column | None = None, *, mapped: bool = True) -> None:
        self._values = shareable(values)
        self._of = of
        self._least = _LARGE if mapped else None

    def __call__(self, rows: tf.Tensor) -> tf.Tensor:
        """The rows of these numbers, stacked as these are."""
        return tf.gather(self._read(), rows if self._of is None else self._of(rows))

    def search(self, values: tf.Tensor) -> tf.Tensor:
        """The last rows, of a whole column `(n,)` that rises, which are not above values `(m,)`: int64 `(m,)`."""
        return tf.searchsorted(self._read(), values, side="right", out_type=tf.int64) - 1

    def _read(self) -> tf.Tensor:
        """The whole array, wherever the function that is traced will run."""
        # NOTE: `sparse_read` would make the variable a copy of its own, since the memory is not TensorFlow's.
        saved, folder = _saved.get(), _captured.get()
        if saved is not None:
            return saved.setdefault(id(self), self._variable).read_value()
        return self._portable(folder) if folder else self._variable.read_value()

    def _portable(self, folder: Path | bool) -> tf.Tensor:
        """The array itself, or a file that is mapped wherever the function runs."""
        if isinstance(folder, bool) or self._least is None or self._values.nbytes < self._least:
            return self._tensor
        try:
            file = self._kept(folder)
        except OSError as error:
            log.warning("a column of the data cannot be kept in %s: %s", folder, (error.strerror or str(error)).lower())
            return self._tensor
        with tf.device("CPU:0"):
            return tf.raw_ops.ImmutableConst(dtype=self._values.dtype, shape=self._values.shape, memory_region_name=file)

    def _kept(self, folder: Path) -> str:
        """The file of the array, named by what it holds.

        Raises:
            OSError: When it cannot be written.
        """
        name = f"{self._digest}.{COLUMNS}"
        try:
            with open_kept(folder, name) as stream:
                whole = os.fstat(stream.fileno()).st_size == self._values.nbytes
        except OSError:
            whole = False
        if not whole:
            keep(folder, name, [self._bytes])
        return str((folder / name).absolute())

    @property
    def _bytes(self) -> memoryview:
        flat: Any = self._values.reshape(-1)
        return memoryview(flat.view(np.uint8))

    @Once
    def _digest(self) -> str:
        return hashlib.blake2b(self._bytes, digest_size=16).hexdigest()

    @Once
    def _tensor(self) -> tf.Tensor:
        return on_this_host(lambda: as_tensor(self._values))

    @Once
    def _variable(self) -> tf.Variable:
        return on_this_host(lambda: tf.Variable(as_tensor(self._values), trainable=False, name="pipegen_column"))


def as_tensor(values: np.ndarray[Any, Any]) -> tf.Tensor:
    """A tensor that shares the memory of an array."""
    return tf.experimental.dlpack.from_dlpack(values.__dlpack__())


class Paths:
    """Paths that functions read. Nothing is made of them before one is asked for."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    @Once
    def _texts(self) -> Strings:
        texts = Strings.hold(self._paths)
        if _SURROGATE.search(texts.blob.data) is None and _SURROGATE.search(b"".join(texts.prefixes)) is None:
            return texts
        collected = Collector()
        collected.add_bytes([os.fsencode(path) for path in texts])
        return collected.strings()

    @Once
    def _is_ascii(self) -> bool:
        return bool(self._texts.blob.max(initial=0) < 128)

    @Once
    def _columns(self) -> dict[str, Column]:
        texts = self._texts
        columns = {"blob": texts.blob, "bounds": texts.bounds, "of": texts.of, "rows": texts.rows}
        return {name: Column(column) for name, column in columns.items() if column is not None}

    def each(self, records: tf.Tensor) -> tf.Tensor:
        """The paths of records `(n,)`, strings `(n,)`."""
        held, before = self._columns, tf.constant([*self._texts.prefixes])
        rows = held["rows"](records) if "rows" in held else records
        starts, ends = (tf.cast(held["bounds"](at), tf.int64) for at in (rows, rows + 1))
        places = tf.ragged.range(starts, ends)
        characters = tf.cast(held["blob"](places.flat_values), tf.int32)
        if self._is_ascii:  # a byte is a character
            texts = tf.strings.unicode_encode(places.with_flat_values(characters), "UTF-8")
        else:  # no kernel makes a string of bytes; of single bytes one does
            each = tf.gather(tf.constant([bytes([i]) for i in range(256)]), characters)
            texts = tf.strings.unsorted_segment_join(each, places.value_rowids(), tf.size(records))
        found = tf.strings.join([tf.gather(before, tf.cast(held["of"](rows), tf.int32)) if "of" in held else before[0], texts])
        below = _below.get()
        return found if below is None else tf.strings.join([below[1], tf.strings.substr(found, len(below[0]), _LONGEST)])

    def one(self, record: tf.Tensor) -> tf.Tensor:
        """The path of one record."""
        return self.each(record[None])[0]
