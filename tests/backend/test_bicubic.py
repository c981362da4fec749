"""Bicubic resampling against scikit-image and TensorFlow, which use the same kernel, and against its definition.

Tolerance. Positions as in `test_warp`: within 1/256 pixel altogether, for x and for y; Keys' kernel with a = -1/2 follows a slope of
d levels a pixel by at most 3 d / 2, so that a value moves by up to 2 · 1.5 · 40 / 256 = 0.47 levels. The weights of bytes have 11
bits, of which rounding moves each by 2^-12 at most, three of them freely: 255 · 2 · 1.25 · 3 / 4096 = 0.47 on an image of stripes, a
tenth of that on a smooth one. Then the level is rounded.
"""

from __future__ import annotations

import numpy as np
import pytest
from warping import HEIGHT, WIDTH, Array, mapped, matrix_of, noise, positions, smooth, warp

from pipegen.ops.transforms.affine import Affine
from pipegen.ops.transforms.perspective import Perspective
from pipegen.ops.transforms.rotation import Rotation
from pipegen.ops.transforms.translation import Translation
from pipegen.ops.transforms.zoom import Zoom

pytestmark = pytest.mark.tf

SKIMAGE = {"reflect": "symmetric", "nearest": "edge", "wrap": "wrap"}
SEGMENTS = {
    "rotation": (Rotation(degrees=33),),
    "zoom out": (Zoom(x=0.61, y=0.43),),
    "all at once": (Affine(degrees=20, x=0.1, y=-0.07, shear_x=10, factor=0.8),),
    "perspective": (Perspective(top_left=(0.1, 0.05), bottom_right=(-0.15, -0.1)), Rotation(degrees=-12)),
}


def kernel(t: Array) -> Array:
    """Keys' cubic convolution with a = -1/2, at a distance."""
    t = np.abs(t)
    return np.where(t < 1, 1.5 * t**3 - 2.5 * t**2 + 1, np.where(t < 2, -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2, 0))


def keys(image: Array, matrix: Array, *, fill: str, constant: float = 0.0) -> Array:
    """By definition, in float64: sixteen whole pixels, each read outside as the fill says."""
    columns, rows, _ = positions(matrix, image.shape[:2])
    left, top = np.floor(columns), np.floor(rows)
    total = np.zeros(image.shape)
    for j in range(-1, 3):
        for i in range(-1, 3):
            weight = kernel(columns - left - i) * kernel(rows - top - j)
            at = [inside(v + k, n, fill) for v, k, n in ((top, j, image.shape[0]), (left, i, image.shape[1]))]
            value = image[at[0], at[1]].astype(float)
            outside = (at[0] < 0) | (at[1] < 0)
            total += weight[..., None] * np.where(outside[..., None], constant, value)
    return total


def inside(i: Array, n: int, fill: str) -> Array:
    """The pixel that a whole position stands for, -1 for a constant."""
    if fill == "reflect":
        i = np.mod(i, 2 * n)
        return np.minimum(i, 2 * n - 1 - i).astype(int)
    if fill == "wrap":
        return np.mod(i, n).astype(int)
    return (np.clip(i, 0, n - 1) if fill == "nearest" else np.where((i < 0) | (i >= n), -1, i)).astype(int)


@pytest.mark.parametrize("fill", ["reflect", "nearest", "wrap", "constant"])
@pytest.mark.parametrize("name", list(SEGMENTS))
def test_it_is_cubic_convolution(name: str, fill: str) -> None:
    image, matrix = smooth(), matrix_of(SEGMENTS[name])
    ours = warp(image[None], matrix[None], fill=fill, constant=128.0, interpolation="bicubic", projective=name == "perspective")[0]
    difference = np.abs(ours - keys(image, matrix, fill=fill, constant=128.0))
    if fill == "constant":  # a step of up to 108 levels at the edge: 1.5 / 256 of it, for x and for y, instead of 40
        assert difference.max() <= 0.5 + 2 * 1.5 * 108 / 256 + 0.05
        assert (difference > 1).mean() < 0.01
    else:
        assert difference.max() <= 0.5 + 0.47 + 0.05
    assert (difference > 0.6).mean() < 0.05


