"""The functions that called, for what TensorFlow and Keras do not tell a dataset."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from traceback import walk_stack
from types import FrameType


def callers() -> Iterator[FrameType]:
    """Returns the functions on the call stack, from the nearest."""
    return (frame for frame, _ in walk_stack(sys._getframe(1)))


def name_of(caller: FrameType) -> tuple[str, str]:
    """Returns the module and the name of a function on the call stack."""
    return caller.f_globals.get("__name__", ""), caller.f_code.co_name
