"""Functions for `python` steps."""

from __future__ import annotations

import threading
from os import system as system  # what a module imports is not its own to lend
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

TABLE = {"a": 1}
_OWN = threading.local()


def denoise(image: Array) -> Array:
    """The mean of each pixel and the one above it; the image is written into, as people do."""
    image[1:] = image[1:] // 2 + image[:-1] // 2
    return image


def blur(image: Array) -> Array:
    """The same without writing."""
    return denoise(image.copy())


def luminance(image: Array) -> Array:
    """One channel, float32 in [0, 1]."""
    return np.clip(image.astype(np.float32).mean(-1, keepdims=True) / 255, 0, 1)


def trim(image: Array) -> Array:
    """The image without its border, with three channels."""
    return np.repeat(image[1:-1, 1:-1], 3 if image.shape[-1] == 1 else 1, axis=-1)


def shared(image: Array) -> Array:
    """An array that the function keeps for its thread, and fills anew at every call."""
    if not hasattr(_OWN, "array"):
        _OWN.array = np.zeros((24, 24, 3), np.uint8)
    _OWN.array[...] = image
    return _OWN.array  # type: ignore[no-any-return]


def doubles(image: Array) -> Array:
    """float64, which was not asked for."""
    return image / 255


def flat(image: Array) -> Array:
    """One number too few for an image."""
    return image[..., 0]


def nothing(image: Array) -> None:
    """A function that forgets its `return`."""
    image[...] = 0


def bright(image: Array) -> Array:
    """Floats above 1."""
    return image.astype(np.float32) + 2


def broken(image: Array) -> Array:
    """Floats that are no numbers."""
    return np.full_like(image, np.nan, np.float32)


def stops(image: Array) -> Array:
    """Raises what ends a dataset without a word, if it gets through."""
    raise StopIteration


def refuses(image: Array) -> Array:
    """Fails on some images: those whose first pixel is bright."""
    if image[0, 0, 0] > 128:
        raise ValueError("the first pixel is bright\nand that is too bad")
    return image


def two(image: Array, strength: float) -> Array:
    """Needs more than it is given."""
    return image * strength
