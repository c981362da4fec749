"""Resize against Pillow (nearest, antialias) and OpenCV (without), and its sizes against exact fractions."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pipegen.errors import OpError
from pipegen.ops.arguments.geometry import ConstantFill
from pipegen.ops.lowering.resizing import proportional_size, side_size, to_dtype
from pipegen.ops.traits import ANY_IMAGE, IMAGE_224
from pipegen.ops.transforms.resize import Resize
from pipegen.types import FeatureType, Interval

Array = np.ndarray[Any, Any]
SIDES = st.integers(1, 70000)


def noise(height: int, width: int, seed: int = 0) -> Array:
    """Smooth noise, so that the oracle's own rounding stays small."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (max(2, height // 6), max(2, width // 6), 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


def apply(step: Resize, image: Array) -> Array:
    import tensorflow as tf

    y = step.apply(tf.constant(image), tf.zeros([0], tf.float64))
    assert y.dtype == image.dtype
    return y.numpy()


@pytest.mark.nightly
@pytest.mark.tf
def test_nearest_is_pillow_s_to_the_pixel() -> None:
    rng = np.random.default_rng(0)
    for _ in range(150):
        h, w, to_h, to_w = (int(v) for v in rng.integers(1, 90, 4))
        image = rng.integers(0, 256, (h, w, 3), dtype=np.uint8)
        expected = np.asarray(Image.fromarray(image).resize((to_w, to_h), Image.Resampling.NEAREST))
        np.testing.assert_array_equal(
            apply(Resize(size=(to_h, to_w), method="nearest"), image), expected, err_msg=f"{h}x{w} to {to_h}x{to_w}"
        )


@pytest.mark.tf
@pytest.mark.parametrize("size", [(30, 41), (97, 64), (200, 300)])
def test_bilinear_is_opencv_s(size: tuple[int, int]) -> None:
    image = noise(90, 130)
    expected = cv2.resize(image, size[::-1], interpolation=cv2.INTER_LINEAR)
    assert np.abs(apply(Resize(size=size), image).astype(int) - expected).max() <= 1


@pytest.mark.tf
@pytest.mark.parametrize(("method", "pillow", "mean", "most"), [
    ("bilinear", Image.Resampling.BILINEAR, 0.3, 1),
    ("bicubic", Image.Resampling.BICUBIC, 0.3, 3),
    ("lanczos3", Image.Resampling.LANCZOS, 0.3, 3),
])  # fmt: skip
@pytest.mark.parametrize("size", [(30, 41), (120, 64), (200, 300)])
def test_antialias_is_pillow_s(method: Any, pillow: Any, mean: float, most: int, size: tuple[int, int]) -> None:
    # Pillow rounds between its two passes, which moves a fifth of the pixels by one level.
    image = noise(90, 130, seed=1)
    expected = np.asarray(Image.fromarray(image).resize(size[::-1], pillow))
    difference = np.abs(apply(Resize(size=size, method=method, antialias=True), image).astype(int) - expected)
    assert difference.mean() < mean
    assert difference.max() <= most


@pytest.mark.tf
@pytest.mark.parametrize(("method", "antialias"), [
    ("bilinear", False), ("bilinear", True), ("bicubic", False), ("bicubic", True), ("lanczos3", False), ("lanczos3", True),
    ("area", False),
])  # fmt: skip
@pytest.mark.parametrize("size", [(20, 71), (9, 7)])
def test_interpolation_is_tensorflow_s(size: tuple[int, int], method: Any, antialias: bool) -> None:
    """`tf.image.resize` gives floats; bytes are those, rounded half to even and clipped: also where many are read for one."""
    import tensorflow as tf

    image = noise(37, 58, seed=5)
    theirs = tf.image.resize(image, size, method=method, antialias=antialias).numpy()
    given = apply(Resize(size=size, method=method, antialias=antialias), image)
    ties = np.abs(theirs - np.floor(theirs) - 0.5) < 1e-4
    assert (np.abs(given - np.clip(np.rint(theirs), 0, 255))[~ties] == 0).all()
    floats = apply(Resize(size=size, method=method, antialias=antialias), image.astype(np.float32))
    np.testing.assert_allclose(floats, theirs, atol=255e-6)


