"""Adaptive equalisation against OpenCV."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipegen.errors import OpError
from pipegen.ops.registry import transforms
from pipegen.ops.traits import IMAGE_224
from pipegen.types import Interval

Array = np.ndarray[Any, Any]


def apply(given: dict[str, Any], images: Array, u: Array | None = None) -> Array:
    """Images through `clahe`, or `random_clahe` where there are draws."""
    import tensorflow as tf

    from pipegen.backend.process.traced_functions import plain

    step: Any = transforms()["clahe" if u is None else "random_clahe"].model_validate(given)
    params = step.parameters(tf.zeros([len(images), 0], tf.float64) if u is None else tf.constant(u), *images.shape[1:3])
    done: Array = plain(step.apply)(tf.constant(images), *params).numpy()
    assert done.dtype == np.uint8
    return done


def photos(height: int, width: int, channels: int, count: int = 2) -> Array:
    """Noise on a wave, dark on one side."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:height, :width]
    wave = 60 + x + 0.5 * y + 20 * np.sin(x / 5)
    return np.clip(wave[..., None] + rng.normal(0, 20, (count, height, width, channels)), 0, 255).astype(np.uint8)


@pytest.mark.tf
@pytest.mark.parametrize(("size", "tiles", "limit"), [
    ((64, 48), 8, 2.0), ((37, 53), (4, 5), 3.0), ((40, 53), (4, 5), 1.0), ((24, 24), (1, 3), 0.0), ((20, 31), 8, 40.0),
])  # fmt: skip
def test_gray_is_opencv_s_within_a_level(size: tuple[int, int], tiles: Any, limit: float) -> None:
    cv2 = pytest.importorskip("cv2")
    images = photos(*size, 1)
    rows, columns = tiles if isinstance(tiles, tuple) else (tiles, tiles)
    theirs = cv2.createCLAHE(limit, (columns, rows))
    expected = np.stack([theirs.apply(image[..., 0]) for image in images])[..., None].astype(int)
    done = apply({"limit": limit, "tiles": tiles}, images)
    assert np.abs(done - expected).max() <= 1
    assert (done != expected).mean() < 0.06
    np.testing.assert_array_equal(apply({"limit": limit, "tiles": tiles}, images + np.float32(0.3)), done)


@pytest.mark.tf
def test_colours_keep_their_chroma() -> None:
    cv2 = pytest.importorskip("cv2")
    images = photos(40, 64, 3)
    done = apply({}, images)
    for image, out in zip(images, done, strict=True):
        luma = ((image @ np.array([4899, 9617, 1868]) + 8192) >> 14).astype(np.uint8)  # with other bits, a level of it becomes eight
        change = cv2.createCLAHE(2.0, (8, 8)).apply(luma).astype(int) - luma
        assert np.abs(out - np.clip(image + change[..., None], 0, 255)).max() <= 1
    each = apply({"channel": "each", "limit": 3}, images)
    for image, out in zip(images, each, strict=True):
        expected = np.stack([cv2.createCLAHE(3.0, (8, 8)).apply(np.ascontiguousarray(image[..., c])) for c in range(3)], -1)
        assert np.abs(out - expected.astype(int)).max() <= 1


@pytest.mark.nightly
@pytest.mark.tf
def test_each_example_draws_its_limit_and_xla_gives_the_same() -> None:
    import tensorflow as tf

    images = np.repeat(photos(30, 41, 3, 1), 3, 0)
    u = np.array([[0.0], [0.5], [1 - 2.0**-53]])
    done = apply({"limit": [1, 5], "tiles": 4}, images, u)
    for out, limit in zip(done, (1, 3, 5), strict=True):
        np.testing.assert_array_equal(out, apply({"limit": limit, "tiles": 4}, images[:1])[0])
    step: Any = transforms()["random_clahe"].model_validate({"limit": [1, 5], "tiles": 4})
    given = step.parameters(tf.constant(u), 30, 41)
    for phase in step.phases():
        given = tf.function(phase, jit_compile=True, autograph=False)(images, *given)
    np.testing.assert_array_equal(step.finish(tf.constant(images), *given).numpy(), done)


def test_what_is_no_picture_of_bytes_is_an_error() -> None:
    step = transforms()["clahe"]()
    for x, code in (
        (IMAGE_224.with_(shape=(224, 224, 4)), "PG205"),
        (IMAGE_224.with_(dtype="float32", interval=Interval(0, 1)), "PG221"),
        (IMAGE_224.with_(dtype="float32", interval=None), "PG221"),
    ):
        with pytest.raises(OpError) as caught:
            step.infer(x)
        assert caught.value.code == code
    assert str(step.infer(IMAGE_224.with_(dtype="float32"))) == "uint8[224×224×3] in [0, 255]"
    assert not transforms()["random_clahe"].model_validate({"probability": 0}).is_identity(IMAGE_224.with_(dtype="float32"))
