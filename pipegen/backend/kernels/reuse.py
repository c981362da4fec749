"""Batches written into memory that earlier batches have left, rather than into fresh pages.

A batch of 64 float images is 38 MB. The C library takes so large a block from the system and gives it back each time, and
each time the system has to find and clear some 9,400 pages. That costs more than computing what is in them: of a kernel
that casts and scales, 85 % on the machine where it was measured.

TensorFlow has no pool for such memory, but two of its rules make one. A variable that is read hands out its own buffer,
which it counts; and a compiled function that assigns to a variable writes in place if nobody else counts on the buffer, and
takes a new one otherwise. So the results of a kernel are assigned to variables in turn. Whoever still holds a batch keeps it
as it is: its variable then gets a new buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import tensorflow as tf

from pipegen.backend.process.devices import on_this_host, untouched
from pipegen.backend.process.graphs import compiled
from pipegen.plan.cost import LARGE


@dataclass(frozen=True)
class Reuse:
    """Says how the memory of a kernel's results is used again.

    Attributes:
        depth: How many results of one kind are in use at a time, at most.
        batch: Examples in a global batch.
    """

    depth: int
    batch: int

    def number(self, slot: tf.Tensor) -> tf.Tensor:
        """A number that is one higher at the next step, from the positions in the epoch, int64 `(n,)`, of this host's share.

        The middle one is asked, since rows for whole mix groups lie beyond a share's ends.
        """
        return slot[tf.shape(slot)[0] // 2] // self.batch


class Places:
    """A function compiled by XLA whose large results go to memory that is used again.

    Args:
        function: From tensors to a list of tensors; XLA can compile it. Its first argument, for each result, is a tensor of the
            same type whose memory it may fill, or None.
        outputs: The types of its results, with static shapes.
        depth: How many results of one kind are in use at a time, at most: those being computed, those that wait, and those
            that the user works on. With more in use, some get new memory.
    """

    def __init__(self, function: Callable[..., list[tf.Tensor]], outputs: list[tf.TensorSpec], depth: int) -> None:
        self._outputs = outputs
        self._function = function
        self._depth = depth
        self._large = [i for i, spec in enumerate(outputs) if is_large(spec)]
        self._compiled = compiled(self._stored)
        large = [outputs[i] for i in self._large]
        self._variables = [[untouched(spec.shape, spec.dtype, "pipegen_batch") for _ in range(depth)] for spec in large]
        # The place is looked up, so that a graph has the work once and not a branch for each place.
        self._handles = on_this_host(lambda: [tf.stack([variable.handle for variable in places]) for places in self._variables])
        # Two iterators may come to one place at a time, and each must read what it has written itself.
        # Locks are known by their names. One keeps a thread for as long as the process lives, so functions share theirs.
        self._locks = on_this_host(
            lambda: tf.stack([tf.raw_ops.MutexV2(container="", shared_name=f"pipegen_turn_{place}") for place in range(depth)])
        )

    def __call__(self, number: tf.Tensor, *tensors: tf.Tensor) -> list[tf.Tensor]:
        """The results of the function.

        Args:
            number: int64 scalar that counts up, such as the number of the step: which place it is.
            *tensors: The function's arguments.
        """
        place = number % self._depth
        handles = [tf.ensure_shape(tf.gather(places, place), []) for places in self._handles]
        # The turn is taken once the arguments are there: taken before, it would be held while another function, which needs the same
        # turn, has yet to compute them.
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
        """The small results; the large ones are assigned."""
        into: list[tf.Tensor | None] = [None] * len(self._outputs)
        for handle, i in zip(handles, self._large, strict=True):
            into[i] = self._read(handle, i)
        results = self._function(into, *tensors)
        for handle, i in zip(handles, self._large, strict=True):
            tf.raw_ops.AssignVariableOp(resource=handle, value=results[i])
        return [result for i, result in enumerate(results) if i not in self._large]

    def _read(self, handle: tf.Tensor, output: int) -> tf.Tensor:
        """The memory that a variable has, as it is."""
        spec = self._outputs[output]
        return tf.ensure_shape(tf.raw_ops.ReadVariableOp(resource=handle, dtype=spec.dtype), spec.shape)


def is_large(spec: tf.TensorSpec) -> bool:
    """Returns whether a tensor is large enough for a place of its own."""
    return bool(prod(spec.shape) * spec.dtype.size >= LARGE)
