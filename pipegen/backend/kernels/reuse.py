"""Batches that reuse the memory of earlier batches, rather than fresh pages.

A batch of 64 float images is 38 MB. The C library maps so large a block from the system each time, which has to find and clear some 9,400
pages. That costs more than the computation: 85 % of a measured kernel that casts and scales.

TensorFlow has no pool for such memory, but two of its rules make one. Reading a variable returns its buffer and increments the reference
count. A compiled function that assigns to a variable writes in place if it holds the only reference, and takes a new buffer otherwise.
So the results of a kernel are assigned to variables in turn. A batch that is still in use stays unchanged: its variable gets a new buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

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
        # Locks are identified by name. Each keeps a thread as long as the process lives, so functions share them.
        self._locks = on_this_host(
            lambda: tf.stack([tf.raw_ops.MutexV2(container="", shared_name=f"pipegen_turn_{place}") for place in range(depth)])
        )

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
