"""The fixed-point warp against SciPy and OpenCV on images that are not square, and against itself: same bits everywhere.

Tolerance. A position is rounded to 1/256 pixel, which moves it by at most 1/512; the coefficients are rounded to 2^-16,
which moves the far corner of these images by less than 1/512 more; both hold for x and for y. Where neighbours differ
by at most d levels, a value therefore moves by at most 4 d / 512 levels before it is rounded: with the smooth images of these tests
(d = 40) by 0.31, so that rounding gives the same level or the next. OpenCV itself rounds positions to 1/32 pixel, which
moves a value by up to 2 d / 64 = 1.25 levels, so it may be two levels away, and seldom is.
"""

from __future__ import annotations

import time

import cv2
import numpy as np
import pytest
from scipy import ndimage
from warping import HEIGHT, OPENCV, SCIPY, STEEPEST, WIDTH, Array, matrix_of, smooth, warp

from pipegen.ops.step_bases import GeometricTransform
from pipegen.ops.transforms.flip import RandomFlip
from pipegen.ops.transforms.rotation import RandomRotation
from pipegen.ops.transforms.shear import RandomShear
from pipegen.ops.transforms.translation import RandomTranslation
from pipegen.ops.transforms.zoom import RandomZoom

pytestmark = pytest.mark.tf

STEPS: dict[str, tuple[GeometricTransform, ...]] = {
    "rotation": (RandomRotation(degrees=(33, 33)),),
    "half a turn and more": (RandomRotation(degrees=(-161, -161)),),
    "shear": (RandomShear(degrees=(21, 21)),),
    "shear both": (RandomShear(degrees=(12, 12), axis="both"),),
    "zoom in": (RandomZoom(factor=(1.7, 1.7)),),
    "zoom out": (RandomZoom(x=(0.61, 0.61), y=(0.43, 0.43)),),
    "translation": (RandomTranslation(x=(0.237, 0.237), y=(-0.31, -0.31)),),
    "all at once": (
        RandomRotation(degrees=(20, 20)),
        RandomTranslation(x=(0.1, 0.1), y=(-0.07, -0.07)),
        RandomShear(degrees=(10, 10)),
        RandomZoom(factor=(0.8, 0.8)),
        RandomFlip(probability=1),
    ),
}


def scipy_warp(image: Array, matrix: Array, *, fill: str, constant: float = 0.0, order: int = 1) -> Array:
    """`ndimage.affine_transform` on (row, column) for a matrix on (x, y)."""
    swap = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    m = swap @ matrix @ swap
    channels = [
        ndimage.affine_transform(
            image[..., c].astype(np.float64), m[:2, :2], m[:2, 2], order=order, mode=SCIPY[fill], cval=constant, prefilter=False
        )
        for c in range(image.shape[-1])
    ]
    return np.stack(channels, -1)


@pytest.mark.parametrize("fill", list(SCIPY))
@pytest.mark.parametrize("name", list(STEPS))
def test_bilinear_is_scipy_s(name: str, fill: str) -> None:
    image, matrix = smooth(), matrix_of(STEPS[name])
    ours = warp(image[None], matrix[None], fill=fill, constant=128.0)[0]
    theirs = scipy_warp(image, matrix, fill=fill, constant=128.0)
    difference = np.abs(ours - theirs)
    if fill == "constant":  # the step from image to constant is no smooth one: 235 levels, so 235 / 128 there
        assert (difference > 1).mean() < 0.02
        assert difference.max() <= 2.5
    else:
        assert difference.max() <= 0.5 + 4 * STEEPEST / 512
        assert (np.abs(ours - np.rint(theirs)) > 0).mean() < 0.1


@pytest.mark.parametrize("fill", list(OPENCV))
@pytest.mark.parametrize("name", list(STEPS))
def test_bilinear_is_opencv_s(name: str, fill: str) -> None:
    image, matrix = smooth(seed=1), matrix_of(STEPS[name])
    ours = warp(image[None], matrix[None], fill=fill, constant=128.0)[0]
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    theirs = cv2.warpAffine(image, matrix[:2], (WIDTH, HEIGHT), flags=flags, borderMode=OPENCV[fill], borderValue=(128, 128, 128))
    difference = np.abs(ours.astype(int) - theirs.astype(int))
    edge = 6 if fill == "constant" else 2  # 1/64 pixel of a step of 128 levels, twice
    assert difference.max() <= edge
    assert (difference > 1).mean() < 0.01


