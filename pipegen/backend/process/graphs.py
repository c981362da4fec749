"""Functions and maps that are written as graphs, or traced once a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from pipegen.backend.process.quiet import quietly
from pipegen.lazy import untraced
from pipegen.ops.lowering.graphs import call, for_xla
from pipegen.terminal import log

_HERE = {"experimental_ints_on_device": True}
"""Makes `tf.data` run a function on the one device that the dataset is on.

Else it places each operation and optimises the graph anew whenever an iterator is made, as if operations might belong on several: two
thirds of what making one takes. To integers the attribute does what it says on an accelerator alone, which functions of ours are never on.
"""


@contextmanager
def as_written() -> Iterator[None]:
    """Makes TensorFlow run the functions that are called meanwhile in a graph as they are.

    Else it looks for something to optimise in each of them whenever an iterator is made, which is a fifth of what it takes to begin. What
    would gain by it is compiled by XLA.
    """
    now = context.context()
    usual = now.function_call_options
    config = now.config
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    now.function_call_options = context.FunctionCallOptions(usual.executor_type, config)
    try:
        yield
    finally:
        now.function_call_options = usual


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function as it is: our code is written as graphs, and AutoGraph would only slow the tracing and complain."""
    return tf.autograph.experimental.do_not_convert(function)


class Traced:
    """A function that was traced for elements of one type, for any number of datasets.

    Args:
        function: From the parts of an element to what is made of it: nested dense tensors, or a dataset.
        entry: The type of an element.

    Attributes:
        element_spec: The type of what is made, or of the elements of the dataset.
    """

    def __init__(self, function: Callable[..., Any], entry: Any) -> None:
        def flat(*tensors: tf.Tensor) -> list[tf.Tensor]:
            given = tf.nest.pack_sequence_as(entry, tensors)
            made = function(*given) if type(given) is tuple else function(given)
            if isinstance(made, tf.data.Dataset):
                self.element_spec = made.element_spec
                return [made._variant_tensor]
            made = tf.nest.map_structure(tf.convert_to_tensor, tuple(made) if type(made) is list else made)
            self.element_spec = tf.nest.map_structure(tf.type_spec_from_value, made)
            return tf.nest.flatten(made)

        traced = tf.function(flat, input_signature=tf.nest.flatten(entry), autograph=False, experimental_attributes=_HERE)
        with as_written():
            self.concrete = traced.get_concrete_function()


def plain_map(
    ds: tf.data.Dataset, function: Callable[..., Any] | Traced, calls: int | None = None, name: str | None = None
) -> tf.data.Dataset:
    """Maps a dataset of dense tensors in order, on `calls` threads, as `tf.data.Dataset.map` does, without AutoGraph and on this device."""
    traced = function if isinstance(function, Traced) else Traced(function, ds.element_spec)
    if calls is None:
        return _Made(ds, traced, traced.element_spec, name, tf.raw_ops.MapDataset, preserve_cardinality=True)
    own = {"num_parallel_calls": tf.constant(calls, tf.int64), "deterministic": "true", "preserve_cardinality": True}
    return _Made(ds, traced, traced.element_spec, name, tf.raw_ops.ParallelMapDatasetV2, **own)


def plain_flat_map(ds: tf.data.Dataset, function: Callable[..., tf.data.Dataset], name: str | None = None) -> tf.data.Dataset:
    """Gives the elements of the dataset that a function makes of each element, as `tf.data.Dataset.flat_map` does, likewise."""
    traced = Traced(function, ds.element_spec)
    return _Made(ds, traced, traced.element_spec, name, tf.raw_ops.FlatMapDataset)


def map_and_stack(ds: tf.data.Dataset, traced: Traced, calls: int | None, size: int, *, full: bool, name: str) -> tf.data.Dataset:
    """Maps a dataset and stacks `size` elements at a time, each of which goes to its place at once; the last may be fewer unless `full`.

    TensorFlow rewrites a map and a batch to this one operation, for which it looks through the graph whenever an iterator is made.
    """
    spec = tf.nest.map_structure(lambda own: tf.TensorSpec([size if full else None, *own.shape], own.dtype), traced.element_spec)
    own = {"batch_size": tf.constant(size, tf.int64), "num_parallel_calls": tf.constant(calls or 1, tf.int64), "drop_remainder": full}
    return _Made(ds, traced, spec, name, tf.raw_ops.MapAndBatchDataset, preserve_cardinality=True, **own)


def plain_unbatch(ds: tf.data.Dataset, name: str) -> tf.data.Dataset:
    """Takes the elements of a dataset of dense tensors apart, as `tf.data.Dataset.unbatch` does, which maps them first."""
    spec = tf.nest.map_structure(lambda own: tf.TensorSpec(own.shape[1:], own.dtype), ds.element_spec)
    return _Made(ds, None, spec, name, tf.raw_ops.UnbatchDataset)


@untraced
class _Made(tf.data.Dataset):
    """Gives what an operation of `tf.data` makes of the elements of a dataset, perhaps with a function."""

    def __init__(
        self, ds: tf.data.Dataset, traced: Traced | None, spec: Any, name: str | None, operation: Callable[..., tf.Tensor], **own: Any
    ) -> None:
        self._pipegen_inner, self._name, self._pipegen_spec = ds, name, spec
        self._pipegen_operation, self._pipegen_own = operation, own
        function = {}
        if traced is not None:
            self._pipegen_function = traced.concrete  # which lives as long as the dataset
            if not tf.executing_eagerly():
                self._pipegen_function.add_to_graph(tf.compat.v1.get_default_graph())
            function = {"other_arguments": self._pipegen_function.captured_inputs, "f": self._pipegen_function}
        super().__init__(operation(input_dataset=ds._variant_tensor, **function, **own, **self._common_args))

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._pipegen_inner]

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of an element."""
        return self._pipegen_spec


def compiled(function: Callable[..., Any], signature: Sequence[tf.TensorSpec] | None = None, *, jit: bool = True) -> Callable[..., Any]:
    """The function compiled by XLA for each type of what it is given.

    A graph that calls it has one node for it, which TensorFlow does not take apart whenever an iterator is made.

    Args:
        function: Takes nested tensors.
        signature: Types of which it is traced once a process.
        jit: If not, it is plain TensorFlow, one node all the same.
    """
    if not jit:
        return partial(call, tf.function(function, autograph=False, input_signature=signature))

    def traced(*given: Any) -> Any:
        with for_xla():
            return function(*given)

    traced.__name__ = getattr(function, "__name__", traced.__name__)
    made: Callable[..., Any] = tf.function(traced, jit_compile=True, autograph=False, input_signature=signature)
    return made


def vectors(*dtypes: tf.DType) -> list[tf.TensorSpec]:
    """The types of vectors of any length."""
    return [tf.TensorSpec([None], dtype) for dtype in dtypes]


@cache
def available() -> bool:
    """Returns whether XLA can compile at all on this machine; asked once."""
    try:
        with quietly():  # XLA tells of its first program
            compiled(lambda x: x + tf.constant(1, tf.uint32))(tf.zeros([2], tf.uint32))
    except (tf.errors.OpError, ValueError, TypeError) as error:
        log.warning("XLA is not available, so everything runs as plain TensorFlow: %s", str(error).splitlines()[0])
        return False
    return True
