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
from functools import partial
from math import prod

import tensorflow as tf

from pipegen.backend.process.variables import on_this_host, untouched
from pipegen.physical.nodes import LARGE


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
        self._compiled = tf.function(self._stored, jit_compile=True, autograph=False)
        large = [outputs[i] for i in self._large]
        self._variables = [[untouched(spec.shape, spec.dtype, "pipegen_batch") for spec in large] for _ in range(depth)]
        # Two iterators may come to one place at a time, and each must read what it has written itself.
        # Sections of one name share one lock, and without names all have one. A lock keeps a thread for as long as the process lives, so
        # functions share theirs.
        self._turns = on_this_host(lambda: [tf.CriticalSection(shared_name=f"pipegen_turn_{place}") for place in range(depth)])

    def __call__(self, number: tf.Tensor, *tensors: tf.Tensor) -> list[tf.Tensor]:
        """The results of the function.

        Args:
            number: int64 scalar that counts up, such as the number of the step: which place it is.
            *tensors: The function's arguments.
        """
        places = [partial(self._at, place, tensors) for place in range(self._depth)]
        results = tf.switch_case(tf.cast(number % self._depth, tf.int32), places)
        for result, spec in zip(results, self._outputs, strict=True):
            result.set_shape(spec.shape)
        return results

    def _at(self, place: int, tensors: tuple[tf.Tensor, ...]) -> list[tf.Tensor]:
        variables = self._variables[place]

        def work() -> list[tf.Tensor]:
            small = iter(self._compiled(variables, *tensors))
            large = iter([variable.read_value() for variable in variables])
            return [next(large if i in self._large else small) for i in range(len(self._outputs))]

        # The turn is taken once the arguments are there: taken before, it would be held while another function, which needs the same
        # turn, has yet to compute them. The copies belong to this branch; what is outside it would not be waited for.
        with tf.control_dependencies([tf.identity(tensor) for tensor in tensors]):
            results: list[tf.Tensor] = self._turns[place].execute(work)
        return results

    def _stored(self, variables: list[tf.Variable], *tensors: tf.Tensor) -> list[tf.Tensor]:
        """The small results; the large ones are assigned."""
        into: list[tf.Tensor | None] = [None] * len(self._outputs)
        for variable, i in zip(variables, self._large, strict=True):
            into[i] = variable.read_value()
        results = self._function(into, *tensors)
        for variable, i in zip(variables, self._large, strict=True):
            variable.assign(results[i], read_value=False)
        return [result for i, result in enumerate(results) if i not in self._large]


def is_large(spec: tf.TensorSpec) -> bool:
    """Returns whether a tensor is large enough for a place of its own."""
    return bool(prod(spec.shape) * spec.dtype.size >= LARGE)
