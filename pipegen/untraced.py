"""Keeps AutoGraph off pipegen's own code, which a `tf.function` of a user's may call. TensorFlow is not imported."""

from __future__ import annotations

from inspect import isfunction
from typing import TypeVar

C = TypeVar("C", bound=type)


def untraced(cls: C) -> C:
    """Marks the methods of a class as plain Python; a class decorator.

    Called from a function that is being traced, each would be rewritten with all that it calls, which takes seconds. The mark is the
    one that `tf.autograph.experimental.do_not_convert` leaves. Functions that a method is handed are converted as ever.
    """
    for method in vars(cls).values():
        if isfunction(method):
            vars(method)["autograph_info__"] = None
    return cls
