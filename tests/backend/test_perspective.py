"""Warps in perspective against OpenCV and SciPy on images that are not square, and against themselves: the same bits everywhere.

Tolerance. A position is divided in float64 and rounded to 1/256 pixel, which moves it by at most 1/512, for x and for y. Where neighbours
differ by at most 40 levels a value moves by 2 · 40 / 512 = 0.16 before it is rounded. OpenCV rounds positions to 1/32 pixel, which
moves it by 2 · 40 / 64 = 1.25.
"""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from warping import HEIGHT, OPENCV, SCIPY, STEEPEST, WIDTH, Array, mapped, matrix_of, noise, positions, smooth, warp

from pipegen.ops.transforms.affine import RandomAffine
from pipegen.ops.transforms.perspective import Perspective, RandomPerspective
from pipegen.ops.transforms.rotation import Rotation
from pipegen.ops.transforms.zoom import Zoom

pytestmark = pytest.mark.tf

TILTED = Perspective(top_left=(0.12, 0.05), top_right=(-0.2, 0.1), bottom_left=(-0.05, 0.02), bottom_right=(0.08, -0.15))
SEGMENTS = {
    "perspective": (TILTED,),
    "rotation behind": (TILTED, Rotation(degrees=25)),
    "rotation before, smaller": (Rotation(degrees=-40), TILTED, Zoom(factor=0.6)),
    "twice": (TILTED, Perspective(bottom_left=(0.15, -0.1))),
}


@pytest.mark.parametrize("fill", list(SCIPY))
@pytest.mark.parametrize("name", list(SEGMENTS))
def test_bilinear_is_scipy_s(name: str, fill: str) -> None:
    image, matrix = smooth(), matrix_of(SEGMENTS[name])
    ours = warp(image[None], matrix[None], fill=fill, constant=128.0, projective=True)[0]
    difference = np.abs(ours - mapped(image, matrix, fill=fill, order=1, constant=128.0))
    assert difference.max() <= 0.5 + 2 * (108 if fill == "constant" else STEEPEST) / 512 + 1e-3
    assert (difference > 0.55).mean() < 0.05


@pytest.mark.parametrize("fill", list(OPENCV))
@pytest.mark.parametrize("name", list(SEGMENTS))
def test_bilinear_is_opencv_s(name: str, fill: str) -> None:
    image, matrix = smooth(seed=1), matrix_of(SEGMENTS[name])
    ours = warp(image[None], matrix[None], fill=fill, constant=128.0, projective=True)[0]
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    theirs = cv2.warpPerspective(image, matrix, (WIDTH, HEIGHT), flags=flags, borderMode=OPENCV[fill], borderValue=(128, 128, 128))
    difference = np.abs(ours.astype(int) - theirs.astype(int))
    assert difference.max() <= (6 if fill == "constant" else 2)
    assert (difference > 1).mean() < 0.01


@pytest.mark.parametrize("fill", list(SCIPY))
@pytest.mark.parametrize("name", ["perspective", "rotation before, smaller"])
def test_nearest_is_scipy_s(name: str, fill: str) -> None:
    """On noise: another pixel is another value. Only positions within 1/512 pixel of a tie may differ."""
    image, matrix = noise(1)[0], matrix_of(SEGMENTS[name])
    at = np.stack(positions(matrix)[:2])
    ties = (np.abs(at - np.floor(at) - 0.5) < 1 / 512).any(0)
    assert ties.mean() < 0.03
    ours = warp(image[None], matrix[None], fill=fill, constant=7.0, interpolation="nearest", projective=True)[0]
    np.testing.assert_array_equal(ours[~ties], mapped(image, matrix, fill=fill, order=0, constant=7.0)[~ties])


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
def test_what_is_affine_in_a_perspective_segment_stays_exact(interpolation: str) -> None:
    """A step that does not act on an example, a flip, whole pixels: not one bit of a pixel changes, whatever the matrix's scale."""
    images = noise(3)
    whole = np.array([np.eye(3), [[-1, 0, WIDTH - 1], [0, 1, 0], [0, 0, 1]], [[0, 2, -8], [-2, 0, 102], [0, 0, 2]]], float)
    ours = warp(images, whole, interpolation=interpolation, projective=True)
    np.testing.assert_array_equal(ours[0], images[0])
    np.testing.assert_array_equal(ours[1], images[1, :, ::-1])
    np.testing.assert_array_equal(ours[2], mapped(images[2], whole[2], fill="reflect", order=0))


def test_affine_and_perspective_paths_agree() -> None:
    image, matrix = smooth(), matrix_of((Rotation(degrees=33), Zoom(factor=0.7)))
    straight, divided = (warp(image[None], matrix[None], projective=p)[0].astype(int) for p in (False, True))
    assert np.abs(straight - divided).max() <= 1