@pytest.mark.parametrize("fill", list(SCIPY))
@pytest.mark.parametrize("name", ["rotation", "zoom out", "all at once"])
def test_nearest_is_scipy_s(name: str, fill: str) -> None:
    """On noise: another pixel is another value. Only positions within 1/512 pixel of a tie may differ."""
    matrix = matrix_of(STEPS[name])
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    positions = matrix[:2] @ np.stack([x.ravel(), y.ravel(), np.ones(x.size)])
    ties = (np.abs(positions - np.floor(positions) - 0.5) < 1 / 512).any(0).reshape(HEIGHT, WIDTH)
    assert ties.mean() < 0.03
    image = np.random.default_rng(2).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    ours = warp(image[None], matrix[None], fill=fill, constant=7.0, interpolation="nearest")[0]
    theirs = scipy_warp(image, matrix, fill=fill, constant=7.0, order=0)
    np.testing.assert_array_equal(ours[~ties], theirs[~ties])


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize("fill", list(SCIPY))
def test_identity_and_flips_are_exact(interpolation: str, fill: str) -> None:
    image = np.random.default_rng(3).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    flip = matrix_of((RandomFlip(axis="both", probability=1),))
    ours = warp(np.stack([image, image]), np.stack([np.eye(3), flip]), fill=fill, interpolation=interpolation)
    np.testing.assert_array_equal(ours[0], image)
    np.testing.assert_array_equal(ours[1], image[::-1, ::-1])


def test_mirror_is_the_warp_of_a_flip() -> None:
    import tensorflow as tf

    from pipegen.backend.kernels.warp import mirror

    images = np.random.default_rng(4).integers(0, 256, (4, 5, 8, 3), dtype=np.uint8)
    u = tf.constant([[0.1, 0.1], [0.1, 0.9], [0.9, 0.1], [0.9, 0.9]], tf.float64)
    matrices = RandomFlip(axis="both").matrix(u, tf.constant(5, tf.float64), tf.constant(8, tf.float64))
    np.testing.assert_array_equal(mirror(tf.constant(images), matrices).numpy(), warp(images, matrices.numpy()))
    np.testing.assert_array_equal(mirror(tf.constant(images), matrices).numpy()[0], images[0, ::-1, ::-1])


@pytest.mark.parametrize("fill", list(SCIPY))
def test_nearest_and_bilinear_agree_on_whole_pixels(fill: str) -> None:
    image = np.random.default_rng(5).integers(0, 256, (1, HEIGHT, WIDTH, 3), dtype=np.uint8)
    whole = np.array([[[0.0, 1, -4], [-1, 0, 51], [0, 0, 1]]])  # a quarter turn, moved by whole pixels, partly outside
    a, b = (warp(image, whole, fill=fill, constant=9.0, interpolation=i) for i in ("nearest", "bilinear"))
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(a[0], scipy_warp(image[0], whole[0], fill=fill, constant=9.0, order=0))


def random_matrices(n: int, seed: int = 6) -> Array:
    """Affine matrices of all kinds, moderate ones."""
    rng = np.random.default_rng(seed)
    m = np.tile(np.eye(3), (n, 1, 1))
    m[:, :2, :2] += rng.normal(0, 0.5, (n, 2, 2))
    m[:, :2, 2] = rng.uniform(-60, 60, (n, 2))
    return m


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("interpolation", "dtype"),
    [("nearest", "uint8"), pytest.param("nearest", "float32", marks=pytest.mark.nightly), ("bilinear", "uint8"), ("bilinear", "float32")],
)
@pytest.mark.parametrize("sizes", [(1, 3), pytest.param((2, 5, 8), marks=pytest.mark.nightly)])
def test_the_same_bits_in_xla_and_at_every_batch_size(sizes: tuple[int, ...], interpolation: str, dtype: str) -> None:
    images = np.random.default_rng(7).integers(0, 256, (8, 21, 34, 3)).astype(dtype)
    matrices = random_matrices(8)
    eager = warp(images, matrices, interpolation=interpolation)
    for n in sizes:
        np.testing.assert_array_equal(warp(images[:n], matrices[:n], interpolation=interpolation), eager[:n])
        if n == 3 or dtype == interpolation.replace("bilinear", "uint8"):  # each compiles anew, so few sizes
            compiled = warp(images[:n], matrices[:n], interpolation=interpolation, xla=True)
            if dtype == "uint8" or interpolation == "nearest":
                np.testing.assert_array_equal(compiled, eager[:n])
            else:  # floats blend: E1
                np.testing.assert_allclose(compiled, eager[:n], atol=255e-6)


