"""Filters, noise, erasing and elastic distortion against SciPy, OpenCV, Pillow and NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from planning import built, compiled, load_spec
from scipy import ndimage, stats

from pipegen.errors import OpError
from pipegen.ops.arguments.geometry import ConstantFill
from pipegen.ops.families.neighbourhood import Neighbourhood
from pipegen.ops.stage import StepRef
from pipegen.ops.traits import IMAGE_224
from pipegen.ops.transforms.blurs import GaussianBlur, MedianBlur, RandomGaussianBlur
from pipegen.ops.transforms.distortions import RandomElastic
from pipegen.ops.transforms.dropout import RandomErasing
from pipegen.ops.transforms.noise import RandomGaussianNoise
from pipegen.ops.transforms.sharpness import RandomSharpness, Sharpness
from pipegen.types import FeatureType, Interval

if TYPE_CHECKING:
    from pipegen.ops.families.neighbourhood import NeighbourhoodTransform

Array = np.ndarray[Any, Any]

HEIGHT, WIDTH = 20, 31
UNIT = FeatureType("image", "float32", (HEIGHT, WIDTH, 3), Interval(0, 1))


def photos(count: int = 3, dtype: str = "uint8") -> Array:
    """Noise on a ramp."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    ramp = np.stack([5 * x + y, 3 * y + 2 * x, 200 - 4 * x], axis=-1)
    return np.clip(ramp + rng.integers(0, 90, (count, *ramp.shape)), 0, 255).astype(dtype)


def apply(step: NeighbourhoodTransform, images: Array, u: Array | None = None) -> Array:
    """Every image through the step, eagerly, as floats."""
    import tensorflow as tf

    draws = tf.zeros([len(images), 0], tf.float64) if u is None else tf.constant(u, tf.float64)
    parameters = step.parameters(draws, *images.shape[1:3])
    return step.apply(tf.constant(images), *parameters, clip=step.clip_of(of(images))).numpy().astype(float)


def of(images: Array) -> FeatureType:
    """The type of images of 0 to 255."""
    return FeatureType("image", images.dtype.name, images.shape[1:], Interval(0, 255))


def exact(step: NeighbourhoodTransform, images: Array, u: Array) -> Array:
    """The same through the backend's stages, which read what is displaced."""
    import tensorflow as tf

    from pipegen.backend.kernels.lower import apply_stage

    stage = Neighbourhood("image", StepRef(step, step.op, (), 0, False), step.clip_of(of(images)), step.starts_kernel)
    features = {"image": tf.constant(images), "@draws": tf.constant(u, tf.float64)}
    apply_stage(stage, features)
    done: Array = features["image"].numpy()
    return done


# Blur


@pytest.mark.tf
@pytest.mark.parametrize("sigma", [0.4, 1.0, 2.5])
def test_blur_is_scipy_s(sigma: float) -> None:
    step = GaussianBlur(sigma=sigma)
    images = photos()
    expected = np.stack([ndimage.gaussian_filter(i.astype(float), sigma, radius=step.radius(), axes=(0, 1)) for i in images])
    np.testing.assert_allclose(apply(step, images.astype(np.float32)), expected, atol=1e-4)
    np.testing.assert_allclose(apply(step, images), expected, atol=0.55)  # half a level, and the rounding of the weights


@pytest.mark.tf
def test_blur_is_opencv_s() -> None:
    import cv2

    image = photos(1)[0]
    expected = cv2.GaussianBlur(image, (7, 7), 1.0, borderType=cv2.BORDER_REFLECT)
    assert np.abs(apply(GaussianBlur(sigma=1), image[None])[0] - expected).max() <= 1


@pytest.mark.tf
def test_a_blur_wider_than_the_image_reflects_again_and_again() -> None:
    tiny = photos(2)[:, :4, :3]
    step = GaussianBlur(sigma=3)
    expected = np.stack([ndimage.gaussian_filter(i.astype(float), 3, radius=step.radius(), axes=(0, 1)) for i in tiny])
    np.testing.assert_allclose(apply(step, tiny), expected, atol=0.55)


