"""Readers of stored records: files, rows of mapped arrays, images on canvases, and readers in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.lazy import tf
from pipegen.ops.lowering.python_calls import numpy_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def read_file(path: tf.Tensor) -> tf.Tensor:
    """Reads the bytes of a file: a string scalar."""
    return tf.io.read_file(path)


def string_of(values: tf.Tensor) -> tf.Tensor:
    """Converts bytes, uint8 `(n,)`, to a string scalar. TensorFlow has no operation for it, but they are the end of a serialised tensor."""
    text, size = tf.io.serialize_tensor(values), tf.size(values)
    return tf.strings.substr(text, tf.strings.length(text) - size, size)


class Mapped:
    """Rows of an array that stays in its file, read by a call into Python."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __call__(self, row: tf.Tensor) -> tf.Tensor:
        """Gathers rows."""
        taken = numpy_function(self._take, [row], tf.as_dtype(self._array.dtype), stateful=False)
        taken.set_shape([*row.shape, *self._array.shape[1:]])
        return taken

    def _take(self, row: Any) -> Any:
        import numpy as np

        return np.ascontiguousarray(self._array[row])


def called(
    take: Callable[..., Sequence[Any]], types: Mapping[str, tuple[str, tuple[int | None, ...]]]
) -> Callable[..., dict[str, tf.Tensor]]:
    """Makes a reader of several features of records, by one call into Python: `take` maps names of features and places of records, NumPy
    arrays `(n,)`, to an array `(n, ...)` for each feature, whose `types` are the dtype and the shape in one record. See
    `Reader.open_together`."""

    def read(names: Sequence[str], *place: tf.Tensor) -> dict[str, tf.Tensor]:
        dtypes = [tf.as_dtype(types[name][0]) for name in names]
        found = numpy_function(lambda *at: take(names, *at), list(place), dtypes, stateful=False)
        found = [found] if tf.is_tensor(found) else found  # outside a graph, for one feature
        for name, value in zip(names, found, strict=True):
            value.set_shape([place[0].shape[0], *types[name][1]])
        return dict(zip(names, found, strict=True))

    return read


class StoredPixels:
    """Images on canvases of one height, width and channels, a row of bytes each, read by `rows`; `sizes` reads the height and the width of
    images, int32 `(..., 2)`."""

    def __init__(self, rows: Any, sizes: Any, canvas: tuple[int, int, int], dtype: str) -> None:
        self._rows, self.canvas, self._dtype = rows, canvas, dtype
        self.sizes = sizes
        """A function from rows to the height and the width of their images, int32 `(..., 2)`."""

    def __call__(self, row: tf.Tensor) -> tf.Tensor:
        """Reads the image of one row, at its own size; for rows `(n,)` of one size, `(n, height, width, channels)`."""
        canvas = self.canvases(row)
        if row.shape.rank:
            return canvas
        return self._cut(canvas, row)

    def canvases(self, row: tf.Tensor) -> tf.Tensor:
        """Reads the canvases of rows."""
        stored = self._rows(row)
        if self._dtype != "uint8":
            dtype = tf.as_dtype(self._dtype)
            stored = tf.bitcast(tf.reshape(stored, tf.concat([tf.shape(row), [-1, dtype.size]], 0)), dtype)
        canvas = tf.reshape(stored, tf.concat([tf.shape(row), self.canvas], 0))
        canvas.set_shape([*row.shape, *self.canvas])
        return canvas

    def memory(self, row: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor] | None:
        """Returns the memory of all canvases as words, and the offsets of rows `(n,)` in bytes; `None` in another process."""
        found: tuple[tf.Tensor, tf.Tensor] | None = self._rows.memory(row)
        return found

    def _cut(self, canvas: tf.Tensor, row: tf.Tensor) -> tf.Tensor:
        height, width = tf.unstack(self.sizes(row))
        image = canvas[:height, :width]
        image.set_shape([None, None, self.canvas[2]])
        return image


class StoredFiles:
    """Encoded files, concatenated: `stored` reads a range of bytes, `places` offsets and lengths of files, int64 `(..., 2)`."""

    def __init__(self, stored: Any, places: Any) -> None:
        self._stored, self._places = stored, places

    def __call__(self, row: tf.Tensor) -> tf.Tensor:
        """Reads the bytes of one file: a string scalar."""
        return string_of(self._stored.part(*tf.unstack(self._places(row))))
