"""Arrays as pictures: levels from 0 to 255, and the bytes of an image file."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pipegen.lazy import np
from pipegen.types import Interval

if TYPE_CHECKING:
    from PIL import Image

Array: TypeAlias = "np.ndarray[Any, Any]"


def mapped_range(image: Array, interval: Interval | None = None) -> tuple[float, float] | None:
    """The values that become black and white; `None` where an image has levels from 0 to 255 as it is, up to rounding.

    Args:
        image: Any shape.
        interval: The values that can occur; where nothing is known of them, those of the image itself count.
    """
    if image.dtype == "uint8":
        return None
    low, high = (interval.low, interval.high) if interval is not None else (float(image.min(initial=0)), float(image.max(initial=1)))
    return (low, high) if low < 0 or high > 255 or high <= 1 else None


def levels(image: Array, interval: Interval | None = None) -> Array:
    """The image as uint8: values from 0 to 255 are rounded, half to even; others are mapped to them from their `mapped_range`."""
    if image.dtype == "uint8":
        return image
    values, bounds = np.asarray(image, np.float64), mapped_range(image, interval)
    if bounds is not None:
        values = (values - bounds[0]) * (255.0 / max(bounds[1] - bounds[0], 1e-6))
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def encode_image(image: Array, form: Literal["png", "jpeg"], quality: int) -> bytes:
    """An image file.

    Args:
        image: uint8 `(height, width, channels)`: 1, 3 or, as a PNG, 4 channels.
        form: `png` or `jpeg`.
        quality: Of a JPEG, 1 to 100.

    Raises:
        ValueError: For another number of channels.
    """
    from PIL import Image

    channels = image.shape[-1]
    if channels not in ((1, 3, 4) if form == "png" else (1, 3)):
        raise ValueError(f"an image of {channels} channels is no {form.upper()}")
    return _file(Image.fromarray(image[..., 0] if channels == 1 else image), form, quality)


def encode_mask(mask: Array) -> bytes:
    """A PNG that holds class ids as they are, in 8 bits, or in 16 where one is above 255.

    Args:
        mask: Whole numbers from 0 to 65535, `(height, width, 1)`.
    """
    from PIL import Image

    ids = mask[..., 0]
    return _file(Image.fromarray(ids.astype("uint8" if ids.max(initial=0) <= 255 else "uint16")), "png")


def _file(picture: Image.Image, form: str, quality: int = 0) -> bytes:
    held = io.BytesIO()
    picture.save(held, form.upper(), **({"quality": quality} if form == "jpeg" else {}))
    return held.getvalue()
