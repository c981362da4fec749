"""Arrays in memory that is used again: never while somebody can see it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytestmark = [pytest.mark.tf, pytest.mark.smoke]

SHAPE = (512, 1024)
"""2 MB of floats: large enough to be used again."""


def test_memory_is_used_again_once_nobody_holds_it() -> None:
    import tensorflow as tf

    from pipegen.backend.buffers import Buffers

    buffers = Buffers()
    first = buffers.copy(tf.fill(SHAPE, 1.0))
    where = first.ctypes.data
    first *= 2  # as code in the wild does
    second = buffers.copy(tf.fill(SHAPE, 3.0))
    assert second.ctypes.data != where
    assert (first == 2).all()
    del first
    third = buffers.copy(tf.fill(SHAPE, 4.0))
    assert third.ctypes.data == where
    assert (second == 3).all()
    assert (third == 4).all()


def test_a_view_holds_the_memory_of_its_array() -> None:
    import tensorflow as tf

    from pipegen.backend.buffers import Buffers

    buffers = Buffers()
    row = buffers.copy(tf.fill(SHAPE, 1.0))[3, ::2]
    others = [buffers.copy(tf.fill(SHAPE, float(n))) for n in range(2, 12)]
    assert (row == 1).all()
    assert [array[0, 0] for array in others] == list(range(2, 12)), "more are held than are kept"


def test_what_was_made_read_only_is_not_written_to() -> None:
    import tensorflow as tf

    from pipegen.backend.buffers import Buffers

    buffers = Buffers()
    buffers.copy(tf.fill(SHAPE, 1.0)).setflags(write=False)
    assert (buffers.copy(tf.fill(SHAPE, 2.0)) == 2).all()


def test_threads_get_memory_of_their_own() -> None:
    from concurrent.futures import ThreadPoolExecutor

    import tensorflow as tf

    from pipegen.backend.buffers import Buffers

    buffers = Buffers()
    tensors = [tf.fill(SHAPE, float(n)) for n in range(4)]

    def wrong(n: int) -> int:
        return sum(int((buffers.copy(tensors[n]) != n).any()) for _ in range(50))

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert sum(threads.map(wrong, range(4))) == 0
    finally:
        sys.setswitchinterval(switch)


def test_what_differs_has_memory_of_its_own() -> None:
    import tensorflow as tf

    from pipegen.backend.buffers import Buffers

    buffers = Buffers()
    buffers.copy(tf.fill(SHAPE, 1.0))
    assert buffers.copy(tf.fill((511, 1024), 2.0)).shape == (511, 1024)
    wide = buffers.copy(tf.fill(SHAPE, 0.5), "float64")
    assert wide.dtype == np.float64
    assert (wide == 0.5).all()
    tensor = tf.fill((4,), 1.0)
    small = buffers.copy(tensor)
    small += 1
    assert tensor.numpy().tolist() == [1.0] * 4
    assert buffers.copy(tf.constant(["a", "b"])).tolist() == [b"a", b"b"]
