"""Warps for tests: images, the backend's warp on NumPy arrays, and what other libraries call the fills."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from scipy import ndimage

HEIGHT, WIDTH = 45, 70
STEEPEST = 40
"""How many levels neighbouring pixels of the smooth images differ by, at most."""
Array = np.ndarray[Any, Any]

SCIPY = {"reflect": "reflect", "nearest": "nearest", "wrap": "grid-wrap", "constant": "grid-constant"}
OPENCV = {"reflect": cv2.BORDER_REFLECT, "nearest": cv2.BORDER_REPLICATE, "wrap": cv2.BORDER_WRAP, "constant": cv2.BORDER_CONSTANT}


def smooth(height: int = HEIGHT, width: int = WIDTH, seed: int = 0) -> Array:
    """A uint8 image whose neighbours differ by at most `STEEPEST` levels, also across its wrapped-around edges."""
    rng = np.random.default_rng(seed)
    image = ndimage.gaussian_filter(rng.uniform(0, 255, (height, width, 3)), (2.5, 2.5, 0), mode="wrap")
    low, high = image.min(), image.max()
    image = np.rint((image - low) / (high - low) * 200 + 20)
    steps = [np.abs(np.diff(image, axis=a, append=np.take(image, [0], axis=a))).max() for a in (0, 1)]
    assert max(steps) <= STEEPEST
    return image.astype(np.uint8)


def noise(n: int, height: int = HEIGHT, width: int = WIDTH, seed: int = 3) -> Array:
    """uint8 images of which every pixel is another one: `(n, height, width, 3)`."""
    return np.random.default_rng(seed).integers(0, 256, (n, height, width, 3), dtype=np.uint8)


def matrix_of(steps: tuple[Any, ...], *u: float, height: int = HEIGHT, width: int = WIDTH) -> Array:
    """The matrix of a segment, from output to input: the last step's output is read through all of them.

    Each step's draws are taken from `u`, and are 0.5 behind its end.
    """
    import tensorflow as tf

    matrix, left = np.eye(3), list(u)
    for step in steps:
        own = [left.pop(0) if left else 0.5 for _ in range(step.num_draws())]
        size = tf.constant(float(height), tf.float64), tf.constant(float(width), tf.float64)
        matrix = matrix @ step.matrix(tf.constant(own, tf.float64), *size).numpy()
    return matrix


def warp(
    images: Array,
    matrices: Array,
    *,
    fill: str = "reflect",
    constant: float = 0.0,
    interpolation: str = "bilinear",
    narrow: bool = True,
    projective: bool = False,
    size: tuple[int, int] | None = None,
    xla: bool = False,
) -> Array:
    """The warp of the backend on `(n, h, w, c)` and `(n, 3, 3)`."""
    import tensorflow as tf

    from pipegen.backend.kernels.warp import fixed_homography, fixed_matrix, locate, read, sides
    from pipegen.ops.arguments.geometry import ConstantFill

    out = size or (images.shape[1], images.shape[2])

    def run(image: tf.Tensor, fixed: tf.Tensor) -> tf.Tensor:
        located = locate(fixed, canvas=sides(image), size=out, fill=fill, interpolation=interpolation, narrow=narrow)
        return read(image, located, ConstantFill(constant=constant) if fill == "constant" else fill)

    function = tf.function(run, jit_compile=True, autograph=False) if xla else run
    given = tf.constant(matrices)
    fixed = fixed_homography(given, out) if projective else fixed_matrix(given, interpolation)
    return function(tf.constant(images), fixed).numpy()


def positions(matrix: Array, size: tuple[int, int] = (HEIGHT, WIDTH)) -> tuple[Array, Array, Array]:
    """Columns and rows that each output pixel reads, in float64, and the third coordinate."""
    y, x = np.mgrid[: size[0], : size[1]]
    across, down, depth = np.tensordot(matrix, np.stack([x, y, np.ones(size)]).astype(float), 1)
    return across / depth, down / depth, depth


def mapped(image: Array, matrix: Array, *, fill: str, order: int, constant: float = 0.0, size: tuple[int, int] | None = None) -> Array:
    """SciPy's `map_coordinates` at the positions of any matrix."""
    columns, rows, _ = positions(matrix, size or image.shape[:2])
    how: dict[str, Any] = {"order": order, "mode": SCIPY[fill], "cval": constant, "prefilter": False}
    return np.stack([ndimage.map_coordinates(image[..., c].astype(float), [rows, columns], **how) for c in range(image.shape[-1])], -1)
