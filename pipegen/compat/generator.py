"""`ImageDataGenerator`: draws, transforms of single images, statistics, and flows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pipegen.compat.checks import warn
from pipegen.compat.flow_specs import Described, is_choice
from pipegen.compat.frames import OLD_WORDS, without_old_words
from pipegen.compat.generator_arguments import check_flows
from pipegen.compat.images import Array, moments, whitening
from pipegen.compat.single_images import apply_affine_transform, apply_brightness_shift, apply_channel_shift, flip_axis, shift_names
from pipegen.lazy import np

if TYPE_CHECKING:
    from pipegen.compat.iterators import DataFrameIterator, DirectoryIterator, NumpyArrayIterator

_EPSILON = 1e-6  # added to a standard deviation before it divides
_MOVES = {"theta": 0, "tx": 0, "ty": 0, "shear": 0, "zx": 1, "zy": 1}
"""Arguments of `apply_affine_transform`, with the values that change nothing."""
_BLOCK = 256  # number of images in a block for statistics


class ImageDataGenerator(Described):
    """Keras' `ImageDataGenerator` on pipegen: the same arguments, the documented behaviour, and compiled flows.

    Args:
        featurewise_center: Subtract from each channel its mean over the data passed to `fit`.
        samplewise_center: Subtract from each image its mean, one number for all channels.
        featurewise_std_normalization: Divide each channel by its standard deviation over the data passed to `fit`; also centres.
        samplewise_std_normalization: Divide each image by its standard deviation; also centres.
        zca_whitening: Whiten by the matrix that `fit` computes; also centres, and replaces `featurewise_std_normalization`.
        zca_epsilon: Added to the singular values of the data before division.
        rotation_range: Maximal rotation in degrees, in either direction.
        width_shift_range: Horizontal shift: a float below 1 is a fraction of the width, from 1 on pixels; a whole number n draws whole
            pixels *below* n; a list draws one of its values, with either sign.
        height_shift_range: Vertical shift, as `width_shift_range`.
        brightness_range: A pair of factors; 1 changes nothing.
        shear_range: Maximal shear in degrees.
        zoom_range: A number z for [1 - z, 1 + z], or a pair; below 1 magnifies. Each axis draws its own.
        channel_shift_range: Maximal amount added to all channels, of either sign, clipped to the values of the image.
        fill_mode: Pixels outside of the image: `nearest`, `constant`, `reflect`, `wrap`.
        cval: The value outside for `constant`, before `rescale`.
        horizontal_flip: Mirror half of the images left to right.
        vertical_flip: Mirror half of the images upside down.
        rescale: A factor for the values, after `preprocessing_function`.
        preprocessing_function: A function called with each image after the augmentation; it returns an image of the same shape.
        data_format: `channels_last` or `channels_first`; Keras' setting by default.
        validation_split: The share of the data for `subset="validation"`.
        interpolation_order: The order of the spline, 0 to 5.
        dtype: The dtype of the arrays; Keras' `floatx` by default. Flows compute `float64` as float32, and return float64.
        geometry: `documented`, or `keras3` for the actual behaviour of Keras 2.9 to 3: the two shifts swapped, the centre of images that
            are not square misplaced, and brightness through 8-bit numbers.

    Raises:
        ValueError: For arguments that Keras rejects, too.
    """

    # Flows, which make iterators

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
        return self._flow("NumpyArrayIterator", locals())

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
        return self._flow("DirectoryIterator", locals())

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
        return self._flow("DataFrameIterator", {**locals(), "data_format": None, "dtype": None})

    def _flow(self, kind: str, arguments: dict[str, Any]) -> Any:
        """Makes an iterator from the arguments of a method, which have the same names there."""
        from pipegen.compat import iterators

        given = {name: value for name, value in arguments.items() if name not in ("self", *OLD_WORDS)}
        return getattr(iterators, kind)(image_data_generator=self, **given)

    # One image

    def get_random_transform(self, img_shape: tuple[int, ...], seed: int | None = None) -> dict[str, Any]:
        """Draws the parameters of one transform.

        Args:
            img_shape: The shape of the image, 3 dimensions.
            seed: A seed, for which the parameters are those of Keras; NumPy's global stream is not touched. Without it, that stream is
                used.

        Returns:
            `theta` and `shear` in degrees, `tx` and `ty` in pixels, `zx` and `zy`, `flip_horizontal`, `flip_vertical`,
            `channel_shift_intensity` and `brightness` (`None` if not enabled).
        """
        return self._draw(img_shape, _stream(seed))

    def _draw(self, img_shape: tuple[int, ...], rng: Any) -> dict[str, Any]:
        """Draws in Keras' order, so that equal seeds draw equal parameters."""
        height, width = img_shape[self.row_axis - 1], img_shape[self.col_axis - 1]
        for_height, for_width = shift_names(self.geometry)
        channel_shift, bright = self.channel_shift_range, self.brightness_range
        low, high = self.zoom_range
        drawn: dict[str, Any] = {
            "theta": rng.uniform(-self.rotation_range, self.rotation_range) if self.rotation_range else 0,
            for_height: _distance(rng, self.height_shift_range, height),
            for_width: _distance(rng, self.width_shift_range, width),
            "shear": rng.uniform(-self.shear_range, self.shear_range) if self.shear_range else 0,
        }
        drawn["zx"], drawn["zy"] = (1, 1) if low == 1 and high == 1 else rng.uniform(low, high, 2)
        return drawn | {
            # Both coins are always thrown, to stay in step with Keras' stream.
            "flip_horizontal": rng.random_sample() < 0.5 and bool(self.horizontal_flip),
            "flip_vertical": rng.random_sample() < 0.5 and bool(self.vertical_flip),
            "channel_shift_intensity": rng.uniform(-channel_shift, channel_shift) if channel_shift != 0 else None,
            "brightness": None if bright is None else rng.uniform(bright[0], bright[1]),
        }

    def apply_transform(self, x: Array, transform_parameters: dict[str, Any]) -> Array:
        """Transforms one image: one affine resampling, then channel shift, flips and brightness.

        Args:
            x: One image, 3 dimensions.
            transform_parameters: As from `get_random_transform`; missing ones change nothing.

        Returns:
            An image of the same shape.
        """
        given = transform_parameters.get
        row_axis, col_axis, channel_axis = self.row_axis - 1, self.col_axis - 1, self.channel_axis - 1
        moves = [given(name, unmoved) for name, unmoved in _MOVES.items()]
        moves += [row_axis, col_axis, channel_axis, self.fill_mode, self.cval, self.interpolation_order]
        x = apply_affine_transform(x, *moves, geometry=self.geometry)
        if given("channel_shift_intensity") is not None:
            x = apply_channel_shift(x, transform_parameters["channel_shift_intensity"], channel_axis)
        if given("flip_horizontal", False):
            x = flip_axis(x, col_axis)
        if given("flip_vertical", False):
            x = flip_axis(x, row_axis)
        if given("brightness") is not None:
            exact = self.geometry == "keras3"
            x = apply_brightness_shift(x, transform_parameters["brightness"], False, through_bytes=exact, channel_axis=channel_axis)
        return x

    def random_transform(self, x: Array, seed: int | None = None) -> Array:
        """Applies `apply_transform` with parameters from `get_random_transform`."""
        return self.apply_transform(x, self.get_random_transform(x.shape, seed))

    def standardize(self, x: Array) -> Array:
        """Applies `preprocessing_function`, `rescale`, the samplewise and the featurewise statistics and the whitening, in this order.

        Args:
            x: An image or a batch of images. As documented, floats are changed in place if possible; whole numbers never are.

        Returns:
            The values, in the shape of `x`. Statistics that are not fitted are left out, with a warning.
        """
        if self.preprocessing_function:
            x = self.preprocessing_function(x)
        if not np.issubdtype(x.dtype, np.inexact):
            x = x.astype(self.dtype)
        if self.rescale:
            x *= self.rescale
        each = tuple(range(x.ndim - 3, x.ndim))
        if self.samplewise_center:
            x -= np.mean(x, each, keepdims=True)
        if self.samplewise_std_normalization:
            x /= np.std(x, each, keepdims=True) + _EPSILON
        if (mean := self._fitted("featurewise_center", self.mean)) is not None:
            x -= mean
        if (std := self._fitted("featurewise_std_normalization", self.std)) is not None:
            x /= std + _EPSILON
        if (matrix := self._fitted("zca_whitening", self.zca_whitening_matrix)) is not None:
            x = (x.reshape(-1, len(matrix)) @ matrix).reshape(x.shape)
        return x

    def _fitted(self, argument: str, found: Array | None) -> Array | None:
        """Looks up the statistics of an argument; warns if it is set but not fitted."""
        if not getattr(self, argument):
            return None
        if found is None:
            warn(f"`{argument}` has no effect before `fit`")
        return found

    # Statistics

    def fit(self, x: Any, augment: bool = False, rounds: int = 1, seed: int | None = None) -> None:
        """Computes the statistics for the featurewise arguments and the whitening.

        As in a flow, images are augmented first, if `augment` is set, and then multiplied by `rescale`. As documented,
        `preprocessing_function` and the samplewise arguments are not applied; a warning says so.

        Args:
            x: Images, 4 dimensions.
            augment: Whether to augment the images.
            rounds: The number of augmented versions of each image.
            seed: The seed of the augmentation.

        Raises:
            ValueError: For another shape, or images too large to be whitened.
        """
        images = np.asarray(x)
        if images.ndim != 4:
            raise ValueError(f"`fit` takes images as an array of 4 dimensions, got the shape {images.shape}")
        channels = images.shape[self.channel_axis]
        if channels not in (1, 3, 4):
            warn(f"with `{self.data_format}`, {images.shape} are images of {channels} channels, not of 1, 3 or 4")
        if not self.featurewise_center:  # the other two arguments switch it on
            return
        if self.preprocessing_function or self.samplewise_center:
            warn("`fit` computes statistics without `preprocessing_function` and without the samplewise arguments")
        rng = _stream(seed)

        seen = self._seen(images, rounds if augment else 0, rng)
        whole = np.concatenate(list(seen)) if self.zca_whitening else None
        mean, std = moments(seen if whole is None else [whole], self.channel_axis)
        one_pixel = [1, 1, 1]
        one_pixel[self.channel_axis - 1] = channels
        self.mean = mean.reshape(one_pixel).astype(self.dtype)
        if self.featurewise_std_normalization:
            self.std = std.reshape(one_pixel).astype(self.dtype)
        if whole is not None:
            rows = (whole - mean.reshape(one_pixel)).reshape(len(whole), -1)
            self.zca_whitening_matrix = whitening(rows, self.zca_epsilon).astype(self.dtype)
        check_flows(self)

    def _seen(self, images: Array, rounds: int, rng: Any) -> Iterator[Array]:
        """Yields blocks of images for the statistics, float64."""
        for _ in range(max(rounds, 1)):
            for start in range(0, len(images), _BLOCK):
                block = np.asarray(images[start : start + _BLOCK], self.dtype)
                if rounds:
                    block = np.stack([self.apply_transform(image, self._draw(image.shape, rng)) for image in block])
                yield block.astype(np.float64) * (self.rescale or 1)


Described._generator = ImageDataGenerator


def _stream(seed: int | None) -> Any:
    """NumPy's global stream or, for a seed, a separate one: the same numbers, without an effect on the program's other draws."""
    return np.random if seed is None else np.random.RandomState(seed)


def _distance(rng: Any, given: Any, side: int) -> Any:
    """Draws a distance in pixels; numbers that are all below 1 are fractions of the side."""
    if not given:
        return 0
    distance = rng.choice(given) * rng.choice([-1, 1]) if is_choice(given) else rng.uniform(-given, given)
    return distance * side if np.max(given) < 1 else distance
