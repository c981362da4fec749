"""Keeps Python's collector of cyclic garbage out of the way where there is none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Pauses the collector while modules are imported, plans made or functions traced.

    Nearly all of their many objects stay. Beside TensorFlow each search among everything takes two tenths of a second.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
