"""Geometric steps: matrices against OpenCV and NumPy, and where a bright dot goes on a canvas that is not square."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest

from pipegen.ops.step_bases import GeometricTransform
from pipegen.ops.traits import IMAGE_224
from pipegen.ops.transforms.flip import RandomFlip
from pipegen.ops.transforms.rotation import RandomRotation
from pipegen.ops.transforms.shear import RandomShear
from pipegen.ops.transforms.translation import RandomTranslation
from pipegen.ops.transforms.zoom import RandomZoom

HEIGHT, WIDTH = 61, 101
CENTRE_Y, CENTRE_X = 30, 50

Array = np.ndarray[Any, Any]


def matrix(step: GeometricTransform, *u: float, height: int = HEIGHT, width: int = WIDTH) -> Array:
    """The step's matrix for the given draws."""
    import tensorflow as tf

    assert len(u) == step.num_draws()
    return step.matrix(tf.constant(u, tf.float64), tf.constant(float(height), tf.float64), tf.constant(float(width), tf.float64)).numpy()


def warp(image: Array, m: Array) -> Array:
    """Nearest-neighbour resampling, zero outside: every output pixel reads `m @ (x, y, 1)`."""
    h, w = image.shape[:2]
    y, x = np.mgrid[:h, :w]
    source = m @ np.stack([x.ravel(), y.ravel(), np.ones(h * w)])
    sx, sy = (np.rint(v).astype(int).reshape(h, w) for v in source[:2])
    inside = (sx >= 0) & (sx < w) & (sy >= 0) & (sy < h)
    out = np.zeros_like(image)
    out[inside] = image[sy[inside], sx[inside]]
    return out


def moved(m: Array, y: int, x: int) -> tuple[int, int]:
    """Where a dot at row `y`, column `x` ends up."""
    image = np.zeros((HEIGHT, WIDTH))
    image[y, x] = 1
    rows, columns = np.nonzero(warp(image, m))
    assert len(rows) >= 1
    return round(rows.mean()), round(columns.mean())


@pytest.mark.tf
@pytest.mark.parametrize("degrees", [-170, -33.5, 0, 20, 90, 135])
def test_rotation_is_opencv_s(degrees: float) -> None:
    forward = cv2.getRotationMatrix2D(((WIDTH - 1) / 2, (HEIGHT - 1) / 2), degrees, 1.0)
    expected = cv2.invertAffineTransform(forward)
    np.testing.assert_allclose(matrix(RandomRotation(degrees=(degrees, degrees)), 0.3)[:2], expected, atol=1e-9)


@pytest.mark.tf
def test_rotation_is_counter_clockwise_as_seen() -> None:
    m = matrix(RandomRotation(degrees=(90, 90)), 0.0)
    assert moved(m, CENTRE_Y, CENTRE_X + 20) == (CENTRE_Y - 20, CENTRE_X), "what is to the right goes to the top"
    assert moved(m, CENTRE_Y - 20, CENTRE_X) == (CENTRE_Y, CENTRE_X - 20), "what is at the top goes to the left"


@pytest.mark.tf
def test_a_number_is_a_magnitude_and_a_pair_is_the_range() -> None:
    def angle(step: GeometricTransform, u: float) -> float:
        m = matrix(step, u)
        return float(np.degrees(np.arctan2(m[1, 0], m[0, 0])))

    assert [angle(RandomRotation(degrees=20), u) for u in (0, 0.5, 0.75)] == pytest.approx([-20, 0, 10])
    assert [angle(RandomRotation(degrees=(10, 30)), u) for u in (0, 0.5, 0.75)] == pytest.approx([10, 20, 25])


