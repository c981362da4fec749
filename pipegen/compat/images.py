"""Images between files, Pillow and NumPy, as `keras.utils` has them."""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pipegen.compat.checks import warn
from pipegen.compat.defaults import floatx, image_data_format
from pipegen.files import whole_file

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf
    from PIL import Image


if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

RESAMPLING = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")
"""Pillow's filters, by the names that Keras gives them."""
_KEPT_GRAY = ("L", "I;16", "I")
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def img_to_array(img: Image.Image | Array, data_format: str | None = None, dtype: Any = None) -> Array:
    """A picture as an array.

    Args:
        img: A Pillow image, or an array `(height, width)` or `(height, width, channels)`.
        data_format: `channels_last` or `channels_first`, of what is returned; Keras' setting by default.
        dtype: The dtype of the array; Keras' `floatx` by default.

    Returns:
        `(height, width, channels)`, or with `channels_first` `(channels, height, width)`, values as stored.

    Raises:
        ValueError: When the picture has neither 2 nor 3 dimensions.
    """
    import numpy as np

    first = image_data_format(data_format) == "channels_first"
    x = np.asarray(img, dtype=floatx(dtype))
    if x.ndim == 2:
        x = x[..., None]
    if x.ndim != 3:
        raise ValueError(f"an image is (height, width) or (height, width, channels), got the shape {x.shape}")
    return x.transpose(2, 0, 1) if first else x


def array_to_img(x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = None) -> Image.Image:
    """An array as a Pillow image.

    Args:
        x: `(height, width, channels)`, or with `channels_first` `(channels, height, width)`; 1, 3 or 4 channels.
        data_format: Where the channels stand in `x`; Keras' setting by default.
        scale: Stretch the values of this image, so that its least is 0 and its greatest 255. Without it values are cut off to whole
            numbers, and those outside 0..255 wrap around.
        dtype: The dtype in which that is computed; Keras' `floatx` by default.

    Returns:
        An image of mode L, RGB or RGBA; mode I for gray values above 255.

    Raises:
        ValueError: For another shape.
    """
    import numpy as np
    from PIL import Image

    first = image_data_format(data_format) == "channels_first"
    values = np.asarray(x, dtype=floatx(dtype))
    if values.ndim != 3:
        raise ValueError(f"one image has 3 dimensions, got an array of the shape {values.shape}")
    if first:
        values = values.transpose(1, 2, 0)
    channels = values.shape[2]
    if channels not in _MODES:
        raise ValueError(f"Pillow's images have 1, 3 or 4 channels, and this array has {channels}")
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
    """Read an image file with Pillow.

    Args:
        path: A file's path, or the bytes of a file as `io.BytesIO`.
        color_mode: `rgb`, `rgba`, or `grayscale`, which leaves gray of 16 and 32 bits as it is.
        target_size: `(height, width)` to resize to; as stored by default.
        interpolation: One of `RESAMPLING`.
        keep_aspect_ratio: Cut out the largest centred part of the target's proportions first, instead of distorting the picture.
        grayscale: Keras 2's word for `color_mode="grayscale"`, with a warning.

    Returns:
        A Pillow image. The EXIF orientation is not applied.

    Raises:
        ValueError: For an unknown colour mode or filter, or when `grayscale` contradicts the colour mode.
        TypeError: When `path` is no path.
    """
    from PIL import Image

    if grayscale is not None:
        color_mode = _without_grayscale(grayscale, color_mode)
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


def _without_grayscale(grayscale: bool, color_mode: str) -> str:
    """The colour mode that Keras 2's keyword stands for."""
    if color_mode == "rgba" if grayscale else color_mode == "grayscale":
        raise ValueError(f"`grayscale={grayscale}` contradicts `color_mode={color_mode!r}`; leave `grayscale` out")
    warn('`grayscale` is a keyword of Keras 2; write `color_mode="grayscale"` or "rgb"', DeprecationWarning)
    return "grayscale" if grayscale else color_mode


