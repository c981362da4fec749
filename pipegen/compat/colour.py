"""Channel shift and brightness of arrays, as Keras' functions have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.compat.defaults import floatx, image_data_format
from pipegen.compat.images import array_to_img, img_to_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.compat.images import Array


def apply_channel_shift(x: Array, intensity: float, channel_axis: int = 0) -> Array:  # noqa: ARG001 - Keras' signature
    """Add one amount to every value of an image, and clip to the least and the greatest value that this image has.

    Args:
        x: One image.
        intensity: What is added, in the units of the values.
        channel_axis: The axis of the channels; it changes nothing, since all channels get the same.
    """
    import numpy as np

    return np.clip(x + intensity, np.min(x), np.max(x))


def random_channel_shift(x: Array, intensity_range: float, channel_axis: int = 0) -> Array:
    """`apply_channel_shift` by an amount drawn uniformly from [-`intensity_range`, `intensity_range`], from NumPy's global stream."""
    import numpy as np

    return apply_channel_shift(x, np.random.uniform(-intensity_range, intensity_range), channel_axis)


def apply_brightness_shift(
    x: Array, brightness: float, scale: bool = True, *, through_bytes: bool = False, channel_axis: int | None = None
) -> Array:
    """Multiply the values of an image: 1 changes nothing, 0 is black.

    Without `scale`, values in 0..255 are multiplied and clipped to 0..255, and values in 0..1 likewise to 0..1; of others, the distance
    from the image's least value is multiplied, and clipped to the image's greatest. Keras passes the image through 8-bit whole numbers
    on the way, which leaves nothing of values in 0..1, and 256 levels of any others; `through_bytes` does as it does.

    Args:
        x: One image, 3 dimensions.
        brightness: The factor.
        scale: First stretch the image, so that its least value is 0 and its greatest 255, and cut that off to whole numbers.
        through_bytes: Without `scale` as well, compute as Keras does. Then, and with `scale`, images have 1, 3 or 4 channels.
        channel_axis: The axis of the channels, 0 or 2; by default as Keras' data format has it. The fourth of four channels is alpha, and
            left alone.

    Returns:
        The image in Keras' `floatx`.
    """
    import numpy as np
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
    """`apply_brightness_shift` by a factor drawn uniformly from `brightness_range`, a pair, from NumPy's global stream.

    Raises:
        ValueError: When `brightness_range` is no pair.
    """
    import numpy as np

    if len(brightness_range) != 2:
        raise ValueError(f"`brightness_range` is a pair of factors, got {brightness_range!r}")
    return apply_brightness_shift(x, np.random.uniform(*brightness_range), scale, through_bytes=through_bytes)
