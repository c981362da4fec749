"""Calls of Python functions from a graph: users' functions, readers of records."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from pipegen.frozen import dataclass
from pipegen.lazy import np, tf
from pipegen.types import FLOATING, Dim, Interval, times


class _Called:
    """A function called by graphs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


_called: WeakValueDictionary[int, _Called] = WeakValueDictionary()  # the functions of all live graphs, by number
_numbers = count()
_OURS = "_pipegen_functions"  # the attribute of a graph that holds its functions


def numpy_function(function: Callable[..., Any], given: Sequence[Any], types: Any, *, stateful: bool = True) -> Any:
    """Calls a function on NumPy arrays; for arguments and results see `tf.numpy_function`."""
    return tf.numpy_function(_by_number(function), given, types, stateful=stateful)


def py_function(function: Callable[..., Any], given: Sequence[Any], types: Any) -> Any:
    """Calls a function on eager tensors; for arguments and results see `tf.py_function`."""
    return tf.py_function(_by_number(function), given, types)


def _by_number(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function that calls another one without holding it: the graph being traced does. Eagerly it is the function itself."""
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
            raise RuntimeError("the pipeline of this graph was deleted; keep a reference to the pipeline, or to a dataset of it")
        return found.function(*given)

    return call


def _being_traced() -> Iterator[Any]:
    """Yields the graphs of the functions being traced, innermost first. AutoGraph would warn of this loop, but leaves generators alone."""
    graph = tf.compat.v1.get_default_graph()
    while (around := getattr(graph, "outer_graph", None)) is not None:
        yield graph
        graph = around


_SLACK = 1e-6  # tolerance of a declared range for floats, in widths of it: the rounding that every step is allowed (E1)
_LONGEST = 300  # most characters of the message of a function's exception


class CallFailed(RuntimeError):
    """Raised if a user's function raises, or breaks its declaration. TensorFlow interprets some exceptions itself: `StopIteration` would
    end the dataset silently."""


def reason(error: Exception) -> str:
    """Extracts the first sentence of a TensorFlow error, without its node names."""
    text = getattr(error, "message", None) or str(error)
    if isinstance(error, UnicodeDecodeError) and b" [Op:" in error.object:  # TensorFlow's own message, which quotes bytes of the record
        text = error.object.decode(errors="backslashreplace")
    text = re.sub(r"\{\{[^}]*\}\}\s*", "", text)
    text = re.sub(r"\s*\[Op:[^\]]*\].*", "", text, flags=re.DOTALL)
    text = re.sub(r"^Expected .* to be true\. Summarized data: b?(['\"]?)(.*)\1$", r"\2", text, flags=re.DOTALL)
    text, failed = re.subn(r"^.*?assertion failed:\s*", "", text, flags=re.DOTALL)
    if failed:
        text = text.replace("] [", " ")  # between the values of an assertion, each in brackets
    text = text.removeprefix(f"{CallFailed.__name__}: ")
    line = next((part.strip() for part in text.splitlines() if part.strip()), "unknown error")
    return line.strip("[]'\" ").removeprefix("b'").rstrip(".")


@dataclass(frozen=True)
class Declared:
    """The declared result of a function, named as in the spec: its dtype, its shape (`None` for a side that varies, or for all as in the
    input image), the range of values if declared, and whether height and width `stays` those of the input image, in addition to the
    shape."""

    function: str
    dtype: str
    shape: tuple[Dim, ...] | None = None
    interval: Interval | None = None
    stays: bool = False


def call(function: Callable[..., Any], declared: Declared, image: tf.Tensor, words: tf.Tensor | None = None) -> tf.Tensor:
    """Calls a function on an image `(height, width, channels)`, and with a NumPy generator if there are `words`, int64 `(2,)`, of 32 bits
    each, as its seed.

    Its arguments are copies, which it may write into, and its result, which is checked as it is declared, is copied, so that it may keep
    it. The result must depend only on the arguments: equal calls may be merged. TensorFlow's `UnknownError` is raised if the function fails
    or breaks its declaration.
    """
    given = [image] if words is None else [image, words]
    dtype = tf.as_dtype(declared.dtype)
    try:
        result = numpy_function(lambda *arrays: _checked(function, declared, *arrays), given, dtype, stateful=False)
    except CallFailed as failed:  # outside a graph
        raise tf.errors.UnknownError(None, None, str(failed)) from None
    result.set_shape(image.shape if declared.shape is None else declared.shape)
    return result


def _checked(function: Callable[..., Any], declared: Declared, image: Any, words: Any = None) -> np.ndarray[Any, Any]:
    # PCG64 and its seed are explicit: `default_rng` may change between NumPy versions.
    generators = () if words is None else (np.random.Generator(np.random.PCG64(np.random.SeedSequence([int(w) for w in words]))),)
    try:
        result = function(np.array(image), *generators)
    except (Exception, SystemExit) as error:
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        told = f"{type(error).__name__}: {said}" if said else type(error).__name__
        frames = traceback.extract_tb(error.__traceback__)[1:]  # without our own
        place = f" ({frames[0].filename}:{frames[0].lineno})" if frames else ""
        raise CallFailed(f"`{declared.function}` raised {told[:_LONGEST]}{place}") from error
    if not isinstance(result, np.ndarray) and (hasattr(result, "__array__") or hasattr(result, "__array_interface__")):
        result = np.asarray(result)  # a tensor, or a Pillow image
    problem = _problem(result, declared, image.shape)
    if problem is not None:
        raise CallFailed(f"`{declared.function}` returned {problem}")
    return np.array(result, order="C")


def _problem(result: Any, declared: Declared, entered: tuple[int, ...]) -> str | None:
    if not isinstance(result, np.ndarray):
        return f"{'nothing' if result is None else f'a `{type(result).__name__}`'}, and has to return a NumPy array"
    if result.dtype.name != declared.dtype:
        return f"{result.dtype.name}, and its step declares {declared.dtype}; `.astype({declared.dtype!r})` at its end would do"
    shape = entered if declared.shape is None else declared.shape
    if len(result.shape) != len(shape) or any(d is not None and d != n for d, n in zip(shape, result.shape, strict=True)):
        if declared.shape is None:
            return f"an array of {_sides(result.shape)} for an image of {_sides(entered)}, and its step declares no other `shape`"
        return f"an array of {_sides(result.shape)}, and its step declares {_sides(shape)}"
    if declared.stays and result.shape[:2] != entered[:2]:
        return f"an array of {_sides(result.shape)} for an image of {_sides(entered)}, and its step declares `moves_pixels: false`"
    interval = declared.interval
    if interval is None or not result.size:
        return None
    low, high = float(result.min()), float(result.max())
    slack = _SLACK * interval.width if declared.dtype in FLOATING else 0.0
    if interval.low - slack <= low and high <= interval.high + slack:
        return None
    found = "values that are no numbers" if low != low else f"values from {low:g} to {high:g}"
    return f"{found}, and its step declares values from {interval.low:g} to {interval.high:g}"


def _sides(shape: tuple[Dim, ...]) -> str:
    return times(shape) or "no dimension"
