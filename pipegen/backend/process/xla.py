"""Functions of vectors that are traced once a process, apart from the kernels: small integer arithmetic; XLA compiles what runs
once a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import tensorflow as tf

from pipegen.backend.process.quiet import quietly
from pipegen.log import log


def compiled(function: Callable[..., Any], *dtypes: tf.DType, jit: bool = True) -> Callable[..., Any]:
    """The function compiled by XLA, traced once for vectors of any length and compiled once for each length.

    A graph that calls it has one node for it, which TensorFlow does not take apart whenever an iterator is made.

    Args:
        function: Takes vectors `(n,)`.
        dtypes: Theirs.
        jit: If not, it is plain TensorFlow, traced once all the same: each graph that calls it is made sooner.
    """
    signature = [tf.TensorSpec([None], dtype) for dtype in dtypes]
    return tf.function(function, jit_compile=jit or None, autograph=False, input_signature=signature)


@cache
def available() -> bool:
    """Returns whether XLA can compile at all on this machine; asked once."""
    try:
        with quietly():  # XLA tells of its first program
            compiled(lambda x: x + tf.constant(1, tf.uint32), tf.uint32)(tf.zeros([2], tf.uint32))
    except (tf.errors.OpError, ValueError, TypeError) as error:
        log.warning("XLA is not available, so everything runs as plain TensorFlow: %s", str(error).splitlines()[0])
        return False
    return True
