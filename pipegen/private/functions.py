"""Functions: those that called, and the mark of those that AutoGraph leaves as they are. Importing this does not import TensorFlow."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import isfunction
from traceback import walk_stack
from types import FrameType
from typing import TypeVar

C = TypeVar("C", bound=type)


def callers() -> Iterator[FrameType]:
    """Returns the functions on the call stack, from the nearest."""
    return (frame for frame, _ in walk_stack(sys._getframe(1)))


def name_of(caller: FrameType) -> tuple[str, str]:
    """Returns the module and the name of a function on the call stack."""
    return caller.f_globals.get("__name__", ""), caller.f_code.co_name


def untraced(cls: C) -> C:
    """Keeps AutoGraph from converting the methods of a class; a class decorator.

    Otherwise a call in a traced function would convert the method with all that it calls, which takes seconds. The mark is the one that
    `tf.autograph.experimental.do_not_convert` sets; without it, calls are slow. Functions passed to a method are converted as usual.
    """
    for method in vars(cls).values():
        if isfunction(method):
            vars(method)["autograph_info__"] = None
    return cls
