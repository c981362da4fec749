"""Arrays over the memory of a batch: its user's alone, as long as there is anything to see of it."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.tf, pytest.mark.smoke]

SHAPE = (512, 1024)
"""2 MB of floats: large enough to keep its memory."""


def test_a_large_tensor_keeps_its_memory_and_may_be_written_to() -> None:
    import tensorflow as tf

    from pipegen.backend.datasets.numpy_batches import owned_arrays

    tensor = tf.fill(SHAPE, 1.5)
    where = np.asarray(tensor).ctypes.data
    array = owned_arrays(tensor)
    assert (array.ctypes.data, array.shape, array.dtype) == (where, SHAPE, np.float32)
    array *= 2
    assert (array == 3).all()


def test_a_view_holds_the_memory() -> None:
    import tensorflow as tf

    from pipegen.backend.datasets.numpy_batches import owned_arrays

    row = owned_arrays(tf.fill(SHAPE, 1.0))[3, ::2]
    gc.collect()
    others = [owned_arrays(tf.fill(SHAPE, float(n))) for n in range(2, 12)]
    assert (row == 1).all()
    assert [array[0, 0] for array in others] == list(range(2, 12))


def test_one_tensor_twice_in_a_batch_is_two_arrays() -> None:
    import tensorflow as tf

    from pipegen.backend.datasets.numpy_batches import owned_arrays

    tensor = tf.fill(SHAPE, 1.0)
    x, (y, weight) = owned_arrays((tensor, (tf.identity(tensor), tf.ones(3))))
    x += 1
    y -= 1
    assert (x == 2).all()
    assert (y == 0).all()
    assert weight.tolist() == [1, 1, 1]


def test_what_is_small_or_of_another_dtype_is_copied() -> None:
    import tensorflow as tf

    from pipegen.backend.datasets.numpy_batches import owned_arrays

    small = tf.fill((4,), 1.0)
    owned_arrays(small)[:] = 2
    assert small.numpy().tolist() == [1.0] * 4
    large = tf.fill(SHAPE, 0.5)
    wide = owned_arrays({"x": large, "n": tf.range(3)}, widen=True)
    assert (wide["x"].dtype, wide["n"].dtype) == (np.float64, np.int32)
    wide["x"] += 1
    assert (large.numpy() == 0.5).all()
    assert owned_arrays(tf.constant(["a", "b"])).tolist() == [b"a", b"b"]
    assert owned_arrays(tf.fill([1 << 18], "a")).tolist() == [b"a"] * (1 << 18)
    half = owned_arrays(tf.cast(large, tf.bfloat16))
    assert half.dtype == tf.bfloat16.as_numpy_dtype
    assert (half == 0.5).all()
    assert half.flags.writeable


@pytest.mark.parametrize("jit", ["auto", pytest.param("never", marks=pytest.mark.nightly)])
def test_what_is_written_to_a_batch_stays_there_and_nowhere_else(tmp_path: Path, jit: str) -> None:
    """Batches come from memory that earlier ones have left, so the first to be wrong would be one that somebody still holds, or
    one whose memory was written to after it was let go of."""
    import pipegen
    from pipegen.backend.datasets.numpy_batches import owned_arrays

    images = np.random.default_rng(1).integers(0, 255, (48, 96, 96, 3), np.uint8)
    np.savez(tmp_path / "data.npz", image=images, label=np.arange(48) % 2)
    spec = {
        "pipegen": 1,
        "source": {"arrays": {"path": str(tmp_path / "data.npz"), "features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}},
        "transforms": ["random_flip", {"random_rotation": {"degrees": 10}}, {"rescale": {"to": [0, 1]}}],
        "batch": {"size": 16},
        "seed": 3,
        "runtime": {"jit": jit},
    }
    pipe = pipegen.build(spec)
    expected = [x.numpy().copy() for x, _ in pipe.dataset("train", epoch=0)]
    assert expected[0].nbytes >= 1 << 20
    train = pipe.train
    held = []
    for epoch in range(8):
        for step, (x, _) in enumerate(map(owned_arrays, train)):
            if epoch == 0:
                assert np.array_equal(x, expected[step])
            x[:] = 1000 + epoch
            if step == epoch % 3:
                held.append(x)
    assert [float(x.min()) for x in held] == [float(x.max()) for x in held] == [1000.0 + n for n in range(8)]
    written = [x.numpy() for x, _ in train]
    assert all(x.max() <= 1.001 for x in written)
