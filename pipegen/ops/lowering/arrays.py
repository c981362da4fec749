"""Reads the arrays that files hold, one file at a time in Python. What goes wrong comes back as a text, as in `library.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from pipegen.lazy import np, tf
from pipegen.ops.lowering.library import UnreadableError
from pipegen.ops.lowering.python_call import numpy_function
from pipegen.ops.lowering.target import target


def decode_array(
    contents: tf.Tensor, format: str, options: Mapping[str, Any], shape: Sequence[int | None], dtype: str = "float32"
) -> tf.Tensor:
    """Calls `read_array` from a graph on a string scalar, a file's bytes; a graph that is made for a file has no Python, and says so.

    Returns:
        Of the shape and the dtype.
    """
    if target() != "process":
        said = [f"files of the format `{format}` are read by Python alone, which is not here"]
        with tf.control_dependencies([tf.raw_ops.Assert(condition=tf.constant(False), data=[said])]):
            return tf.ensure_shape(tf.zeros(_least(shape), tf.as_dtype(dtype)), shape)
    call = partial(_read_or_say, format=format, options=dict(options), shape=tuple(shape), dtype=dtype)
    values, problem = numpy_function(call, [contents], [tf.as_dtype(dtype), tf.string], stateful=False)
    sound = tf.raw_ops.Assert(condition=tf.equal(problem, ""), data=[problem])
    with tf.control_dependencies([] if sound is None else [sound]):
        array = tf.identity(values)
    array.set_shape(shape)
    return array


def _least(shape: Sequence[int | None]) -> list[int]:
    return [side or 0 for side in shape]


def _read_or_say(contents: Any, *, format: str, options: Mapping[str, Any], shape: tuple[int | None, ...], dtype: str) -> tuple[Any, Any]:
    """The values and an empty text, or no values and what is wrong."""
    contents = contents if isinstance(contents, bytes) else contents.item()  # eagerly it is an array of one object
    try:
        return np.ascontiguousarray(read_array(contents, format, options, shape, dtype)), np.bytes_(b"")
    except UnreadableError as error:
        problem = str(error)
    except Exception as error:  # a library meets damage with whatever its code runs into
        problem = f"is no {format} file, or damaged: {type(error).__name__}: {error}"
    nothing: Any = np.zeros(_least(shape), dtype)
    return nothing, np.bytes_(" ".join(problem.split()).encode())


def read_array(contents: bytes, format: str, options: Mapping[str, Any], shape: tuple[int | None, ...], dtype: str = "float32") -> Any:
    """Reads the array of a file.

    Args:
        contents: The file's bytes.
        format: A file of `array_formats`.
        options: The arguments of its `read`.
        shape: What it must have, with `None` for any side; where the last side is 1, it may be missing.
        dtype: What its numbers become.

    Returns:
        Of this shape and dtype.

    Raises:
        UnreadableError: What is wrong, to stand behind the file's name.
        Exception: Whatever a library raises on a damaged file.
    """
    if not contents:
        raise UnreadableError("is empty")
    values = import_module(f"pipegen.ops.lowering.array_formats.{format}").read(contents, **options)
    if values.ndim == len(shape) - 1 and shape[-1] == 1:
        values = values[..., None]
    fits = len(shape) == values.ndim and all(due in (None, side) for due, side in zip(shape, values.shape, strict=True))
    if not fits or 0 in values.shape:
        have, due = _shown(values.shape), _shown(shape)
        raise UnreadableError(f"holds an array of the shape {have}, and {due} is due")
    with np.errstate(all="ignore"):  # what float32 cannot hold becomes infinite
        return values.astype(dtype, copy=False)


def _shown(shape: Sequence[int | None]) -> str:
    return f"[{', '.join('any' if side is None else str(int(side)) for side in shape)}]"
