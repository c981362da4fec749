"""Grid, optical, thin-plate and piecewise affine distortion: fields against SciPy, OpenCV and Albumentations, pixels against SciPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from planning import built, compiled, load_spec
from scipy import interpolate, ndimage

from pipegen.ops.traits import IMAGE_224
from pipegen.ops.transforms.distortions import RandomGridDistortion, RandomOpticalDistortion, RandomPiecewiseAffine, RandomThinPlateSpline

if TYPE_CHECKING:
    from pipegen.ops.families.neighbourhood import DisplacementTransform

Array = np.ndarray[Any, Any]

HEIGHT, WIDTH = 40, 60
STEP = 1 / 512
"""Positions are rounded to 1/256 pixel."""


def draws(step: DisplacementTransform, count: int = 2) -> Array:
    return np.random.default_rng(3).random((count, step.num_draws()))


def read_at(step: DisplacementTransform, u: Array, height: int = HEIGHT, width: int = WIDTH) -> tuple[Array, Array]:
    """Returns where each pixel is read, `(n, height, width)`: x and y, in pixels."""
    import tensorflow as tf

    (phase,) = step.phases()
    right, down = phase(tf.zeros([len(u), height, width, 3], tf.uint8), *step.parameters(tf.constant(u), height, width))
    y, x = np.mgrid[:height, :width]
    return x + right.numpy() / 256, y + down.numpy() / 256


@pytest.mark.tf
def test_a_grid_is_stretched_as_numpy_interpolates() -> None:
    import tensorflow as tf

    step = RandomGridDistortion(cells=4)
    u = draws(step)
    drawn = step.drawn(tf.constant(u))
    for name, part in (("columns", u[:, :4]), ("rows", u[:, 4:])):
        np.testing.assert_allclose(drawn[name], (0.7 + 0.6 * part) / (0.7 + 0.6 * part).sum(1, keepdims=True))
    xs, ys = read_at(step, u)
    for places, stretched, side in ((xs[:, 0], 0.7 + 0.6 * u[:, :4], WIDTH), (ys[..., 0], 0.7 + 0.6 * u[:, 4:], HEIGHT)):
        for place, factors in zip(places, stretched, strict=True):
            lines = np.concatenate([[0], np.cumsum(factors)]) / factors.sum() * side
            expected = np.interp(np.arange(side) + 0.5, np.linspace(0, side, 5), lines) - 0.5
            np.testing.assert_allclose(place, expected, atol=STEP)


@pytest.mark.peers
@pytest.mark.tf
def test_a_grid_is_albumentations_within_a_pixel() -> None:
    """Theirs begins and ends a cell in the middle of a pixel: it is off by half of one in what enters and in what leaves."""
    functional = pytest.importorskip("albumentations.augmentations.geometric.functional")
    step = RandomGridDistortion(cells=4)
    u = draws(step, 1)
    factors = 0.7 + 0.6 * u[0]
    steps = [factors[:4] / factors[:4].mean(), factors[4:] / factors[4:].mean()]
    xs, ys = functional.generate_grid((HEIGHT, WIDTH), *([*s, 0.0] for s in steps), 4)
    mine = read_at(step, u)
    most = 0.5 + 0.5 * max(map(max, steps)) + STEP
    assert np.abs(mine[0][0] - xs).max() < most
    assert np.abs(mine[1][0] - ys).max() < most


@pytest.mark.tf
def test_a_camera_is_opencvs() -> None:
    cv2 = pytest.importorskip("cv2")
    step = RandomOpticalDistortion(coefficient=(0.5, 0.5))
    camera = np.array([[WIDTH, 0, (WIDTH - 1) / 2], [0, HEIGHT, (HEIGHT - 1) / 2], [0, 0, 1]], np.float64)
    expected = cv2.initUndistortRectifyMap(camera, np.array([0.5, 0.5, 0, 0, 0]), None, None, (WIDTH, HEIGHT), cv2.CV_32FC1)
    for mine, theirs in zip(read_at(step, draws(step, 1)), expected, strict=True):
        np.testing.assert_allclose(mine[0], theirs, atol=STEP + 1e-5)


@pytest.mark.peers
@pytest.mark.tf
@pytest.mark.parametrize("model", ["camera", "fisheye"])
def test_a_lens_is_albumentations_around_another_centre(model: Any) -> None:
    """Theirs is half a pixel further right and down in what is read, and in the model `fisheye` also in what leaves."""
    functional = pytest.importorskip("albumentations.augmentations.geometric.functional")
    made = {"camera": functional.get_camera_matrix_distortion_maps, "fisheye": functional.get_fisheye_distortion_maps}[model]
    step = RandomOpticalDistortion(coefficient=(0.3, 0.3), model=model)
    for mine, theirs in zip(read_at(step, draws(step, 1)), made((HEIGHT, WIDTH), 0.3), strict=True):
        assert np.abs(mine[0] - theirs).max() < 0.5 + STEP


@pytest.mark.tf
def test_a_plate_is_scipys_thin_plate_spline() -> None:
    step = RandomThinPlateSpline(x=0.1, y=(0, 0.05), cells=3)
    u = draws(step)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    pixels = np.stack([(x.ravel() + 0.5) / WIDTH, (y.ravel() + 0.5) / HEIGHT], 1)
    for i, places in enumerate(zip(*read_at(step, u), strict=True)):
        for place, at, d, side in zip(places, (x, y), (0.2 * u[i, :16] - 0.1, 0.05 * u[i, 16:]), (WIDTH, HEIGHT), strict=True):
            moved = interpolate.RBFInterpolator(np.array(step.points()), d, kernel="thin_plate_spline")(pixels)
            np.testing.assert_allclose(place - at, moved.reshape(HEIGHT, WIDTH) * side, atol=STEP + 1e-9)


@pytest.mark.tf
def test_triangles_are_mapped_as_opencv_maps_them() -> None:
    cv2 = pytest.importorskip("cv2")
    step = RandomPiecewiseAffine(x=0.1, y=0.1, cells=2)
    u = draws(step, 1)
    (xs,), (ys,) = read_at(step, u)
    size = np.array([WIDTH, HEIGHT])
    corners = np.array(step.points()) * size - 0.5
    moved = corners + np.stack([0.2 * u[0, :9] - 0.1, 0.2 * u[0, 9:] - 0.1], 1) * size
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    cell = (x >= WIDTH / 2) + 3 * (y >= HEIGHT / 2)
    upper = (x + 0.5) % 30 / 30 >= (y + 0.5) % 20 / 20
    for first in (0, 1, 3, 4):
        for side, triangle in ((upper, [first, first + 1, first + 4]), (~upper, [first, first + 3, first + 4])):
            matrix = cv2.getAffineTransform(corners[triangle].astype(np.float32), moved[triangle].astype(np.float32))
            inside = side & (cell == first)
            expected = np.stack([x[inside], y[inside], np.ones(inside.sum())], 1) @ matrix.T
            np.testing.assert_allclose(np.stack([xs[inside], ys[inside]], 1), expected, atol=STEP + 1e-4)


@pytest.mark.tf
@pytest.mark.parametrize("fill", ["reflect", {"constant": 9}])
def test_pixels_are_read_there(fill: Any) -> None:
    """Through the backend's stages, the positions being those above."""
    from test_neighbourhood import exact

    images = np.random.default_rng(0).integers(0, 256, (2, HEIGHT, WIDTH, 3), np.uint8)
    for step in (
        RandomGridDistortion(fill=fill),
        RandomOpticalDistortion(coefficient=(0.4, 0.6), fill=fill),
        RandomThinPlateSpline(x=0.1, fill=fill),
        RandomPiecewiseAffine(y=0.1, fill=fill),
    ):
        u = draws(step)
        mode = fill if isinstance(fill, str) else "grid-constant"
        expected = np.stack([
            np.stack([ndimage.map_coordinates(image[..., c].astype(float), [y, x], order=1, mode=mode, cval=9) for c in range(3)], -1)
            for image, x, y in zip(images, *read_at(step, u), strict=True)
        ])  # fmt: skip
        np.testing.assert_allclose(exact(step, images, u), expected, atol=0.5)


