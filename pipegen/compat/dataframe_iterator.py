"""`DataFrameIterator`, over files that a table names. Importing this imports TensorFlow."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pipegen.compat.arguments import name_of
from pipegen.compat.checks import warn
from pipegen.compat.frames import Frame, read_frame
from pipegen.compat.iterator import CompiledIterator
from pipegen.compat.specs import channels_of, reading_steps, rows_of, rows_spec, seed_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tensorflow as tf

    from pipegen.compat.specs import Described


class DataFrameIterator(CompiledIterator):
    """Batches of files that a table names.

    Arguments and errors are those of `ImageDataGenerator.flow_from_dataframe`, without deprecated words.

    Args:
        image_data_generator: The generator; `None` for one without arguments.
        data_format: The data format of batches, in place of the generator's, as in Keras; `None` for the generator's.
        dtype: The dtype of images and encoded classes, in place of the generator's, as in Keras; `None` for the generator's.

    Attributes:
        directory: The folder that paths are relative to, or `None`.
        filenames: The files of the subset, as in the table, in its order.
        class_indices: The index of each class, by name; only with classes, like the next two.
        num_classes: The number of classes.
        classes: The class index of each row, or a list of them.
        sample_weight: The weights, or `None`.
        class_mode: As given; likewise `target_size`, `color_mode`, `interpolation` and `keep_aspect_ratio`.
    """

    _numbered = True

    def __init__(
        self,
        dataframe: Any,
        directory: str | os.PathLike[str] | None = None,
        image_data_generator: Described | None = None,
        x_col: str = "filename",
        y_col: Any = "class",
        weight_col: str | None = None,
        target_size: tuple[int, int] = (256, 256),
        color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        data_format: str | None = "channels_last",
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
        dtype: Any = "float32",
        validate_filenames: bool = True,
    ) -> None:
        asked = self._ask(image_data_generator, subset, data_format, dtype)
        if weight_col is not None and class_mode is None:
            raise ValueError("`weight_col` weighs the loss, which needs targets: set a `class_mode`")
        self.directory = directory
        self.target_size = size = (int(target_size[0]), int(target_size[1]))
        self.color_mode = color_mode
        self.class_mode = class_mode
        self.interpolation = interpolation
        self.keep_aspect_ratio = keep_aspect_ratio
        dtype = "float32" if name_of(self.dtype) == "bfloat16" else name_of(self.dtype)  # of targets; NumPy has no bfloat16
        checks = {"validate_filenames": validate_filenames}
        frame = read_frame(dataframe, directory, x_col, y_col, weight_col, classes, class_mode, dtype, **checks)
        self._take(frame.rows(rows_of(asked, subset, len(frame.files))) if subset is not None else frame)
        image: dict[str, Any] = {"kind": "image", "column": "file"}
        if directory is not None:
            image["root"] = os.path.abspath(directory)
        count, shape = len(self.filenames), (*size, channels_of(color_mode))
        saves = (save_to_dir, save_prefix, save_format)
        if not count:
            warn("the iterator is empty, since all rows of the table were dropped: check the file names, the classes and the subset")
            self._walk_over_nothing(asked, shape, batch_size=batch_size, shuffle=shuffle, seed=seed, saves=saves)
            return
        reading = reading_steps(size, color_mode, interpolation, keep_aspect_ratio, self.filepaths)
        batches = {"batch_size": batch_size, "shuffle": shuffle, "seed": seed_of(seed)}
        spec = rows_spec(asked, "dataframe", image, count, shape, batches, reading, validates=subset == "validation")
        data = {"file": self.filenames, "row": list(range(count))}
        late = not validate_filenames
        self._walk_over(asked, spec, channels=shape[-1], data=data, shuffle=shuffle, seed=seed, saves=saves, late_files=late)

    def _take(self, frame: Frame) -> None:
        self.filenames = frame.files
        self.sample_weight = frame.weights
        self._targets = frame.targets
        if frame.class_indices is not None:
            self.class_indices, self.num_classes, self.classes = frame.class_indices, len(frame.class_indices), frame.classes

    @property
    def labels(self) -> Any:
        """The classes if there are any, else the targets."""
        return self.classes if self.class_mode in ("binary", "categorical", "sparse") else self._y(self._targets)

    @property
    def filepaths(self) -> list[str]:
        """The paths of the files of the subset."""
        return [os.path.join(self.directory or "", name) for name in self.filenames]

    def _y(self, targets: list[Any]) -> Any:
        return targets if self.class_mode == "multi_output" else targets[0] if targets else None

    def _complete(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        import tensorflow as tf

        weights = [] if self.sample_weight is None else [self.sample_weight]
        tables = [tf.constant(a) for a in (*self._targets, *weights)]

        def joined(images: tf.Tensor, rows: tf.Tensor) -> Any:
            found = [tf.gather(t, rows) for t in tables]
            y = self._y(found[: len(self._targets)])
            y = tuple(y) if isinstance(y, list) else images if self.class_mode == "input" else y
            return images if self.class_mode is None else (images, y, *found[len(self._targets) :])

        return batches.map(joined)

    def _arrays(self, batch: Any) -> Any:
        images, rows = batch
        if self.class_mode is None:
            return images
        y = images.copy() if self.class_mode == "input" else self._y([t[rows] for t in self._targets])
        return (images, y) if self.sample_weight is None else (images, y, self.sample_weight[rows])
