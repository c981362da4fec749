"""The columns of a manifest in the graph, and paths assembled from them.

A column shares the memory of the manifest's array. Functions in this process read it through a variable: a captured tensor would be
copied into the graph that TensorFlow makes and optimises for every iterator. Only derived datasets, which may run in another process,
capture tensors. A serialised graph is limited to 2 GiB, so they map a file for a large column.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pipegen.backend.features import last_begun
from pipegen.backend.process.devices import Once, on_this_host
from pipegen.kept import COLUMNS, keep, open_kept
from pipegen.ops.fields.strings import Collector, Strings, shareable
from pipegen.ops.lowering.graphs import elsewhere, meanwhile
from pipegen.terminal import log

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")  # UTF-8 of a surrogate, which stands for an invalid byte of a file name
_LARGE = 2**28
"""Least bytes of a column that is mapped from a file and not captured: a split has at most six columns, so a graph holds them all."""
_captured: ContextVar[Path | bool] = ContextVar("captured", default=False)
columns_saved: ContextVar[dict[int, tf.Variable] | None] = ContextVar("saved", default=None)
"""Functions traced with it read columns from variables, which are added to it, to be saved with the functions."""
paths_below: ContextVar[tuple[bytes, tf.Tensor] | None] = ContextVar("below", default=None)
"""Functions traced with it replace a folder at the start of paths by a string scalar."""
_LONGEST = 1 << 30  # more bytes than any path has


@contextmanager
def columns_captured(folder: Path | None) -> Iterator[None]:
    """Functions traced inside capture their columns, so that they run in any process that can read `folder`."""
    with meanwhile(_captured, folder or True), meanwhile(elsewhere, True):
        yield


def runs_elsewhere() -> bool:
    """Checks whether functions traced now may run in another process, without the variables of this one."""
    return bool(_captured.get()) or columns_saved.get() is not None


class Column:
    """An array `(n, ...)` whose rows functions read.

    Args:
        values: The array; not copied if it is `shareable`.
        of: A column of row numbers `(m,)`, to select some rows.
        mapped: Whether a large column may be written to a file and mapped in another process. False for images, which must not be
            written to disk unasked.
    """

    def __init__(self, values: np.ndarray[Any, Any], of: Column | None = None, *, mapped: bool = True) -> None:
        self._values = shareable(values)
        self._of = of
        self._least = _LARGE if mapped else None

    def __call__(self, rows: tf.Tensor) -> tf.Tensor:
        """Gathers rows; the result has the shape of `rows`, followed by that of a row."""
        return tf.gather(self._read(), rows if self._of is None else self._of(rows))

    def search(self, values: tf.Tensor) -> tf.Tensor:
        """Finds the last rows of an ascending column `(n,)` that are not above values `(m,)`: int64 `(m,)`."""
        return last_begun(self._read(), values)

    def _read(self) -> tf.Tensor:
        """The whole array, for a function in this or another process."""
        # NOTE: `sparse_read` would copy the variable, since the memory is not TensorFlow's.
        saved, folder = columns_saved.get(), _captured.get()
        if saved is not None:
            return saved.setdefault(id(self), self._variable).read_value()
        return self._portable(folder) if folder else self._variable.read_value()

    def _portable(self, folder: Path | bool) -> tf.Tensor:
        """The array, or a file that is mapped in the process of the function."""
        if isinstance(folder, bool) or self._least is None or self._values.nbytes < self._least:
            return self._tensor
        try:
            file = self._kept(folder)
        except OSError as error:
            log.warning("cannot write a column of the data to %s: %s", folder, (error.strerror or str(error)).lower())
            return self._tensor
        with tf.device("CPU:0"):
            return tf.raw_ops.ImmutableConst(dtype=self._values.dtype, shape=self._values.shape, memory_region_name=file)

    def _kept(self, folder: Path) -> str:
        """Writes the array to a file named by its hash, unless it exists; raises an `OSError` if it cannot be written."""
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
    """Makes a tensor that shares the memory of an array."""
    return tf.experimental.dlpack.from_dlpack(values.__dlpack__())


class Paths:
    """Paths in the graph, converted on first use."""

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
        """Returns the path of one record, or of records `(n,)`: strings of that shape."""
        if not records.shape.rank:
            return self.each(records[None])[0]
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
        below = paths_below.get()
        return found if below is None else tf.strings.join([below[1], tf.strings.substr(found, len(below[0]), _LONGEST)])