HORIZON = np.array([[1.0, 0, 0], [0, 1, 0], [0, -1 / 20, 1]])
"""Its third coordinate falls to 0 at row 20, and is negative below."""


def test_a_constant_fill_shows_behind_the_horizon() -> None:
    image = noise(1)
    for interpolation in ("nearest", "bilinear", "bicubic"):
        ours = warp(image, HORIZON[None], fill="constant", constant=77.0, interpolation=interpolation, projective=True)[0]
        assert (ours[20:] == 77).all()
        np.testing.assert_array_equal(ours[0], image[0, 0])


@pytest.mark.parametrize("fill", ["reflect", "nearest", "wrap"])
def test_other_fills_go_on_behind_the_horizon(fill: str) -> None:
    """Each pixel there reads as if as far away as can be, in its own direction: down, and to the right of column 0."""
    image = noise(1)
    ours = warp(image, HORIZON[None], fill=fill, interpolation="nearest", projective=True)[0]
    assert (ours[20:] == ours[20:21]).all(0)[1:].all(), "every row alike"
    if fill == "nearest":
        assert (ours[20:, 1:] == image[0, -1, -1]).all()
        assert (ours[20:, 0] == image[0, -1, 0]).all()


def test_nothing_is_seen_twice_behind_the_viewer() -> None:
    """OpenCV divides by what is negative too, which shows the picture again, turned over; here it is not shown."""
    image = np.full((1, HEIGHT, WIDTH, 1), 200, np.uint8)
    matrix = np.array([[1.0, 0, -35], [0, 1, -22], [0, -1 / 20, 1]])
    ours = warp(image, matrix[None], fill="constant", constant=0.0, projective=True)[0, ..., 0]
    theirs = cv2.warpPerspective(image[0], matrix, (WIDTH, HEIGHT), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    assert (theirs[21:] > 0).any()
    assert not ours[20:].any()


def homographies(n: int) -> Array:
    """Perspectives of all kinds, some with the horizon in view."""
    import tensorflow as tf

    rng = np.random.default_rng(6)
    size = tf.constant(21.0, tf.float64), tf.constant(34.0, tf.float64)
    tilted = RandomPerspective(x=0.3, y=0.19).matrix(tf.constant(rng.random((n, 8))), *size).numpy()
    turned = RandomAffine(degrees=180, x=0.3, y=0.3, shear_x=30, factor=(0.3, 0.7)).matrix(tf.constant(rng.random((n, 6))), *size).numpy()
    found = tilted @ turned
    assert (np.array([positions(m, (21, 34))[2].min() for m in found]) < 0).any()
    return found


@pytest.mark.nightly
@pytest.mark.smoke
@pytest.mark.parametrize(("interpolation", "fill"), [("bilinear", "reflect"), ("nearest", "wrap"), ("bicubic", "constant")])
def test_the_same_bits_in_xla_and_at_every_batch_size(interpolation: str, fill: str) -> None:
    images, matrices = noise(8, 21, 34), homographies(8)
    how = {"interpolation": interpolation, "fill": fill, "projective": True}
    eager = warp(images, matrices, **how)
    for n in (1, 3, 8):
        np.testing.assert_array_equal(warp(images[:n], matrices[:n], **how), eager[:n])
    np.testing.assert_array_equal(warp(images, matrices, **how, xla=True), eager)
    np.testing.assert_array_equal(warp(images, matrices, **how, narrow=False), eager)


@pytest.mark.nightly
@pytest.mark.smoke
def test_affine_bicubic_has_the_same_bits_in_xla_and_at_every_batch_size() -> None:
    import tensorflow as tf

    u = tf.constant(np.random.default_rng(8).random((6, 6)))
    size = tf.constant(21.0, tf.float64), tf.constant(34.0, tf.float64)
    images, matrices = noise(6, 21, 34), RandomAffine(degrees=180, x=0.3, shear_y=30, factor=0.6).matrix(u, *size).numpy()
    eager = warp(images, matrices, interpolation="bicubic")
    np.testing.assert_array_equal(warp(images[:2], matrices[:2], interpolation="bicubic"), eager[:2])
    np.testing.assert_array_equal(warp(images[:4], matrices[:4], interpolation="bicubic", xla=True), eager[:4])
    np.testing.assert_array_equal(warp(images, matrices, interpolation="bicubic", narrow=False), eager)


@pytest.mark.nightly
def test_floats_agree_with_xla_within_e1() -> None:
    images, matrices = noise(4, 21, 34).astype(np.float32), homographies(4)
    eager, compiled = (warp(images, matrices, interpolation="bicubic", projective=True, xla=x) for x in (False, True))
    np.testing.assert_allclose(compiled, eager, atol=255e-6)
