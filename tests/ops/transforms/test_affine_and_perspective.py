"""Affine and perspective steps and the deterministic forms: matrices against OpenCV, against each other, and where corners go."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest

from pipegen.ops.arguments.geometry import ConstantFill
from pipegen.ops.registry import transforms
from pipegen.ops.step_bases import GeometricTransform
from pipegen.ops.traits import IMAGE_224
from pipegen.ops.transforms.affine import Affine, RandomAffine
from pipegen.ops.transforms.flip import Flip, RandomFlip
from pipegen.ops.transforms.perspective import Perspective, RandomPerspective
from pipegen.ops.transforms.rotate_90 import Rotate90, Transpose
from pipegen.ops.transforms.rotation import RandomRotation, Rotation
from pipegen.ops.transforms.shear import RandomShear, Shear
from pipegen.ops.transforms.translation import RandomTranslation, Translation
from pipegen.ops.transforms.zoom import RandomZoom, Zoom
from pipegen.types import FeatureType, Interval

HEIGHT, WIDTH = 61, 101
Array = np.ndarray[Any, Any]


def matrix(step: GeometricTransform, u: Any = (), height: int = HEIGHT, width: int = WIDTH) -> Array:
    """The step's matrix for the given draws `(..., num_draws)`."""
    import tensorflow as tf

    u = np.asarray(u, float) if step.num_draws() else np.zeros((0,))
    return step.matrix(tf.constant(u), tf.constant(float(height), tf.float64), tf.constant(float(width), tf.float64)).numpy()


@pytest.mark.tf
@pytest.mark.parametrize(("fixed", "random", "draws"), [
    (Flip(), RandomFlip(probability=1), 1),
    (Flip(axis="vertical"), RandomFlip(axis="vertical", probability=1), 1),
    (Flip(axis="both"), RandomFlip(axis="both", probability=1), 2),
    (Rotation(degrees=-33.5), RandomRotation(degrees=(-33.5, -33.5)), 1),
    (Translation(x=0.13, y=-0.4), RandomTranslation(x=(0.13, 0.13), y=(-0.4, -0.4)), 2),
    (Shear(degrees=21), RandomShear(degrees=(21, 21)), 1),
    (Shear(degrees=21, axis="y"), RandomShear(degrees=(21, 21), axis="y"), 1),
    (Shear(degrees=-8, axis="both"), RandomShear(degrees=(-8, -8), axis="both"), 2),
    (Zoom(factor=1.7), RandomZoom(factor=(1.7, 1.7)), 1),
    (Zoom(x=0.6), RandomZoom(x=(0.6, 0.6)), 2),
    (
        Affine(degrees=20, x=0.1, y=-0.2, shear_x=5, shear_y=-7, factor=0.8),
        RandomAffine(degrees=(20, 20), x=(0.1, 0.1), y=(-0.2, -0.2), shear_x=(5, 5), shear_y=(-7, -7), factor=(0.8, 0.8)), 6,
    ),
], ids=str)  # fmt: skip
def test_a_deterministic_form_is_the_random_one_of_a_single_value(fixed: Any, random: Any, draws: int) -> None:
    assert fixed.op == random.op.removeprefix("random_")
    assert fixed.num_draws() == 0
    assert "probability" not in type(fixed).model_fields
    np.testing.assert_array_equal(matrix(fixed), matrix(random, [0.3] * draws))
    assert fixed.traits(IMAGE_224).mirrors == random.traits(IMAGE_224).mirrors


@pytest.mark.tf
def test_random_affine_is_the_run_of_its_parts() -> None:
    u = np.random.default_rng(0).random(6)
    parts = [
        matrix(RandomZoom(factor=0.3), u[5:6]),
        matrix(RandomShear(degrees=12), u[3:4]) @ matrix(RandomShear(degrees=9, axis="y"), u[4:5]),
        matrix(RandomRotation(degrees=(10, 40)), u[0:1]),
        matrix(RandomTranslation(x=0.2, y=0.1), u[1:3]),
    ]
    whole = matrix(RandomAffine(degrees=(10, 40), x=0.2, y=0.1, shear_x=12, shear_y=9, factor=0.3), u)
    np.testing.assert_allclose(whole, parts[0] @ parts[1] @ parts[2] @ parts[3], atol=1e-10)


@pytest.mark.tf
@pytest.mark.parametrize(("degrees", "factor"), [(-33.5, 0.7), (120, 1.6)])
def test_affine_is_opencv_s(degrees: float, factor: float) -> None:
    forward = cv2.getRotationMatrix2D(((WIDTH - 1) / 2, (HEIGHT - 1) / 2), degrees, factor)
    forward[:, 2] += 0.1 * WIDTH, -0.3 * HEIGHT
    step = Affine(degrees=degrees, factor=factor, x=0.1, y=-0.3)
    np.testing.assert_allclose(matrix(step)[:2], cv2.invertAffineTransform(forward), atol=1e-9)


