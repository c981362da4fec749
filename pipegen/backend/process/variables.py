"""Variables of this process: on the CPU, and one of each, wherever the pipeline is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import tensorflow as tf

T = TypeVar("T")


def on_this_host(make: Callable[[], T]) -> T:
    """Calls `make` eagerly, on the CPU, and outside any distribution strategy.

    Under the scope of a strategy a variable would become one for each replica, and inside a function a part of its graph.
    Both belong to the thread, so another thread makes it.
    """

    def work() -> T:
        with tf.device("CPU:0"):
            return make()

    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(work).result()


def variable(value: Any, dtype: tf.DType, name: str) -> tf.Variable:
    """A variable on this host that starts as `value`."""
    return on_this_host(lambda: tf.Variable(value, dtype=dtype, trainable=False, name=name))


def untouched(shape: Sequence[int | None], dtype: tf.DType, name: str) -> tf.Variable:
    """A variable on this host whose pages the system hands out only as they are written; what it starts as is not defined."""
    return on_this_host(lambda: tf.Variable(tf.raw_ops.Empty(shape=shape, dtype=dtype, init=False), trainable=False, name=name))


def write_row(variable: tf.Variable, row: tf.Tensor, value: tf.Tensor) -> tf.Operation:
    """Write one row; the operation itself, since what `scatter_nd_update` gives back does not wait for it."""
    return tf.raw_ops.ResourceScatterNdUpdate(ref=variable.handle, indices=tf.reshape(row, [1, 1]), updates=tf.expand_dims(value, 0))
