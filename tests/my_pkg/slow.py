"""Functions for `python` steps that take a known time, without using a core."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def long(image: Array) -> Array:
    """150 ms."""
    time.sleep(0.15)
    return image


def short(image: Array) -> Array:
    """50 ms."""
    time.sleep(0.05)
    return image
