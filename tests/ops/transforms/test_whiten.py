"""`whiten` against NumPy and against Keras' ImageDataGenerator, and how a covariance is gathered."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pipegen.errors import DataError, OpError
from pipegen.ops.arguments.learned import Fitted, Whitening
from pipegen.ops.lowering.statistics import Covariance, zca
from pipegen.ops.registry import transforms
from pipegen.ops.transforms.whiten import LARGEST
from pipegen.types import BYTE_RANGE, FeatureType, Interval

Array = np.ndarray[Any, Any]

SHAPE = (4, 5, 3)
BYTES = FeatureType("image", "uint8", SHAPE, BYTE_RANGE)
UNIT = BYTES.with_(dtype="float32", interval=Interval(0, 1))


def step(**arguments: Any) -> Any:
    return transforms()["whiten"].model_validate(arguments)


def images(n: int = 400, seed: int = 3) -> Array:
    """Bytes whose neighbours have much in common, and whose mean is another at each place."""
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 200, (n, *SHAPE)).astype(float)
    smooth = (noise + 2 * np.roll(noise, 1, 1) + np.roll(noise, 1, 2) + 2 * np.roll(noise, 1, 3)) / 6
    return np.rint(smooth + np.arange(60).reshape(SHAPE) * 0.9).astype(np.uint8)


def learned(x: Array, **arguments: Any) -> Any:
    """The step, fitted on images that come in batches of 64."""
    own = step(**arguments)
    return own.with_numbers(Fitted({"image": own.gather(np.split(x.astype(np.float64), range(64, len(x), 64)))}, len(x)))


def applied(own: Any, x: Array, jit: bool = False) -> Array:
    import tensorflow as tf

    (part,) = own.parts()
    done: Array = tf.function(lambda given: part.step.apply(given), jit_compile=jit, autograph=False)(tf.constant(x)).numpy()
    assert done.dtype == np.float32
    return done


def reference(x: Array, train: Array, epsilon: float, *, by_channel: bool = False) -> Array:
    """Whitened rows in float64, by the square root of the inverse of the covariance."""
    from scipy.linalg import sqrtm

    rows = train.reshape(len(train), -1).astype(np.float64)
    mean = np.broadcast_to(rows.reshape(-1, 3).mean(0), (20, 3)).reshape(-1) if by_channel else rows.mean(0)
    centred = rows - mean
    matrix = np.linalg.inv(sqrtm(centred.T @ centred / len(rows) + epsilon * np.eye(60)))
    return ((x.reshape(len(x), -1) - mean) @ matrix).reshape(x.shape)


@pytest.mark.tf
@pytest.mark.parametrize(
    ("center", "epsilon", "dtype", "jit"),
    [
        ("pixel", 1e-6, "uint8", False),
        ("channel", 1e-4, "float32", True),
        pytest.param("pixel", 0.1, "uint8", True, marks=pytest.mark.nightly),
        pytest.param("channel", 1e-6, "uint8", False, marks=pytest.mark.nightly),
    ],
)
def test_it_is_what_numpy_gives(center: str, epsilon: float, dtype: str, jit: bool) -> None:
    train, other = (images(seed=seed) if dtype == "uint8" else (images(seed=seed) / 255).astype(np.float32) for seed in (3, 4))
    own = learned(train, center=center, epsilon=epsilon)
    wanted = reference(other, train, epsilon, by_channel=center == "channel")
    promised = own.infer(BYTES if dtype == "uint8" else UNIT).interval
    done = applied(own, other, jit)
    np.testing.assert_allclose(done, wanted, rtol=0, atol=1e-6 * promised.width)  # E1
    assert promised.low <= done.min() < -1, "and the bounds hold"
    assert promised.high >= done.max() > 1
    alone = np.concatenate([applied(own, other[i : i + 1], jit) for i in range(3)])
    np.testing.assert_allclose(done[:3], alone, rtol=0, atol=1e-6 * promised.width)


@pytest.mark.tf
def test_the_training_split_comes_out_white() -> None:
    train = images()
    done = applied(learned(train), train).reshape(len(train), -1).astype(np.float64)
    np.testing.assert_allclose(done.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(np.cov(done.T, bias=True), np.eye(60), atol=1e-4)
    before = np.corrcoef(train.reshape(len(train), -1).T)
    assert abs(before - np.eye(60)).max() > 0.5, "which it was not before"
    similar = [np.corrcoef(train.reshape(-1, 60)[:, i], done[:, i])[0, 1] for i in range(60)]
    assert min(similar) > 0.5, "each value is still most like itself"


@pytest.mark.tf
def test_it_is_what_keras_gives() -> None:
    import tensorflow as tf

    idg = tf.keras.preprocessing.image.ImageDataGenerator(featurewise_center=True, zca_whitening=True, dtype="float64")
    train, other = images(n=2000) / 255, images(n=50, seed=4) / 255
    idg.fit(train)
    theirs = np.stack([idg.standardize(image.copy()) for image in other])
    ours = applied(learned(train, center="channel", epsilon=1e-12), other)
    np.testing.assert_allclose(ours, theirs, atol=2e-5)
    assert abs(applied(learned(train, epsilon=1e-12), other) - theirs).max() > 0.1, "with one mean for each channel, as it says"


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    offset=st.sampled_from([0.0, 1.0, -1e4, 1e7]),
    seed=st.integers(0, 2**16),
)
def test_a_covariance_does_not_depend_on_how_images_are_parted(sizes: list[int], offset: float, seed: int) -> None:
    noise = np.random.default_rng(seed).normal(size=(sum(sizes), 5)) @ np.random.default_rng(seed + 1).normal(size=(5, 5))
    values = offset + noise
    found = Covariance(5)
    for block in np.split(values, np.cumsum(sizes)[:-1]):
        found.add(block)
    assert found.count == len(values)
    np.testing.assert_allclose(found.mean, values.mean(0), rtol=1e-13, atol=1e-12)
    exact = values - values.mean(0)
    scale = np.abs(exact.T @ exact).max() + 1e-9
    np.testing.assert_allclose(found.products, exact.T @ exact, rtol=0, atol=1e-8 * scale)


@pytest.mark.nightly
def test_one_pass_in_batches_is_the_whole_array() -> None:
    x = images(n=2500).astype(np.float64)
    whole = Covariance(60)
    whole.add(x.reshape(len(x), -1))
    wanted = zca(whole, 1e-6)
    for cuts in ((), range(64, 2500, 64), (1, 700), range(1, 2500)):
        found = step().gather(iter(np.split(x, cuts)))
        np.testing.assert_allclose(found.matrix, wanted.matrix, rtol=1e-4, atol=1e-6)
        assert found.count == 2500
    assert step().gather([x]) == step().gather([x]), "and the same images give the same bits"
    assert step().gather([x]) != step().gather([x + 1])


def test_what_cannot_be_learned() -> None:
    with pytest.raises(ValueError, match="no images"):
        step().gather([])
    for wrong in (np.nan, np.inf):
        with pytest.raises(DataError, match="not finite"):
            step().gather([np.full((3, *SHAPE), wrong)])


def test_few_images_are_doubted() -> None:
    few = learned(images(n=20)).fitted.numbers["image"]
    (said,) = few.doubts("whiten", "image")
    assert "20 examples span at most 19 of the 60 directions of `image`" in said
    assert few.below == 41, "the rest vary by nothing"
    assert few.figures() == {
        "matrix": "60×60",
        "variances": f"{few.variances[0]:.3g} to {few.variances[-1]:.3g}, 41 of 60 below epsilon 1e-06",
    }
    plain = few.as_json()
    assert (plain["values"], plain["epsilon"], plain["variances"]["below_epsilon"]) == (60, 1e-6, 41)
    assert np.isfinite(few.matrix).all()
    assert learned(images()).fitted.numbers["image"].doubts("whiten", "image") == ()
    (said,) = learned(images() / 255, epsilon=10).fitted.numbers["image"].doubts("whiten", "image")
    assert "vary by less than `epsilon`" in said


def test_what_is_kept_is_read_bit_for_bit_or_not_at_all() -> None:
    numbers = learned(images()).fitted.numbers["image"]
    content = numbers.to_bytes({"key": "k"})
    about, again = Whitening.from_bytes(content)
    assert (about, again) == ({"key": "k"}, numbers)
    for name in ("mean", "matrix", "variances"):
        np.testing.assert_array_equal(getattr(again, name), getattr(numbers, name))
    assert not any(array.dtype.hasobject for array in np.load(io.BytesIO(content), allow_pickle=False).values())
    for at in range(3, len(content), len(content) // 60):
        damaged = content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :]
        try:
            _, read = Whitening.from_bytes(damaged)
        except ValueError:
            continue
        assert read == numbers, "a byte that means nothing"
        np.testing.assert_array_equal(read.matrix, numbers.matrix)
    for wrong in (b"", b"PK", content[: len(content) // 2], b"{}"):
        with pytest.raises(ValueError, match="invalid whitening transform"):
            Whitening.from_bytes(wrong)


def test_types() -> None:
    assert step().infer(BYTES) == BYTES.with_(dtype="float32", interval=None, centred=True)
    later = BYTES.with_(shape=(None, None, 1), uniform=True)
    assert step().infer(later).shape == (None, None, 1), "arrays have one size, which is known when they are there"
    largest = BYTES.with_(shape=(52, 52, 3))
    assert step().infer(largest).shape == (52, 52, 3)
    wrong = [
        (BYTES.with_(shape=(None, 5, 3)), "PG231", "needs images of one size, and gets ?×5×3", "size: 52"),
        (BYTES.with_(shape=(53, 53, 3)), "PG231", f"works up to {LARGEST:,} values", "`- resize: {size: 52}` or smaller"),
        (
            BYTES.with_(shape=(224, 224, 3)),
            "PG231",
            "150,528×150,528 numbers (84.4 GiB)",
            "`- grayscale` before it and a size of at most 9",
        ),
        (BYTES.with_(shape=(91, 91, 1)), "PG231", "images of 91×91×1", "size: 90"),
        (BYTES.with_(shape=(1, 1, 9000)), "PG231", "images of 1×1×9000", "standardize"),
        (BYTES.with_(dtype="int32"), "PG208", "gets int32", ""),
    ]
    for given_, code, said, help_ in wrong:
        with pytest.raises(OpError) as caught:
            step().infer(given_)
        assert caught.value.code == code
        assert said in caught.value.message
        assert help_ in (caught.value.help or "")
    with pytest.raises(OpError, match="fitted on images of 60 values, and gets 75"):
        learned(images()).infer(BYTES.with_(shape=(5, 5, 3)))


def test_what_was_learned_is_no_part_of_the_meaning() -> None:
    plain, fitted = step(), learned(images())
    assert fitted != plain
    assert fitted.meaning() == plain.meaning()
    assert fitted.with_numbers(None) == plain
    of = [own.parts()[0].step.meaning() for own in (plain, fitted, learned(images(seed=4)))]
    assert of[0] != of[1] != of[2], "but of what a cache behind it holds"
    assert step(epsilon=0.1).measuring("image").meaning() != step().measuring("image").meaning()
    assert step(when="eval", id="w").measuring("image").meaning() == step().measuring("image").meaning()


def test_each_feature_has_numbers_of_its_own() -> None:
    one, other = (learned(images(seed=seed)).fitted.numbers["image"] for seed in (1, 2))
    own = step().with_numbers(Fitted({"left": one, "right": other}, 400))
    assert [(p.step.feature, p.step.numbers) for p in own.parts()] == [("left", one), ("right", other)]
    assert own.infer(BYTES).interval is None


@pytest.mark.parametrize("own", [{"method": "pca"}, {"center": "image"}, {"epsilon": 0}, {"epsilon": float("inf")}, {"probability": 0.5}])
def test_arguments_that_make_no_sense(own: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        step(**own)
