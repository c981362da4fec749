"""Functions for `random_python` steps."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def rain(image: Array, rng: np.random.Generator) -> Array:
    """Turns every fourth pixel or so to the brightest value of the image."""
    image[rng.random(image.shape[:2]) < 0.25] = image.max()
    return image


def zoom(image: Array, rng: np.random.Generator) -> Array:
    """Changes the shape, which a random step may not."""
    return image[: rng.integers(2, 9)]
