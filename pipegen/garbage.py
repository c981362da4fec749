"""Pausing Python's garbage collector while little garbage is made."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 100
"""Number of new modules from which their objects are moved to the oldest generation; `gc.get_freeze_count` is slow, so not for fewer."""


@contextmanager
def uncollected() -> Iterator[None]:
    """Pauses the collector while modules are imported, plans made or functions traced.

    Nearly all of the many objects made then stay alive. With TensorFlow loaded, each full collection takes 0.2 s.
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
    """Moves all objects to the oldest generation; else the many new ones would trigger a full collection."""
    if not gc.get_freeze_count():  # else `unfreeze` would undo a freeze of the application
        gc.freeze()
        gc.unfreeze()
