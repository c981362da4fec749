"""The flows, which are iterators made with a generator's own format and dtype, and the spec that they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.compat.arguments import Arguments
from pipegen.compat.depth import files_below
from pipegen.compat.frames import without_old_words
from pipegen.compat.specs import UNLABELLED, channels_of, reading_steps, sections, source_of, split_section, targets, write_spec
from pipegen.compat.steps import image_steps

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from pipegen.compat.dataframe_iterator import DataFrameIterator
    from pipegen.compat.directory_iterator import DirectoryIterator
    from pipegen.compat.numpy_array_iterator import NumpyArrayIterator


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
        from pipegen.compat.numpy_array_iterator import NumpyArrayIterator

        return NumpyArrayIterator(
            x,
            y,
            self,
            batch_size=batch_size,
            shuffle=shuffle,
            sample_weight=sample_weight,
            seed=seed,
            save_to_dir=save_to_dir,
            save_prefix=save_prefix,
            save_format=save_format,
            subset=subset,
            ignore_class_split=ignore_class_split,
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
            color_mode: `rgb`, `rgba` or `grayscale`.
            classes: The class folders in the order of their indices; `["."]` for images without classes, which are neither augmented nor
                shuffled.
            class_mode: `categorical` (one-hot), `binary` (0 or 1; with another number of classes than two their indices, with a
                warning), `sparse`, `input` for the augmented image itself, or `None` for images alone.
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
        from pipegen.compat.directory_iterator import DirectoryIterator

        return DirectoryIterator(
            directory,
            self,
            target_size=target_size,
            color_mode=color_mode,
            classes=classes,
            class_mode=class_mode,
            batch_size=batch_size,
            shuffle=shuffle,
            seed=seed,
            save_to_dir=save_to_dir,
            save_prefix=save_prefix,
            save_format=save_format,
            follow_links=follow_links,
            subset=subset,
            interpolation=interpolation,
            keep_aspect_ratio=keep_aspect_ratio,
        )

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
        *,
        keep_aspect_ratio: bool = False,
        has_ext: bool | None = None,
        sort: bool | None = None,
        drop_duplicates: bool | None = None,
    ) -> DataFrameIterator:
        """Batches of augmented images from files that a table names.

        Args:
            dataframe: A DataFrame of pandas, or a map from the names of columns to lists.
            directory: The folder that paths are relative to; by default the working directory.
            x_col: The column of paths, as text.
            y_col: The column of targets; for `raw` one or a list, for `multi_output` a list.
            weight_col: The column of weights.
            target_size: (height, width) that images are resized to.
            color_mode: `rgb`, `rgba` or `grayscale`.
            classes: The classes in the order of their indices; rows of others are left out. By default all, sorted.
            class_mode: `categorical` (one-hot, multi-hot for lists), `binary` (two classes), `sparse`, `raw` (the cells as they are),
                `multi_output` (a list of them), `input` for the augmented image itself, or `None`. `other` is an old word for `raw`.
            batch_size: Images in a batch; the last one may be smaller.
            shuffle: A new order in every epoch.
            seed: Keys the order and the augmentation. Without it, one is drawn from NumPy's global stream.
            save_to_dir: A folder for every image that is handed over; `pipegen export` writes as well what was drawn for each.
            save_prefix: What the names of those files begin with.
            save_format: Their format: `png`, `jpeg` or another one of Pillow's.
            subset: `validation` is the first `validation_split` of the rows, neither augmented nor shuffled; `training` is the rest.
            interpolation: How files are resized: `nearest`, `bilinear`, `bicubic` or `lanczos`.
            validate_filenames: Leave out rows whose file does not exist or has not the suffix of an image, with a warning. With
                `False`, a missing file is an error when it is read.
            keep_aspect_ratio: Cut out the largest centred part of the target's proportions first. Keras passes over it here.
            has_ext: Without effect, as in Keras, and with a warning: the table has whole names.
            sort: Likewise: rows stand in the table's order.
            drop_duplicates: Likewise: rows are kept as they are.

        Returns:
            An iterator without an end that gives `x`, `(x, y)` or `(x, y, weight)` as NumPy arrays. `model.fit` takes it, and its
            `.dataset`.

        Raises:
            ValueError: For an unknown word, or a table of which no row is left.
            TypeError: For cells of another type than the class mode takes, and for any other keyword, which Keras passes over in silence.
            UnsupportedArgument: For an argument that no spec expresses.
            SpecError: For files that pipegen cannot read, with what is wrong.
        """
        from pipegen.compat.dataframe_iterator import DataFrameIterator

        class_mode = without_old_words(class_mode, has_ext=has_ext, sort=sort, drop_duplicates=drop_duplicates)
        return DataFrameIterator(
            dataframe,
            directory,
            self,
            x_col=x_col,
            y_col=y_col,
            weight_col=weight_col,
            target_size=target_size,
            color_mode=color_mode,
            classes=classes,
            class_mode=class_mode,
            batch_size=batch_size,
            shuffle=shuffle,
            seed=seed,
            data_format=None,
            save_to_dir=save_to_dir,
            save_prefix=save_prefix,
            save_format=save_format,
            subset=subset,
            interpolation=interpolation,
            keep_aspect_ratio=keep_aspect_ratio,
            dtype=None,
            validate_filenames=validate_filenames,
        )

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
            color_mode: `rgb`, `rgba` or `grayscale`.
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
            steps = reading_steps(size, color_mode, interpolation, keep_aspect_ratio, files_below(directory, links=follow_links))
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
