"""The random numbers: the published vectors, the same bits everywhere, and uniform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.tf, pytest.mark.smoke]

VECTORS = [
    # counter, key and result of `threefry2x32` with 20 rounds, from Random123's kat_vectors
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def words(*values: Any) -> tuple[Any, ...]:
    import tensorflow as tf

    return tuple(tf.constant(v, tf.uint32) for v in values)


def random_words(n: int, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 2**32, n, dtype=np.uint32) for _ in range(4)]


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_known_answers(counter: tuple[int, int], key: tuple[int, int], expected: tuple[int, int]) -> None:
    from pipegen.ops.lowering.random import threefry2x32

    assert tuple(int(w) for w in threefry2x32(words(*key), words(*counter))) == expected


@pytest.mark.parametrize("jit", [False, True])
def test_a_graph_and_xla_give_the_bits_of_eager_mode(jit: bool) -> None:
    import tensorflow as tf

    from pipegen.backend.index.draws import uniform
    from pipegen.ops.lowering.random import threefry2x32

    k0, k1, c0, c1 = (tf.constant(w) for w in random_words(257))
    both = tf.function(lambda: (*threefry2x32((k0, k1), (c0, c1)), uniform((k0, k1), (c0, c1))), jit_compile=jit)()
    eager = (*threefry2x32((k0, k1), (c0, c1)), uniform((k0, k1), (c0, c1)))
    for a, b in zip(both, eager, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_batch_is_its_elements() -> None:
    from pipegen.backend.index.draws import uniform

    columns = random_words(40, seed=1)
    k0, k1, c0, c1 = words(*columns)
    whole = uniform((k0[:, None], k1[:, None]), (c0[None], c1[None])).numpy()
    assert whole.shape == (40, 40)
    for i, j in [(0, 0), (3, 39), (39, 3), (17, 17)]:
        a, b, c, d = (int(columns[n][at]) for n, at in enumerate((i, i, j, j)))
        assert float(uniform(words(a, b), words(c, d))) == whole[i, j]


def test_numbers_are_uniform() -> None:
    import tensorflow as tf

    from pipegen.backend.index.draws import uniform

    n = 1 << 16
    values = uniform(words(7, 11), (tf.cast(tf.range(n), tf.uint32), tf.zeros([n], tf.uint32))).numpy()
    assert values.dtype == np.float64
    assert values.min() >= 0
    assert values.max() < 1
    assert abs(values.mean() - 1 / 2) < 4 * np.sqrt(1 / 12 / n)
    assert abs(values.var() - 1 / 12) < 4 * np.sqrt(1 / 180 / n)
    counts = np.bincount((values * 64).astype(int), minlength=64)
    chi = ((counts - n / 64) ** 2 / (n / 64)).sum()
    assert 20 < chi < 120, "63 degrees of freedom"
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 4 / np.sqrt(n)


def test_the_largest_words_stay_below_one() -> None:
    """53 bits of ones are the largest float64 below 1, and never round up to it."""
    high, low = (2**32 - 1) >> 5, (2**32 - 1) >> 6
    assert (high * 67108864.0 + low) * (1.0 / 9007199254740992.0) == np.nextafter(1.0, 0.0)
