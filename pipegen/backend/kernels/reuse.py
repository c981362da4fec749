"""Batches that reuse the memory of earlier batches, rather than fresh pages; the largest are processed in blocks, a few examples at a time.

A batch of 64 float images is 38 MB. The C library maps so large a block from the system each time, which has to find and clear some 9,400
pages. That costs more than the computation: 85 % of a measured kernel that casts and scales.

TensorFlow has no pool for such memory, but two of its rules make one. Reading a variable returns its buffer and increments the reference
count. A compiled function that assigns to a variable writes in place if it holds the only reference, and takes a new buffer otherwise.
So the results of a kernel are assigned to variables in turn. A batch that is still in use stays unchanged: its variable gets a new buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import tensorflow as tf

from pipegen.backend.process.devices import on_this_host, untouched
from pipegen.backend.process.traced_functions import compiled
from pipegen.frozen import dataclass
from pipegen.plan.cost import LARGE


@dataclass(frozen=True)
class Reuse:
    """How the memory of a kernel's results is reused."""

    depth: int  # most results of one kind in use at a time
    batch: int  # examples in a global batch

    def number(self, slot: tf.Tensor) -> tf.Tensor:
        """Computes a number that grows by one each step, from this host's slots of the epoch, int64 `(n,)`.

        It reads the middle slot, since rows that complete combined groups may belong to other steps.
        """
        return slot[tf.shape(slot)[0] // 2] // self.batch


class Places:
    """A function compiled by XLA whose large results reuse memory.

    The first argument of the function is a list with, for each result, a tensor of the same type whose memory it may fill, or None. `depth`
    is the largest number of results of one kind in use at a time: being computed, waiting, and in use by the user. With more in use, some
    get new memory.
    """

    def __init__(self, function: Callable[..., list[tf.Tensor]], outputs: list[tf.TensorSpec], depth: int) -> None:
        self._outputs = outputs
        self._function = function
        self._depth = depth
        self._large = [i for i, spec in enumerate(outputs) if is_large(spec)]
        self._compiled = compiled(self._stored)
        large = [outputs[i] for i in self._large]
        self._variables = [[untouched(spec.shape, spec.dtype, "pipegen_batch") for _ in range(depth)] for spec in large]
        # The place is looked up, so that a graph has the work once, not in a branch for each place.
        self._handles = on_this_host(lambda: [tf.stack([variable.handle for variable in places]) for places in self._variables])
        # Two iterators may use one place at a time, and each must read what it has written itself.
        # Locks are identified by name. Each keeps a thread as long as the process lives, so functions share them. Those of another depth do
        # not, as theirs would be taken for other steps.
        names = [f"pipegen_turn_{place}_of_{depth}" for place in range(depth)]
        self._locks = on_this_host(lambda: tf.stack([tf.raw_ops.MutexV2(container="", shared_name=name) for name in names]))

    def __call__(self, number: tf.Tensor, *tensors: tf.Tensor) -> list[tf.Tensor]:
        """Calls the function; `number`, an int64 scalar that counts up, such as the step, selects the place."""
        place = number % self._depth
        handles = [tf.ensure_shape(tf.gather(places, place), []) for places in self._handles]
        # The lock is taken after the arguments are computed: they may come from a function that needs the same lock.
        with tf.control_dependencies([tf.identity(tensor) for tensor in tensors]):
            turn = tf.raw_ops.MutexLock(mutex=tf.gather(self._locks, place))
        with tf.control_dependencies([turn]):
            small = iter(self._compiled(handles, *tensors))
            large = iter([self._read(*pair) for pair in zip(handles, self._large, strict=True)])
            results = [next(large if i in self._large else small) for i in range(len(self._outputs))]
        with tf.control_dependencies(results):
            over = tf.raw_ops.ConsumeMutexLock(mutex_lock=turn)
        with tf.control_dependencies([over]):
            return [tf.ensure_shape(result, spec.shape) for result, spec in zip(results, self._outputs, strict=True)]

    def _stored(self, handles: list[tf.Tensor], *tensors: tf.Tensor) -> list[tf.Tensor]:
        """Assigns the large results to variables; returns the small ones."""
        into: list[tf.Tensor | None] = [None] * len(self._outputs)
        for handle, i in zip(handles, self._large, strict=True):
            into[i] = self._read(handle, i)
        results = self._function(into, *tensors)
        for handle, i in zip(handles, self._large, strict=True):
            tf.raw_ops.AssignVariableOp(resource=handle, value=results[i])
        return [result for i, result in enumerate(results) if i not in self._large]

    def _read(self, handle: tf.Tensor, output: int) -> tf.Tensor:
        """Reads a variable without a copy."""
        spec = self._outputs[output]
        return tf.ensure_shape(tf.raw_ops.ReadVariableOp(resource=handle, dtype=spec.dtype), spec.shape)


def is_large(spec: tf.TensorSpec) -> bool:
    """Checks that a tensor is large enough to reuse its memory."""
    return bool(prod(spec.shape) * spec.dtype.size >= LARGE)


MAPPED = 1 << 25  # least bytes of a block that the C library of Linux always maps anew

_EXAMPLES = 8  # most examples of a block; between 2 and 16 there is little difference


def block_size(batch: int, given: Any) -> int | None:
    """Returns the number of examples to process at a time, which divides the batch, or None for the whole batch.

    `given` are the results of each phase: nested tensors or their specs.
    """
    if not any(prod(t.shape) * t.dtype.size >= MAPPED for t in tf.nest.flatten(given)):
        return None
    return next((size for size in range(_EXAMPLES, 1, -1) if batch % size == 0), None)


def finished(going: tf.Tensor, function: Callable[[], Any]) -> Any:
    """Computes nested tensors of static shapes once, before they are read: XLA fuses nothing across a branch.

    `going` is a boolean scalar that is always true, which XLA does not know.
    """
    traced: Any = tf.function(function, autograph=False).get_concrete_function()
    structure = traced.structured_outputs

    def zeros() -> list[tf.Tensor]:
        return [tf.zeros(t.shape, t.dtype) for t in tf.nest.flatten(structure)]

    return tf.nest.pack_sequence_as(structure, tf.nest.flatten(tf.cond(going, lambda: tf.nest.flatten(traced()), zeros)))


def in_blocks(function: Callable[..., Any], size: int, into: Sequence[tf.Tensor | None] | None, given: Any) -> Any:
    """Computes a function of a batch block by block.

    Args:
        function: From nested tensors `(size, ...)` to nested tensors.
        size: Examples of a block.
        into: For each result a tensor of its type, `(n, ...)`, whose memory may be filled, or None; or None for all of them.
        given: The function's arguments, of `n` examples; n is a multiple of `size`.

    Returns:
        The results, `(n, ...)`, nested like the function's.
    """
    count = int(tf.nest.flatten(given)[0].shape[0]) // size

    def of_block(i: tf.Tensor) -> Any:
        return function(*tf.nest.map_structure(lambda t: tf.slice(t, [i * size, *[0] * (t.shape.rank - 1)], [size, *t.shape[1:]]), given))

    traced: Any = tf.function(of_block, autograph=False).get_concrete_function(tf.TensorSpec([], tf.int32))
    structure = traced.structured_outputs
    specs = tf.nest.flatten(structure)

    def start(spec: tf.TensorSpec, memory: tf.Tensor | None) -> tf.TensorArray:
        blocks = tf.TensorArray(spec.dtype, count, element_shape=spec.shape)
        return blocks if memory is None else blocks.unstack(tf.reshape(memory, [count, *spec.shape]))

    def step(i: tf.Tensor, done: list[tf.TensorArray]) -> tuple[tf.Tensor, list[tf.TensorArray]]:
        results = tf.nest.flatten(traced(i))
        return i + 1, [blocks.write(i, result) for blocks, result in zip(done, results, strict=True)]

    begun = [start(spec, memory) for spec, memory in zip(specs, into or [None] * len(specs), strict=True)]
    _, done = tf.while_loop(lambda i, _: i < count, step, (tf.constant(0), begun), maximum_iterations=count)
    stacked = [tf.reshape(blocks.stack(), [count * size, *spec.shape[1:]]) for blocks, spec in zip(done, specs, strict=True)]
    return tf.nest.pack_sequence_as(structure, stacked)
