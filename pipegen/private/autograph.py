"""The mark of functions that AutoGraph leaves as they are. Importing this does not import TensorFlow."""

from __future__ import annotations

from inspect import isfunction
from typing import TypeVar

C = TypeVar("C", bound=type)


def untraced(cls: C) -> C:
    """Keeps AutoGraph from converting the methods of a class; a class decorator.

    Otherwise a call in a traced function would convert the method with all that it calls, which takes seconds. The mark is the one that
    `tf.autograph.experimental.do_not_convert` sets; without it, calls are slow. Functions passed to a method are converted as usual.
    """
    for method in vars(cls).values():
        if isfunction(method):
            vars(method)["autograph_info__"] = None
    return cls
