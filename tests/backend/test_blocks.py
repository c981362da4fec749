"""Kernels that work a few examples at a time give the bits of those that take a batch whole."""

from __future__ import annotations

from pipes import RESIZE, pipeline, same, stream
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tf, pytest.mark.smoke]

FILTERS: list[Any] = [
    RESIZE,
    {"random_gaussian_blur": {"sigma": [0.1, 2], "probability": 0.5}},
    {"random_elastic": {"alpha": 8, "sigma": 3}},
]
"""Two filters of bytes, whose phases hand on images, and positions; of floats XLA may round the last bit otherwise."""


@pytest.mark.parametrize(("batch", "size"), [(64, 8), (20, 5), (6, 6), (62, 2), (61, None), (1, None)])
def test_a_block_divides_the_batch(batch: int, size: int | None) -> None:
    import tensorflow as tf

    from pipegen.backend.kernels import reuse

    large = tf.TensorSpec([batch, 1 << 25], tf.uint8)
    assert reuse.block_size(batch, [large]) == size
    assert reuse.block_size(batch, [tf.TensorSpec([batch, 16], tf.uint8)]) is None


def test_every_block_is_worked_on_and_keeps_its_place() -> None:
    import tensorflow as tf

    from pipegen.backend.kernels.reuse import finished, in_blocks

    x, y = np.arange(24.0, dtype=np.float32).reshape(12, 2), np.arange(12, dtype=np.int32)

    def work(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        mean = finished(y[0] >= 0, lambda: (tf.reduce_mean(x, -1), {"y": y * 2}))
        return {"pair": tf.stack([mean[0], tf.cast(mean[1]["y"], tf.float32)], -1), "count": tf.shape(x)[:1] * tf.ones_like(y)}

    def all_of_it(memory: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> Any:
        return in_blocks(work, 4, [None, memory], (x, y))

    run = tf.function(all_of_it, jit_compile=True, autograph=False)
    done = run(tf.fill([12, 2], np.float32(7)), x, y)
    np.testing.assert_array_equal(done["pair"], np.stack([x.mean(1), y * 2.0], -1))
    np.testing.assert_array_equal(done["count"], np.full(12, 4))


@pytest.mark.nightly  # by day the other families do
def test_filters_give_the_same_bits_in_blocks(photo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipegen.backend.kernels import chain as kernels
    from pipegen.backend.kernels import reuse

    batch = {"size": 6, "remainder": "keep"}
    expected = stream(pipeline(photo_folder, {"jit": "always"}, transforms=FILTERS, batch=batch).train)
    sizes: list[int] = []

    def noted(function: Any, size: int, *args: Any) -> Any:
        sizes.append(size)
        return reuse.in_blocks(function, size, *args)

    monkeypatch.setattr(reuse, "MAPPED", 1)
    monkeypatch.setattr(reuse, "_EXAMPLES", 3)
    monkeypatch.setattr(kernels, "in_blocks", noted)
    monkeypatch.setattr(reuse, "LARGE", 1)
    pipe = pipeline(photo_folder, {"jit": "always"}, transforms=FILTERS, batch=batch)
    for _ in range(2):  # the second time into memory that holds the first
        same(stream(pipe.dataset("train", epoch=0)), expected)
    assert set(sizes) == {3}
