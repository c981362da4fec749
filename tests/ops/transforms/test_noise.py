"""Steps on bytes: HSV against `colorsys` and Albumentations, noise against the distributions of SciPy; in and out of XLA."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
import pytest

from pipegen.errors import OpError
from pipegen.ops.families.neighbourhood import ByteTransform
from pipegen.ops.traits import IMAGE_224
from pipegen.ops.transforms.hue import RandomHsv
from pipegen.ops.transforms.noise import RandomIsoNoise, RandomSaltAndPepper, RandomShotNoise
from pipegen.types import Interval

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]


def draws(step: ByteTransform, n: int) -> Array:
    return np.random.default_rng(3).random((n, step.num_draws()))


def applied(step: ByteTransform, images: Array, *, jit: bool = False) -> Array:
    import tensorflow as tf

    def whole(x: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return step.apply(x, *step.parameters(u, *images.shape[1:3]))

    return tf.function(whole, jit_compile=jit, autograph=False)(tf.constant(images), tf.constant(draws(step, len(images)))).numpy()


def shifted(image: Array, hue: float, saturation: float, value: float) -> Array:
    """What floats make of it."""
    found = np.empty(image.shape)
    for place in np.ndindex(image.shape[:-1]):
        h, s, v = colorsys.rgb_to_hsv(*(image[place] / 255.0))
        s = np.clip(s + saturation / 255, 0, 1) if s else 0.0
        found[place] = np.array(colorsys.hsv_to_rgb((h + hue / 360) % 1, s, np.clip(v + value / 255, 0, 1))) * 255
    return found


def pictures() -> Array:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (2, 20, 24, 3))
    images[0, :5] = rng.integers(100, 110, (5, 24, 3))
    images[1, :4] = images[1, :4, :, :1]
    return images.astype(np.uint8)


@pytest.mark.peers
@pytest.mark.parametrize("amounts", [(0, 0, 0), (20, 30, 20), (-75.5, -40, -33.3), (180, 255, 0), (0, -255, 0), (11, 0, 200)])
def test_hsv_is_within_a_hundredth_of_a_level_before_rounding(amounts: tuple[float, float, float]) -> None:
    names = ("hue_degrees", "saturation_delta", "value_delta")
    step = RandomHsv.model_validate({name: (amount, amount) for name, amount in zip(names, amounts, strict=True)})
    images = pictures()
    done = applied(step, images)
    for image, mine in zip(images, done, strict=True):
        assert np.abs(mine - shifted(image, *amounts)).max() <= 0.5 + 0.012
    if amounts == (0, 0, 0):
        np.testing.assert_array_equal(done, images)
    albumentations = pytest.importorskip("albumentations.augmentations.pixel.functional")
    theirs = albumentations.shift_hsv(images[0], amounts[0] / 2, *amounts[1:]).astype(int)
    assert np.abs(done[0] - theirs).mean() < 0.8, "hue in steps of 2 degrees, saturation in whole levels"


def test_hsv_has_colours() -> None:
    step = RandomHsv(hue_degrees=10)
    with pytest.raises(OpError, match="needs 3 channels"):
        step.infer(IMAGE_224.with_(shape=(8, 8, 1)))
    with pytest.raises(OpError, match="rounds to whole numbers from 0 to 255"):
        step.infer(IMAGE_224.with_(dtype="float32", interval=Interval(0, 1)))
    assert step.infer(IMAGE_224.with_(dtype="float32")).dtype == "uint8"


@pytest.mark.nightly
def test_salt_and_pepper_have_their_shares() -> None:
    images = np.full((4, 90, 100, 3), 100, np.uint8)
    done = applied(RandomSaltAndPepper(share=(0.2, 0.2), salt=0.25), images)
    assert (done == done[..., :1]).all(), "a pixel is white, black or neither"
    assert set(np.unique(done)) == {0, 100, 255}
    np.testing.assert_allclose([(done == 255).mean(), (done == 0).mean()], [0.05, 0.15], atol=0.006)
    assert (applied(RandomSaltAndPepper(share=(1, 1), salt=1), images) == 255).all()
    assert (applied(RandomSaltAndPepper(share=(0, 0)), images) == 100).all()


@pytest.mark.by_day(2)
@pytest.mark.parametrize("photons", [3, 12, 60, 1000])
def test_counts_are_poisson_s(photons: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    images = np.broadcast_to(np.array([0, 20, 90, 128], np.uint8)[:, None, None, None], (4, 60, 70, 3)).copy()
    done = applied(RandomShotNoise(photons=(photons, photons)), images)
    assert (done[0] == 0).all(), "no light, no count"
    for level, image in zip((20, 90, 128), done[1:], strict=True):
        expected = level / 255 * photons
        count = np.rint(image.ravel().astype(float) * photons / 255.0)
        kept = stats.poisson(expected)
        # Counts above white are clipped, and those of a thousand photons lie closer than levels.
        top = np.arange(int(photons) + 1)
        chance = np.append(kept.pmf(top[:-1]), kept.sf(photons - 1))
        mean, slack = (top * chance).sum(), 5 * np.sqrt(expected / count.size) + 0.03
        assert count.mean() == pytest.approx(mean, abs=slack)
        assert count.std() == pytest.approx(np.sqrt((top**2 * chance).sum() - mean**2), rel=0.06)


@pytest.mark.nightly
def test_a_sensor_s_noise_has_its_deviation() -> None:
    gray = np.full((2, 90, 100, 3), 128, np.uint8)
    step = RandomIsoNoise(std=(12, 12), hue_degrees=(9, 9))
    done = applied(step, gray)
    assert (done == done[..., :1]).all(), "grays stay gray"
    assert done.astype(float).std() == pytest.approx(12, rel=0.02)
    assert done.mean() == pytest.approx(128, abs=0.3)
    red = np.full((2, 90, 100, 3), (200, 100, 100), np.uint8)
    turned = applied(RandomIsoNoise(std=(0, 0), hue_degrees=(9, 9)), red).astype(float)
    # A degree is a sixtieth of the way from red to yellow, or to magenta.
    angle = (turned[..., 1] - turned[..., 2]) / 100 * 60
    assert angle.std() == pytest.approx(9, rel=0.02)
    assert (turned[..., 0] == 200).all()


@pytest.mark.parametrize("step", [
    RandomSaltAndPepper(share=0.3), pytest.param(RandomIsoNoise(std=20, hue_degrees=20), marks=pytest.mark.nightly),
    pytest.param(RandomShotNoise(), marks=pytest.mark.nightly),
    pytest.param(RandomHsv(hue_degrees=90, saturation_delta=60, value_delta=50), marks=pytest.mark.nightly),
], ids=lambda step: step.op)  # fmt: skip
def test_bytes_are_the_same_in_xla(step: ByteTransform) -> None:
    images = pictures()
    np.testing.assert_array_equal(applied(step, images, jit=True), applied(step, images))
    assert (applied(step, images) != images).any()
