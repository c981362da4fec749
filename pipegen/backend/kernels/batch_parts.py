"""Batches processed in blocks: a few examples at a time in one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import tensorflow as tf

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
    structure = tf.function(function, autograph=False).get_concrete_function().structured_outputs

    def zeros() -> list[tf.Tensor]:
        return [tf.zeros(t.shape, t.dtype) for t in tf.nest.flatten(structure)]

    return tf.nest.pack_sequence_as(structure, tf.nest.flatten(tf.cond(going, lambda: tf.nest.flatten(function()), zeros)))


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

    def of_block(i: tf.Tensor | int) -> Any:
        return function(*tf.nest.map_structure(lambda t: tf.slice(t, [i * size, *[0] * (t.shape.rank - 1)], [size, *t.shape[1:]]), given))

    structure = tf.function(lambda: of_block(0), autograph=False).get_concrete_function().structured_outputs
    specs = tf.nest.flatten(structure)

    def start(spec: tf.TensorSpec, memory: tf.Tensor | None) -> tf.TensorArray:
        blocks = tf.TensorArray(spec.dtype, count, element_shape=spec.shape)
        return blocks if memory is None else blocks.unstack(tf.reshape(memory, [count, *spec.shape]))

    def step(i: tf.Tensor, done: list[tf.TensorArray]) -> tuple[tf.Tensor, list[tf.TensorArray]]:
        results = tf.nest.flatten(of_block(i))
        return i + 1, [blocks.write(i, result) for blocks, result in zip(done, results, strict=True)]

    begun = [start(spec, memory) for spec, memory in zip(specs, into or [None] * len(specs), strict=True)]
    _, done = tf.while_loop(lambda i, _: i < count, step, (tf.constant(0), begun), maximum_iterations=count)
    stacked = [tf.reshape(blocks.stack(), [count * size, *spec.shape[1:]]) for blocks, spec in zip(done, specs, strict=True)]
    return tf.nest.pack_sequence_as(structure, stacked)
