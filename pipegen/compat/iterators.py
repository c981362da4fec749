"""`DirectoryIterator`, `DataFrameIterator` and `NumpyArrayIterator`, the iterators of the flows. Importing this imports TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pipegen.compat.base_iterator import CompiledIterator
from pipegen.compat.checks import UnsupportedArgument, warn
from pipegen.compat.flow_specs import UNLABELLED, Described, channels_of, reading_steps, rows_of, seed_of
from pipegen.compat.frames import read_frame
from pipegen.compat.generator_arguments import name_of
from pipegen.compat.images import Array
from pipegen.errors import SpecError
from pipegen.lazy import np, tf

_OF_SPEC = ("color_mode", "classes", "class_mode", "batch_size", "shuffle", "follow_links", "interpolation", "keep_aspect_ratio")
"""Arguments that an iterator of a folder and `to_spec` have alike."""


class DirectoryIterator(CompiledIterator):
    """Batches from a folder.

    Arguments and errors are those of `ImageDataGenerator.flow_from_directory`.

    Args:
        image_data_generator: The generator; `None` for one without arguments.
        data_format: The data format, in place of the generator's.
        dtype: The dtype, in place of the generator's.

    Attributes:
        directory: The folder.
        class_indices: The index of each class, by name.
        num_classes: The number of classes.
        classes: The class index of each file of the subset, int32, in the order of `filenames`.
        filenames: The files of the subset, relative to the folder, in stored order, which is that of batches without shuffling.
        filepaths: Their paths.
        class_mode: As given; likewise `target_size`, `color_mode`, `interpolation`, `keep_aspect_ratio` and `follow_links`.
    """

    _numbered = False

    def __init__(
        self,
        directory: str | os.PathLike[str],
        image_data_generator: Described | None,
        target_size: tuple[int, int] = (256, 256),
        color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        data_format: str | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        follow_links: bool = False,
        subset: str | None = None,
        interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
        dtype: Any = None,
    ) -> None:
        given = locals()
        asked = self._ask(given)
        self.directory = directory
        height, width = target_size
        self.target_size = (height, width)
        self.color_mode, self.class_mode, self.follow_links = color_mode, class_mode, follow_links
        self.interpolation, self.keep_aspect_ratio = interpolation, keep_aspect_ratio
        alike = {name: given[name] for name in _OF_SPEC}
        spec = asked.to_spec(directory, target_size=(int(height), int(width)), seed=seed_of(seed), **alike)
        unlabelled = classes is not None and list(classes) == UNLABELLED
        if subset is None:
            spec.pop("splits", None)
        elif unlabelled:
            raise UnsupportedArgument("subset", "all images without classes are for prediction", "leave it out")
        split = "predict" if unlabelled else "validation" if subset == "validation" else "train"
        channels = channels_of(color_mode)
        self._numbers = False
        try:
            self._walk_over(asked, spec, split, channels=channels)
        except SpecError as error:
            errors = [d for d in error.diagnostics if d.severity.value == "error"]
            if class_mode != "binary" or [d.code for d in errors] != ["PG218"]:
                raise
            self._numbers = True
            spec["output"]["encode"] = {"label": "int"}
            self._walk_over(asked, spec, split, channels=channels)
            number = len(self.pipeline.class_names)
            warn(f"`class_mode='binary'` returns the class indices, as in Keras, because there are {number} classes, not two; use 'sparse'")
        self.filenames = [os.path.relpath(path, self.directory) for path in self.pipeline.files(self._split)]
        labels = self.pipeline.labels(self._split)
        names = UNLABELLED if labels is None else self.pipeline.class_names
        self.class_indices = {name: i for i, name in enumerate(names)}
        self.num_classes = len(names)
        self.classes: Array = np.zeros(self.n, np.int32) if labels is None else labels.astype(np.int32)

    @property
    def labels(self) -> Array:
        """The same as `classes`."""
        return self.classes

    @property
    def filepaths(self) -> list[str]:
        """The paths of the files of the subset."""
        return [os.path.join(self.directory, name) for name in self.filenames]

    def _complete(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        return batches.map(lambda x, y: (x, tf.cast(y, x.dtype)[:, None])) if self._numbers else batches

    def _arrays(self, batch: Any) -> Any:
        if self.class_mode is None:
            return batch
        images, y = batch
        if self.class_mode == "input":
            return images, y
        return images, (y if self.class_mode == "categorical" else y.reshape(-1)).astype(images.dtype)


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
        given = locals()
        asked = self._ask(given)
        if weight_col is not None and class_mode is None:
            raise ValueError("`weight_col` weighs the loss, which needs targets: set a `class_mode`")
        self.directory = directory
        self.target_size = size = (int(target_size[0]), int(target_size[1]))
        self.color_mode, self.class_mode = color_mode, class_mode
        self.interpolation, self.keep_aspect_ratio = interpolation, keep_aspect_ratio
        dtype = "float32" if name_of(self.dtype) == "bfloat16" else name_of(self.dtype)  # of targets; NumPy has no bfloat16
        frame = read_frame(given, dtype)
        if subset is not None:
            frame = frame.rows(rows_of(asked, subset, len(frame.files)))
        self.filenames, self.sample_weight, self._targets = frame.files, frame.weights, frame.targets
        if frame.class_indices is not None:
            self.class_indices, self.num_classes, self.classes = frame.class_indices, len(frame.class_indices), frame.classes
        image: dict[str, Any] = {"kind": "image", "column": "file"}
        if directory is not None:
            image["root"] = os.path.abspath(directory)
        count, shape = len(self.filenames), (*size, channels_of(color_mode))
        if not count:
            warn("the iterator is empty, since all rows of the table were dropped: check the file names, the classes and the subset")
            self._walk_over_nothing(asked, shape, batch_size)
            return
        reading = reading_steps(size, color_mode, interpolation, keep_aspect_ratio, self.filepaths)
        batches: dict[str, Any] = {"batch_size": batch_size, "shuffle": shuffle, "seed": seed_of(seed)}
        spec = asked._rows_spec("dataframe", image, (count, *shape), reading, validates=subset == "validation", **batches)
        data = {"file": self.filenames, "row": list(range(count))}
        self._walk_over(asked, spec, channels=shape[-1], data=data, late_files=not validate_filenames)

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

    def _beside(self) -> list[Array]:
        return [*self._targets, *([] if self.sample_weight is None else [self.sample_weight])]

    def _packed(self, images: Any, found: list[Any], *, listed: bool = False) -> Any:
        count = len(self._targets)
        y = self._y(found[:count])
        y = tuple(y) if isinstance(y, list) and not listed else y
        if self.class_mode == "input":
            y = images.copy() if listed else images
        return images if self.class_mode is None else (images, y, *found[count:])


class NumpyArrayIterator(CompiledIterator):
    """Batches from arrays.

    Arguments and errors are those of `ImageDataGenerator.flow`.

    Args:
        image_data_generator: The generator; `None` for one without arguments.
        shuffle: Off by default, unlike in `flow`.
        data_format: The data format, in place of the generator's.
        dtype: The dtype, in place of the generator's.

    Attributes:
        x: The images of the subset, channels last.
        y: Their targets, or `None`.
        sample_weight: Their weights, or `None`.
        x_misc: The further inputs.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        image_data_generator: Described | None,
        batch_size: int = 32,
        shuffle: bool = False,
        sample_weight: Any = None,
        seed: int | None = None,
        data_format: str | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        ignore_class_split: bool = False,
        dtype: Any = None,
    ) -> None:
        asked = self._ask(locals())
        images, misc = _images(x)
        _check_rows(len(images), misc, y, sample_weight)
        rows = rows_of(asked, subset, len(images))
        if subset is not None and y is not None and not ignore_class_split:
            _check_targets(np.asarray(y), rows)
        part = slice(rows.start, rows.stop)
        self.x = kept = _as_last(images[part], self.data_format)
        if not len(kept):
            raise ValueError(f"the subset {subset!r} of {len(images)} images is empty")
        self.x_misc = [array[part] for array in misc]
        self.y = None if y is None else np.asarray(y)[part]
        self.sample_weight = None if sample_weight is None else np.asarray(sample_weight)[part]
        batches: dict[str, Any] = {"batch_size": batch_size, "shuffle": shuffle, "seed": seed_of(seed)}
        spec = asked._rows_spec("arrays", {"kind": "image"}, kept.shape, validates=subset == "validation", **batches)
        self._walk_over(asked, spec, channels=kept.shape[-1], data={"image": kept, "row": np.arange(len(kept))})

    def _beside(self) -> list[Array]:
        """Lists the arrays, those of `x` first."""
        return [*self.x_misc, *(a for a in (self.y, self.sample_weight) if a is not None)]

    def _packed(self, images: Any, found: list[Any], *, listed: bool = False) -> Any:
        """Packs `x`, `(x, y)` or `(x, y, sample_weight)`."""
        count = len(self.x_misc)
        inputs = [images, *found[:count]]
        x: Any = images if count == 0 else inputs if listed else tuple(inputs)
        return (x, *found[count:]) if len(found) > count else x