@pytest.mark.tf
def test_each_example_draws_its_own_blur() -> None:
    images = photos(2)
    done = apply(RandomGaussianBlur(sigma=(0.5, 2.5)), images, np.array([[0.25], [1.0]]))
    reach = RandomGaussianBlur(sigma=(0.5, 2.5)).radius()
    for image, out, sigma in zip(images, done, (1.0, 2.5), strict=True):
        np.testing.assert_allclose(out, ndimage.gaussian_filter(image.astype(float), sigma, radius=reach, axes=(0, 1)), atol=0.55)
    around_zero = apply(RandomGaussianBlur(sigma=2), images, np.array([[0.5], [0.0]]))
    np.testing.assert_array_equal(around_zero[0], images[0])
    np.testing.assert_allclose(around_zero[1], ndimage.gaussian_filter(images[1].astype(float), 2, radius=6, axes=(0, 1)), atol=0.55)


@pytest.mark.tf
def test_a_schedule_of_blurs_keeps_the_shape_of_the_filter() -> None:
    import tensorflow as tf

    step = RandomGaussianBlur.model_validate({"sigma": {"linear": {"from": [0.5, 0.5], "to": [3, 3], "epochs": [0, 5]}}})
    early, late = (step.at(tf.constant(epoch)).parameters(tf.zeros([1, 1], tf.float64), 8, 8)[1].numpy()[0] for epoch in (0, 5))
    assert early.shape == late.shape == (RandomGaussianBlur(sigma=3).radius() + 1,)
    assert early[0] > 3 * late[0]


@pytest.mark.tf
@pytest.mark.parametrize("size", [3, 5])
def test_a_median_is_opencv_s(size: int) -> None:
    import cv2

    images = photos()
    expected = np.stack([cv2.medianBlur(i, size) for i in images])
    np.testing.assert_array_equal(apply(MedianBlur.model_validate({"side": size}), images), expected)
    np.testing.assert_array_equal(apply(MedianBlur.model_validate({"side": size}), images.astype(np.float32)), expected)
    tiny = images[:1, :1, :2]
    np.testing.assert_array_equal(apply(MedianBlur.model_validate({"side": size}), tiny)[0], cv2.medianBlur(tiny[0], size))


# Sharpness


@pytest.mark.tf
@pytest.mark.parametrize("factor", [0.0, 0.5, 1.0, 2.0])
def test_sharpness_is_pillow_s_up_to_the_border(factor: float) -> None:
    from PIL import Image, ImageEnhance

    images = photos()
    expected = np.stack([np.asarray(ImageEnhance.Sharpness(Image.fromarray(i)).enhance(factor)) for i in images]).astype(float)
    done = apply(Sharpness(factor=factor), images)
    np.testing.assert_allclose(done, expected, atol=1.5)  # Pillow rounds what it blends with, and truncates
    np.testing.assert_array_equal(done[:, 0], images[:, 0])
    np.testing.assert_array_equal(done[:, :, -1], images[:, :, -1])
    if factor == 0:
        np.testing.assert_array_equal(done, expected)
    np.testing.assert_allclose(apply(Sharpness(factor=factor), images.astype(np.float32)), expected, atol=1.5)


@pytest.mark.tf
def test_sharpness_draws_a_factor_and_clips() -> None:
    images = photos(2)
    done = apply(RandomSharpness(factor=(1, 5)), images, np.array([[0.0], [1 - 2.0**-53]]))
    np.testing.assert_array_equal(done[0], images[0])
    np.testing.assert_array_equal(done[1], apply(Sharpness(factor=5), images[1:])[0])
    floats = apply(RandomSharpness(factor=(9, 9)), images.astype(np.float32), np.zeros((2, 1)))
    assert floats.min() == 0
    assert floats.max() == 255
    tiny = images[:, :2, :5]
    np.testing.assert_array_equal(apply(Sharpness(factor=3), tiny), tiny)


