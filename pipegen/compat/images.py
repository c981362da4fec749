"""Conversion of images between files, Pillow and NumPy, as in `keras.utils`; statistics; writing of batches."""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from pipegen.arguments import one_of
from pipegen.compat.checks import floatx, image_data_format, warn
from pipegen.files import whole_file
from pipegen.lazy import late, np, tf

if TYPE_CHECKING:
    from PIL import Image
else:
    (Image,) = late("PIL", "Image")

Array: TypeAlias = "np.ndarray[Any, Any]"
RESAMPLING = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")  # pillow's filters, by Keras' names
_KEPT_GRAY = ("L", "I;16", "I")
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def img_to_array(img: Image.Image | Array, data_format: str | None = None, dtype: Any = None) -> Array:
    """Converts an image to an array.

    Args:
        img: A Pillow image, or an array `(height, width)` or `(height, width, channels)`.
        data_format: The format of the result, `channels_last` or `channels_first`; Keras' setting by default.
        dtype: The dtype of the array; Keras' `floatx` by default.

    Returns:
        `(height, width, channels)`, or with `channels_first` `(channels, height, width)`, values as stored.

    Raises:
        ValueError: When the image has neither 2 nor 3 dimensions.
    """
    first = image_data_format(data_format) == "channels_first"
    x = np.asarray(img, dtype=floatx(dtype))
    if x.ndim == 2:
        x = x[..., None]
    if x.ndim != 3:
        raise ValueError(f"an image is (height, width) or (height, width, channels), got the shape {x.shape}")
    return x.transpose(2, 0, 1) if first else x


def array_to_img(x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = None) -> Image.Image:
    """Converts an array to a Pillow image.

    Args:
        x: `(height, width, channels)`, or with `channels_first` `(channels, height, width)`; 1, 3 or 4 channels.
        data_format: The data format of `x`; Keras' setting by default.
        scale: Stretch the values of this image to a minimum of 0 and a maximum of 255. Without it, values are truncated to whole numbers,
            and those outside 0..255 wrap around.
        dtype: The dtype of the computation; Keras' `floatx` by default.

    Returns:
        An image of mode L, RGB or RGBA; mode I for gray values above 255.

    Raises:
        ValueError: For another shape.
    """
    first = image_data_format(data_format) == "channels_first"
    values = np.asarray(x, dtype=floatx(dtype))
    if values.ndim != 3:
        raise ValueError(f"one image has 3 dimensions, got an array of the shape {values.shape}")
    if first:
        values = values.transpose(1, 2, 0)
    channels = values.shape[2]
    if channels not in _MODES:
        raise ValueError(f"Pillow's images have 1, 3 or 4 channels, but this array has {channels}")
    if scale:
        values = values - values.min()
        greatest = values.max()
        values = (values / greatest if greatest != 0 else values) * 255
    if channels == 1:
        plane = values[..., 0]
        return Image.fromarray(plane.astype(np.int32 if plane.max() > 255 else np.uint8))
    return Image.fromarray(values.astype(np.uint8))