def _images(x: Any) -> tuple[Array, list[Array]]:
    """Splits `x` into the images and the further inputs."""
    misc: list[Array] = []
    if isinstance(x, (tuple, list)):
        if len(x) != 2:
            message = f"`x` is an array, or a pair of images and further inputs, got {len(x)} items"
            raise ValueError(f"{message}; stack a list of images with `np.stack`")
        misc = [np.asarray(m) for m in (x[1] if isinstance(x[1], list) else [x[1]])]
        x = x[0]
    images = np.asarray(x)
    if images.ndim != 4:
        raise ValueError(f"images must be an array of 4 dimensions, got the shape {images.shape}")
    return images, misc


def _check_rows(count: int, misc: list[Array], y: Any, sample_weight: Any) -> None:
    """Checks that all arrays have a row for each image; the messages begin like Keras', which programs may match."""
    if sample_weight is not None and y is None:
        raise ValueError("`sample_weight` weighs the loss, which needs targets: pass `y`")
    beside = [
        *(("All of the arrays in `x`", "a further input", array) for array in misc),
        ("`x` (images tensor) and `y` (labels)", "`y`", y),
        ("`x` (images tensor) and `sample_weight`", "`sample_weight`", sample_weight),
    ]
    for which, name, array in beside:
        if array is not None and len(array) != count:
            raise ValueError(f"{which} must have one row for each image: there are {count} images, but {name} has {len(array)} rows")