# Noise


@pytest.mark.tf
def test_noise_is_normal() -> None:
    gray: Array = np.full((8, 64, 64, 3), 100, np.float32)
    u = np.random.default_rng(3).random((8, 3))
    noise = (apply(RandomGaussianNoise(std=(7, 7)), gray, u) - 100) / 7
    assert stats.kstest(noise.ravel(), "norm").pvalue > 0.01
    assert abs(noise.mean()) < 0.015
    assert abs(noise.std() - 1) < 0.01
    assert abs(stats.kurtosis(noise.ravel())) < 0.06
    flat = noise.reshape(8, -1)
    assert np.abs(np.corrcoef(flat) - np.eye(8)).max() < 0.04, "images have noise of their own"
    assert max(abs(np.corrcoef(flat[:, :-lag].ravel(), flat[:, lag:].ravel())[0, 1]) for lag in (1, 2, 3, 192)) < 0.02
    whole: Array = apply(RandomGaussianNoise(std=(7, 7)), gray.astype(np.uint8), u) - 100
    np.testing.assert_array_equal(whole, np.rint(7 * noise))


@pytest.mark.tf
def test_the_deviation_of_noise_is_drawn_for_each_image() -> None:
    gray: Array = np.full((3, 48, 48, 3), 128, np.uint8)
    u = np.random.default_rng(4).random((3, 3))
    u[:, 0] = 0, 0.5, 1 - 2.0**-53
    done = apply(RandomGaussianNoise(std=(4, 20)), gray, u)
    np.testing.assert_allclose(done.std((1, 2, 3)), [4, 12, 20], rtol=0.04)
    np.testing.assert_array_equal(apply(RandomGaussianNoise(std=9), gray[:1], np.array([[0.5, 0.1, 0.2]])), gray[:1])
    loud = apply(RandomGaussianNoise(std=(255, 255)), gray, u)
    assert (loud.min(), loud.max()) == (0, 255)


# Erasing


@pytest.mark.tf
def test_erasing_is_a_rectangle_of_the_area_and_shape_that_were_drawn() -> None:
    images = photos(64)
    u = np.random.default_rng(5).random((64, 4))
    step = RandomErasing(area=(0.1, 0.4), aspect_ratio=(0.5, 2), fill=ConstantFill(constant=7))
    done = apply(step, images, u)
    for image, out, (a, r, v, h) in zip(images, done, u, strict=True):
        area = (0.1 + 0.3 * a) * HEIGHT * WIDTH
        ratio = 0.5 * 4**r
        rows, columns = min(round((area / ratio) ** 0.5), HEIGHT), min(round((area * ratio) ** 0.5), WIDTH)
        top, left = int(v * (HEIGHT - rows + 1)), int(h * (WIDTH - columns + 1))
        expected = image.copy()
        expected[top : top + rows, left : left + columns] = 7
        np.testing.assert_array_equal(out, expected)


@pytest.mark.tf
def test_erasing_takes_one_pixel_at_least_and_the_image_at_most() -> None:
    images = photos(3)
    some = np.random.default_rng(6).random((3, 4))
    one = apply(RandomErasing(area=(0, 0), fill=ConstantFill(constant=255)), np.minimum(images, 254), some)
    assert ((one == 255).all(-1).sum((1, 2)) == 1).all()
    assert (apply(RandomErasing(area=(1, 1), aspect_ratio=(1.55, 1.55)), images, some) == 0).all()


@pytest.mark.tf
def test_erasing_is_the_same_in_a_graph() -> None:
    """TensorFlow's optimiser takes a slice of a stack for what was stacked, whatever axes the slice adds."""
    import tensorflow as tf

    step = RandomErasing(area=(0.1, 0.4))
    images, u = photos(5), np.random.default_rng(8).random((5, 4))

    @tf.function(autograph=False)
    def graph(images: Any, u: Any) -> Any:
        return step.apply(images, *step.parameters(u, tf.shape(images)[1], tf.shape(images)[2]))

    np.testing.assert_array_equal(graph(images, u).numpy(), apply(step, images, u))


