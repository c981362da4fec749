"""`log` against NumPy, and `spec_augment`: lengths and places of masks, what fills them, shares of the examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml
from pydantic import ValidationError

from pipegen.ops.kinds.audio import Sound
from pipegen.ops.registry import transforms
from pipegen.types import FeatureType, Interval

Array = np.ndarray[Any, Any]
POWERS = FeatureType("audio", "float32", (50, 40, 1), Interval(0, 100), details=Sound(16000, 160.0, "powers"))
MAGNITUDES = POWERS.with_(details=Sound(16000, 160.0, "magnitudes"))


def made(written: str, x: FeatureType = POWERS) -> Any:
    ((name, arguments),) = yaml.safe_load(written).items() if ":" in written else ((written, None),)
    return transforms()[name].model_validate(arguments or {}).on(x)


def spectra(n: int = 3) -> Array:
    rng = np.random.default_rng(0)
    found = (10.0 ** rng.uniform(-14, 2, (n, 50, 40, 1))).astype(np.float32)
    found[0, :5] = 0.0
    return found


@pytest.mark.tf
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    ("written", "x", "expected"),
    [
        ("log", POWERS, lambda v: np.log(np.maximum(v, 1e-10))),
        ("log", MAGNITUDES, lambda v: np.log(np.maximum(v, 1e-5))),
        ("log: {floor: 0.01}", POWERS, lambda v: np.log(np.maximum(v, 0.01))),
        ("log: {offset: 0.01}", POWERS, lambda v: np.log(v + 0.01)),
        ("log: {base: 10, scale: 0.25, shift: 1}", POWERS, lambda v: np.log10(np.maximum(v, 1e-10)) / 4 + 1),
        ("log: {base: db}", POWERS, lambda v: 10 * np.log10(np.maximum(v, 1e-10))),
        ("log: {base: db}", MAGNITUDES, lambda v: 20 * np.log10(np.maximum(v, 1e-5))),
        (
            "log: {base: db, top: 30}",
            POWERS,
            lambda v: np.maximum(10 * np.log10(np.maximum(v, 1e-10)), 10 * np.log10(v.max((1, 2, 3), keepdims=True)) - 30),
        ),
        (
            "log: {base: db, top: 30}",
            MAGNITUDES,
            lambda v: np.maximum(20 * np.log10(np.maximum(v, 1e-5)), 20 * np.log10(v.max((1, 2, 3), keepdims=True)) - 30),
        ),
        ("log: {top: 3}", POWERS, lambda v: np.maximum(np.log(np.maximum(v, 1e-10)), np.log(v.max((1, 2, 3), keepdims=True)) - 3)),
    ],
)
def test_log(written: str, x: FeatureType, expected: Any, jit: bool) -> None:
    import tensorflow as tf

    step, values = made(written, x), spectra()
    found = tf.function(lambda v: step.apply(v), jit_compile=jit, autograph=False)(tf.constant(values)).numpy()
    np.testing.assert_allclose(found, expected(values.astype(np.float64)), rtol=2e-6, atol=2e-5)
    bounds = step.infer(x).interval
    assert bounds.low - 1e-4 <= found.min()
    assert found.max() <= bounds.high + 1e-4


def augmented(step: Any, values: Array, u: Array, *, jit: bool = False) -> Array:
    import tensorflow as tf

    def whole(x: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return step.apply(x, *step.parameters(u, x.shape[1], x.shape[2]))

    return tf.function(whole, jit_compile=jit, autograph=False)(tf.constant(values), tf.constant(u)).numpy()


@pytest.mark.tf
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("fill", ["mean", "{constant: -3}"])
def test_masks_are_where_the_draws_say(fill: str, jit: bool) -> None:
    import tensorflow as tf

    x = POWERS.with_(interval=None)
    step = made(f"spec_augment: {{steps: 20, time: 0.3, bands: 10, time_masks: 2, frequency_masks: 3, fill: {fill}}}", x)
    assert step.num_draws() == 10
    values = np.random.default_rng(1).normal(size=(40, 50, 40, 1)).astype(np.float32)
    u = np.random.default_rng(2).random((40, 10))
    found = augmented(step, values, u, jit=jit)
    drawn = {name: part.numpy() for name, part in step.drawn_on(tf.constant(u), (50, 40, 1)).items()}
    assert drawn["steps"].max() <= 15
    assert drawn["bands"].max() == 10
    for row in range(40):
        covered = np.zeros((50, 40), bool)
        for first, count in zip(drawn["step"][row], drawn["steps"][row], strict=True):
            assert 0 <= first <= first + count <= 50
            covered[first : first + count] = True
        for first, count in zip(drawn["band"][row], drawn["bands"][row], strict=True):
            assert 0 <= first <= first + count <= 40
            covered[:, first : first + count] = True
        value = values[row].mean(dtype=np.float64) if fill == "mean" else -3
        np.testing.assert_allclose(found[row, ..., 0][covered], value, atol=1e-6)
        assert np.array_equal(found[row, ..., 0][~covered], values[row, ..., 0][~covered])


def resized(values: Array, length: int) -> Array:
    """Steps `(steps, ...)` resized to another number of them, with linear interpolation between their middles, as images are resized."""
    middles = (np.arange(length) + 0.5) * len(values) / length - 0.5
    flat = values.reshape(len(values), -1).astype(np.float64)
    return np.stack([np.interp(middles, np.arange(len(values)), column) for column in flat.T], 1).reshape(length, *values.shape[1:])


@pytest.mark.tf
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("steps", [50, 13, 3, 2, 1])
def test_a_warp_resizes_both_sides_of_a_place(steps: int, *, jit: bool) -> None:
    """As `time_warp` of ESPnet, with the interpolation `bilinear`."""
    import tensorflow as tf

    step = made("spec_augment: {warp: 6}")
    values = np.random.default_rng(1).normal(size=(40, steps, 7, 2)).astype(np.float32)
    u = np.random.default_rng(2).random((40, step.num_draws()))
    found = augmented(step, values, u, jit=jit)
    drawn = {name: part.numpy() for name, part in step.drawn_on(tf.constant(u), (steps, 7, 2)).items()}
    assert set(drawn) == {"before", "moved"}
    signature = [tf.TensorSpec([None, None, 7, 2]), tf.TensorSpec([None, None], tf.float64)]
    unknown = tf.function(lambda x, u: step.apply(x, *step.parameters(u, tf.shape(x)[1], 7)), signature, autograph=False)
    np.testing.assert_allclose(unknown(values[:9], u[:9]).numpy(), found[:9], atol=1e-6)
    reach = min(6, (steps - 2) // 2)
    for row, (before, moved) in enumerate(zip(drawn["before"], drawn["moved"], strict=True)):
        if reach < 1:
            np.testing.assert_array_equal(found[row], values[row])
            continue
        assert reach < before < steps - reach
        assert abs(moved - before) <= reach
        wanted = np.concatenate([resized(values[row][:before], moved), resized(values[row][before:], steps - moved)])
        np.testing.assert_allclose(found[row], wanted, atol=2e-6)
        if before == moved:
            np.testing.assert_array_equal(found[row], values[row])


@pytest.mark.tf
def test_places_of_a_warp_are_uniform_and_masks_cover_what_is_warped() -> None:
    import tensorflow as tf

    step = made("spec_augment: {warp: 4, steps: 9, bands: 3, fill: {constant: -3}}")
    u = np.random.default_rng(0).random((60000, step.num_draws()))
    drawn = {name: part.numpy() for name, part in step.drawn_on(tf.constant(u), (30, 8, 1)).items()}
    for counts, kinds in ((np.bincount(drawn["before"] - 5), 21), (np.bincount(drawn["moved"] - drawn["before"] + 4), 9)):
        assert len(counts) == kinds
        assert abs(counts - 60000 / kinds).max() < 5 * np.sqrt(60000 / kinds)
    values = np.random.default_rng(1).random((20, 30, 8, 1)).astype(np.float32)
    warped = augmented(made("spec_augment: {warp: 4}"), values, u[:20, -2:])
    both = augmented(step, values, u[:20])
    assert (both[both != -3] == warped[both != -3]).all()
    masked = augmented(made("spec_augment: {steps: 9, bands: 3, fill: {constant: -3}}"), values, u[:20, :-2])
    np.testing.assert_array_equal(both == -3, masked == -3)


@pytest.mark.tf
def test_lengths_and_places_are_uniform() -> None:
    step = made("spec_augment: {time: 0.1}")
    import tensorflow as tf

    u = np.random.default_rng(0).random((60000, 2))
    drawn = step.drawn_on(tf.constant(u), (50, 40, 1))
    assert set(drawn) == {"step", "steps"}
    counts = np.bincount(drawn["steps"].numpy()[:, 0])
    assert len(counts) == 6  # 0 to a tenth of 50
    assert abs(counts - 10000).max() < 400
    places = np.bincount(drawn["step"].numpy()[drawn["steps"].numpy() == 5])
    assert len(places) == 46
    assert places.min() > 130


@pytest.mark.tf
def test_a_share_can_grow_over_the_epochs() -> None:
    import tensorflow as tf

    step = made("spec_augment: {time: {linear: {from: 0, to: 0.5, epochs: [0, 10]}}}")
    u = tf.constant(np.full((1, 2), 0.999))
    for epoch, most in ((0, 0), (5, 12), (10, 25), (20, 25)):
        assert step.at(tf.constant(epoch)).drawn_on(u, (50, 40, 1))["steps"].numpy()[0, 0] == most


def test_what_makes_no_sense_is_told() -> None:
    for written, said in (("spec_augment: {}", "give at least one"), ("spec_augment: {time: 2}", "less than or equal to 1")):
        with pytest.raises(ValidationError, match=said):
            made(written)
    assert made("spec_augment: {time: 0}").is_identity(POWERS)
    assert made("spec_augment: {time: 0.5, time_masks: 0}").is_identity(POWERS)
    assert not made("spec_augment: {time: 0.5}").is_identity(POWERS)
    assert not made("spec_augment: {warp: 5, time: 0}").is_identity(POWERS)
    (lint,) = made("spec_augment: {time: 0.9}").lints(POWERS)
    assert "reaches 90%" in str(lint)
    assert made("spec_augment: {time: 0.1, fill: {constant: -5}}").infer(POWERS).interval == Interval(-5, 100)


@pytest.mark.tf
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(("width", "order"), [(3, 1), (9, 2)])
def test_delta_is_the_slope_of_the_line_by_least_squares(width: int, order: int, jit: bool) -> None:
    import tensorflow as tf

    values = np.random.default_rng(0).normal(size=(2, 12, 5, 2)).astype(np.float32)
    step = made(f"delta: {{width: {width}, order: {order}}}")
    found = tf.function(lambda v: step.apply(v), jit_compile=jit, autograph=False)(tf.constant(values)).numpy()
    expected, half = [values.astype(np.float64)], width // 2
    for _ in range(order):
        padded = np.pad(expected[-1], ((0, 0), (half, half), (0, 0), (0, 0)), mode="edge")
        windows = np.lib.stride_tricks.sliding_window_view(padded, width, axis=1)
        expected.append(np.apply_along_axis(lambda w: np.polyfit(np.arange(width), w, 1)[0], -1, windows))
    np.testing.assert_allclose(found, np.concatenate(expected, 2), atol=1e-5)
    assert found.shape[1:] == step.infer(POWERS.with_(shape=(12, 5, 2))).shape


def test_an_even_width_is_rejected() -> None:
    with pytest.raises(ValidationError, match="`width` is odd"):
        made("delta: {width: 4}")