def _resized(img: Image.Image, target_size: tuple[int, int], interpolation: str, keep_aspect_ratio: bool) -> Image.Image:
    from PIL import Image

    rows, columns = target_size
    if img.size == (columns, rows):
        return img
    if interpolation not in RESAMPLING:
        raise ValueError(f"`interpolation` is one of {', '.join(RESAMPLING)}, got {interpolation!r}")
    resample = Image.Resampling[interpolation.upper()]
    if not keep_aspect_ratio:
        return img.resize((columns, rows), resample)
    width, height = img.size
    inner_height, inner_width = min(height, width * rows // columns), min(width, height * columns // rows)
    top, left = (height - inner_height) // 2, (width - inner_width) // 2
    return img.resize((columns, rows), resample, box=(left, top, left + inner_width, top + inner_height))


def save_img(path: Any, x: Any, data_format: str | None = None, file_format: str | None = None, scale: bool = True, **kwargs: Any) -> None:
    """Write an array as an image file.

    Args:
        path: A path, or a file object, which needs `file_format`.
        x: The image; see `array_to_img`.
        data_format: Where the channels stand in `x`; Keras' setting by default.
        file_format: Such as `png`; by default the suffix of the path says.
        scale: Stretch the values to 0..255; see `array_to_img`.
        **kwargs: Handed to Pillow's `Image.save`.
    """
    if file_format is None and isinstance(path, (str, os.PathLike)):
        file_format = os.path.splitext(path)[1][1:]
    form = "jpeg" if file_format and file_format.lower() in ("jpg", "jpeg") else file_format
    img = array_to_img(x, data_format=data_format, scale=scale)
    if img.mode == "RGBA" and form == "jpeg":
        warn("JPEG holds no alpha channel; the image is written as RGB")
        img = img.convert("RGB")
    img.save(path, format=form or None, **kwargs)


def smart_resize(x: Any, size: tuple[int, int], interpolation: str = "bilinear", data_format: str = "channels_last", **options: Any) -> Any:
    """Cut out the largest centred part of the size's proportions and resize it: Keras' own function, which is still there.

    Args:
        x: An image, or a batch of them; an array or a tensor.
        size: `(height, width)`.
        interpolation: `bilinear`, `nearest`, `bicubic`, `lanczos3` or `lanczos5`, without antialiasing.
        data_format: Where the channels stand.
        **options: As in Keras.

    Returns:
        An array for an array, a tensor for a tensor.
    """
    from keras.preprocessing.image import smart_resize as resize

    return resize(x, size, interpolation, data_format, **options)


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


LARGEST_WHITENING = 16_384
"""Values of an image up to which its whitening matrix is computed: 2 GiB in float64."""


def moments(blocks: Iterable[Array], channel_axis: int) -> tuple[Array, Array]:
    """The mean and the standard deviation of each channel.

    Blocks are merged by the update of T. Chan, G. Golub and R. LeVeque (Updating Formulae and a Pairwise Algorithm for Computing Sample
    Variances, 1979), which does not cancel where the mean is large beside the deviation.

    Args:
        blocks: Batches of images, 4 dimensions.
        channel_axis: The axis of the channels in them.

    Returns:
        Two float64 arrays `(channels,)`.
    """
    import numpy as np

    count, mean, square = 0, np.zeros(()), np.zeros(())
    axes = tuple(a for a in range(4) if a != channel_axis)
    for block in blocks:
        x = np.asarray(block, np.float64)
        n = x.size // x.shape[channel_axis]
        own = x.mean(axes, keepdims=True)
        spread = ((x - own) ** 2).sum(axes)
        delta = own.reshape(-1) - mean
        square = square + spread + delta**2 * (count * n / (count + n))
        mean = mean + delta * (n / (count + n))
        count += n
    return mean, np.sqrt(square / count)


def whitening(rows: Array, epsilon: float) -> Array:
    """The matrix that whitens centred rows by their principal components and turns them back (ZCA).

    It is u · diag(sqrt(n) / (s + epsilon)) · u', with u and s from the thin singular value decomposition of the rows, so that directions in
    which the rows do not vary are taken out rather than amplified.

    Args:
        rows: float64 `(n, values)`.
        epsilon: Added to the singular values.

    Returns:
        float64 `(values, values)`.

    Raises:
        ValueError: When the matrix would not fit into memory.
    """
    import numpy as np

    n, values = rows.shape
    if values > LARGEST_WHITENING:
        gib = values**2 * 8 / 2**30
        message = f"`zca_whitening` of {values:,} values an image needs a matrix of {gib:.1f} GiB"
        raise ValueError(f"{message}; whiten smaller images, of at most {LARGEST_WHITENING:,} values (73×73×3)")
    u, s, _ = np.linalg.svd(rows.T, full_matrices=False)
    return (u * (np.sqrt(n) / (s + epsilon))) @ u.T
