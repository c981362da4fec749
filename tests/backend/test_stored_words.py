"""Bytes that are read as 64-bit words are those that NumPy finds there."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from pipegen.backend.kernels.canvas_crops import as_words, planes, read_words

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("size", [8, 61, 64])
def test_bytes_are_read_from_any_place(size: int) -> None:
    held = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    start = np.arange(size - 7, dtype=np.int64)[:, None]
    behind = np.minimum(np.array([[0, 1, 5, 8]], np.int32), size - 8 - start).astype(np.int32)
    word = read_words(as_words(tf.constant(held)), tf.constant(start), tf.constant(behind))
    expected = held[(start + behind)[..., None] + np.arange(8)]
    np.testing.assert_array_equal(word.numpy().view(np.uint8).reshape(expected.shape), expected)
    np.testing.assert_array_equal(planes(word, 6), expected.transpose(0, 2, 1)[:, :6])
