"""Functions of vectors that are traced once a process, apart from the kernels: small integer arithmetic; XLA compiles what runs
once a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import tensorflow as tf

from pipegen.backend.process.quiet import quietly
from pipegen.log import log
from pipegen.ops.lowering.graphs import call, for_xla


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