@pytest.mark.tf
@pytest.mark.nightly
def test_bytes_are_the_same_compiled_or_not_at_any_batch_size() -> None:
    import tensorflow as tf

    from pipegen.backend.kernels.chain import lower_kernel
    from pipegen.plan.nodes import Kernel

    steps = [
        {"random_grid_distortion": {"probability": 0.7}},
        {"random_optical_distortion": {"coefficient": 0.3, "model": "fisheye", "fill": {"constant": 0}}},
        {"random_thin_plate_spline": {"x": 0.1, "y": 0.1, "interpolation": "bicubic"}},
        {"random_piecewise_affine": {"x": 0.05, "y": 0.05, "fill": "wrap"}},
    ]
    sections = {"transforms": [{"resize": {"size": [HEIGHT, WIDTH]}}, *steps], "batch": {"size": 6}}
    plan = compiled(built(sections, classes=2), load_spec(sections)).plan
    rng = np.random.default_rng(9)
    images, draws = rng.integers(0, 256, (6, HEIGHT, WIDTH, 3), dtype=np.uint8), rng.random((6, plan.index.num_draws))

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
    assert (fast != images).mean() > 0.5
    for count in (6, 1):
        np.testing.assert_array_equal(fast[:count], run(count, "never"))


@pytest.mark.parametrize(("step", "codes"), [
    (RandomGridDistortion(), []), (RandomGridDistortion(factor=(0.05, 1)), ["PG510"]),
    (RandomOpticalDistortion(coefficient=0.3), []), (RandomOpticalDistortion(coefficient=0.4), ["PG510"]),
    (RandomOpticalDistortion(coefficient=(-0.34, 0), model="fisheye"), ["PG510"]),
    (RandomThinPlateSpline(x=0.1), []), (RandomPiecewiseAffine(y=0.2), ["PG510"]), (RandomPiecewiseAffine(y=(0, 0.2)), []),
])  # fmt: skip
def test_what_folds_is_a_lint(step: DisplacementTransform, codes: list[str]) -> None:
    assert [lint.code for lint in step.lints(IMAGE_224)] == codes
