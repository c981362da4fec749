"""Crops: windows against plain Python reimplementations, distributions, and the evaluation forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pipegen.errors import OpError
from pipegen.ops.step_bases import CropTransform
from pipegen.ops.traits import ANY_IMAGE, IMAGE_224
from pipegen.ops.transforms.crop import CenterCrop, RandomCrop
from pipegen.ops.transforms.resize import RandomResizedCrop, Resize

Array = np.ndarray[Any, Any]


def windows(step: CropTransform, u: Array, height: int, width: int) -> Array:
    """The windows as the graph computes them."""
    import tensorflow as tf

    y = step.window(tf.constant(u, tf.float64), tf.constant(height), tf.constant(width))
    assert y.dtype == tf.int32
    return y.numpy()


def inception(u: Array, height: int, width: int, area: tuple[float, float], ratio: tuple[float, float]) -> tuple[int, int, int, int]:
    """torchvision's `RandomResizedCrop.get_params`, fed with our numbers instead of its generator's."""
    for i in range(10):
        target = (area[0] + (area[1] - area[0]) * u[2 * i]) * height * width
        aspect = math.exp(math.log(ratio[0]) + (math.log(ratio[1]) - math.log(ratio[0])) * u[2 * i + 1])
        w = round(math.sqrt(target * aspect))
        h = round(math.sqrt(target / aspect))
        if 0 < w <= width and 0 < h <= height:
            return int(u[20] * (height - h + 1)), int(u[21] * (width - w + 1)), h, w
    if width / height < ratio[0]:
        w, h = width, round(width / ratio[0])
    elif width / height > ratio[1]:
        h, w = height, round(height * ratio[1])
    else:
        h, w = height, width
    return (height - h) // 2, (width - w) // 2, h, w


@pytest.mark.tf
@pytest.mark.parametrize(("height", "width"), [(375, 500), (500, 333), (40, 900), (700, 30), (64, 64), (3, 2), (1, 1)])
@pytest.mark.parametrize(("area", "ratio"), [((0.08, 1.0), (3 / 4, 4 / 3)), ((0.9, 1.0), (0.2, 5.0)), ((0.01, 0.02), (1.0, 1.0))])
def test_random_resized_crop_is_the_published_algorithm(
    height: int, width: int, area: tuple[float, float], ratio: tuple[float, float]
) -> None:
    step = RandomResizedCrop(size=224, area=area, aspect_ratio=ratio)
    u = np.random.default_rng(height).random((200, step.num_draws()))
    u[0], u[1] = 0.0, np.nextafter(1.0, 0.0)
    expected = np.array([inception(row, height, width, area, ratio) for row in u])
    np.testing.assert_array_equal(windows(step, u, height, width), expected)


@pytest.mark.tf
def test_random_resized_crop_reaches_its_fallback() -> None:
    step = RandomResizedCrop(size=8)
    u = np.random.default_rng(0).random((300, step.num_draws()))
    tall = windows(step, u, 2000, 20)
    assert (tall == [(2000 - 27) // 2, 0, 27, 20]).all(axis=1).sum() > 20


@pytest.mark.tf
def test_random_resized_crop_distribution() -> None:
    step = RandomResizedCrop(size=224)
    height, width = 375, 500
    rng = np.random.default_rng(3)
    ours = windows(step, rng.random((6000, step.num_draws())), height, width)
    theirs = np.array([independent(rng, height, width) for _ in range(6000)])
    assert (ours[:, :2] >= 0).all()
    assert (ours[:, 0] + ours[:, 2] <= height).all()
    assert (ours[:, 1] + ours[:, 3] <= width).all()

    def facts(w: Array) -> Array:
        share = w[:, 2] * w[:, 3] / (height * width)
        place = w[:, 0] / np.maximum(height - w[:, 2], 1), w[:, 1] / np.maximum(width - w[:, 3], 1)
        return np.stack([share, np.log(w[:, 3] / w[:, 2]), *place])

    for a, b in zip(facts(ours), facts(theirs), strict=True):
        np.testing.assert_allclose(np.quantile(a, [0.1, 0.3, 0.5, 0.7, 0.9]), np.quantile(b, [0.1, 0.3, 0.5, 0.7, 0.9]), atol=0.035)


def independent(rng: np.random.Generator, height: int, width: int) -> tuple[int, int, int, int]:
    """The algorithm with a generator of its own and its draws in torchvision's order."""
    for _ in range(10):
        target = height * width * rng.uniform(0.08, 1.0)
        aspect = math.exp(rng.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
        if 0 < w <= width and 0 < h <= height:
            return int(rng.integers(0, height - h + 1)), int(rng.integers(0, width - w + 1)), h, w
    return 0, 0, height, width


@pytest.mark.tf
def test_center_crop_takes_the_middle() -> None:
    step = CenterCrop(size=(20, 31))
    assert windows(step, np.zeros((0,)), 101, 100).tolist() == [40, 34, 20, 31]
    assert windows(step, np.zeros((2, 0)), 20, 31).tolist() == [[0, 0, 20, 31]] * 2


@pytest.mark.tf
def test_random_crop_is_uniform_over_all_places() -> None:
    step = RandomCrop(size=(8, 5))
    u = np.random.default_rng(4).random((12000, 2))
    w = windows(step, u, 10, 8)
    assert set(map(tuple, w[:, 2:].tolist())) == {(8, 5)}
    counts = np.zeros((3, 4))
    np.add.at(counts, (w[:, 0], w[:, 1]), 1)
    assert counts.sum() == 12000
    np.testing.assert_allclose(counts / 1000, 1, atol=0.12)
    edges = windows(step, np.array([[0.0, 0.0], [np.nextafter(1, 0), np.nextafter(1, 0)]]), 10, 8)
    assert edges[:, :2].tolist() == [[0, 0], [2, 3]]


@pytest.mark.tf
@pytest.mark.parametrize("step", [CenterCrop(size=(20, 30)), RandomCrop(size=(20, 30))], ids=["center", "random"])
def test_an_image_that_is_too_small_stops_with_a_clear_message(step: CropTransform) -> None:
    import tensorflow as tf

    from pipegen.ops.lowering.python_calls import reason

    u = tf.zeros([step.num_draws()], tf.float64)

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)] * 2, autograph=False)
    def window(height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return step.window(u, height, width)

    assert window(20, 30).numpy().tolist() == [0, 0, 20, 30]
    with pytest.raises(tf.errors.InvalidArgumentError, match="the crop of 20x30 exceeds the image") as caught:
        window(19, 30)
    assert reason(caught.value) == "the crop of 20x30 exceeds the image, whose height and width are 19 30"


@pytest.mark.tf
def test_any_leading_axes() -> None:
    for step in (CenterCrop(size=4), RandomCrop(size=4), RandomResizedCrop(size=4)):
        u = np.random.default_rng(5).random((2, 3, step.num_draws()))
        stacked = windows(step, u, 30, 40)
        assert stacked.shape == (2, 3, 4)
        np.testing.assert_array_equal(stacked[1, 2], windows(step, u[1, 2], 30, 40))


@pytest.mark.tf
def test_finish_resizes_once_and_keeps_uint8() -> None:
    import tensorflow as tf

    image = np.random.default_rng(6).integers(0, 256, (50, 70, 3), dtype=np.uint8)
    y = RandomResizedCrop(size=(16, 24)).finish(tf.constant(image))
    assert y.shape == (16, 24, 3)
    expected = np.rint(tf.image.resize(image, (16, 24)).numpy())
    np.testing.assert_array_equal(y.numpy(), expected)
    assert RandomCrop(size=5).finish(image) is image


def test_a_known_image_that_is_too_small_is_an_error() -> None:
    for step in (CenterCrop(size=225), RandomCrop(size=(300, 10))):
        with pytest.raises(OpError, match="224×224") as caught:
            step.infer(IMAGE_224)
        assert caught.value.code == "PG206"
    assert RandomResizedCrop(size=500).infer(IMAGE_224).shape == (500, 500, 3)
    assert CenterCrop(size=224).is_identity(IMAGE_224)
    assert not CenterCrop(size=224).is_identity(ANY_IMAGE)


def test_traits_depend_on_whether_the_size_is_known() -> None:
    assert RandomCrop(size=8).traits(IMAGE_224).moves_pixels_only
    assert not RandomCrop(size=8).traits(ANY_IMAGE).moves_pixels_only
    assert RandomResizedCrop(size=8).traits(IMAGE_224).family == CenterCrop(size=8).traits(ANY_IMAGE).family
    assert RandomResizedCrop(size=8).traits(ANY_IMAGE).crops
    assert RandomResizedCrop(size=(8, 9)).needed_size() == (8, 9)
    assert RandomCrop(size=8).needed_size() is None


def test_evaluation_forms() -> None:
    assert RandomCrop(size=(20, 30), feature="left").evaluation_form() == (CenterCrop(size=(20, 30), feature="left"),)
    assert RandomResizedCrop(size=224).evaluation_form() == (Resize(shorter_side=256), CenterCrop(size=224))
    assert RandomResizedCrop(size=(112, 224), method="bicubic").evaluation_form() == (
        Resize(size=(128, 256), mode="crop", method="bicubic"),
        CenterCrop(size=(112, 224)),
    )


@pytest.mark.parametrize(("arguments", "text"), [
    ({"size": 8, "area": [0.5, 0.1]}, "is above"),
    ({"size": 8, "area": [0, 1]}, "starts at 0"),
    ({"size": 8, "area": [0.5, 1.5]}, "between 0 and 1"),
    ({"size": 8, "aspect_ratio": [0, 1]}, "between"),
    ({"size": 8, "method": "area", "antialias": True}, "no effect"),
    ({"size": 0}, "greater than or equal to 1"),
    ({}, "required"),
])  # fmt: skip
def test_wrong_arguments_are_rejected(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        RandomResizedCrop.model_validate(arguments)
