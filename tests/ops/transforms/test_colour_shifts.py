"""Steps that shift, tint and reorder channels, and bend their curves, against Albumentations, `tf.image` and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipegen.errors import OpError
from pipegen.ops.lowering.colours import ORDERS
from pipegen.ops.step_bases import ColourTransform
from pipegen.ops.traits import IMAGE_224
from pipegen.ops.transforms.brightness import Brightness, RandomBrightness
from pipegen.ops.transforms.channels import RandomChannelDrop, RandomChannelShuffle, RandomRgbShift
from pipegen.ops.transforms.color_jitter import RandomPhotometricDistort
from pipegen.ops.transforms.color_temperature import RandomColorTemperature, RandomPcaLighting
from pipegen.ops.transforms.grayscale import RandomSepia, Sepia
from pipegen.ops.transforms.solarization import RandomSolarizeAdd
from pipegen.ops.transforms.tone_curve import RandomToneCurve
from pipegen.types import FeatureType, Interval

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]
LUMA = np.array([0.299, 0.587, 0.114])


def photo() -> Array:
    """Noise around a gradient, uint8."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:24, :40]
    ramp = np.stack([5 * x + y, 3 * y + 2 * x, 200 - 4 * x], axis=-1)
    return np.clip(ramp + rng.integers(0, 40, ramp.shape), 0, 255).astype(np.uint8)


def matrices(step: ColourTransform, u: Array) -> tuple[Array, Array, Array]:
    """`A`, `b` and `m` for rows of draws."""
    import tensorflow as tf

    a, b, m = (t.numpy() for t in step.matrix(tf.constant(u, tf.float64), 3))
    return np.broadcast_to(a, (len(u), 3, 3)), np.broadcast_to(b, (len(u), 3)), np.broadcast_to(m, (len(u), 3))


def applied(step: ColourTransform, image: Array, u: Array) -> Array:
    """One row of draws, applied without a clip."""
    a, b, m = (part[0] for part in matrices(step, np.asarray(u, float).reshape(1, -1)))
    return image @ a.T + b + m * (image @ LUMA).mean()


def named(step: Any, u: Array) -> dict[str, Array]:
    import tensorflow as tf

    return {name: value.numpy() for name, value in step.drawn(tf.constant(u, tf.float64)).items()}


def random(step: Any, rows: int = 4000) -> Array:
    return np.random.default_rng(7).random((rows, step.num_draws()))


def test_an_amount_is_added_behind_the_factor() -> None:
    image = photo()
    np.testing.assert_allclose(applied(Brightness(delta=-30), image, np.zeros(0)), image - 30.0)
    np.testing.assert_allclose(applied(Brightness(factor=2, delta=5), image, np.zeros(0)), 2.0 * image + 5)
    both = RandomBrightness(factor=0.2, delta=40)
    np.testing.assert_allclose(applied(both, image, np.array([0.25, 0.75])), 0.9 * image + 20)
    assert RandomBrightness(factor=0.2).num_draws() == RandomBrightness(delta=9).num_draws() == 1
    with pytest.raises(ValueError, match="give at least one of `factor` and `delta`"):
        RandomBrightness()
    (lint,) = RandomBrightness(delta=0.2).lints(IMAGE_224)
    assert "cannot be seen" in str(lint)


def test_transparency_gets_no_brighter() -> None:
    import tensorflow as tf

    _, b, _ = Brightness(delta=7).matrix(tf.zeros([1, 0], tf.float64), 4)
    np.testing.assert_array_equal(b.numpy(), [[7, 7, 7, 0]])


def test_each_channel_has_its_range() -> None:
    step = RandomRgbShift(red=20, blue=(0, 8))
    np.testing.assert_allclose(applied(step, photo(), np.array([1.0, 0.3, 0.5])), photo() + np.array([20.0, 0, 4]))
    with pytest.raises(OpError, match="needs 3 channels"):
        step.infer(IMAGE_224.with_(shape=(8, 8, 1)))


@pytest.mark.peers
@pytest.mark.parametrize(("light", "theirs"), [("blackbody", "blackbody"), ("daylight", "cied")])
def test_temperatures_are_albumentations_s(light: Any, theirs: Any) -> None:
    functional = pytest.importorskip("albumentations.augmentations.pixel.functional")
    image = photo().astype(np.float32) / 4
    for kelvins in (4000, 4720, 6500, 9999, 15000):
        step = RandomColorTemperature(kelvins=(kelvins, kelvins), light=light)
        wanted = functional.planckian_jitter(image / 255, kelvins, theirs) * 255
        np.testing.assert_allclose(np.clip(applied(step, image, np.zeros(1)), 0, 255), wanted, atol=1e-3)
    with pytest.raises(ValueError, match="at least 4000"):
        RandomColorTemperature(kelvins=(3500, 5000), light="daylight")


