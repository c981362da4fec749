"""Calls Python from a graph, as `tf.numpy_function` and `tf.py_function` do, and lets go of what is called when the graph is gone.

TensorFlow keeps each function that it is given, and with it every file and array that it reads, for as long as the process lives. So it is
given one that holds a number alone, and finds the function by it. The function itself is kept by the graph that calls it, and by those
around that one: of them a function that is traced once for all pipelines lives longer than the graph that it was first traced in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from pipegen.lazy import tf


class _Called:
    """A function that graphs call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


_called: WeakValueDictionary[int, _Called] = WeakValueDictionary()
"""The functions of the graphs that there are, by number."""
_numbers = count()
_OURS = "_pipegen_functions"
"""The attribute by which a graph keeps its functions."""


def numpy_function(function: Callable[..., Any], given: Sequence[Any], types: Any, *, stateful: bool = True) -> Any:
    """Calls a function on NumPy arrays; for arguments and results see `tf.numpy_function`."""
    return tf.numpy_function(_by_number(function), given, types, stateful=stateful)


def py_function(function: Callable[..., Any], given: Sequence[Any], types: Any) -> Any:
    """Calls a function on eager tensors; for arguments and results see `tf.py_function`."""
    return tf.py_function(_by_number(function), given, types)


def _by_number(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls another one and does not hold it: the graph that is being made does. Eagerly it is the function itself."""
    if tf.executing_eagerly():
        return function
    number, called = next(_numbers), _Called(function)
    _called[number] = called
    for graph in _being_traced():
        if not hasattr(graph, _OURS):
            setattr(graph, _OURS, [])
        getattr(graph, _OURS).append(called)

    def call(*given: Any) -> Any:
        found = _called.get(number)
        if found is None:
            raise RuntimeError("the pipeline that this graph belongs to is gone; keep the pipeline, or a dataset of it")
        return found.function(*given)

    return call


def _being_traced() -> Iterator[Any]:
    """Yields the graphs of the functions that are being traced, from the inside."""
    graph = tf.compat.v1.get_default_graph()
    while (around := getattr(graph, "outer_graph", None)) is not None:
        yield graph
        graph = around
