"""Where rows stay rows, reading rows and then columns gives the bits of reading four neighbours: of bytes at once, of others as ever."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from pipegen.backend.kernels.chain import lower_kernel
from pipegen.backend.kernels.lower import apply_stage
from pipegen.backend.kernels.warp import fixed_matrix, locate, locate_lines, read, weigh_columns, weigh_rows
from pipegen.ops.arguments.geometry import ConstantFill
from pipegen.ops.registry import transforms
from pipegen.ops.stage import StepRef
from pipegen.plan.nodes import Kernel
from pipegen.plan.stages import Compose, Resample, Warp
from pipegen.types import BYTE_RANGE, ElementType, FeatureType

pytestmark = pytest.mark.tf

FILLS = ("reflect", "nearest", "wrap", "constant")
N, CANVAS, SIZE = 6, (23, 31), (17, 40)


def matrices(seed: int) -> Any:
    """Matrices that scale, mirror and shift: also far outside, by whole numbers, and not at all."""
    rng = np.random.default_rng(seed)
    made = np.zeros((N, 3, 3))
    made[:, 0, 0], made[:, 1, 1] = rng.uniform(-3, 3, (2, N))
    made[:, 0, 2], made[:, 1, 2] = rng.uniform(-60, 60, (2, N))
    made[0], made[1] = np.eye(3), np.round(made[1])
    made[:, 2, 2] = 1
    return tf.constant(made)


@pytest.mark.nightly
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(FILLS), st.sampled_from((1, 3)))
def test_every_bit_is_that_of_four_neighbours(seed: int, fill: str, channels: int) -> None:
    image = tf.constant(np.random.default_rng(seed).integers(0, 256, (N, *CANVAS, channels), np.uint8))
    fixed = fixed_matrix(matrices(seed), "bilinear")
    located = locate(fixed, CANVAS, SIZE, fill=fill, interpolation="bilinear", narrow=False)
    row, down, column, across = locate_lines(fixed, CANVAS, SIZE, fill)
    found = weigh_columns(weigh_rows(image, row, down, fill, 37.0), column, across)
    np.testing.assert_array_equal(found, read(image, located, ConstantFill(constant=37.0) if fill == "constant" else fill))


def stages(interpolation: str) -> tuple[Warp, list[Any]]:
    own = {"fill": "reflect", "interpolation": interpolation}
    zoom = StepRef(transforms()["random_zoom"](x=0.4, y=0.3, **own), "zoom", ("transforms", 0), 0, False)
    move = StepRef(transforms()["random_translation"](x=0.3, y=0.2, **own), "move", ("transforms", 1), zoom.num_draws, False)
    flip = StepRef(transforms()["random_flip"](**own), "flip", ("transforms", 2), zoom.num_draws + move.num_draws, False)
    refs = (zoom, move, flip)
    how = "reflect", interpolation, CANVAS, CANVAS
    apart = [Compose("image", ref, CANVAS, i == 0) for i, ref in enumerate(refs)]
    return Warp("image", refs, *how, False), [*apart, Resample("image", "reflect", interpolation, CANVAS)]


OTHERS = [pytest.param(*pair, marks=pytest.mark.nightly) for pair in (("float32", "bilinear"), ("uint8", "nearest"), ("uint8", "bicubic"))]


@pytest.mark.nightly
@pytest.mark.parametrize(("dtype", "interpolation"), [("uint8", "bilinear"), *OTHERS])
def test_a_fused_segment_is_what_its_steps_are(dtype: str, interpolation: str) -> None:
    """Compiled, at two sizes of the batch; masks are read at the nearest pixel."""
    warp, apart = stages(interpolation)
    assert warp.keeps_lines() == (interpolation == "bilinear")
    t = ElementType((("image", FeatureType("image", dtype, (*CANVAS, 3), BYTE_RANGE)),), N)
    kernel = lower_kernel(Kernel(t, (warp,), True), t, N, "always")
    rng = np.random.default_rng(1)
    for rows in (N, 4):
        images, draws = rng.integers(0, 256, (rows, *CANVAS, 3)).astype(dtype), rng.random((rows, 8))
        features = {"image": tf.constant(images), "@draws": tf.constant(draws)}
        found = kernel(dict(features))["image"]
        for stage in apart:
            apply_stage(stage, features)
        np.testing.assert_array_equal(found, features["image"])


def test_a_turned_image_has_no_such_lines() -> None:
    turn = StepRef(transforms()["random_rotation"](degrees=9), "turn", ("transforms", 0), 0, False)
    assert not Warp("image", (turn,), "reflect", "bilinear", CANVAS, CANVAS, False).keeps_lines()