@pytest.mark.tf
def test_translation_moves_content_right_and_down() -> None:
    assert moved(matrix(RandomTranslation(x=(0.1, 0.1)), 0.5, 0.5), 20, 30) == (20, 30 + 10)
    assert moved(matrix(RandomTranslation(y=(0.1, 0.1)), 0.5, 0.5), 20, 30) == (20 + 6, 30)
    both = matrix(RandomTranslation(x=0.2, y=(-0.5, 0)), 0.75, 0.5)
    np.testing.assert_allclose(both, [[1, 0, -0.1 * WIDTH], [0, 1, 0.25 * HEIGHT], [0, 0, 1]], atol=1e-12)


@pytest.mark.tf
def test_zoom_above_one_magnifies_about_the_centre() -> None:
    m = matrix(RandomZoom(factor=(2, 2)), 0.5)
    assert moved(m, CENTRE_Y + 5, CENTRE_X - 8) == (CENTRE_Y + 10, CENTRE_X - 16)
    np.testing.assert_allclose(m @ [CENTRE_X, CENTRE_Y, 1], [CENTRE_X, CENTRE_Y, 1])
    one_factor = matrix(RandomZoom(factor=0.5), 0.9)
    assert one_factor[0, 0] == one_factor[1, 1] == pytest.approx(1 / 1.4)


@pytest.mark.tf
def test_an_inverse_zoom_draws_what_is_shown() -> None:
    drawn = RandomZoom(factor=(0.5, 2), inverse=True).drawn(np.array([[0.0], [0.5], [1.0]]))["factor"]
    np.testing.assert_allclose(1 / drawn.numpy(), [0.5, 1.25, 2])


@pytest.mark.tf
def test_zoom_of_the_sides_is_independent() -> None:
    step = RandomZoom(x=(2, 2), y=(0.5, 0.5))
    assert moved(matrix(step, 0.1, 0.9), CENTRE_Y + 10, CENTRE_X + 10) == (CENTRE_Y + 5, CENTRE_X + 20)
    assert matrix(RandomZoom(x=(2, 2)), 0.0, 0.0)[1, 1] == 1
    assert step.num_draws() == 2


@pytest.mark.tf
def test_shear_slides_rows_or_columns() -> None:
    tan = np.tan(np.radians(30))
    along_x = matrix(RandomShear(degrees=(30, 30)), 0.0)
    assert moved(along_x, CENTRE_Y + 20, CENTRE_X) == (CENTRE_Y + 20, CENTRE_X + round(20 * tan)), "the lower half goes right"
    along_y = matrix(RandomShear(degrees=(30, 30), axis="y"), 0.0)
    assert moved(along_y, CENTRE_Y, CENTRE_X + 20) == (CENTRE_Y + round(20 * tan), CENTRE_X + 20)


@pytest.mark.tf
def test_shear_along_both_is_x_then_y() -> None:
    m = matrix(RandomShear(degrees=(-40, 40), axis="both"), 0.75, 0.25)
    a, b = np.tan(np.radians(20)), np.tan(np.radians(-20))
    content = np.array([[1, 0], [b, 1]]) @ np.array([[1, a], [0, 1]])
    np.testing.assert_allclose(m[:2, :2], np.linalg.inv(content), atol=1e-12)
    np.testing.assert_allclose(m @ [CENTRE_X, CENTRE_Y, 1], [CENTRE_X, CENTRE_Y, 1])


@pytest.mark.tf
@pytest.mark.parametrize(("axis", "u", "flipped"), [
    ("horizontal", (0.2,), (1,)), ("horizontal", (0.7,), ()), ("vertical", (0.2,), (0,)),
    ("both", (0.2, 0.7), (1,)), ("both", (0.7, 0.2), (0,)), ("both", (0.2, 0.2), (0, 1)),
])  # fmt: skip
def test_flip_is_numpy_s(axis: Any, u: tuple[float, ...], flipped: tuple[int, ...]) -> None:
    image = np.random.default_rng(0).random((HEIGHT, WIDTH))
    m = matrix(RandomFlip(axis=axis, probability=0.5), *u)
    np.testing.assert_array_equal(warp(image, m), np.flip(image, flipped))
    assert set(np.abs(m[:2, :2]).ravel()) == {0.0, 1.0}


