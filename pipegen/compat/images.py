"""Images between files, Pillow and NumPy, as `keras.utils` has them."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

from pipegen.compat.defaults import floatx, image_data_format
from pipegen.compat.refusals import warn

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

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
