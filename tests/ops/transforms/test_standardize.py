"""`standardize` against NumPy and against Keras' ImageDataGenerator, and how moments are put together."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pipegen.errors import OpError
from pipegen.ops.arguments.learned import Fitted, Moments
from pipegen.ops.registry import transforms
from pipegen.types import BYTE_RANGE, FeatureType, Interval

Array = np.ndarray[Any, Any]

BYTES = FeatureType("image", "uint8", (12, 10, 3), BYTE_RANGE)


def step(**arguments: Any) -> Any:
    return transforms()["standardize"].model_validate(arguments)


def moments_of(values: Array) -> Moments:
    """Of `(n, channels)`, by NumPy."""
    mean = values.mean(0)
    return Moments(len(values), tuple(mean.tolist()), tuple(((values - mean) ** 2).sum(0).tolist()))


def images(dtype: str = "uint8") -> Array:
    rng = np.random.default_rng(3)
    made = rng.integers(0, 65536 if dtype == "uint16" else 256, (4, 12, 10, 3))
    made[1] = 77  # one value
    made[2] = 255
    made[2, 0, 0, 0] = 254  # nearly one value
    return made.astype(dtype) if dtype != "float32" else (made / 255).astype(np.float32)


@pytest.mark.tf
@pytest.mark.parametrize(
    ("center", "scale", "dtype", "jit"),
    [(c, s, d, False) for c, s in ((True, True), (True, False), (False, True)) for d in ("uint8", "uint16", "float32")]
    + [pytest.param(True, True, "uint8", True, marks=pytest.mark.nightly), (True, True, "float32", True)],
)
def test_samplewise_is_what_numpy_gives(center: bool, scale: bool, dtype: str, jit: bool) -> None:
    import tensorflow as tf

    given = images(dtype)
    own = step(statistics="samplewise", center=center, scale=scale).parts()[0].step
    done = tf.function(lambda x: own.apply(x), jit_compile=jit, autograph=False)(tf.constant(given)).numpy()
    x = given.astype(np.float64)
    if center:
        x = x - x.mean((1, 2, 3), keepdims=True)
    if scale:
        x = x / (given.astype(np.float64).std((1, 2, 3), keepdims=True) + 1e-6)
    assert done.dtype == np.float32
    np.testing.assert_allclose(done, x, rtol=2e-6, atol=1e-6 * 2 * math.sqrt(12 * 10 * 3 - 1))  # E1
    if center:
        assert abs(done[1]).max() < 4e-5, "an image of one value is all zeros"


@pytest.mark.tf
def test_samplewise_is_what_keras_gives() -> None:
    import tensorflow as tf

    idg = tf.keras.preprocessing.image.ImageDataGenerator(samplewise_center=True, samplewise_std_normalization=True)
    given = images()[[0, 2, 3]]
    ours = step(statistics="samplewise").parts()[0].step.apply(tf.constant(given)).numpy()
    theirs = np.stack([idg.standardize(image.astype(np.float64)) for image in given])
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.tf
def test_featurewise_is_what_keras_gives() -> None:
    import tensorflow as tf

    idg = tf.keras.preprocessing.image.ImageDataGenerator(featurewise_center=True, featurewise_std_normalization=True, dtype="float64")
    given = images()
    idg.fit(given.astype(np.float64))
    moments = moments_of(given.reshape(-1, 3).astype(np.float64))
    arithmetic = step(statistics="featurewise").with_numbers(Fitted({"image": moments}, 4)).parts()[0].step.arithmetic(BYTES)
    ours = given * np.array(arithmetic.scale) + np.array(arithmetic.offset)
    theirs = np.stack([idg.standardize(image.astype(np.float64)) for image in given])
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.tf
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_the_moments_of_one_image_are_what_numpy_gives(dtype: str) -> None:
    import tensorflow as tf

    from pipegen.ops.lowering.statistics import own_moments

    for image in images(dtype):
        count, mean, squares = own_moments(tf.constant(image)).numpy()[:, 0]
        x = image.reshape(-1, 3).astype(np.float64)
        assert count.tolist() == [120] * 3
        np.testing.assert_allclose(mean, x.mean(0), rtol=1e-14)
        np.testing.assert_allclose(squares, ((x - x.mean(0)) ** 2).sum(0), rtol=1e-12, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    cuts=st.lists(st.integers(1, 199), max_size=12),
    offset=st.sampled_from([0.0, 1.0, 1e6, -1e8]),
    seed=st.integers(0, 2**16),
    grouped=st.integers(1, 5),
)
def test_moments_do_not_depend_on_how_values_are_parted(cuts: list[int], offset: float, seed: int, grouped: int) -> None:
    values = offset + np.random.default_rng(seed).normal(size=(200, 2)) * np.array([1.0, 0.01])
    edges = [0, *sorted(set(cuts)), 200]
    parts = [moments_of(values[a:b]) for a, b in pairwise(edges)]
    total: Moments | None = None
    for i in range(0, len(parts), grouped):
        total = Moments.of(parts[i : i + grouped] if total is None else [total, *parts[i : i + grouped]])
    assert total is not None
    assert total.count == 200
    np.testing.assert_allclose(total.mean, values.mean(0), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(total.std, values.std(0), rtol=1e-6 if offset else 1e-12)


def test_moments_of_one_value_have_no_spread() -> None:
    total = Moments.of([Moments(7, (0.1,), (0.0,)), Moments(1000, (0.1,), (0.0,))])
    assert (total.mean, total.std) == ((0.1,), (0.0,))
    with pytest.raises(ValueError, match="no values"):
        Moments.of(())


def test_a_channel_of_one_value_is_only_centred() -> None:
    fitted = step(statistics="featurewise").with_numbers(Fitted({"image": Moments(9, (10.0, 5.0, 255.0), (36.0, 9.0, 0.0))}, 1))
    arithmetic = fitted.parts()[0].step.arithmetic(BYTES)
    assert arithmetic.scale == pytest.approx((0.5, 1.0, 1.0), rel=1e-5)
    assert arithmetic.offset[2] == -255.0


@pytest.mark.parametrize(("center", "scale", "expected"), [(True, False, ((1.0,), (-10.0,))), (False, True, ((0.5,), (0.0,)))])
def test_featurewise_may_centre_or_scale_alone(center: bool, scale: bool, expected: Any) -> None:
    gray = BYTES.with_(shape=(12, 10, 1))
    own = step(statistics="featurewise", center=center, scale=scale).with_numbers(Fitted({"image": Moments(9, (10.0,), (36.0,))}, 1))
    arithmetic = own.parts()[0].step.arithmetic(gray)
    assert arithmetic.scale == pytest.approx(expected[0], rel=1e-5)
    assert arithmetic.offset == pytest.approx(expected[1], rel=1e-5)


def test_types() -> None:
    unsized = BYTES.with_(shape=(None, None, 3))
    assert step(statistics="samplewise").infer(unsized) == unsized.with_(dtype="float32", interval=None)
    assert step(statistics="samplewise", scale=False).infer(unsized).interval == Interval(-255, 255)
    assert step(statistics="samplewise", center=False).infer(BYTES).interval is None
    assert step(statistics="featurewise").infer(BYTES) == BYTES.with_(dtype="float32", interval=None, centred=True)
    assert math.isnan(step(statistics="featurewise").parts()[0].step.arithmetic(BYTES).scale[0]), "nothing is computed with no numbers"
    fitted = step(statistics="featurewise").with_numbers(Fitted({"image": Moments(9, (10.0,) * 3, (36.0,) * 3)}, 1))
    assert fitted.infer(BYTES).interval is not None
    for wrong, code in [(BYTES.with_(shape=(12, 10, 1)), "PG205"), (BYTES.with_(dtype="int32"), "PG208")]:
        with pytest.raises(OpError) as caught:
            fitted.infer(wrong)
        assert caught.value.code == code


def test_what_was_learned_is_no_part_of_the_meaning() -> None:
    plain = step(statistics="featurewise")
    fitted = plain.with_numbers(Fitted({"image": Moments(9, (10.0,) * 3, (36.0,) * 3)}, 1))
    assert fitted != plain
    assert fitted.meaning() == plain.meaning()
    assert fitted.with_numbers(None) == plain
    assert fitted.model_copy(update={"when": "all"}).fitted == fitted.fitted


def test_each_feature_has_numbers_of_its_own() -> None:
    two = {"left": Moments(9, (10.0,), (36.0,)), "right": Moments(9, (20.0,), (9.0,))}
    parts = [p.step for p in step(statistics="featurewise", when=["train"]).with_numbers(Fitted(two, 1)).parts()]
    assert [(p.feature, p.when, p.arithmetic(BYTES).offset[0]) for p in parts] == [
        ("left", ["train"], pytest.approx(-5, rel=1e-5)),
        ("right", ["train"], pytest.approx(-20, rel=1e-5)),
    ]


def test_arguments_that_make_no_sense() -> None:
    own: dict[str, Any]
    for own in ({}, {"statistics": "batchwise"}):
        with pytest.raises(ValidationError):
            step(**own)
    for own in ({"center": False, "scale": False}, {"epsilon": 0}, {"epsilon": 2}, {"probability": 0.5}):
        with pytest.raises(ValidationError):
            step(statistics="samplewise", **own)
