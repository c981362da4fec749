"""Arrays for the user in memory that the user has let go of.

A fresh array of a batch of photographs costs more than the copy into it, since the system has to find and clear its pages one by one.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from pipegen.backend.reuse import LARGE

Array = np.ndarray[Any, Any]

_KEPT = 4
"""Arrays that are kept at most. Two are in turn while the user looks at one batch at a time."""


class Buffers:
    """Copies of tensors. An array's memory is used again once nobody holds the array or a view of it."""

    def __init__(self) -> None:
        self._kept: list[Array] = []
        self._lock = threading.Lock()

    def copy(self, tensor: Any, dtype: str | None = None) -> Array:
        """A tensor as an array that may be written to, of its own dtype or another one."""
        given = np.asarray(tensor)  # a view, read-only
        wanted = given.dtype if dtype is None else np.dtype(dtype)
        if given.size * wanted.itemsize < LARGE:
            return given.astype(wanted)
        array = self._empty(given.shape, wanted)
        np.copyto(array, given)
        return array

    def _empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        with self._lock:  # else two threads could find the same array unused
            for i in range(len(self._kept)):
                array = self._kept[i]
                if sys.getrefcount(array) == _UNUSED and array.flags.writeable and array.shape == shape and array.dtype == dtype:
                    return array
            array = np.empty(shape, dtype)
            self._kept = [*self._kept[-(_KEPT - 1) :], array]
            return array


def _count_of_an_unused_one() -> int:
    held = [np.empty(0)]
    array = held[0]
    return sys.getrefcount(array)


_UNUSED = _count_of_an_unused_one()
"""References to an array that only a list and one name hold, while they are counted."""