def _check_targets(y: Array, rows: range) -> None:
    inside, outside = y[rows.start : rows.stop], np.concatenate([y[: rows.start], y[rows.stop :]])
    if not np.array_equal(np.unique(inside), np.unique(outside)):
        found = "Training and validation subsets have different number of classes after the split, or different classes"
        raise ValueError(f"{found}: the first rows are validation; shuffle the arrays first, or pass `ignore_class_split=True`")


def _as_last(images: Array, data_format: str) -> Array:
    """Moves the channels last, and casts to a dtype that pipegen reads; a view if possible."""
    if data_format == "channels_first":
        images = np.moveaxis(images, 1, -1)
    known = images.dtype.kind == "f" or images.dtype in (np.uint8, np.uint16)
    if known or images.dtype.kind not in "biuO":
        return images
    try:
        numbers = images.astype(np.float64) if images.dtype.kind == "O" else images
    except (TypeError, ValueError):
        return images  # reported with the other findings
    whole = images.dtype.kind != "O" or not (numbers % 1).any()
    bytes_do = whole and numbers.size > 0 and numbers.min() >= 0 and numbers.max() <= 255
    cast: Array = numbers.astype(np.uint8 if bytes_do else np.float32)
    warn(f"the images are {images.dtype}, and are cast to {cast.dtype}: pass `x.astype({str(cast.dtype)!r})` to avoid the copy")
    return cast
