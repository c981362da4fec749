"""Calls Python from a graph, as `tf.numpy_function` does, and lets go of what is called when the graph is gone.

TensorFlow keeps each such function, and with it every file and array that it reads, for as long as the process lives: in the graph
around all graphs. Here it is kept by the graph that calls it, and by those around that one: of them a function that is traced once for
all pipelines lives longer than the graph that it was first traced in.
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
    *inside, around = _graphs()
    if inside:
        for kept in reversed([*getattr(around, _KEPT, ())]):
            if kept is function or getattr(kept, "__wrapped__", None) == function:
                for graph in inside:
                    if not hasattr(graph, _OURS):
                        setattr(graph, _OURS, [])
                    getattr(graph, _OURS).append(kept)
                with suppress(ValueError):
                    getattr(around, _KEPT).remove(kept)
                break
    return result


def _graphs() -> list[Any]:
    """The graphs of the functions that are being traced, from the inside, and the one around them all."""
    found: list[Any] = [tf.compat.v1.get_default_graph()]
    while (around := getattr(found[-1], "outer_graph", None)) is not None:
        found.append(around)
    return found
