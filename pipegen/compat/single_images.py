"""Functions on single images: affine resampling, brightness and channel shifts, with draws in Keras' order."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Literal, get_args

from pipegen.compat.checks import floatx, image_data_format, scipy_ndimage
from pipegen.compat.images import Array, array_to_img, img_to_array
from pipegen.lazy import np

Geometry = Literal["documented", "keras3"]


def check_geometry(geometry: str) -> None:
    """Checks `geometry`.

    Raises:
        ValueError: When it is neither `documented` nor `keras3`.
    """
    if geometry not in get_args(Geometry):
        raise ValueError(f"`geometry` is 'documented' (the right axes and centre) or 'keras3' (those of Keras 2.9 to 3), got {geometry!r}")


def shift_names(geometry: str) -> tuple[str, str]:
    """Names of the shifts (`height`, `width`) in Keras: `tx` moves along x, but Keras 2.9 to 3 draw it from the height."""
    return ("tx", "ty") if geometry == "keras3" else ("ty", "tx")


def apply_affine_transform(
    x: Array,
    theta: float = 0,
    tx: float = 0,
    ty: float = 0,
    shear: float = 0,
    zx: float = 1,
    zy: float = 1,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    order: int = 1,
    *,
    geometry: Geometry = "documented",
) -> Array:
    """Rotates, shifts, shears and zooms an image in one resampling.

    An output pixel at p reads the input at R(theta) · T(tx, ty) · S(shear) · Z(zx, zy) · p. Positions are measured from the centre, with x
    to the right and y down; S has the rows (1, -sin), (0, cos). A positive `theta` rotates the image counter-clockwise.

    Args:
        x: One image, 3 dimensions.
        theta: The rotation angle in degrees.
        tx: The shift of the position read, along x, in pixels.
        ty: The shift of the position read, along y, in pixels.
        shear: The shear angle in degrees.
        zx: The factor for the distance from the centre along x: below 1 magnifies.
        zy: The factor for the distance from the centre along y.
        row_axis: The axis of the rows; 1 by default, as in Keras, whose functions expect the channels first.
        col_axis: The axis of the columns.
        channel_axis: The axis of the channels, 0 or 2.
        fill_mode: Pixels outside of the image: `nearest`, `constant`, `reflect`, `wrap`, or another mode of `scipy.ndimage`.
        cval: The value outside for `constant`.
        order: The order of the spline, 0 to 5. Above 1 it may exceed the values of the image.
        geometry: `keras3` uses half the height for the centre's column and half the width for its row, as Keras 2.9 to 3 do;
            square images are the same in both.

    Returns:
        An image of the same shape and dtype; `x` itself if nothing changes.

    Raises:
        ValueError: For invalid axes of one image.
        ImportError: When SciPy is not installed.
    """
    check_geometry(geometry)
    if sorted((row_axis, col_axis, channel_axis)) != [0, 1, 2]:
        raise ValueError(f"`row_axis`, `col_axis` and `channel_axis` are 0, 1 and 2, each once; got {(row_axis, col_axis, channel_axis)}")
    if x.ndim != 3:
        raise ValueError(f"one image has 3 dimensions, got an array of the shape {x.shape}")
    if channel_axis == 1:
        raise ValueError("the channels must be the first or the last axis, not the middle one")
    matrix = _matrix(theta, tx, ty, shear, zx, zy)
    if matrix is None:
        return x
    height, width = x.shape[row_axis], x.shape[col_axis]
    sides = (height, width) if geometry == "keras3" else (width, height)
    centre = np.array([s / 2 - 0.5 for s in sides])
    offset = centre + matrix[:2, 2] - matrix[:2, :2] @ centre
    linear = matrix[:2, :2]
    if row_axis < col_axis:  # from (x, y) to the order of the array's axes
        linear, offset = linear[::-1, ::-1], offset[::-1]
    warp = scipy_ndimage().affine_transform
    planes = np.moveaxis(x, channel_axis, 0)
    moved = [warp(plane, linear, offset, order=order, mode=fill_mode, cval=cval) for plane in planes]
    return np.moveaxis(np.stack(moved), 0, channel_axis)


def _matrix(theta: float, tx: float, ty: float, shear: float, zx: float, zy: float) -> Array | None:
    """Computes the 3x3 matrix about the origin in (x, y), float64; `None` if it changes nothing."""
    turn, slant = math.radians(theta), math.radians(shear)
    parts = (
        (theta != 0, [[math.cos(turn), -math.sin(turn), 0], [math.sin(turn), math.cos(turn), 0], [0, 0, 1]]),
        (tx != 0 or ty != 0, [[1, 0, tx], [0, 1, ty], [0, 0, 1]]),
        (shear != 0, [[1, -math.sin(slant), 0], [0, math.cos(slant), 0], [0, 0, 1]]),
        (zx != 1 or zy != 1, [[zx, 0, 0], [0, zy, 0], [0, 0, 1]]),
    )
    used = [np.array(part, np.float64) for changes, part in parts if changes]
    return functools.reduce(np.matmul, used) if used else None


def random_rotation(
    x: Array,
    rg: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
    *,
    geometry: Geometry = "documented",
) -> Array:
    """Rotates an image by an angle drawn uniformly from [-`rg`, `rg`] degrees; for the rest see `apply_affine_transform`.

    The draw is from NumPy's global stream, as in Keras.
    """
    theta = np.random.uniform(-rg, rg)
    axes = (row_axis, col_axis, channel_axis, fill_mode, cval, interpolation_order)
    return apply_affine_transform(x, theta, 0, 0, 0, 1, 1, *axes, geometry=geometry)


def random_shift(
    x: Array,
    wrg: float,
    hrg: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
    *,
    geometry: Geometry = "documented",
) -> Array:
    """Shifts an image by up to `wrg` of its width horizontally, and up to `hrg` of its height vertically, in either direction.

    `geometry="keras3"` swaps the two shifts, as Keras 2.9 to 3 do. For the rest see `apply_affine_transform`. The draws are from NumPy's
    global stream, the height's first, as in Keras.
    """
    check_geometry(geometry)
    for_height, for_width = shift_names(geometry)
    shifts = {for_height: np.random.uniform(-hrg, hrg) * x.shape[row_axis], for_width: np.random.uniform(-wrg, wrg) * x.shape[col_axis]}
    axes = (row_axis, col_axis, channel_axis, fill_mode, cval, interpolation_order)
    return apply_affine_transform(x, 0, shifts["tx"], shifts["ty"], 0, 1, 1, *axes, geometry=geometry)


def random_shear(
    x: Array,
    intensity: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
    *,
    geometry: Geometry = "documented",
) -> Array:
    """Shears an image by an angle drawn uniformly from [-`intensity`, `intensity`] degrees; for the rest see `apply_affine_transform`.

    The draw is from NumPy's global stream, as in Keras.
    """
    shear = np.random.uniform(-intensity, intensity)
    axes = (row_axis, col_axis, channel_axis, fill_mode, cval, interpolation_order)
    return apply_affine_transform(x, 0, 0, 0, shear, 1, 1, *axes, geometry=geometry)


def random_zoom(
    x: Array,
    zoom_range: tuple[float, float],
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
    *,
    geometry: Geometry = "documented",
) -> Array:
    """Zooms each axis of an image by a number drawn uniformly from `zoom_range`, a pair; below 1 magnifies.

    For the rest see `apply_affine_transform`. The draws are from NumPy's global stream, as in Keras.

    Raises:
        ValueError: When `zoom_range` is not a pair.
    """
    if len(zoom_range) != 2:
        raise ValueError(f"`zoom_range` is a pair of numbers, got {zoom_range!r}")
    zx, zy = (1.0, 1.0) if tuple(zoom_range) == (1, 1) else np.random.uniform(zoom_range[0], zoom_range[1], 2)
    axes = (row_axis, col_axis, channel_axis, fill_mode, cval, interpolation_order)
    return apply_affine_transform(x, 0, 0, 0, 0, float(zx), float(zy), *axes, geometry=geometry)


def transform_matrix_offset_center(matrix: Array, x: float, y: float) -> Array:
    """Moves the origin of a 3x3 matrix to the centre of sides of `x` and `y` pixels; float64 `(3, 3)`."""
    centre = np.array([[1, 0, x / 2 - 0.5], [0, 1, y / 2 - 0.5], [0, 0, 1]])
    return centre @ matrix @ np.linalg.inv(centre)


def flip_axis(x: Array, axis: int) -> Array:
    """Reverses one axis of an array, as a view."""
    return np.flip(x, axis)


def apply_channel_shift(x: Array, intensity: float, channel_axis: int = 0) -> Array:  # noqa: ARG001 - Keras' signature
    """Adds an amount to every value of an image, and clips to the minimum and maximum of that image.

    Args:
        x: One image.
        intensity: The amount, in the units of the values.
        channel_axis: The axis of the channels; ignored, since all channels get the same.
    """
    return np.clip(x + intensity, np.min(x), np.max(x))


def random_channel_shift(x: Array, intensity_range: float, channel_axis: int = 0) -> Array:
    """Applies `apply_channel_shift` with an amount drawn uniformly from [-`intensity_range`, `intensity_range`].

    The draw is from NumPy's global stream, as in Keras.
    """
    return apply_channel_shift(x, np.random.uniform(-intensity_range, intensity_range), channel_axis)


def apply_brightness_shift(
    x: Array, brightness: float, scale: bool = True, *, through_bytes: bool = False, channel_axis: int | None = None
) -> Array:
    """Multiplies the values of an image: 1 changes nothing, 0 is black.

    Without `scale`, values in 0..255 are multiplied and clipped to 0..255, and values in 0..1 to 0..1. For others, the distance from the
    image's minimum is multiplied, and clipped to the image's maximum. Keras converts the image to 8-bit whole numbers on the way, which
    destroys values in 0..1, and leaves 256 levels of others; `through_bytes` does the same.

    Args:
        x: One image, 3 dimensions.
        brightness: The factor.
        scale: First stretch the image to a minimum of 0 and a maximum of 255, and truncate it to whole numbers.
        through_bytes: Compute as Keras does, also without `scale`. Then, and with `scale`, images have 1, 3 or 4 channels.
        channel_axis: The axis of the channels, 0 or 2; by default that of Keras' data format. The fourth of four channels is alpha, and
            stays unchanged.

    Returns:
        The image in Keras' `floatx`.
    """
    from PIL import ImageEnhance

    low, high = float(np.min(x)), float(np.max(x))
    unusual = low < 0 or high > 255
    form = image_data_format(None if channel_axis is None else "channels_first" if channel_axis == 0 else "channels_last")
    if scale or through_bytes:
        img = array_to_img(x, data_format=form, scale=scale or unusual)
        y = img_to_array(ImageEnhance.Brightness(img).enhance(brightness), data_format=form)
        return y if scale or not unusual else y / 255 * (high - low) + low
    y = np.array(x, dtype=floatx())
    colours = np.moveaxis(y, 0 if form == "channels_first" else 2, 0)  # a view
    colours = colours[:3] if len(colours) == 4 else colours
    if unusual:
        colours[:] = np.clip((colours - low) * brightness + low, low, high)
    else:
        colours[:] = np.clip(colours * brightness, 0, 1 if high <= 1 else 255)
    return y


def random_brightness(x: Array, brightness_range: Sequence[float], scale: bool = True, *, through_bytes: bool = False) -> Array:
    """Applies `apply_brightness_shift` with a factor drawn uniformly from `brightness_range`, a pair, from NumPy's global stream.

    Raises:
        ValueError: When `brightness_range` is not a pair.
    """
    if len(brightness_range) != 2:
        raise ValueError(f"`brightness_range` is a pair of factors, got {brightness_range!r}")
    return apply_brightness_shift(x, np.random.uniform(*brightness_range), scale, through_bytes=through_bytes)