MOVES = ((0.12, 0.05), (-0.2, 0.1), (-0.05, 0.02), (0.08, -0.15))
"""Of the top left, top right, bottom left and bottom right corner."""
NAMES = ("top_left", "top_right", "bottom_left", "bottom_right")


def corners(moves: Any = ((0, 0),) * 4, height: int = HEIGHT, width: int = WIDTH) -> Array:
    """Where the corners of the outermost pixels are after they have moved, as `(4, 2)` of x and y."""
    unit = np.array([(0, 0), (1, 0), (0, 1), (1, 1)]) + np.array(moves)
    return unit * (width, height) - 0.5


@pytest.mark.tf
def test_perspective_is_opencv_s() -> None:
    expected = cv2.getPerspectiveTransform(np.float32(corners(MOVES)), np.float32(corners()))
    ours = matrix(Perspective(**dict(zip(NAMES, MOVES, strict=True))))
    np.testing.assert_allclose(ours / ours[2, 2], expected / expected[2, 2], atol=2e-4, rtol=1e-5)  # it starts from float32 points


@pytest.mark.tf
@pytest.mark.parametrize("size", [(HEIGHT, WIDTH), (1, 1), (1, 40)])
def test_each_corner_goes_where_it_is_sent(size: tuple[int, int]) -> None:
    u = np.random.default_rng(1).random((20, 8))
    step = RandomPerspective(x=0.2, y=(-0.1, 0.3))
    for m, draws in zip(matrix(step, u, *size), u, strict=True):
        moves = np.stack([-0.2 + 0.4 * draws[0::2], -0.1 + 0.4 * draws[1::2]], -1)
        read = m @ np.c_[corners(moves, *size), np.ones(4)].T
        assert (read[2] > 0).all()
        np.testing.assert_allclose((read[:2] / read[2]).T, corners(height=size[0], width=size[1]), atol=1e-9)


@pytest.mark.tf
def test_the_whole_picture_lies_before_the_horizon() -> None:
    """Also at the ends of the widest ranges: whatever is drawn, the third coordinate is positive on the moved picture."""
    rng = np.random.default_rng(2)
    u = np.concatenate([rng.integers(0, 2, (200, 8)) * (1 - 2.0**-53), rng.random((200, 8))])
    x, y = 0.3, 0.199
    moves = np.stack([x * (2 * u[:, 0::2] - 1), y * (2 * u[:, 1::2] - 1)], -1)
    points = np.stack([corners(m) for m in moves])
    middle = points.mean(1, keepdims=True)
    m = matrix(RandomPerspective(x=x, y=y), u)
    assert np.isfinite(m).all()
    for at in (points, (points + middle) / 2, middle):
        assert (np.einsum("nj,nkj->nk", m[:, 2, :2], at) + m[:, 2, 2:] > 0).all()


RANDOM = [RandomAffine(degrees=20, x=0.1, shear_y=5, factor=0.2), RandomPerspective(x=0.1, y=0.1)]
FIXED = [
    *(Flip(), Rotation(degrees=5), Translation(x=0.1), Shear(degrees=5), Zoom(factor=2), Affine(x=0.1), Perspective(top_left=(0.1, 0))),
    *(Rotate90(), Transpose()),
]


@pytest.mark.tf
@pytest.mark.parametrize("step", [*RANDOM, *FIXED], ids=lambda s: s.op)
def test_any_leading_axes(step: GeometricTransform) -> None:
    import tensorflow as tf

    u = np.random.default_rng(3).random((2, 3, step.num_draws()))
    size = tf.constant(48.0, tf.float64), tf.constant(64.0, tf.float64)
    stacked = step.matrix(tf.constant(u), *size)
    assert (stacked.dtype, stacked.shape) == (tf.float64, (2, 3, 3, 3))
    for i, j in np.ndindex(2, 3):
        np.testing.assert_array_equal(stacked[i, j].numpy(), step.matrix(tf.constant(u[i, j]), *size).numpy())


def test_only_perspective_divides() -> None:
    """What a step is like is a trait; a deterministic step draws nothing and runs on every split."""
    dividing = {s.op for s in (*RANDOM, *FIXED) if s.traits(IMAGE_224).projective}
    assert dividing == {"random_perspective", "perspective"}
    assert not any(s.random for s in FIXED)
    assert {s.op for s in FIXED} == {
        n for n in transforms() if f"random_{n}" in transforms() and issubclass(transforms()[n], GeometricTransform)
    }