def load_img(
    path: str | bytes | os.PathLike[str] | io.BytesIO,
    color_mode: str = "rgb",
    target_size: tuple[int, int] | None = None,
    interpolation: str = "nearest",
    keep_aspect_ratio: bool = False,
    *,
    grayscale: bool | None = None,
) -> Image.Image:
    """Reads an image file with Pillow.

    Args:
        path: A file's path, or the bytes of a file as `io.BytesIO`.
        color_mode: `rgb`, `rgba`, or `grayscale`, which keeps gray of 16 and 32 bits.
        target_size: `(height, width)` to resize to; by default the stored size.
        interpolation: One of `RESAMPLING`.
        keep_aspect_ratio: Crop the largest centred part with the target's proportions first, instead of distorting the image.
        grayscale: Keras 2's argument for `color_mode="grayscale"`, with a warning.

    Returns:
        A Pillow image. The EXIF orientation is not applied.

    Raises:
        ValueError: For an unknown colour mode or filter, or when `grayscale` contradicts the colour mode.
        TypeError: When `path` is not a path.
    """
    if grayscale is not None and (color_mode == "rgba" if grayscale else color_mode == "grayscale"):
        raise ValueError(f"`grayscale={grayscale}` contradicts `color_mode={color_mode!r}`; leave `grayscale` out")
    if grayscale is not None:
        color_mode = "grayscale" if grayscale else color_mode
        warn('`grayscale` is a keyword of Keras 2; write `color_mode="grayscale"` or "rgb"', DeprecationWarning)
    if color_mode not in ("grayscale", "rgb", "rgba"):
        raise ValueError(f"`color_mode` is 'grayscale', 'rgb' or 'rgba', got {color_mode!r}")
    if not isinstance(path, (str, bytes, os.PathLike, io.BytesIO)):
        raise TypeError(f"`path` is a path or an io.BytesIO, got {type(path).__name__}")
    img: Image.Image = Image.open(path)
    img.load()  # so that the file is closed again
    if color_mode != "grayscale":
        img = img if img.mode == color_mode.upper() else img.convert(color_mode.upper())
    elif img.mode not in _KEPT_GRAY:
        img = img.convert("L")
    return img if target_size is None else _resized(img, target_size, interpolation, keep_aspect_ratio)