@pytest.mark.nightly
@pytest.mark.tf
@settings(max_examples=40, deadline=None)
@given(
    before=st.tuples(st.integers(1, 70), st.integers(1, 70), st.integers(1, 4)),
    after=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    how=st.sampled_from([("bilinear", True), ("bicubic", True), ("lanczos3", True), ("lanczos3", False)]),
    dtype=st.sampled_from([np.uint8, np.float32]),
    seed=st.integers(0, 99),
)
def test_weighing_rows_twice_is_tensorflow_s_to_the_bit(before: Any, after: Any, how: Any, dtype: Any, seed: int) -> None:
    import tensorflow as tf

    method, antialias = how
    image = np.random.default_rng(seed).integers(0, 256, before).astype(dtype)
    # As tensors whose sizes it does not know, TensorFlow resizes to the same size too, and does not return what it was given.
    spec = [tf.TensorSpec([None, None, None], dtype), tf.TensorSpec([2], tf.int32)]
    resize = tf.function(lambda x, to: tf.image.resize(x, to, method=method, antialias=antialias), spec, autograph=False)
    theirs = resize(image, after).numpy()
    wanted = np.clip(np.rint(theirs), 0, 255) if dtype == np.uint8 else theirs
    np.testing.assert_array_equal(apply(Resize(size=after, method=method, antialias=antialias), image), wanted)


@pytest.mark.tf
def test_area_averages() -> None:
    image = np.random.default_rng(2).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    expected = np.rint(image.reshape(10, 4, 20, 3, 3).mean(axis=(1, 3)))
    assert np.abs(apply(Resize(size=(10, 20), method="area"), image) - expected).max() <= 1
    assert (apply(Resize(size=(10, 20), method="area"), image) == expected).mean() > 0.99


@pytest.mark.tf
def test_whole_numbers_round_half_to_even_and_clip() -> None:
    pairs = np.array([[[0], [1]], [[1], [2]], [[254], [255]]], np.uint8)
    assert apply(Resize(size=(3, 1)), pairs).ravel().tolist() == [0, 2, 254]
    edge = np.zeros((8, 8, 1), np.uint8)
    edge[:, 4:] = 255
    y = apply(Resize(size=(16, 16), method="lanczos3"), edge)
    assert y[0, 0, 0] == 0
    assert y[0, -1, 0] == 255
    assert (np.diff(y[0, :, 0].astype(int)) >= -40).all(), "an overshoot did not wrap around"


@pytest.mark.tf
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_every_level_and_what_lies_beside_it_is_rounded_as_numpy_rounds(dtype: str) -> None:
    import tensorflow as tf

    most = np.iinfo(dtype).max
    halves = np.arange(-3, most + 3, 0.5, dtype=np.float32)
    x = np.concatenate([halves, np.nextafter(halves, np.float32(-1e6)), np.nextafter(halves, np.float32(1e6)), np.float32([-1e9, 1e9])])
    expected = np.clip(np.rint(x), 0, most).astype(dtype)
    np.testing.assert_array_equal(to_dtype(tf.constant(x), tf.as_dtype(dtype)), expected)
    in_a_graph = tf.function(lambda t: to_dtype(t, tf.as_dtype(dtype)), autograph=False)
    np.testing.assert_array_equal(in_a_graph(tf.constant(x)), expected)


@pytest.mark.tf
def test_an_image_of_one_value() -> None:
    import tensorflow as tf

    image = np.uint8([[[7], [8]]])
    assert apply(Resize(size=(1, 1)), image).tolist() == [[[8]]]
    in_a_dataset = tf.data.Dataset.from_tensors(tf.constant([[[7.5]]])).map(lambda t: to_dtype(t, tf.uint8))
    assert next(iter(in_a_dataset)).numpy().tolist() == [[[8]]]


@pytest.mark.tf
def test_floats_stay_floats() -> None:
    image = np.random.default_rng(3).random((6, 8, 3), np.float32)
    y = apply(Resize(size=(3, 4)), image)
    np.testing.assert_allclose(y, image.reshape(3, 2, 4, 2, 3).mean(axis=(1, 3)), atol=1e-6)


@pytest.mark.tf
@pytest.mark.parametrize(("height", "width"), [(40, 100), (100, 40), (33, 33), (7, 90)])
@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_modes(height: int, width: int, method: Any) -> None:
    image = noise(height, width)
    size = (24, 32)
    rows, columns = proportional_size(height, width, size, covers=True)
    covering = apply(Resize(size=(rows, columns), method=method), image)
    top, left = (rows - 24) // 2, (columns - 32) // 2
    np.testing.assert_array_equal(apply(Resize(size=size, mode="crop", method=method), image), covering[top : top + 24, left : left + 32])

    rows, columns = proportional_size(height, width, size, covers=False)
    inside = apply(Resize(size=(rows, columns), method=method), image)
    expected = np.full((24, 32, 3), 7, np.uint8)
    top, left = (24 - rows) // 2, (32 - columns) // 2
    expected[top : top + rows, left : left + columns] = inside
    padded = apply(Resize(size=size, mode="pad", fill=ConstantFill(constant=7), method=method), image)
    np.testing.assert_array_equal(padded, expected)


