"""Keeps Python's collector of cyclic garbage out of the way where there is none."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 100
"""Modules whose objects are too many to be searched; `gc.get_freeze_count` walks through all that is frozen."""


@contextmanager
def uncollected() -> Iterator[None]:
    """Pauses the collector while modules are imported, plans made or functions traced.

    Nearly all of their many objects stay. Beside TensorFlow each search among everything takes two tenths of a second.
    """
    was, modules = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if was:
            if len(sys.modules) > modules + _MANY:
                _settle()
            gc.enable()


def _settle() -> None:
    """Counts all that lives among what has lived long, unsearched: after so many new modules, which stay, everything would be searched."""
    if not gc.get_freeze_count():  # else someone has frozen what is to stay so
        gc.freeze()
        gc.unfreeze()
