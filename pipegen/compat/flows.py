"""The flows: from a generator and a flow's arguments to a pipeline, and to an iterator over it."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

from pipegen.compat.arguments import Arguments
from pipegen.compat.frames import read_frame
from pipegen.compat.functions import handing
from pipegen.compat.refusals import UnsupportedArgument
from pipegen.compat.specs import (
    UNLABELLED,
    array_dtype,
    channels_of,
    reading_steps,
    rows_spec,
    sections,
    source_of,
    split_section,
    targets,
    write_spec,
)
from pipegen.compat.steps import augments, check_fitted, image_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from pipegen.compat.iterators import DataFrameIterator, DirectoryIterator, NumpyArrayIterator

    Array = np.ndarray[Any, Any]


class Flows(Arguments):
    """The methods that give specs and iterators."""

    def flow(
        self,
        x: Any,
        y: Any = None,
        batch_size: int = 32,
        shuffle: bool = True,
        sample_weight: Any = None,
        seed: int | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        ignore_class_split: bool = False,
        subset: str | None = None,
    ) -> NumpyArrayIterator:
        """Batches of augmented images from arrays.

        Args:
            x: Images as an array of 4 dimensions; or a pair of such an array and another one, or a list of arrays, which go along
                untouched.
            y: Targets, one for each image: any array.
            batch_size: Images in a batch; the last one may be smaller.
            shuffle: A new order in every epoch.
            sample_weight: A weight for each image; needs `y`.
            seed: Keys the order and the augmentation. Without it, one is drawn from NumPy's global stream.
            save_to_dir: A folder for every image that is handed over; `pipegen export` writes as well what was drawn for each.
            save_prefix: What the names of those files begin with.
            save_format: Their format: `png`, `jpeg` or another one of Pillow's.
            ignore_class_split: Accept that the subsets hold different targets.
            subset: `validation` is the first `validation_split` of the rows, neither augmented nor shuffled; `training` is the rest.

        Returns:
            An iterator without an end that gives `x`, `(x, y)` or `(x, y, sample_weight)` as NumPy arrays, where `x` is a list when arrays
            go along. `model.fit` takes it, and its `.dataset`.

        Raises:
            ValueError: For arrays that do not belong together, or an unknown subset.
            UnsupportedArgument: For an argument that no spec expresses.
            SpecError: For images that pipegen cannot read, with what is wrong.
        """
        import numpy as np

        from pipegen.compat.iterators import NumpyArrayIterator

        _check(self, subset)
        images, misc = _images(x)
        beside = {"y": y, "sample_weight": sample_weight}
        arrays = {name: np.asarray(value) for name, value in beside.items() if value is not None}
        if sample_weight is not None and y is None:
            raise ValueError("`sample_weight` weighs the loss, which needs targets: give `y`")
        for name, value in [*arrays.items(), *(("x", m) for m in misc)]:
            if len(value) != len(images):
                raise ValueError(f"`{name}` has {len(value)} rows, and there are {len(images)} images")
        rows = slice(None)
        if subset is not None:
            cut = int(len(images) * self._validation_split)
            rows = slice(cut) if subset == "validation" else slice(cut, None)
            if y is not None and not misc and not ignore_class_split:
                _same_targets(arrays["y"], cut)
        kept = _as_last(images[rows], self.data_format)
        if not len(kept):
            raise ValueError(f"there are no images in the subset {subset!r} of {len(images)}")
        batches = {"batch_size": batch_size, "shuffle": shuffle, "seed": _seed(seed)}
        return NumpyArrayIterator(
            self,
            rows_spec(self, "arrays", {"kind": "image"}, len(kept), kept.shape[1:], batches, validates=subset == "validation"),
            kept,
            {name: value[rows] for name, value in arrays.items()},
            [value[rows] for value in misc],
            shuffle=shuffle,
            seed=seed,
            subset=subset,
            saves=(save_to_dir, save_prefix, save_format),
        )

    def flow_from_directory(
        self,
        directory: str | os.PathLike[str],
        target_size: tuple[int, int] = (256, 256),
        color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        follow_links: bool = False,
        subset: str | None = None,
        interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
    ) -> DirectoryIterator:
        """Batches of augmented images from a folder.

        Args:
            directory: A folder with a sub-folder for each class.
            target_size: (height, width) that images are resized to.
            color_mode: `rgb` or `grayscale`.
            classes: The class folders in the order of their indices; `["."]` for images without classes, which are neither augmented nor
                shuffled.
            class_mode: `categorical` (one-hot), `binary` (two classes), `sparse`, `input` for the augmented image itself, or `None` for
                images alone.
            batch_size: Images in a batch; the last one may be smaller.
            shuffle: A new order in every epoch.
            seed: Keys the order and the augmentation. Without it, one is drawn from NumPy's global stream.
            save_to_dir: A folder for every image that is handed over; `pipegen export` writes as well what was drawn for each.
            save_prefix: What the names of those files begin with.
            save_format: Their format: `png`, `jpeg` or another one of Pillow's.
            follow_links: Whether linked folders are entered.
            subset: `validation` is the first `validation_split` of the files of each class, neither augmented nor shuffled; `training` is
                the rest.
            interpolation: How files are resized: `nearest`, `bilinear`, `bicubic` or `lanczos`.
            keep_aspect_ratio: Cut out the largest centred part of the target's proportions first.

        Returns:
            An iterator without an end that gives `x` or `(x, y)` as NumPy arrays. `model.fit` takes it, and its `.dataset`.

        Raises:
            ValueError: For an unknown word.
            UnsupportedArgument: For an argument that no spec expresses.
            SpecError: For a folder that pipegen cannot read, with what is wrong.
        """
        from pipegen.compat.iterators import DirectoryIterator

        _check(self, subset)
        height, width = target_size
        check_fitted(self)
        spec = handing(self).to_spec(
            directory,
            target_size=(int(height), int(width)),
            color_mode=color_mode,
            classes=classes,
            class_mode=class_mode,
            batch_size=batch_size,
            shuffle=shuffle,
            seed=_seed(seed),
            follow_links=follow_links,
            interpolation=interpolation,
            keep_aspect_ratio=keep_aspect_ratio,
        )
        unlabelled = classes is not None and list(classes) == UNLABELLED
        if subset is None:
            spec.pop("splits", None)
        elif unlabelled:
            raise UnsupportedArgument("subset", "images without classes are for prediction, all of them", "leave it out")
        settings = {
            "directory": directory,
            "target_size": (height, width),
            "color_mode": color_mode,
            "class_mode": class_mode,
            "interpolation": interpolation,
            "keep_aspect_ratio": keep_aspect_ratio,
            "follow_links": follow_links,
        }
        split = "predict" if unlabelled else "validation" if subset == "validation" else "train"
        saves = (save_to_dir, save_prefix, save_format)
        return DirectoryIterator(self, spec, split, settings, shuffle=shuffle, seed=seed, subset=subset, saves=saves)

    def flow_from_dataframe(
        self,
        dataframe: Any,
        directory: str | os.PathLike[str] | None = None,
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
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        interpolation: str = "nearest",
        validate_filenames: bool = True,
    ) -> DataFrameIterator:
        """Batches of augmented images from files that a table names.

        Args:
            dataframe: A DataFrame of pandas, or a map from the names of columns to lists.
            directory: The folder that paths are relative to; by default the working directory.
            x_col: The column of paths, as text.
            y_col: The column of targets; for `raw` one or a list, for `multi_output` a list.
            weight_col: The column of weights.
            target_size: (height, width) that images are resized to.
            color_mode: `rgb` or `grayscale`.
            classes: The classes in the order of their indices; rows of others are left out. By default all, sorted.
            class_mode: `categorical` (one-hot, multi-hot for lists), `binary` (two classes), `sparse`, `raw` (the cells as they are),
                `multi_output` (a list of them), `input` for the augmented image itself, or `None`.
            batch_size: Images in a batch; the last one may be smaller.
            shuffle: A new order in every epoch.
            seed: Keys the order and the augmentation. Without it, one is drawn from NumPy's global stream.
            save_to_dir: A folder for every image that is handed over; `pipegen export` writes as well what was drawn for each.
            save_prefix: What the names of those files begin with.
            save_format: Their format: `png`, `jpeg` or another one of Pillow's.
            subset: `validation` is the first `validation_split` of the rows, neither augmented nor shuffled; `training` is the rest.
            interpolation: How files are resized: `nearest`, `bilinear`, `bicubic` or `lanczos`.
            validate_filenames: Leave out rows whose file does not exist or has not the suffix of an image, with a warning.

        Returns:
            An iterator without an end that gives `x`, `(x, y)` or `(x, y, weight)` as NumPy arrays. `model.fit` takes it, and its
            `.dataset`.

        Raises:
            ValueError: For an unknown word, or a table of which no row is left.
            TypeError: For cells of another type than the class mode takes, and for a keyword that Keras passes over in silence.
            UnsupportedArgument: For an argument that no spec expresses.
            SpecError: For files that pipegen cannot read, with what is wrong.
        """
        from pipegen.compat.iterators import DataFrameIterator

        _check(self, subset)
        if weight_col is not None and class_mode is None:
            raise ValueError("`weight_col` weighs the loss, which needs targets: give a `class_mode`")
        checks = {"validate_filenames": validate_filenames}
        frame = read_frame(dataframe, directory, x_col, y_col, weight_col, classes, class_mode, array_dtype(self.dtype), **checks)
        if subset is not None:
            cut = int(len(frame.files) * self._validation_split)
            frame = frame.rows(range(cut) if subset == "validation" else range(cut, len(frame.files)))
        if not frame.files:
            raise ValueError("no row of the table is left")
        image: dict[str, Any] = {"kind": "image", "column": "file"}
        if directory is not None:
            image["root"] = os.path.abspath(directory)
        size, channels = (int(target_size[0]), int(target_size[1])), channels_of(color_mode)
        reading = reading_steps(size, color_mode, interpolation, keep_aspect_ratio=False)
        batches = {"batch_size": batch_size, "shuffle": shuffle, "seed": _seed(seed)}
        spec = rows_spec(self, "dataframe", image, len(frame.files), (*size, channels), batches, reading, validates=subset == "validation")
        settings = {
            "directory": directory,
            "target_size": (size[0], size[1]),
            "color_mode": color_mode,
            "class_mode": class_mode,
            "interpolation": interpolation,
        }
        saves = (save_to_dir, save_prefix, save_format)
        return DataFrameIterator(self, spec, frame, settings, shuffle=shuffle, seed=seed, subset=subset, saves=saves)

    def to_spec(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        target_size: tuple[int, int] | None = None,
        color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int = 0,
        follow_links: bool = False,
        interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
        write: str | os.PathLike[str] | None = None,
    ) -> dict[str, Any]:
        """The spec that this generator and a flow's arguments stand for.

        It says what Keras documents, with these differences: validation data is not augmented; `zoom_range` draws the magnification
        uniformly, where Keras draws its reciprocal; shear slants, where Keras stretches the other side by 1/cos as well; a channel shift
        is clipped to the range of all images; brightness keeps fractions; whitening is fitted on the training split of the spec's data,
        whatever `fit` has seen, and adds `zca_epsilon` to variances.

        Featurewise statistics are those that `fit` found; before `fit`, the pipeline measures its training split.

        Args:
            directory: The folder with a sub-folder for each class, as for `flow_from_directory`. Without it the source is `arrays`,
                with an `image` and, for a mode with classes, a `label`, which come from `pipegen.build(spec, data=)`; with `input`
                and without a `validation_split` that is `data={"train": {"image": x}}`.
            target_size: (height, width); (256, 256) by default for a folder. For arrays it says how large they are, which shifts by
                pixels need.
            color_mode: `rgb` or `grayscale`.
            classes: The class folders in the order of their indices; `["."]` for images without classes.
            class_mode: `categorical`, `binary`, `sparse`, `input` or `None`.
            batch_size: Images in a batch; the last one may be smaller.
            shuffle: Whether training images are shuffled.
            seed: Keys the order and the augmentation.
            follow_links: Whether linked folders are entered.
            interpolation: `nearest`, `bilinear`, `bicubic` or `lanczos`.
            keep_aspect_ratio: Cut out the largest centred part of the target's proportions instead of distorting the picture.
            write: A file to write it to as YAML; the folder is then relative to that file.

        Returns:
            The sections, for `pipegen.build` or `pipegen.load`.

        Raises:
            UnsupportedArgument: For the first argument that no spec expresses; it names the argument and says what to do meanwhile.
        """
        source = source_of(directory, classes=classes, class_mode=class_mode, follow_links=follow_links, write=write)
        size, steps = target_size, []
        if directory is not None:
            size = target_size if target_size is not None else (256, 256)
            steps = reading_steps(size, color_mode, interpolation, keep_aspect_ratio)
        steps += image_steps(self, size, channels_of(color_mode), measured=True)
        if class_mode == "input" and directory is None and not self._validation_split:
            source = {"by_split": {"train": source}}  # without labels all would be for prediction
        spec = sections(self, source, steps, batch_size=batch_size, shuffle=shuffle, seed=seed)
        spec["output"] = {**spec["output"], **targets(class_mode, labelled=directory is None or list(classes or ()) != UNLABELLED)}
        if self._validation_split:
            spec["splits"] = split_section(self._validation_split)
        if write is not None:
            write_spec(spec, write)
        return spec


def _check(generator: Arguments, subset: str | None) -> None:
    """What both flows ask of their arguments, and of the generator."""
    if subset not in (None, "training", "validation"):
        raise ValueError(f"`subset` is 'training', 'validation' or None, got {subset!r}")
    if subset is not None and not generator._validation_split:
        raise ValueError(f"`subset={subset!r}` needs a `validation_split` of the generator")
    if subset == "validation" and augments(generator):
        warnings.warn("the validation subset is not augmented here; Keras augments it", stacklevel=3)


def _images(x: Any) -> tuple[Array, list[Array]]:
    """The images, and the arrays that go along."""
    import numpy as np

    misc: list[Array] = []
    if isinstance(x, (tuple, list)):
        if len(x) != 2:
            message = f"`x` is an array, or a pair of the images and what goes along, got {len(x)} things"
            raise ValueError(f"{message}; stack a list of images with `np.stack`")
        misc = [np.asarray(m) for m in (x[1] if isinstance(x[1], list) else [x[1]])]
        x = x[0]
    images = np.asarray(x)
    if images.ndim != 4:
        raise ValueError(f"images are an array of 4 dimensions, got the shape {images.shape}")
    return images, misc


def _as_last(images: Array, data_format: str) -> Array:
    """The images with their channels last, of a dtype that pipegen reads; a view where that is possible."""
    import numpy as np

    if data_format == "channels_first":
        images = np.moveaxis(images, 1, -1)
    if images.dtype.kind not in "biu" or images.dtype in (np.uint8, np.uint16):
        return images
    bytes_do = images.size > 0 and images.min() >= 0 and images.max() <= 255
    return images.astype(np.uint8 if bytes_do else np.float32)


def _same_targets(y: Array, cut: int) -> None:
    import numpy as np

    if not np.array_equal(np.unique(y[:cut]), np.unique(y[cut:])):
        message = "the training and the validation subset hold different targets, since the first rows are validation"
        raise ValueError(f"{message}; shuffle the arrays first, or pass `ignore_class_split=True`")


def _seed(given: int | None) -> int:
    import numpy as np

    return int(given) if given is not None else int(np.random.randint(2**31 - 1))
