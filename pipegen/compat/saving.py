"""Saves what a flow hands over, as `save_to_dir` asks: each image also becomes a file."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Any

from pipegen.compat.images import save_img
from pipegen.whole_files import whole_file

if TYPE_CHECKING:
    import tensorflow as tf

    from pipegen.compat.images import Array

_MOST = 10**7


class Saving:
    """Writes images as `PREFIX_INDEX_NUMBER.FORMAT`, each stretched so that its least value is black and its greatest white.

    INDEX is the row of an image in the flow's arrays or table; where a flow has a folder, how many it has handed over before. NUMBER
    is drawn by the operating system, so that no seed is spent and the epochs have names of their own.

    Args:
        folder: Where to; it is made.
        prefix: What the names begin with.
        form: The format, which is also the suffix: `png`, `jpeg` or another one of Pillow's.
        data_format: Where the channels of the images stand.
    """

    def __init__(self, folder: str | os.PathLike[str], prefix: str, form: str, data_format: str) -> None:
        self.folder, self.prefix, self.form, self.data_format = os.fspath(folder), prefix, form, data_format
        self._written = 0
        os.makedirs(self.folder, exist_ok=True)

    def write(self, images: Array, rows: Array | None = None) -> int:
        """Write a batch `(n, ...)`; `rows` are the indices of its images. The result is how many were written in all."""
        for i, image in enumerate(images):
            index = self._written if rows is None else int(rows[i])
            while not self._wrote(f"{self.prefix}_{index}_{secrets.randbelow(_MOST)}.{self.form}", image):
                pass
            self._written += 1
        return self._written

    def _wrote(self, name: str, image: Array) -> bool:
        """Writes an image, unless there is a file of this name already."""
        try:
            with whole_file(os.path.join(self.folder, name), new=True, durable=False) as file:  # on the way to the model
                save_img(file, image, data_format=self.data_format, file_format=self.form)
        except FileExistsError:
            return False
        return True

    def during(self, batches: tf.data.Dataset, *, rows: bool) -> tf.data.Dataset:
        """The batches, each written on its way; with `rows`, they are `(images, rows)`."""
        import tensorflow as tf

        from pipegen.ops.lowering.python_calls import numpy_function

        def written(*parts: Any) -> Any:
            given = [parts[0], parts[1]] if rows else [parts[0]]
            count = numpy_function(lambda *arrays: tf.constant(self.write(*arrays), tf.int64).numpy(), given, tf.int64)
            with tf.control_dependencies([count]):
                images = tf.identity(parts[0])
            return (images, *parts[1:]) if len(parts) > 1 else images

        return batches.map(tf.autograph.experimental.do_not_convert(written))
