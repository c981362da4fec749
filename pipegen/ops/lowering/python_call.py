"""Calls Python from a graph, as `tf.numpy_function` does, and lets go of what is called when the graph is gone.

TensorFlow keeps each such function, and with it every file and array that it reads, for as long as the process lives: in the graph
around all graphs. Here it is kept by the graph that calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from pipegen.lazy import tf

_KEPT = "_py_funcs_used_in_graph"
"""The attribute by which TensorFlow's graphs keep functions; where it has another name, they are kept for good."""

_OURS = "_pipegen_functions"


def numpy_function(function: Callable[..., Any], given: Sequence[Any], types: Any, *, stateful: bool = True) -> Any:
    """Calls a function on NumPy arrays; for arguments and results see `tf.numpy_function`."""
    result = tf.numpy_function(function, given, types, stateful=stateful)
    own, around = _graphs()
    if own is not around:
        for kept in reversed([*getattr(around, _KEPT, ())]):
            if kept is function or getattr(kept, "__wrapped__", None) == function:
                if not hasattr(own, _OURS):
                    setattr(own, _OURS, [])
                getattr(own, _OURS).append(kept)
                with suppress(ValueError):
                    getattr(around, _KEPT).remove(kept)
                break
    return result


def _graphs() -> tuple[Any, Any]:
    """The outermost graph of a function that is being traced, and the one around it, which is the same outside of any."""
    own = around = tf.compat.v1.get_default_graph()
    while getattr(around, "outer_graph", None) is not None:
        own, around = around, around.outer_graph
    return own, around
