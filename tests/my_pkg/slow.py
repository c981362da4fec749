"""Functions for `python` steps that take a known time, without using a core."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
TOOK: dict[str, list[float]] = {"long": [], "short": []}
"""Seconds that each call took by its own clock: on a busy machine a nap is longer than was asked for."""


def long(image: Array) -> Array:
    """150 ms."""
    return _nap("long", 0.15, image)


def short(image: Array) -> Array:
    """50 ms."""
    return _nap("short", 0.05, image)


def _nap(name: str, seconds: float, image: Array) -> Array:
    began = time.perf_counter()
    time.sleep(seconds)
    TOOK[name].append(time.perf_counter() - began)
    return image
