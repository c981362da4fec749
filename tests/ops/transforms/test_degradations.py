"""Blurs along lines and discs, medians, JPEG, downscaling, unsharp mask and emboss against OpenCV, Pillow and NumPy."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from pipegen.errors import OpError
from pipegen.ops.registry import transforms
from pipegen.ops.traits import IMAGE_224
from pipegen.types import FeatureType, Interval

if TYPE_CHECKING:
    from pipegen.ops.families.neighbourhood import NeighbourhoodTransform

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]
HEIGHT, WIDTH = 21, 34


@pytest.fixture(scope="module")
def photos() -> Array:
    """Noise on a ramp."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    ramp = np.stack([5 * x + y, 3 * y + 2 * x, 200 - 4 * x], axis=-1)
    return np.clip(ramp + rng.integers(0, 90, (2, *ramp.shape)), 0, 255).astype(np.uint8)


def made(name: str, **given: Any) -> NeighbourhoodTransform:
    step: Any = transforms()[name].model_validate(given)
    return step


def apply(step: NeighbourhoodTransform, images: Array, u: Array | None = None) -> Array:
    """Every image through the step, eagerly; by default with draws of one half."""
    import tensorflow as tf

    from pipegen.backend.process.traced_functions import plain

    draws = tf.constant(np.full((len(images), step.num_draws()), 0.5) if u is None else u, tf.float64)
    clip = step.clip_of(FeatureType("image", images.dtype.name, images.shape[1:], Interval(0, 255)))
    done: Array = plain(step.apply)(tf.constant(images), *step.parameters(draws, *images.shape[1:3]), clip=clip).numpy()
    return done.astype(float)


def filtered(images: Array, kernel: Array) -> Array:
    """What OpenCV computes of floats."""
    cv2 = pytest.importorskip("cv2")
    return np.stack([cv2.filter2D(i.astype(np.float64), -1, kernel, borderType=cv2.BORDER_REFLECT) for i in images])


def agree(step: NeighbourhoodTransform, images: Array, expected: Array) -> None:
    """Bytes are within half a level and the rounding of 14 bits of the true sum, floats are it."""
    np.testing.assert_allclose(apply(step, images), np.clip(expected, 0, 255), atol=0.56)
    np.testing.assert_allclose(apply(step, images.astype(np.float32)), np.clip(expected, 0, 255), atol=2e-3)


def test_defocus_is_the_mean_of_a_disc(photos: Array) -> None:
    for radius in (1.0, 2.6, 5.0):
        reach = int(np.ceil(radius))
        y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
        disc = np.clip(radius + 0.5 - np.hypot(x, y), 0, 1)
        agree(made("defocus_blur", radius=radius), photos, filtered(photos, disc / disc.sum()))
    drawn = apply(made("random_defocus_blur", radius=[1, 4]), photos, np.array([[0.0], [0.5]]))
    for image, out, radius in zip(photos, drawn, (1, 2.5), strict=True):
        assert np.abs(out - apply(made("defocus_blur", radius=radius), image[None])).max() <= 1


@pytest.mark.nightly
def test_motion_is_the_mean_along_a_line(photos: Array) -> None:
    for length in (1, 5, 9):
        for degrees, kernel in ((0, np.ones((1, length))), (90, np.ones((length, 1))), (-180, np.ones((1, length)))):
            agree(made("motion_blur", length=length, degrees=degrees), photos, filtered(photos, kernel / length))
    # Half a pixel at either end; and upwards to the right, one pixel up for each two.
    agree(made("motion_blur", length=4), photos, filtered(photos, np.array([[0.5, 1, 1, 1, 0.5]]) / 4))
    slope = np.degrees(np.arctan2(1, 2))
    kernel = np.zeros((3, 5))
    kernel[1, 2] = 1
    kernel[0, 3] = kernel[1, 3] = kernel[1, 1] = kernel[2, 1] = 0.5
    kernel[0, 4] = kernel[2, 0] = 0.5
    length = 1 + 2 * 1.5 * np.hypot(1, 0.5)  # reaches 1.5 pixels across
    agree(made("motion_blur", length=length, degrees=slope), photos, filtered(photos, kernel / kernel.sum()))
    np.testing.assert_allclose(
        apply(made("motion_blur", length=7, degrees=63), photos[:, ::-1])[:, ::-1],
        apply(made("motion_blur", length=7, degrees=-63), photos),
        atol=1,
    )


