"""Reads what is stored of records: a file, rows of a mapped array, whatever Python reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import tensorflow as tf


def read_file(path: tf.Tensor) -> tf.Tensor:
    """Returns the bytes of a file: a string scalar."""
    import tensorflow as tf

    return tf.io.read_file(path)


class Mapped:
    """Reads rows of an array that stays in its file, by a call into Python."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __call__(self, row: tf.Tensor) -> tf.Tensor:
        """The rows of these numbers, stacked as these are."""
        import tensorflow as tf

        taken = tf.numpy_function(self._take, [row], tf.as_dtype(self._array.dtype), stateful=False)
        taken.set_shape([*row.shape, *self._array.shape[1:]])
        return taken

    def _take(self, row: Any) -> Any:
        import numpy as np

        return np.ascontiguousarray(self._array[row])


def called(take: Callable[..., Any], dtype: str, shape: tuple[int | None, ...]) -> Callable[..., tf.Tensor]:
    """Returns what reads values of records by a call into Python, of one record or of several at once.

    Args:
        take: From places, as NumPy scalars or arrays `(n,)`, to values stacked as these are.
        dtype: The dtype of a value.
        shape: The shape of one.
    """
    import tensorflow as tf

    def read(*place: tf.Tensor) -> tf.Tensor:
        found = tf.numpy_function(take, list(place), tf.as_dtype(dtype), stateful=False)
        found.set_shape([*place[0].shape, *shape])
        return found

    return read
