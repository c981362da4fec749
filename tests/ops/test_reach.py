"""What steps say of their matrices holds for whatever they draw."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipegen.ops.arguments.geometry import Reach, stays_within
from pipegen.ops.registry import transforms
from pipegen.ops.step_bases import CropTransform, GeometricTransform

STEPS = [
    "random_flip: {axis: both}",
    "flip: {axis: both}",
    "random_rotation: {degrees: [0, 360]}",
    "rotation: {degrees: 77}",
    "random_zoom: {x: [0.25, 3], y: 0.5}",
    "random_zoom: {factor: {linear: {from: 0.1, to: 0.6, epochs: [0, 9]}}}",
    "zoom: {x: 0.3}",
    "random_shear: {degrees: [-70, 20], axis: both}",
    "shear: {degrees: 60, axis: both}",
    "random_translation: {x: [-2, 0], y: 1.5}",
    "translation: {x: -0.75, y: 3}",
    "affine: {degrees: 30, shear_x: -50, shear_y: 40, factor: 0.4, x: 1, y: -2}",
    "random_affine: {degrees: 180, shear_x: 60, shear_y: [-30, 60], factor: 0.7, x: 1, y: [-2, 0]}",
    "random_rotate_90",
    "random_d4",
    "random_crop: {size: [60, 40]}",
    "center_crop: {size: 50}",
]


def step(text: str) -> GeometricTransform | CropTransform:
    import yaml

    read = yaml.safe_load(text)
    name, arguments = next(iter(read.items())) if isinstance(read, dict) else (read, {})
    return transforms()[name](**arguments)


@pytest.mark.tf
@pytest.mark.parametrize("text", STEPS)
def test_no_draw_reaches_farther(text: str) -> None:
    import tensorflow as tf

    height, width = 90.0, 140.0
    made = step(text)
    reach = made.reach()
    assert reach is not None
    u = np.random.default_rng(5).random((400, max(made.num_draws(), 1)))
    u[:40] = np.random.default_rng(6).choice([0.0, 1 - 2.0**-53], (40, u.shape[1]))  # the ends of ranges, in many combinations
    if isinstance(made, CropTransform):
        window = made.window(tf.constant(u), tf.constant(int(height)), tf.constant(int(width)))
        top, left = (np.broadcast_to(window.numpy()[..., i], 400) for i in (0, 1))
        matrices = np.broadcast_to(np.eye(3), (400, 3, 3)).copy()
        matrices[:, 0, 2], matrices[:, 1, 2] = left, top
        rows, columns = made.output_size()
    else:
        rows, columns = height, width
        matrices = made.matrix(tf.constant(u), tf.constant(height, tf.float64), tf.constant(width, tf.float64)).numpy()
    corners = np.array([(x, y, 1.0) for x in (0, columns - 1) for y in (0, rows - 1)])
    assert np.linalg.norm(matrices[:, :2, :2], 2, axis=(1, 2)).max() <= reach.scale + 1e-9
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    far = np.linalg.norm((matrices @ corners.T)[:, :2] - centre[:, None], axis=1).max()
    assert far <= width * (reach.scale * math.sqrt(0.5) + reach.shift) + 1e-9


def test_every_step_with_a_matrix_is_asked() -> None:
    asked = {step(text).op for text in STEPS}
    unknown = {"perspective", "random_perspective"}  # divide, and are read by other arithmetic
    matrices = {name for name, op in transforms().items() if issubclass(op, GeometricTransform)}
    alike = {"rotate_90", "transpose", "random_transpose"}  # quarter turns, as `random_d4`
    assert matrices <= asked | unknown | alike


factors = st.floats(0.05, 20)


@given(st.tuples(factors, factors), st.tuples(st.floats(-2, 2), st.floats(-2, 2)))
def test_a_product_in_either_order(factor: tuple[float, float], shift: tuple[float, float]) -> None:
    zoom, move = Reach.of_zoom((min(factor), max(factor))), Reach.of_move(shift, shift)
    assert zoom.then(move) == move.then(zoom)
    assert zoom.then(move).scale == max(1.0, 1 / min(factor))


def test_what_is_too_far() -> None:
    small = [Reach(), Reach.of_slant((-10, 10)), Reach.of_zoom((0.8, 1.2)), Reach.of_move((0.1, 0.1))]
    assert stays_within(small, 15, 32)
    assert not stays_within([*small, None], 15, 32)
    assert not stays_within([*small, Reach.of_zoom((0.05, 1))], 15, 32)
    assert not stays_within([*small, Reach.of_move((31, 31))], 15, 32)
    assert not stays_within([Reach.of_zoom((0, 1))], 15, 32)