def test_each_example_draws_its_own_line(photos: Array) -> None:
    drawn = apply(made("random_motion_blur", length=[3, 9], degrees=[-90, 90]), photos, np.array([[0.0, 0.5], [0.5, 0.75]]))
    for image, out, (length, degrees) in zip(photos, drawn, ((3, 0), (6, 45)), strict=True):
        assert np.abs(out - apply(made("motion_blur", length=length, degrees=degrees), image[None])).max() <= 1


def test_glass_takes_pixels_from_near_by(photos: Array) -> None:
    step = made("random_glass_blur", distance=2, sigma=0.05)
    u = np.random.default_rng(3).random((2, 2))
    done = apply(step, photos, u)
    fields = [np.asarray(moved).reshape(2, HEIGHT, WIDTH) for moved in step._moved(step.drawn(u)["key"], HEIGHT * WIDTH)]
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    for image, out, down, right in zip(photos, done, *fields, strict=True):
        assert set(np.unique(down)) == set(np.unique(right)) == {-2, -1, 0, 1, 2}
        np.testing.assert_array_equal(out, image[np.clip(y + down, 0, HEIGHT - 1), np.clip(x + right, 0, WIDTH - 1)])
    blurred = apply(made("random_glass_blur", distance=1, sigma=2), photos, u)
    twice = apply(made("gaussian_blur", sigma=2), apply(made("gaussian_blur", sigma=2), photos).astype(np.uint8))
    assert np.abs(blurred - twice).mean() < 1.5


def test_jpeg_is_pillow_s(photos: Array) -> None:
    def through(image: Array, quality: int) -> Array:
        file = io.BytesIO()
        Image.fromarray(image).save(file, "JPEG", quality=quality, subsampling="4:2:0")
        return np.asarray(Image.open(file))

    expected = [through(image, quality) for image, quality in zip(photos, (10, 95), strict=True)]
    np.testing.assert_array_equal(apply(made("random_jpeg", quality=[10, 95]), photos, np.array([[0.0], [1 - 2.0**-53]])), expected)
    gray = photos[..., :1]
    np.testing.assert_array_equal(apply(made("jpeg", quality=30), gray)[..., 0], [through(image[..., 0], 30) for image in gray])
    for x in (IMAGE_224.with_(shape=(9, 9, 4)), IMAGE_224.with_(dtype="float32", interval=Interval(0, 1))):
        with pytest.raises(OpError):
            made("jpeg", quality=30).infer(x)
    with pytest.raises(ValueError, match="is above"):
        made("random_jpeg", quality=[90, 30])


def test_downscaling_is_pillow_s_and_opencv_s(photos: Array) -> None:
    cv2 = pytest.importorskip("cv2")
    images = photos[:, :, :-1]
    height, width = images.shape[1:3]
    for factor in (0.33, 0.52, 0.7):
        small = (round(width * factor), round(height * factor))
        # No middle of a pixel is on an edge between two, which Pillow rounds either way.
        assert width % 2 == height % 2 == small[0] % 2 == small[1] % 2 == 1
        blocks = [np.asarray(Image.fromarray(i).resize(small, 0).resize((width, height), 0)) for i in images]
        np.testing.assert_array_equal(apply(made("random_downscale", factor=[factor, factor]), images), blocks)
        smooth = np.stack([cv2.resize(cv2.resize(i.astype(np.float64), small), (width, height)) for i in images])
        agree(made("random_downscale", factor=[factor, factor], method="bilinear"), images, smooth)


def test_unsharp_mask_adds_what_a_blur_takes(photos: Array) -> None:
    for threshold in (0, 20):
        step = made("random_unsharp_mask", sigma=1.5, amount=[1, 2], threshold=threshold)
        for images in (photos, photos.astype(np.float32)):
            lost = images - apply(made("gaussian_blur", sigma=1.5), images)
            expected = np.clip(images + 1.5 * np.where(np.abs(lost) > threshold, lost, 0), 0, 255)
            np.testing.assert_allclose(apply(step, images), expected, atol=0.51 if images.dtype == np.uint8 else 1e-3)