@pytest.mark.parametrize("fill", list(SCIPY))
def test_narrow_and_wide_agree(fill: str) -> None:
    images = np.random.default_rng(8).integers(0, 256, (16, 40, 64, 3), dtype=np.uint8)
    for interpolation in ("nearest", "bilinear"):
        narrow, wide = (warp(images, random_matrices(16), fill=fill, interpolation=interpolation, narrow=n) for n in (True, False))
        np.testing.assert_array_equal(narrow, wide)


@pytest.mark.by_day(5)
@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("fill", list(SCIPY))
def test_strong_zoom_out_stays_right(fill: str, xla: bool) -> None:
    """Coefficients beyond what 32 bits hold are computed in 64, also beside moderate ones."""
    image = np.random.default_rng(9).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    matrices = np.stack([matrix_of((RandomZoom(factor=(f, f)),)) for f in (1 / 32.0, 1 / 400.0, 0.8)])
    matrices[:, :2, 2] = np.rint(matrices[:, :2, 2])
    ours = warp(np.stack([image] * 3), matrices, fill=fill, constant=3.0, interpolation="nearest", xla=xla)
    for i in (0, 1):
        np.testing.assert_array_equal(ours[i], scipy_warp(image, matrices[i], fill=fill, constant=3.0, order=0))


def test_a_steep_shear_stays_right() -> None:
    image = smooth()
    matrix = matrix_of((RandomShear(degrees=(88, 88)),))
    assert abs(matrix[0, 1]) > 16
    ours = warp(image[None], matrix[None])[0]
    assert np.abs(ours - scipy_warp(image, matrix, fill="reflect")).max() <= 2


def test_floats_of_any_range() -> None:
    image = smooth().astype(np.float32) / 127.5 - 1
    matrix = matrix_of(STEPS["all at once"])
    ours = warp(image[None], matrix[None], fill="constant", constant=-1.0)[0]
    theirs = scipy_warp(image, matrix, fill="constant", constant=-1.0)
    assert ours.dtype == np.float32
    assert np.abs(ours - theirs).max() < 0.02
    assert ours.min() >= -1.0000001
    assert ours.max() <= 1.0000001


def test_another_size_is_a_crop() -> None:
    """A crop in a segment: the output is smaller than the canvas, and shows the same pixels."""
    image = smooth()
    crop = np.array([[1.0, 0, 9], [0, 1, 4], [0, 0, 1]])
    rotation = matrix_of(STEPS["rotation"])
    whole = warp(image[None], rotation[None])[0]
    cut = warp(image[None], (rotation @ crop)[None], size=(30, 40))[0]
    assert np.abs(cut.astype(int) - whole[4:34, 9:49]).max() <= 1
    np.testing.assert_array_equal(warp(image[None], crop[None], size=(30, 40))[0], image[4:34, 9:49])


def test_one_resampling_is_sharper_than_five() -> None:
    """What a segment is for: resampled step by step, the image loses contrast that one resampling keeps."""
    image = np.random.default_rng(10).integers(0, 256, (1, HEIGHT, WIDTH, 3), dtype=np.uint8)
    steps = STEPS["all at once"]
    once = warp(image, matrix_of(steps)[None])
    stepwise = image
    for step in steps:
        stepwise = warp(stepwise, matrix_of((step,))[None])
    assert stepwise.std() < 0.8 * once.std()
    soft = smooth(seed=11)[None]
    gentle = soft
    for step in steps:
        gentle = warp(gentle, matrix_of((step,))[None])
    inner = (slice(None), slice(15, 30), slice(25, 45))
    assert np.abs(gentle[inner].astype(int) - warp(soft, matrix_of(steps)[None])[inner]).max() <= 12, "the same picture, in the same order"


@pytest.mark.parametrize("fill", ["nearest", "constant"])
def test_small_images_are_located_as_large_ones_are(fill: str) -> None:
    """Up to 36 pixels in a row one loop counts them; LLVM, which unrolled two loops, took seven seconds for rows of 32 pixels."""
    import tensorflow as tf

    from pipegen.backend.kernels.warp import locate

    rng = np.random.default_rng(3)
    fixed = tf.constant(rng.integers(-(1 << 17), 1 << 17, (8, 6)))
    given = {"canvas": (32, 32), "fill": fill, "interpolation": "bilinear", "narrow": True}
    wide = locate(fixed, size=(32, 40), **given)
    small = tf.function(lambda m: locate(m, size=(32, 32), **given), jit_compile=True, autograph=False)
    began = time.process_time()
    found = small(fixed)
    assert time.process_time() - began < 3
    for one, other in zip(found, wide, strict=True):
        np.testing.assert_array_equal(one, other[:, :, :32])