@pytest.mark.parametrize("fill", list(SKIMAGE))
@pytest.mark.parametrize("name", ["all at once", "perspective"])
def test_it_is_scikit_image_s(name: str, fill: str) -> None:
    transform = pytest.importorskip("skimage.transform")
    image, matrix = smooth(seed=1), matrix_of(SEGMENTS[name])
    ours = warp(image[None], matrix[None], fill=fill, interpolation="bicubic", projective=name == "perspective")[0]
    theirs = transform.warp(image.astype(float), matrix, order=3, mode=SKIMAGE[fill], preserve_range=True, clip=False)
    assert np.abs(ours - theirs).max() <= 0.5 + 0.47 + 0.05


def test_it_is_tensorflow_s() -> None:
    """`ScaleAndTranslate` has this kernel too, and renormalises at the edge instead of filling: the middle is compared."""
    import tensorflow as tf

    image = smooth(seed=2)
    matrix = matrix_of((Zoom(x=1.7, y=1.3), Translation(x=0.11)))
    scale = 1 / matrix[[1, 0], [1, 0]]
    shift = [0.5 - scale[k] * (matrix[i, 2] + 0.5) for k, i in enumerate((1, 0))]
    theirs = tf.raw_ops.ScaleAndTranslate(
        images=image[None].astype(np.float32), size=[HEIGHT, WIDTH], scale=scale.astype(np.float32),
        translation=np.float32(shift), kernel_type="keyscubic", antialias=False,
    ).numpy()[0]  # fmt: skip
    ours = warp(image[None], matrix[None], interpolation="bicubic")[0]
    assert np.abs(ours - theirs)[6:-6, 14:-6].max() <= 0.5 + 0.47 + 0.05


def test_floats_are_not_rounded_and_overshoot() -> None:
    image, matrix = noise(1)[0].astype(np.float32) / 255, matrix_of(SEGMENTS["all at once"])
    ours = warp(image[None], matrix[None], interpolation="bicubic")[0]
    assert np.abs(ours - keys(image, matrix, fill="reflect")).max() < 2 * 3 / 256  # the slope of noise: 1 a pixel, and 1.25 of weights
    assert ours.min() < 0
    assert ours.max() > 1


def test_bytes_are_clipped() -> None:
    """A thin white line on black, and black on white: what overshoots stays at the end of the range."""
    line = np.zeros((1, 9, 12, 1), np.uint8)
    line[:, 4] = 255
    half = np.array([[[1.0, 0, 0.5], [0, 1, 0.5], [0, 0, 1]]])
    up = warp(line, half, interpolation="bicubic")[0, :, 3, 0]
    np.testing.assert_array_equal(up[1:7], [0, 0, 143, 143, 0, 0])  # 255 · 9/16 = 143.4, and 255 · -1/16 is cut
    down = warp(255 - line, half, interpolation="bicubic")[0, :, 3, 0]
    np.testing.assert_array_equal(down[1:7], [255, 255, 112, 112, 255, 255])


@pytest.mark.parametrize("fill", ["reflect", "constant"])
@pytest.mark.parametrize("projective", [False, True])
def test_whole_pixels_are_exact(fill: str, projective: bool) -> None:
    images = noise(2)
    whole = np.array([[[0.0, 1, -4], [-1, 0, 51], [0, 0, 1]], np.eye(3)])
    ours = warp(images, whole, fill=fill, constant=9.0, interpolation="bicubic", projective=projective)
    np.testing.assert_array_equal(ours[0], mapped(images[0], whole[0], fill=fill, order=0, constant=9.0))
    np.testing.assert_array_equal(ours[1], images[1])


def test_it_is_sharper_than_bilinear() -> None:
    image, there = smooth(seed=4)[None], matrix_of((Rotation(degrees=10),))
    back = np.linalg.inv(there)
    error = {}
    for kind in ("bilinear", "bicubic"):
        again = warp(warp(image, there[None], interpolation=kind), back[None], interpolation=kind)
        error[kind] = np.abs(again.astype(int) - image)[0, 15:30, 25:45].mean()
    assert error["bicubic"] < 0.5 * error["bilinear"]


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_sixteen_bits_do_not_overflow(interpolation: str) -> None:
    image = (smooth().astype(np.uint16) * 257)[None]
    matrix = matrix_of(SEGMENTS["rotation"])
    ours = warp(image, matrix[None], interpolation=interpolation)[0]
    theirs = keys(image[0], matrix, fill="reflect") if interpolation == "bicubic" else mapped(image[0], matrix, fill="reflect", order=1)
    assert ours.dtype == np.uint16
    assert np.abs(ours - theirs).max() <= 257
