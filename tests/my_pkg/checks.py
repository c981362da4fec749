"""Functions for `python` tests of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def is_finite(image: Array) -> bool:
    """Whether every value is a number."""
    return bool(np.isfinite(image).all())


def is_dark(image: Array) -> None:
    """Holds for pictures with a mean below 10."""
    assert image.mean() < 10, f"the mean is {image.mean():.1f}"


def in_words(image: Array) -> str | None:
    """Says what is wrong with pictures that are not black."""
    return "not black" if image.any() else None


def breaks(image: Array) -> None:
    """Fails in a way of its own."""
    raise KeyError("colour")


def both(image: Array, label: Array) -> bool:
    """Holds where the label is a number and the image a picture."""
    return label.ndim == 0 and image.ndim == 3


def writes(image: Array) -> bool:
    """Writes into what it is given, which nobody else may see."""
    image[:] = -1
    return True
