"""The methods `flow`, `flow_from_directory` and `flow_from_dataframe`, which make iterators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.compat.frames import OLD_WORDS, without_old_words
from pipegen.compat.specs import Described

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from pipegen.compat.dataframe_iterator import DataFrameIterator
    from pipegen.compat.directory_iterator import DirectoryIterator
    from pipegen.compat.numpy_array_iterator import NumpyArrayIterator


class Flows(Described):
    """A generator's methods that make iterators."""

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
        """Makes batches of augmented images from arrays.

        Args:
            x: Images as an array of 4 dimensions; or a pair of images and further inputs, an array or a list of arrays, which are passed
                through unchanged.
            y: Targets, one for each image: any array.
            batch_size: The number of images in a batch; the last one may be smaller.
            shuffle: A new order in every epoch.
            sample_weight: A weight for each image; needs `y`.
            seed: The seed of the order and the augmentation; by default drawn from NumPy's global stream.
            save_to_dir: A folder to write every image to; `pipegen export` also writes the drawn parameters.
            save_prefix: The beginning of the names of these files.
            save_format: Their format: `png`, `jpeg` or another one of Pillow's.
            ignore_class_split: Accept subsets with different targets.
            subset: `validation` is the first `validation_split` of the rows, neither augmented nor shuffled; `training` is the rest.

        Returns:
            An endless iterator over `x`, `(x, y)` or `(x, y, sample_weight)` as NumPy arrays; `x` is a list if there are further inputs.
            `model.fit` takes it, and its `.dataset`.

        Raises:
            ValueError: For arrays of different lengths, or an unknown subset.
            UnsupportedArgument: For an argument that a spec cannot express.
            SpecError: For images that pipegen cannot read, with the findings.
        """
        given = _named(locals())
        from pipegen.compat.numpy_array_iterator import NumpyArrayIterator

        return NumpyArrayIterator(image_data_generator=self, **given)

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
        """Makes batches of augmented images from a folder.

        Args:
            directory: A folder with a sub-folder for each class.
            target_size: (height, width) that images are resized to.
            color_mode: `rgb`, `rgba` or `grayscale`.
            classes: The class folders in the order of their indices; `["."]` for images without classes, which are neither augmented nor
                shuffled.
            class_mode: `categorical` (one-hot), `binary` (0 or 1; class indices, with a warning, unless there are two classes), `sparse`,
                `input` for the augmented image itself, or `None` for images alone.
            batch_size: The number of images in a batch; the last one may be smaller.
            shuffle: A new order in every epoch.
            seed: The seed of the order and the augmentation; by default drawn from NumPy's global stream.
            save_to_dir: A folder to write every image to; `pipegen export` also writes the drawn parameters.
            save_prefix: The beginning of the names of these files.
            save_format: Their format: `png`, `jpeg` or another one of Pillow's.
            follow_links: Whether to enter linked folders.
            subset: `validation` is the first `validation_split` of the files of each class, neither augmented nor shuffled; `training` is
                the rest.
            interpolation: The filter for resizing: `nearest`, `bilinear`, `bicubic` or `lanczos`.
            keep_aspect_ratio: Crop the largest centred part with the target's proportions first.

        Returns:
            An endless iterator over `x` or `(x, y)` as NumPy arrays. `model.fit` takes it, and its `.dataset`.

        Raises:
            ValueError: For an unknown word.
            UnsupportedArgument: For an argument that a spec cannot express.
            SpecError: For a folder that pipegen cannot read, with the findings.
        """
        given = _named(locals())
        from pipegen.compat.directory_iterator import DirectoryIterator

        return DirectoryIterator(image_data_generator=self, **given)

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
        """Makes batches of augmented images from files that a table names.

        Args:
            dataframe: A DataFrame of pandas, or a map from the names of columns to lists.
            directory: The folder that paths are relative to; by default the working directory.
            x_col: The column of paths, as text.
            y_col: The column of targets; for `raw` one or a list, for `multi_output` a list.
            weight_col: The column of weights.
            target_size: (height, width) that images are resized to.
            color_mode: `rgb`, `rgba` or `grayscale`.
            classes: The classes in the order of their indices; rows of other classes are left out. By default all, sorted.
            class_mode: `categorical` (one-hot, multi-hot for lists), `binary` (two classes), `sparse`, `raw` (the cells unchanged),
                `multi_output` (a list of them), `input` for the augmented image itself, or `None`. `other` is deprecated for `raw`.
            batch_size: The number of images in a batch; the last one may be smaller.
            shuffle: A new order in every epoch.
            seed: The seed of the order and the augmentation; by default drawn from NumPy's global stream.
            save_to_dir: A folder to write every image to; `pipegen export` also writes the drawn parameters.
            save_prefix: The beginning of the names of these files.
            save_format: Their format: `png`, `jpeg` or another one of Pillow's.
            subset: `validation` is the first `validation_split` of the rows, neither augmented nor shuffled; `training` is the rest.
            interpolation: The filter for resizing: `nearest`, `bilinear`, `bicubic` or `lanczos`.
            validate_filenames: Leave out rows whose file does not exist or has no suffix of an image, with a warning. If false, a missing
                file is an error when it is read.
            keep_aspect_ratio: Crop the largest centred part with the target's proportions first. Keras ignores it here.
            has_ext: Ignored, as in Keras, with a warning: the table has whole names.
            sort: Ignored, as in Keras, with a warning: rows have the table's order.
            drop_duplicates: Ignored, as in Keras, with a warning: all rows are kept.

        Returns:
            An endless iterator over `x`, `(x, y)` or `(x, y, weight)` as NumPy arrays. `model.fit` takes it, and its `.dataset`.

        Raises:
            ValueError: For an unknown word.
            TypeError: For cells of the wrong type for the class mode, and for any other keyword, which Keras silently ignores.
            UnsupportedArgument: For an argument that a spec cannot express.
            SpecError: For files that pipegen cannot read, with the findings.
        """
        class_mode = without_old_words(class_mode, has_ext=has_ext, sort=sort, drop_duplicates=drop_duplicates)
        given = _named(locals(), *OLD_WORDS)
        from pipegen.compat.dataframe_iterator import DataFrameIterator

        return DataFrameIterator(image_data_generator=self, data_format=None, dtype=None, **given)


def _named(arguments: dict[str, Any], *but: str) -> dict[str, Any]:
    """Removes `self` and others from the arguments of a method; iterators have the same names for the rest."""
    return {name: value for name, value in arguments.items() if name not in ("self", *but)}