# Elastic


@pytest.mark.tf
@pytest.mark.parametrize("fill", ["reflect", "nearest", {"constant": 9}])
def test_elastic_reads_where_scipy_reads(fill: Any) -> None:
    import tensorflow as tf

    step = RandomElastic(alpha=(40, 40), sigma=3, fill=fill)
    images, u = photos(2), np.random.default_rng(7).random((2, 3))
    (phase,) = step.phases()
    right, down = (v.numpy() / 256 for v in phase(tf.constant(images), *step.parameters(tf.constant(u), HEIGHT, WIDTH)))
    assert 1 < right.std() < 4
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    mode = fill if isinstance(fill, str) else "grid-constant"
    expected = np.stack([
        np.stack([ndimage.map_coordinates(i[..., c].astype(float), [y + dy, x + dx], order=1, mode=mode, cval=9) for c in range(3)], -1)
        for i, dy, dx in zip(images, down, right, strict=True)
    ])  # fmt: skip
    np.testing.assert_allclose(exact(step, images, u), expected, atol=0.5)
    np.testing.assert_allclose(exact(step, images.astype(np.float32), u), expected, atol=1e-3)


@pytest.mark.tf
@pytest.mark.parametrize("sigma", [1.0, 3.0, 8.0])
def test_distances_are_smoothed_uniform_noise(sigma: float) -> None:
    """Their deviation and their correlation over `sigma` pixels are those of white noise behind a Gaussian filter."""
    import tensorflow as tf

    from pipegen.ops.lowering.random import UNIT as one
    from pipegen.ops.lowering.random import smooth_field, spacing

    key = tf.constant(np.random.default_rng(8).integers(0, 2**32, (48, 2), dtype=np.uint32))
    field = smooth_field(key, 90, 80, sigma).numpy().astype(float)
    assert (field == np.rint(field)).all()
    assert np.abs(field).max() < 2**24, "sums of whole numbers are exact in float32"
    assert field.std() / one / spacing(sigma) == pytest.approx(1 / (3**0.5 * 2 * np.pi**0.5 * sigma), rel=0.06)
    lag = round(sigma)
    for a, b in ((field[..., :-lag], field[..., lag:]), (field[:, :, :-lag], field[:, :, lag:])):
        assert (a * b).mean() / (field**2).mean() == pytest.approx(np.exp(-(lag**2) / (4 * sigma**2)), abs=0.05)
    assert abs(np.corrcoef(field[:, 0].ravel(), field[:, 1].ravel())[0, 1]) < 0.1
    np.testing.assert_array_equal(smooth_field(key[5:6], 90, 80, sigma).numpy(), field[5:6])


# All of them