@pytest.mark.tf
def test_sizes_are_static_or_not_as_inferred() -> None:
    import tensorflow as tf

    spec = tf.TensorSpec([None, None, 3], tf.uint8)
    for step in (
        Resize(size=(5, 7)),
        Resize(size=(5, 7), mode="pad"),
        Resize(size=(5, 7), mode="crop", method="nearest"),
        Resize(shorter_side=5),
    ):
        traced = tf.function(lambda x, step=step: step.apply(x, None), input_signature=[spec], autograph=False).get_concrete_function()
        assert tuple(traced.outputs[0].shape) == step.infer(ANY_IMAGE).shape
        assert traced(tf.zeros([20, 30, 3], tf.uint8)).shape in ((5, 7, 3), (5, 8, 3))


@settings(max_examples=80, deadline=None)
@given(SIDES, SIDES, st.integers(1, 2000))
def test_the_shorter_side_keeps_the_proportions(height: int, width: int, side: int) -> None:
    rows, columns = side_size(height, width, side)
    assert min(rows, columns) == side
    assert (rows <= columns) == (height <= width) or rows == columns
    exact = Fraction(max(height, width) * side, min(height, width))
    assert abs(max(rows, columns) - exact) <= Fraction(1, 2)


@settings(max_examples=80, deadline=None)
@given(SIDES, SIDES, st.tuples(st.integers(1, 2000), st.integers(1, 2000)))
def test_covering_and_fitting(height: int, width: int, size: tuple[int, int]) -> None:
    rows, columns = proportional_size(height, width, size, covers=True)
    assert rows >= size[0]
    assert columns >= size[1]
    assert rows == size[0] or columns == size[1]
    rows, columns = proportional_size(height, width, size, covers=False)
    assert 1 <= rows <= size[0]
    assert 1 <= columns <= size[1]
    assert rows == size[0] or columns == size[1]


@pytest.mark.tf
def test_sizes_agree_in_and_out_of_the_graph() -> None:
    import tensorflow as tf

    rng = np.random.default_rng(4)
    for _ in range(40):
        height, width = (int(v) for v in rng.integers(1, 65536, 2))
        size = (int(rng.integers(1, 3000)), int(rng.integers(1, 3000)))
        h, w = tf.constant(height), tf.constant(width)
        for function, target in (
            (side_size, size[0]),
            (partial(proportional_size, covers=True), size),
            (partial(proportional_size, covers=False), size),
        ):
            inside = tuple(int(v) for v in function(h, w, target))
            assert inside == function(height, width, target), (function, height, width, target)


def test_inference() -> None:
    landscape = IMAGE_224.with_(shape=(300, 400, 3))
    assert Resize(shorter_side=150).infer(landscape).shape == (150, 200, 3)
    assert Resize(size=300).infer(ANY_IMAGE).shape == (300, 300, 3)
    floats = FeatureType("image", "float32", (8, 8, 3), Interval(0, 1))
    assert Resize(size=4).infer(floats).interval == Interval(0, 1)
    assert Resize(size=4, method="bicubic").infer(floats).interval is None
    padded = Resize(size=4, mode="pad", fill=ConstantFill(constant=-1)).infer(floats)
    assert padded.interval == Interval(-1, 1)
    assert Resize(size=224).is_identity(IMAGE_224)
    assert Resize(shorter_side=224).is_identity(IMAGE_224)
    assert not Resize(size=224).is_identity(ANY_IMAGE)


def test_what_a_decoder_may_leave_out() -> None:
    assert Resize(size=(20, 30)).needed_size() == (20, 30)
    assert Resize(shorter_side=256).needed_size() == (256, 256)


def test_lint_on_a_strong_reduction() -> None:
    large = IMAGE_224.with_(shape=(1000, 500, 3))
    assert [lint.code for lint in Resize(size=224).lints(large)] == ["PG501"]
    assert Resize(size=224, antialias=True).lints(large) == ()
    assert Resize(size=224, method="area").lints(large) == ()
    assert Resize(size=(500, 250)).lints(large) == ()
    assert Resize(size=224).lints(ANY_IMAGE) == ()


def test_a_fill_that_is_no_level_is_an_error() -> None:
    with pytest.raises(OpError) as caught:
        Resize(size=8, mode="pad", fill=ConstantFill(constant=0.5)).infer(ANY_IMAGE)
    assert caught.value.code == "PG207"


@pytest.mark.parametrize(("arguments", "text"), [
    ({}, "either `size`"),
    ({"size": 8, "shorter_side": 8}, "either `size`"),
    ({"shorter_side": 8, "mode": "pad"}, "needs `size`"),
    ({"size": 8, "fill": {"constant": 3}}, "`fill` needs `mode: pad`"),
    ({"size": 8, "method": "nearest", "antialias": True}, "no effect"),
    ({"size": [8, 8, 8]}, "at most 2"),
])  # fmt: skip
def test_wrong_arguments_are_rejected(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Resize.model_validate(arguments)