def _resized(img: Image.Image, target_size: tuple[int, int], interpolation: str, keep_aspect_ratio: bool) -> Image.Image:
    rows, columns = target_size
    if img.size == (columns, rows):
        return img
    resample = Image.Resampling[one_of("interpolation", interpolation, RESAMPLING).upper()]
    if not keep_aspect_ratio:
        return img.resize((columns, rows), resample)
    width, height = img.size
    inner_height, inner_width = min(height, width * rows // columns), min(width, height * columns // rows)
    top, left = (height - inner_height) // 2, (width - inner_width) // 2
    return img.resize((columns, rows), resample, box=(left, top, left + inner_width, top + inner_height))


def save_img(path: Any, x: Any, data_format: str | None = None, file_format: str | None = None, scale: bool = True, **kwargs: Any) -> None:
    """Writes an array as an image file.

    Args:
        path: A path, or a file object, which needs `file_format`.
        x: The image; see `array_to_img`.
        data_format: The data format of `x`; Keras' setting by default.
        file_format: The format, such as `png`; by default that of the path's suffix.
        scale: Stretch the values to 0..255; see `array_to_img`.
        **kwargs: Options for Pillow's `Image.save`.
    """
    if file_format is None and isinstance(path, (str, os.PathLike)):
        file_format = os.path.splitext(path)[1][1:]
    form = "jpeg" if file_format and file_format.lower() in ("jpg", "jpeg") else file_format
    img = array_to_img(x, data_format=data_format, scale=scale)
    if img.mode == "RGBA" and form == "jpeg":
        warn("JPEG has no alpha channel; the image is written as RGB")
        img = img.convert("RGB")
    img.save(path, format=form or None, **kwargs)


def smart_resize(x: Any, size: tuple[int, int], interpolation: str = "bilinear", data_format: str = "channels_last", **options: Any) -> Any:
    """Crops the largest centred part with the size's proportions, and resizes it, by Keras' own function.

    Args:
        x: An image, or a batch of them; an array or a tensor.
        size: `(height, width)`.
        interpolation: `bilinear`, `nearest`, `bicubic`, `lanczos3` or `lanczos5`, without antialiasing.
        data_format: The data format of `x`.
        **options: As in Keras.

    Returns:
        An array for an array, a tensor for a tensor.
    """
    from keras.preprocessing.image import smart_resize as resize

    return resize(x, size, interpolation, data_format, **options)


_MOST = 10**7


class Saving:
    """A writer of images named `PREFIX_INDEX_NUMBER.FORMAT`, each stretched from black to white.

    INDEX is the row of an image in the flow's arrays or table; for a folder, it is the number of images so far. NUMBER is drawn by the
    operating system, so that seeds have no effect on it and epochs have different names.

    Args:
        folder: The folder to write to, made if needed.
        prefix: The beginning of each name.
        form: The format, which is also the suffix: `png`, `jpeg` or another one of Pillow's.
        data_format: The data format of the images.
    """

    def __init__(self, folder: str | os.PathLike[str], prefix: str, form: str, data_format: str) -> None:
        self.folder, self.prefix, self.form, self.data_format = os.fspath(folder), prefix, form, data_format
        self._written = 0
        os.makedirs(self.folder, exist_ok=True)

    def write(self, images: Array, rows: Array | None = None) -> int:
        """Writes a batch `(n, ...)`; `rows` are the indices of its images. Returns the number written in all."""
        for i, image in enumerate(images):
            index = self._written if rows is None else int(rows[i])
            while not self._wrote(f"{self.prefix}_{index}_{secrets.randbelow(_MOST)}.{self.form}", image):
                pass
            self._written += 1
        return self._written

    def _wrote(self, name: str, image: Array) -> bool:
        try:
            with whole_file(os.path.join(self.folder, name), new=True, durable=False) as file:  # the model waits
                save_img(file, image, data_format=self.data_format, file_format=self.form)
        except FileExistsError:
            return False
        return True

    def during(self, batches: tf.data.Dataset, *, rows: bool) -> tf.data.Dataset:
        """Writes the batches of a dataset as they are read; with `rows`, batches are `(images, rows)`."""
        from pipegen.ops.lowering.python_calls import numpy_function

        def written(*parts: Any) -> Any:
            given = [parts[0], parts[1]] if rows else [parts[0]]
            count = numpy_function(lambda *arrays: tf.constant(self.write(*arrays), tf.int64).numpy(), given, tf.int64)
            with tf.control_dependencies([count]):
                images = tf.identity(parts[0])
            return (images, *parts[1:]) if len(parts) > 1 else images

        return batches.map(tf.autograph.experimental.do_not_convert(written))


LARGEST_WHITENING = 16_384  # maximal number of values of an image for a whitening matrix: 2 GiB in float64


def moments(blocks: Iterable[Array], channel_axis: int) -> tuple[Array, Array]:
    """Computes the mean and the standard deviation of each channel, as the pipeline does: see `Moments.of`.

    Args:
        blocks: Batches of images, 4 dimensions.
        channel_axis: The axis of the channels in them.

    Returns:
        Two float64 arrays `(channels,)`.
    """
    from pipegen.ops.arguments.learned import Moments

    axes = tuple(a for a in range(4) if a != channel_axis)
    parts = []
    for block in blocks:
        x = np.asarray(block, np.float64)
        own = x.mean(axes, keepdims=True)
        parts.append(Moments(x.size // own.size, tuple(own.reshape(-1).tolist()), tuple(((x - own) ** 2).sum(axes).tolist())))
    whole = Moments.of(parts)
    return np.array(whole.mean), np.array(whole.std)


def whitening(rows: Array, epsilon: float) -> Array:
    """Computes the matrix that whitens centred rows by their principal components and rotates them back (ZCA).

    It is u · diag(sqrt(n) / (s + epsilon)) · u', with u and s from the thin singular value decomposition of the rows, so that directions
    without variation are removed rather than amplified.

    Args:
        rows: float64 `(n, values)`.
        epsilon: Added to the singular values.

    Returns:
        float64 `(values, values)`.

    Raises:
        ValueError: When the matrix would not fit into memory.
    """
    n, values = rows.shape
    if values > LARGEST_WHITENING:
        gib = values**2 * 8 / 2**30
        message = f"`zca_whitening` of {values:,} values an image needs a matrix of {gib:.1f} GiB"
        raise ValueError(f"{message}; use smaller images, of at most {LARGEST_WHITENING:,} values (73×73×3)")
    u, s, _ = np.linalg.svd(rows.T, full_matrices=False)
    return (u * (np.sqrt(n) / (s + epsilon))) @ u.T