@pytest.mark.parametrize(("step", "text"), [
    (lambda: RandomAffine(), "at least one of"),
    (lambda: RandomAffine(probability=0.5), "at least one of"),
    (lambda: RandomAffine(degrees=-5), r"`degrees` is a magnitude"),
    (lambda: RandomAffine(shear_y=(0, 90)), "`shear_y` must be between -89 and 89"),
    (lambda: RandomAffine(factor=1), "above 0"),
    (lambda: RandomAffine(x=(0.2, 0.1)), "is above"),
    (lambda: RandomPerspective(), "give `x`"),
    (lambda: RandomPerspective(x=0.3, y=0.2), "must span less than 1 together; they span 1 "),
    (lambda: RandomPerspective(x=20), "they span 40"),
    (lambda: RandomPerspective(y=(-0.9, 0.2)), "they span 1.1"),
    (lambda: Affine(), "at least one of"),
    (lambda: Affine(factor=0), "greater than 0"),
    (lambda: Affine(shear_x=90), "less than or equal to 89"),
    (lambda: Perspective(), "at least one of"),
    (lambda: Perspective(top_left=(0.6, 0.6)), "no longer make a convex picture"),
    (lambda: Perspective(top_left=(1.2, 0), top_right=(-1.2, 0)), "no longer make a convex picture"),
    (lambda: Rotation(), "degrees"),
    (lambda: Rotation(degrees=5, probability=0.5), "(?i)extra"),
    (lambda: Translation(), "give `x`"),
    (lambda: Shear(degrees=-90), "greater than or equal to -89"),
    (lambda: Zoom(), "either `factor`"),
    (lambda: Zoom(factor=1, y=2), "either `factor`"),
    (lambda: Zoom(x=-1), "greater than 0"),
])  # fmt: skip
def test_wrong_arguments_are_rejected(step: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        step()


@pytest.mark.parametrize(("step", "found"), [
    (RandomAffine(degrees=0.3), [("PG503", "degrees")]), (RandomAffine(shear_x=(0, 0.2)), [("PG503", "shear_x")]),
    (RandomAffine(degrees=(0, 360), x=20), [("PG510", "degrees"), ("PG510", "x")]), (RandomAffine(factor=(1, 20)), [("PG510", "factor")]),
    (RandomAffine(shear_y=80), [("PG510", "shear_y")]), (RandomPerspective(x=0.3, y=0.18), [("PG510", None)]),
    (Affine(degrees=0.3, shear_y=75, y=1.5, factor=0.1), [("PG503", "degrees"), ("PG510", "shear_y"), ("PG510", "y"), ("PG510", "factor")]),
    (Rotation(degrees=0.3), [("PG503", "degrees")]), (Rotation(degrees=720), [("PG510", "degrees")]), (Rotation(degrees=270), []),
    (Translation(x=-5), [("PG510", "x")]), (Shear(degrees=-70), [("PG510", "degrees")]), (Zoom(y=0.1), [("PG510", "y")]),
    (Perspective(top_left=(0.2, 0.2)), []), (RandomPerspective(x=0.1, y=0.1), []),
])  # fmt: skip
def test_lints(step: GeometricTransform, found: list[tuple[str, str | None]]) -> None:
    assert [(lint.code, lint.field) for lint in step.lints(IMAGE_224)] == found


@pytest.mark.parametrize("step", [
    RandomAffine(degrees=0), RandomAffine(degrees=5, probability=0), RandomAffine(factor=(1, 1)), RandomPerspective(x=0),
    RandomPerspective(x=0.1, probability=0), Affine(x=0), Affine(factor=1), Rotation(degrees=0), Translation(y=0), Shear(degrees=0),
    Zoom(factor=1), Zoom(x=1), Perspective(top_left=(0, 0)),
])  # fmt: skip
def test_identities(step: GeometricTransform) -> None:
    assert step.is_identity(IMAGE_224)
    assert step.lints(IMAGE_224) == ()


@pytest.mark.parametrize(("one", "other", "same"), [
    (RandomAffine(degrees=10), RandomAffine(degrees=(-10, 10), x=0), True),
    (RandomAffine(shear_x=10), RandomAffine(shear_x=(-10, 10), factor=(1, 1)), True),
    (RandomAffine(shear_x=10), RandomAffine(shear_y=10), False),
    (RandomPerspective(x=0.1), RandomPerspective(x=(-0.1, 0.1), y=0), True),
    (Zoom(factor=2), Zoom(x=2, y=2), True), (Zoom(x=2), Zoom(x=2, y=1), True), (Zoom(x=2), Zoom(factor=2), False),
    (Affine(x=0.1), Affine(x=0.1, factor=1), True),
])  # fmt: skip
def test_one_meaning_has_one_hash(one: GeometricTransform, other: GeometricTransform, same: bool) -> None:
    assert (one.meaning() == other.meaning()) == same


def test_what_bicubic_may_give() -> None:
    """It overshoots: bytes stay bytes, and of floats nothing is known; a flip only moves pixels, and a fill is seen as it is."""
    floats = FeatureType("image", "float32", (24, 32, 3), Interval(0, 1))
    dim = FeatureType("image", "uint8", (24, 32, 3), Interval(20, 200))
    turn = Rotation(degrees=5, interpolation="bicubic")
    assert turn.infer(IMAGE_224) == IMAGE_224
    assert turn.infer(dim).interval == Interval(0, 255)
    assert turn.infer(floats).interval is None
    assert Rotation(degrees=5, interpolation="bicubic", fill=ConstantFill(constant=3)).infer(floats).interval is None
    assert Rotation(degrees=5).infer(floats).interval == Interval(0, 1)
    assert Flip(interpolation="bicubic").infer(floats) == floats