def test_emboss_is_opencv_s(photos: Array) -> None:
    for s, a in ((0.5, 0.4), (4.0, 1.0)):
        kernel = a * np.array([[-1 - s, -s, 0], [-s, 1, s], [0, s, 1 + s]])
        kernel[1, 1] += 1 - a
        agree(made("random_emboss", strength=[s, s], alpha=[a, a]), photos, filtered(photos, kernel))


COMPILED: dict[str, dict[str, Any]] = {
    "random_defocus_blur": {"radius": [0, 3]}, "random_motion_blur": {"length": [1, 9]}, "random_glass_blur": {"distance": 2},
    "median_blur": {"side": 5}, "random_downscale": {"factor": [0.3, 1], "method": "bilinear"}, "random_emboss": {},
    "random_unsharp_mask": {"sigma": 1, "amount": [0, 3]},
}  # fmt: skip
BY_DAY = ("random_glass_blur", "random_emboss")
"""A step that moves pixels, and one that weighs them."""


@pytest.mark.parametrize("op", [pytest.param(op, marks=[pytest.mark.nightly] * (op not in BY_DAY)) for op in COMPILED])
def test_bytes_are_the_same_compiled_or_not(photos: Array, op: str) -> None:
    """Phase by phase, as the backend compiles them."""
    import tensorflow as tf

    step, images = made(op, **COMPILED[op]), tf.constant(photos)
    u = np.random.default_rng(1).random((2, step.num_draws()))
    given = step.parameters(tf.constant(u), HEIGHT, WIDTH)
    for phase in step.phases():
        given = tf.function(phase, jit_compile=True, autograph=False)(images, *given)
    np.testing.assert_array_equal(step.finish(images, *given).numpy(), apply(step, photos, u))


STEPS: dict[str, list[dict[str, Any]]] = {
    "the host between kernels": [
        {"random_rotation": {"degrees": 20}}, {"random_jpeg": {"quality": [20, 90]}}, {"random_brightness": {"factor": 0.2}},
    ],
    "floats rounded on the way": [
        {"random_brightness": {"factor": 0.2}}, {"random_jpeg": {"quality": [20, 90], "probability": 0.3}},
        {"random_clahe": {"probability": 0.5}}, {"random_median_blur": {"probability": 0.3}},
    ],
    "branches": [
        {"random_jpeg": {"quality": [20, 90], "probability": 0.3}}, {"random_motion_blur": {"length": [1, 7]}},
        {"random_defocus_blur": {"radius": [0, 2], "probability": 0.9}},
    ],
    "holes and floats": [
        {"random_coarse_dropout": {"holes": [2, 5]}}, {"random_glass_blur": {"distance": 2}}, {"random_grid_dropout": {"cells": 3}},
        {"random_downscale": {"factor": [0.3, 0.9], "method": "bilinear"}}, {"random_emboss": {"probability": 0.8}},
        {"random_grid_mask": {}}, {"rescale": {"to": [0, 1]}}, {"random_unsharp_mask": {"sigma": 1}},
    ],
    "a choice": [
        {"one_of": {"steps": [{"random_jpeg": {"quality": [20, 90]}}, "random_median_blur", {"random_motion_blur": {"length": [2, 5]}}]}},
        {"clahe": {}},
    ],
}  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("name", STEPS)
def test_pipelines_give_the_same_with_and_without_xla_at_any_batch_size(name: str) -> None:
    import pipegen

    count = 16
    images = np.random.default_rng(0).integers(0, 256, (count, 40, 48, 3)).astype(np.uint8)

    def run(jit: str, size: int) -> Array:
        spec = {
            "pipegen": 1,
            "source": {"arrays": {"features": {"image": {"kind": "image"}}}},
            "splits": {"parts": {"train": count}},
            "transforms": STEPS[name],
            "batch": {"size": size, "remainder": "keep"},
            "shuffle": "none",
            "output": {"x": "image"},
        }
        return np.concatenate([b.numpy() for b in pipegen.build(spec, data={"image": images}, runtime={"jit": jit}).train])

    plain = run("never", 8)
    assert plain.shape == images.shape
    np.testing.assert_array_equal(run("never", 5), plain)
    np.testing.assert_allclose(run("always", 8), plain, rtol=0, atol=1e-6 if name == "holes and floats" else 0)