@pytest.mark.nightly
@pytest.mark.tf
def test_floats_are_the_same_within_e1_compiled_or_not_at_any_batch_size() -> None:
    """Bytes are the same bit for bit, as `tests/passes/test_execution.py` sees."""
    import tensorflow as tf

    from pipegen.backend.kernels.chain import lower_kernel
    from pipegen.plan.nodes import Kernel

    steps = [
        {"rescale": {"to": [0, 1]}},
        {"random_gaussian_blur": {"sigma": 1.2, "probability": 0.8}},
        {"random_sharpness": {"factor": [0, 4], "probability": 0.8}},
        {"random_gaussian_noise": {"std": [0.02, 0.1]}},
        {"random_elastic": {"alpha": [20, 40], "sigma": 2}},
    ]
    sections = {"transforms": [{"resize": {"size": [12, 14]}}, *steps], "batch": {"size": 6}}
    plan = compiled(built(sections, classes=2), load_spec(sections)).plan
    rng = np.random.default_rng(9)
    images = rng.integers(0, 256, (6, 12, 14, 3), dtype=np.uint8)
    draws = rng.random((6, plan.index.num_draws))

    def run(count: int, jit: str) -> Array:
        features = {"image": tf.constant(images[:count]), "label": tf.zeros([count], tf.int64), "@draws": tf.constant(draws[:count])}
        entry = plan.batch.out
        for node in plan.nodes:
            if isinstance(node, Kernel):
                features = lower_kernel(node, entry, 6, jit)(features)
                entry = node.out
        done: Array = features["image"].numpy()
        return done

    fast = run(6, "always")
    assert fast.std() > 0.1
    for count in (6, 1):
        np.testing.assert_allclose(fast[:count], run(count, "never"), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("step", "codes"), [
    (GaussianBlur(sigma=0.1), ["PG510"]), (RandomGaussianBlur(sigma=2), []), (RandomGaussianBlur(sigma=(0.1, 0.2)), ["PG510"]),
    (RandomSharpness(factor=(0, 2)), []), (RandomSharpness(factor=(1, 15)), ["PG510"]),
    (RandomGaussianNoise(std=0.1), ["PG510"]), (RandomGaussianNoise(std=200), ["PG510"]), (RandomGaussianNoise(std=20), []),
    (RandomElastic(alpha=50, sigma=5), []), (RandomElastic(alpha=500, sigma=5), ["PG510"]), (RandomElastic(alpha=1, sigma=5), ["PG510"]),
])  # fmt: skip
def test_lints(step: NeighbourhoodTransform, codes: list[str]) -> None:
    assert [lint.code for lint in step.lints(IMAGE_224)] == codes


@pytest.mark.parametrize(("step", "x", "code"), [
    (RandomGaussianNoise(std=300), IMAGE_224, "PG105"),
    (RandomErasing(fill=ConstantFill(constant=300)), IMAGE_224, "PG207"),
    (RandomElastic(alpha=50, sigma=5, fill=ConstantFill(constant=-1)), IMAGE_224, "PG207"),
    (Sharpness(factor=2), IMAGE_224.with_(dtype="uint16"), "PG208"),
    (GaussianBlur(sigma=2), IMAGE_224.with_(kind="mask"), "PG203"),
])  # fmt: skip
def test_what_does_not_fit_is_an_error(step: NeighbourhoodTransform, x: FeatureType, code: str) -> None:
    with pytest.raises(OpError) as caught:
        step.infer(x)
    assert caught.value.code == code


def test_types() -> None:
    assert GaussianBlur(sigma=2).infer(UNIT) == UNIT
    assert RandomErasing(fill=ConstantFill(constant=-2)).infer(UNIT).interval == Interval(-2, 1)
    assert Sharpness(factor=2).clip_of(UNIT) == Interval(0, 1)
    assert Sharpness(factor=2).clip_of(IMAGE_224) is None
    assert RandomElastic(alpha=50, sigma=5, interpolation="bicubic").infer(UNIT).interval is None
    assert RandomElastic(alpha=50, sigma=5, interpolation="bicubic").infer(IMAGE_224) == IMAGE_224


@pytest.mark.parametrize(("step", "given", "text"), [
    (RandomGaussianBlur, {"sigma": (2, 1)}, "is above"), (RandomGaussianBlur, {"sigma": (-1, 1)}, "between 0 and 10"),
    (RandomGaussianBlur, {"sigma": 30}, "at most 10"), (GaussianBlur, {"sigma": 30}, "10"), (RandomSharpness, {"factor": 30}, "range"),
    (RandomSharpness, {"factor": (0, 30)}, "at most 20"), (RandomGaussianNoise, {"std": -1}, "negative"),
    (RandomErasing, {"area": (0.3, 1.5)}, "between 0 and 1"), (RandomElastic, {"alpha": -5, "sigma": 4}, "negative"),
    (RandomElastic, {"alpha": 5, "sigma": 0}, "sigma"),
])  # fmt: skip
def test_wrong_arguments_are_rejected(step: type[NeighbourhoodTransform], given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        step.model_validate(given)
