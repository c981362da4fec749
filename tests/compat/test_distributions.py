"""What a spec's steps draw is distributed as what Keras draws: 10,000 draws of each argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import pipegen
from pipegen.compat import ImageDataGenerator

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]
DRAWS = 10_000
SIDE = 64
ARGUMENTS: dict[str, Any] = {
    "rotation_range": 25,
    "width_shift_range": 0.2,
    "height_shift_range": 5.0,
    "shear_range": 12.0,
    "zoom_range": [0.8, 1.5],
    "channel_shift_range": 30.0,
    "horizontal_flip": True,
    "vertical_flip": True,
    "brightness_range": (0.4, 1.3),
}
ALPHA = 1e-3


@pytest.fixture(scope="module")
def reference() -> dict[str, Array]:
    """Keras' draws."""
    from keras.src.legacy.preprocessing.image import ImageDataGenerator as Reference

    np.random.seed(11)
    generator = Reference(**ARGUMENTS)
    draws = [generator.get_random_transform((SIDE, SIDE, 3)) for _ in range(DRAWS)]
    return {name: np.array([d[name] for d in draws], float) for name in draws[0]}


@pytest.fixture(scope="module")
def matrices() -> dict[str, Any]:
    """What the steps make of uniform numbers: matrices about the centre, or what the channels get."""
    import tensorflow as tf

    spec = pipegen.load(ImageDataGenerator(**ARGUMENTS).to_spec("photos", target_size=(SIDE, SIDE)))
    rng, found, side = np.random.default_rng(12), {}, tf.constant(SIDE, tf.float64)
    for step in spec.model.transforms:
        if step.random:
            u = tf.constant(rng.uniform(size=(DRAWS, step.num_draws())), tf.float64)
            colour = step.op in ("random_channel_shift", "random_brightness")
            made = step.matrix(u, 3) if colour else step.matrix(u, side, side)  # type: ignore[attr-defined]
            found[step.op] = [np.asarray(part) for part in made] if colour else np.asarray(made)
    return found


def alike(ours: Array, theirs: Array) -> None:
    assert stats.ks_2samp(ours, theirs).pvalue > ALPHA
    assert (ours.min(), ours.max()) == pytest.approx((theirs.min(), theirs.max()), abs=0.01 * np.ptp(theirs))


@pytest.mark.nightly
def test_rotation(matrices: dict[str, Any], reference: dict[str, Array]) -> None:
    m = matrices["random_rotation"]
    alike(np.rad2deg(np.arctan2(m[:, 1, 0], m[:, 0, 0])), reference["theta"])


def test_shifts(matrices: dict[str, Any], reference: dict[str, Array]) -> None:
    m = matrices["random_translation"]
    # Keras fills `tx` from the height, which the documented axes swap.
    alike(m[:, 0, 2], reference["ty"])
    alike(m[:, 1, 2], reference["tx"])


@pytest.mark.parametrize("given", [4, 1, [2, -5], (0.1, 0.25, 0.1), [0.5, 3]], ids=str)
@pytest.mark.parametrize("argument", ["width_shift_range", pytest.param("height_shift_range", marks=pytest.mark.nightly)])
def test_shifts_by_single_distances(argument: str, given: Any) -> None:
    """Whole pixels below a number, or the items of a list, either way."""
    import tensorflow as tf
    from keras.src.legacy.preprocessing.image import ImageDataGenerator as Reference

    np.random.seed(13)
    other = Reference(**{argument: given})
    name = {"width_shift_range": "ty", "height_shift_range": "tx"}[argument]  # which the documented axes swap
    theirs = np.round([other.get_random_transform((SIDE, SIDE, 3))[name] for _ in range(DRAWS)], 6)
    steps = pipegen.load(ImageDataGenerator(**{argument: given}).to_spec("photos", target_size=(SIDE, SIDE))).model.transforms
    policy: Any = next((step for step in steps if step.op == "one_of"), None)
    if policy is None:
        assert not theirs.any()
        return
    u = tf.constant(np.random.default_rng(14).uniform(size=(DRAWS, 1)), tf.float64)
    distances = [step.x or step.y for step in policy.steps]
    ours = np.round(sum(SIDE * d * np.asarray(policy.chosen(u, i)) for i, d in enumerate(distances)), 6)
    values = sorted(set(theirs.tolist()))
    assert values == sorted(set(ours.tolist()))
    counts = [[int((drawn == value).sum()) for value in values] for drawn in (ours, theirs)]
    assert stats.chi2_contingency(counts).pvalue > ALPHA


def test_shear(matrices: dict[str, Any], reference: dict[str, Array]) -> None:
    alike(np.rad2deg(np.arctan(-matrices["random_shear"][:, 0, 1])), reference["shear"])


def test_zoom_has_keras_range_and_draws_each_side(matrices: dict[str, Any], reference: dict[str, Array]) -> None:
    m = matrices["random_zoom"]
    for axis, name in enumerate(("zx", "zy")):
        z = m[:, axis, axis]
        assert (z.min(), z.max()) == pytest.approx((reference[name].min(), reference[name].max()), abs=0.01)
        assert stats.kstest(1 / z, stats.uniform(1 / 1.5, 1 / 0.8 - 1 / 1.5).cdf).pvalue > ALPHA  # uniform in what it magnifies by
    assert abs(np.corrcoef(m[:, 0, 0], m[:, 1, 1])[0, 1]) < 0.05


def test_flips(matrices: dict[str, Any], reference: dict[str, Array]) -> None:
    m = matrices["random_flip"]
    ours = np.histogram2d(m[:, 0, 0] < 0, m[:, 1, 1] < 0, 2)[0]
    theirs = np.histogram2d(reference["flip_horizontal"], reference["flip_vertical"], 2)[0]
    assert stats.chi2_contingency([ours.ravel(), theirs.ravel()]).pvalue > ALPHA


def test_colour(matrices: dict[str, Any], reference: dict[str, Array]) -> None:
    shifts = [part for part in matrices["random_channel_shift"] if np.ptp(part) > 1]
    factors = [part for part in matrices["random_brightness"] if np.ptp(part) > 0.1]
    alike(shifts[0].reshape(DRAWS, -1)[:, 0], reference["channel_shift_intensity"])
    alike(factors[0].reshape(DRAWS, -1)[:, 0], reference["brightness"])
