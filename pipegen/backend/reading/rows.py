"""Reads rows of arrays, one or a whole batch at a time.

An array is held once, whatever number of splits and datasets read it: as one tensor, or, where it is mapped from a file that
is large beside the RAM budget, in that file alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from pipegen.ops.sources.rows import Rows

Reader = Callable[[tf.Tensor], tf.Tensor]
"""From row numbers, int64 of any shape `(...)`, to rows `(..., height, width, channels)`."""

_readers: WeakKeyDictionary[Rows, dict[str, Reader]] = WeakKeyDictionary()


def readers(rows: Rows, names: Sequence[str], ram_budget: int) -> dict[str, Reader]:
    """Returns what reads each array that is asked for, made once.

    Args:
        rows: The arrays.
        names: The features that are read; those that are no arrays are passed over.
        ram_budget: In bytes; a mapped file that takes more than half of it is read from the disk as rows are asked for.
    """
    made = _readers.setdefault(rows, {})
    made |= {name: _reader(rows.arrays[name], ram_budget) for name in names if name in rows.arrays and name not in made}
    return {name: made[name] for name in names if name in made}


def _reader(array: np.ndarray[Any, Any], ram_budget: int) -> Reader:
    if isinstance(array, np.memmap) and 2 * array.nbytes > ram_budget:
        return Mapped(array)
    # An eager tensor that a dataset's function captures is handed over as it is, and never becomes a constant of the graph.
    with tf.device("CPU:0"):
        tensor = tf.constant(array)
    return lambda row: tf.gather(tensor, row)


class Mapped:
    """Reads rows from a mapped file, by a call into Python."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    def __call__(self, row: tf.Tensor) -> tf.Tensor:
        taken = tf.numpy_function(self._take, [row], tf.as_dtype(self._array.dtype), stateful=False)
        taken.set_shape([*row.shape, *self._array.shape[1:]])
        return taken

    def _take(self, row: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.ascontiguousarray(self._array[row])
