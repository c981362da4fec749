"""Functions and maps without AutoGraph, traced once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import tensorflow as tf

from pipegen.backend.process.quiet import quietly
from pipegen.ops.lowering.graphs import by_xla, call, meanwhile
from pipegen.private.tensorflow import Applied, function_here, not_optimized
from pipegen.terminal import log


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Switches AutoGraph off for a function: our code needs none, and it would slow down tracing and warn."""
    return tf.autograph.experimental.do_not_convert(function)


class Traced:
    """A function traced for elements of one type, for any number of datasets.

    Args:
        function: From the parts of an element to nested dense tensors, or to a dataset.
        entry: The type of an element.

    Attributes:
        element_spec: The type of the result, or of the dataset's elements.
    """

    def __init__(self, function: Callable[..., Any], entry: Any) -> None:
        def flat(*tensors: tf.Tensor) -> list[tf.Tensor]:
            given = tf.nest.pack_sequence_as(entry, tensors)
            made = function(*given) if type(given) is tuple else function(given)
            if isinstance(made, tf.data.Dataset):
                self.element_spec = made.element_spec
                return [tf.data.experimental.to_variant(made)]
            made = tf.nest.map_structure(tf.convert_to_tensor, tuple(made) if type(made) is list else made)
            self.element_spec = tf.nest.map_structure(tf.type_spec_from_value, made)
            return tf.nest.flatten(made)

        with not_optimized():
            self.concrete = function_here(flat, tf.nest.flatten(entry)).get_concrete_function()


def plain_map(
    ds: tf.data.Dataset, function: Callable[..., Any] | Traced, calls: int | None = None, name: str | None = None
) -> tf.data.Dataset:
    """Maps a dataset of dense tensors in order, on `calls` threads, like `tf.data.Dataset.map`, without AutoGraph and on this device."""
    traced = function if isinstance(function, Traced) else Traced(function, ds.element_spec)
    if calls is None:
        return Applied(ds, traced.concrete, traced.element_spec, name, tf.raw_ops.MapDataset, preserve_cardinality=True)
    own = {"num_parallel_calls": tf.constant(calls, tf.int64), "deterministic": "true", "preserve_cardinality": True}
    return Applied(ds, traced.concrete, traced.element_spec, name, tf.raw_ops.ParallelMapDatasetV2, **own)


def plain_flat_map(ds: tf.data.Dataset, function: Callable[..., tf.data.Dataset], name: str | None = None) -> tf.data.Dataset:
    """Maps each element to a dataset and concatenates them, like `tf.data.Dataset.flat_map`, without AutoGraph and on this device."""
    traced = Traced(function, ds.element_spec)
    return Applied(ds, traced.concrete, traced.element_spec, name, tf.raw_ops.FlatMapDataset)


def map_and_stack(ds: tf.data.Dataset, traced: Traced, calls: int | None, size: int, *, full: bool, name: str) -> tf.data.Dataset:
    """Maps a dataset and stacks `size` elements at a time, without a second copy; the last batch may be smaller unless `full`.

    TensorFlow would fuse a map and a batch to this operation, too, but searches the graph for them for every new iterator.
    """
    spec = tf.nest.map_structure(lambda own: tf.TensorSpec([size if full else None, *own.shape], own.dtype), traced.element_spec)
    own = {"batch_size": tf.constant(size, tf.int64), "num_parallel_calls": tf.constant(calls or 1, tf.int64), "drop_remainder": full}
    return Applied(ds, traced.concrete, spec, name, tf.raw_ops.MapAndBatchDataset, preserve_cardinality=True, **own)


def plain_unbatch(ds: tf.data.Dataset, name: str) -> tf.data.Dataset:
    """Unbatches a dataset of dense tensors like `tf.data.Dataset.unbatch`, which needs a map."""
    spec = tf.nest.map_structure(lambda own: tf.TensorSpec(own.shape[1:], own.dtype), ds.element_spec)
    return Applied(ds, None, spec, name, tf.raw_ops.UnbatchDataset)


def compiled(function: Callable[..., Any], signature: Sequence[tf.TensorSpec] | None = None, *, jit: bool = True) -> Callable[..., Any]:
    """Compiles a function of nested tensors by XLA for each type of its arguments; with a `signature`, for these, once a process.

    It is one node in a graph, which TensorFlow does not inline for every new iterator. Without `jit`, it is a node of plain TensorFlow,
    which XLA compiles once a run is long.
    """
    if not jit:
        return in_one_node(tf.function(function, autograph=False, input_signature=signature))

    def traced(*given: Any) -> Any:
        with meanwhile(by_xla, True):
            return function(*given)

    traced.__name__ = getattr(function, "__name__", traced.__name__)
    made: Callable[..., Any] = tf.function(traced, jit_compile=True, autograph=False, input_signature=signature)
    return made


def in_one_node(function: Any) -> Callable[..., Any]:
    """Makes a `tf.function` one node of each graph that calls it; in a long run, XLA compiles it, without a new trace."""

    def late(*given: Any) -> Any:
        return function(*given)

    program = tf.function(late, autograph=False, jit_compile=True)
    return partial(call, function, late=tf.function(program, autograph=False))


def vectors(*dtypes: tf.DType) -> list[tf.TensorSpec]:
    """Returns types of vectors of any length."""
    return [tf.TensorSpec([None], dtype) for dtype in dtypes]


@cache
def available() -> bool:
    """Checks once that XLA can compile on this machine."""
    try:
        with quietly():  # XLA logs its first program
            compiled(lambda x: x + tf.constant(1, tf.uint32))(tf.zeros([2], tf.uint32))
    except (tf.errors.OpError, ValueError, TypeError) as error:
        log.warning("XLA is not available, so everything runs as plain TensorFlow: %s", str(error).splitlines()[0])
        return False
    return True