@pytest.mark.peers
def test_sepia_is_albumentations_s() -> None:
    albumentations = pytest.importorskip("albumentations")
    wanted = albumentations.ToSepia(p=1)(image=photo())["image"]
    for step in (Sepia(), RandomSepia(probability=1)):
        np.testing.assert_allclose(np.clip(applied(step, photo(), np.zeros(0)), 0, 255), wanted, atol=1)


def test_light_varies_along_the_principal_colours() -> None:
    step = RandomPcaLighting(std=100)
    _, b, _ = matrices(step, random(step, 20_000))
    values, vectors = np.linalg.eigh(np.cov(b.T))
    np.testing.assert_allclose(np.sqrt(values[::-1]), [21.75, 1.88, 0.45], rtol=0.02)
    np.testing.assert_allclose(np.abs(vectors[:, -1]), [0.5675, 0.5808, 0.5836], atol=2e-3)
    np.testing.assert_allclose(b.mean(0), 0, atol=0.5)
    unit = FeatureType("image", "uint8", (8, 8, 3), Interval(0, 255))
    assert "hardly changes" in str(RandomPcaLighting(std=0.1).lints(unit)[0])


def test_channels_change_places() -> None:
    step = RandomChannelShuffle()
    u = random(step, 600)
    for row, order in zip(u[:12], named(step, u)["order"], strict=False):
        np.testing.assert_array_equal(applied(step, photo(), row), photo()[..., order])
    found, counts = np.unique(named(step, u)["order"], axis=0, return_counts=True)
    assert {tuple(order) for order in found} == set(ORDERS)
    assert counts.min() > 60


def test_channels_go_black() -> None:
    step = RandomChannelDrop(count=(1, 2))
    u = random(step, 900)
    dropped = named(step, u)["dropped"]
    np.testing.assert_array_equal(applied(step, photo(), u[3]), photo() * ~dropped[3])
    assert set(dropped.sum(1)) == {1, 2}
    np.testing.assert_allclose(dropped.mean(0), 0.5, atol=0.06)


@pytest.mark.nightly
def test_photometric_distortion_is_the_product_of_its_parts() -> None:
    step = RandomPhotometricDistort()
    u = random(step, 400)
    drawn = named(step, u)
    image = photo()
    mean = (image @ LUMA).mean()
    from pipegen.ops.transforms.hue import Hue

    for i in range(40):
        one = {name: value[i] for name, value in drawn.items()}
        # Contrast moves values away from the mean of the image that enters, whatever was done to it before.
        factor = one["contrast_factor"]
        x = image * one["brightness_factor"]
        if one["contrast_first"]:
            x = factor * x + (1 - factor) * mean
        gray = (x @ LUMA)[..., None]
        x = one["saturation_factor"] * x + (1 - one["saturation_factor"]) * gray
        x = applied(Hue(degrees=float(one["hue_degrees"])), x, np.zeros(0))
        if not one["contrast_first"]:
            x = factor * x + (1 - factor) * mean
        np.testing.assert_allclose(applied(step, image, u[i]), x[..., one["order"]], atol=1e-8)
    for name, idle in (("brightness_factor", 1), ("contrast_factor", 1), ("saturation_factor", 1), ("hue_degrees", 0)):
        assert 0.4 < (drawn[name] == idle).mean() < 0.6


@pytest.mark.peers
def test_a_tone_curve_is_albumentations_s() -> None:
    functional = pytest.importorskip("albumentations.augmentations.pixel.functional")
    import tensorflow as tf

    ramp = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    step = RandomToneCurve(std=0.2)
    u = random(step, 20)
    tables = step.table(tf.constant(u), None).numpy()
    for table, a, b in zip(tables, *named(step, u).values(), strict=True):
        np.testing.assert_array_equal(table[0], functional.move_tone_curve(ramp, float(a), float(b)).ravel())
    apart = RandomToneCurve(std=0.2, per_channel=True)
    tables = apart.table(tf.constant(random(apart, 5)), None).numpy()
    assert tables.shape == (5, 3, 256)
    assert (tables[:, 0] != tables[:, 1]).any()


def test_dark_values_get_an_amount() -> None:
    import tensorflow as tf

    step = RandomSolarizeAdd(delta=(30.5, 30.5), threshold=99.5)
    table = step.table(tf.zeros([1, 1], tf.float64), None).numpy()[0, 0]
    values = np.arange(256)
    np.testing.assert_array_equal(table, np.where(values < 99.5, values + 30, values))
    assert "share of the range" in str(RandomSolarizeAdd(delta=0.4).lints(IMAGE_224)[0].help)