@pytest.mark.tf
def test_flip_probability_is_its_share() -> None:
    import tensorflow as tf

    u = tf.constant(np.random.default_rng(1).random((4000, 2)))
    m = RandomFlip(axis="both", probability=0.3).matrix(u, tf.constant(10.0, tf.float64), tf.constant(20.0, tf.float64)).numpy()
    assert m.shape == (4000, 3, 3)
    across, down = m[:, 0, 0] < 0, m[:, 1, 1] < 0
    assert across.mean() == pytest.approx(0.3, abs=0.03)
    assert down.mean() == pytest.approx(0.3, abs=0.03)
    assert (across & down).mean() == pytest.approx(0.09, abs=0.02)


STEPS = [
    RandomFlip(axis="both"), RandomRotation(degrees=20), RandomTranslation(x=0.1, y=0.2), RandomShear(degrees=10),
    RandomShear(degrees=10, axis="both"), RandomZoom(factor=0.2), RandomZoom(x=0.1, y=0.2),
]  # fmt: skip


@pytest.mark.tf
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_any_leading_axes(step: GeometricTransform) -> None:
    import tensorflow as tf

    u = np.random.default_rng(2).random((2, 3, step.num_draws()))
    size = tf.constant(48.0, tf.float64), tf.constant(64.0, tf.float64)
    stacked = step.matrix(tf.constant(u), *size)
    assert stacked.dtype == tf.float64
    assert stacked.shape == (2, 3, 3, 3)
    for i, j in np.ndindex(2, 3):
        np.testing.assert_array_equal(stacked[i, j].numpy(), step.matrix(tf.constant(u[i, j]), *size).numpy())


@pytest.mark.parametrize(("step", "text"), [
    (lambda: RandomRotation(degrees=(20, -20)), "is above"),
    (lambda: RandomRotation(degrees=-20), r"`degrees` is a magnitude"),
    (lambda: RandomRotation(degrees=float("nan")), "finite"),
    (lambda: RandomShear(degrees=90), "at most 89"),
    (lambda: RandomTranslation(), "give `x`"),
    (lambda: RandomTranslation(y=(0.5, 0.1)), "is above"),
    (lambda: RandomZoom(), "either `factor`"),
    (lambda: RandomZoom(factor=0.1, x=0.1), "either `factor`"),
    (lambda: RandomZoom(factor=1.5), r"means the range \[-0.5, 2.5\]"),
    (lambda: RandomZoom(factor=(0, 2)), "above 0"),
    (lambda: RandomFlip(probability=1.5), "less than or equal to 1"),
])  # fmt: skip
def test_wrong_arguments_are_rejected(step: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        step()


@pytest.mark.parametrize(("step", "code"), [
    (RandomRotation(degrees=0.3), "PG503"), (RandomShear(degrees=(0, 0.2)), "PG503"), (RandomRotation(degrees=(0, 360)), "PG510"),
    (RandomShear(degrees=80), "PG510"), (RandomTranslation(x=20), "PG510"), (RandomZoom(factor=(1, 20)), "PG510"),
])  # fmt: skip
def test_lints(step: GeometricTransform, code: str) -> None:
    assert [lint.code for lint in step.lints(IMAGE_224)] == [code]


@pytest.mark.parametrize("step", [
    RandomRotation(degrees=0), RandomRotation(degrees=20, probability=0), RandomFlip(probability=0), RandomTranslation(x=0.0),
    RandomShear(degrees=(0, 0)), RandomZoom(factor=0), RandomZoom(x=(1, 1)),
])  # fmt: skip
def test_identities(step: GeometricTransform) -> None:
    assert step.is_identity(IMAGE_224)
    assert step.lints(IMAGE_224) == ()
