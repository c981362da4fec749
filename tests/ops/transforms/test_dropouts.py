"""Holes in images against NumPy, from the numbers that the steps say they drew; and masks beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pipegen.errors import OpError
from pipegen.ops.registry import transforms
from pipegen.types import FeatureType, Interval

if TYPE_CHECKING:
    from collections.abc import Iterator

Array = np.ndarray[Any, Any]

H, W = 37, 53
MASK = FeatureType("mask", "uint8", (H, W, 1), Interval(0, 9), classes=3, ignore=9)


def effect(name: str, given: dict[str, Any], count: int = 4) -> Iterator[tuple[Array, dict[str, Any]]]:
    """Which pixels of each of some images are replaced, and what was drawn."""
    import tensorflow as tf

    step: Any = transforms()[name].model_validate(given)
    u = tf.constant(np.random.default_rng(0).random((count, step.num_draws())))
    images = tf.fill([count, H, W, 1], tf.constant(200, tf.uint8))
    params = step.parameters(u, H, W)
    done = step.apply(images, *params).numpy()
    drawn = {k: v.numpy() for k, v in step.drawn_on(u, (H, W, 1)).items()}
    for i, image in enumerate(done[..., 0]):
        assert set(np.unique(image)) <= {0, 200}
        yield image == 0, {k: v[i] for k, v in drawn.items()}


@pytest.mark.tf
@pytest.mark.parametrize(("name", "given"), [
    ("random_grid_mask", {"unit": [0.2, 0.6], "degrees": [-90, 90]}),
    pytest.param("random_coarse_dropout", {"holes": [30, 40], "height": [0.02, 0.2], "width": [0, 0.1]}, marks=pytest.mark.nightly),
    pytest.param("random_grid_dropout", {"cells": [4, 7], "ratio": 0.4}, marks=pytest.mark.nightly),
    pytest.param("random_grid_mask", {"unit": [0.2, 0.6]}, marks=pytest.mark.nightly),
])  # fmt: skip
def test_holes_are_the_same_compiled_or_not(name: str, given: dict[str, Any]) -> None:
    import tensorflow as tf

    step: Any = transforms()[name].model_validate(given)
    images = tf.fill([4, H, W, 1], tf.constant(200, tf.uint8))
    params = step.parameters(tf.constant(np.random.default_rng(0).random((4, step.num_draws()))), H, W)
    compiled = tf.function(step.apply, jit_compile=True, autograph=False)
    np.testing.assert_array_equal(compiled(images, *params).numpy(), step.apply(images, *params).numpy())


@pytest.mark.tf
def test_coarse_dropout_is_the_rectangles_that_were_drawn() -> None:
    counts = set()
    for gone, drawn in effect("random_coarse_dropout", {"holes": [30, 40], "height": [0.02, 0.2], "width": [0, 0.1]}, 12):
        expected = np.zeros((H, W), bool)
        for top, left, height, width in zip(*(drawn[k] for k in ("top", "left", "height", "width")), strict=True):
            assert 0 <= top <= H - height
            assert 0 <= left <= W - width
            assert 0 <= height <= round(0.2 * H)
            assert 0 <= width <= round(0.1 * W)
            assert (height == 0) == (width == 0)
            expected[top : top + height, left : left + width] = True
        np.testing.assert_array_equal(gone, expected)
        counts.add((drawn["height"] > 0).sum())
    assert counts <= {*range(30, 41)}
    assert len(counts) > 3


@pytest.mark.tf
def test_grid_dropout_is_a_hole_in_each_cell() -> None:
    places = set()
    for gone, drawn in effect("random_grid_dropout", {"cells": [4, 7], "ratio": 0.4}):
        expected = np.zeros((H, W), bool)
        for i, (top, left) in enumerate(zip(drawn["top"], drawn["left"], strict=True)):
            (y0, y1), (x0, x1) = (i // 7 * H // 4, (i // 7 + 1) * H // 4), (i % 7 * W // 7, (i % 7 + 1) * W // 7)
            height, width = int(0.4 * (y1 - y0)), int(0.4 * (x1 - x0))
            assert y0 <= top <= y1 - height
            assert x0 <= left <= x1 - width
            expected[top : top + height, left : left + width] = True
            places.add((top - y0, left - x0))
        np.testing.assert_array_equal(gone, expected)
    assert len(places) > 15


@pytest.mark.tf
def test_a_grid_mask_is_the_squares_of_a_grid() -> None:
    y, x = np.mgrid[:H, :W]
    for gone, drawn in effect("random_grid_mask", {"unit": [0.2, 0.6]}):
        unit, side = drawn["unit"], drawn["side"]
        assert side == np.rint(0.4 * unit)
        np.testing.assert_array_equal(gone, ((y - drawn["top"]) % unit < side) & ((x - drawn["left"]) % unit < side))
    for gone, drawn in effect("random_grid_mask", {"unit": [0.2, 0.6], "degrees": [-90, 90]}):
        unit, side, angle = drawn["unit"], drawn["side"], np.radians(drawn["degrees"])
        across, down = x + 0.5 - W / 2, y + 0.5 - H / 2
        u = (np.cos(angle) * across - np.sin(angle) * down + W / 2 - drawn["left"]) % unit
        v = (np.sin(angle) * across + np.cos(angle) * down + H / 2 - drawn["top"]) % unit
        np.testing.assert_array_equal(gone, (u < side) & (v < side))


@pytest.mark.tf
@pytest.mark.parametrize(("name", "fill"), [
    ("random_erasing", 1), ("random_coarse_dropout", "ignore"), ("random_grid_dropout", None),
    pytest.param("random_grid_mask", 2, marks=pytest.mark.nightly),
])  # fmt: skip
def test_masks_are_filled_where_that_is_asked_for(name: str, fill: Any) -> None:
    import pipegen

    size, n = 24, 6
    masks = np.random.default_rng(1).integers(0, 3, (n, size, size)).astype(np.uint8)
    feature = {"kind": "mask", "classes": 3, "ignore": 9, "of": "image"}
    given = {"random_coarse_dropout": {"holes": 4}, "random_grid_dropout": {"cells": 3}}
    spec = {
        "pipegen": 1,
        "source": {"arrays": {"features": {"image": {"kind": "image"}, "mask": feature}}},
        "splits": {"parts": {"train": n}},
        "transforms": [{name: {**given.get(name, {}), "fill": {"constant": 5}, **({} if fill is None else {"mask_fill": fill})}}],
        "batch": {"size": n, "remainder": "keep"},
        "shuffle": "none",
        "output": {"x": "image", "y": "mask"},
        "runtime": {"jit": "never"},
    }
    data = {"image": np.full((n, size, size, 3), 200, np.uint8), "mask": masks}
    ((image, mask),) = pipegen.build(spec, data=data).train
    gone = image.numpy()[..., :1] == 5
    assert 0 < gone.mean() < 1
    left = masks[..., None] if fill is None else np.where(gone, 9 if fill == "ignore" else fill, masks[..., None])
    np.testing.assert_array_equal(mask.numpy(), left, err_msg=name)


@pytest.mark.parametrize(("given", "code", "advice"), [
    ({}, "PG203", "mask_fill: ignore"),
    ({"mask_fill": 3}, "PG207", "from 0 to 2"), ({"mask_fill": 9}, None, ""), ({"mask_fill": 2}, None, ""),
])  # fmt: skip
def test_a_mask_is_filled_with_a_class(given: dict[str, Any], code: str | None, advice: str) -> None:
    step = transforms()["random_erasing"].model_validate(given)
    if code is None:
        assert step.on(MASK).infer(MASK).dtype == "uint8"
        return
    with pytest.raises(OpError) as caught:
        step.on(MASK).infer(MASK)
    assert caught.value.code == code
    assert advice in str(caught.value.help)


def test_holes_that_leave_little_are_odd() -> None:
    step = transforms()["random_coarse_dropout"]
    (lint,) = step.model_validate({"holes": [60, 90]}).lints(MASK)
    assert lint.code == "PG510"
    assert "82%" in lint.message
    assert step.model_validate({"holes": [60, 60]}).lints(MASK) == ()


def test_equal_meanings_are_equal() -> None:
    step = transforms()["random_coarse_dropout"]
    assert step.model_validate({"holes": 4}).meaning() == step.model_validate({"holes": [4, 4]}).meaning()
    with pytest.raises(ValueError, match="is above"):
        step.model_validate({"holes": [5, 4]})
    grid = transforms()["random_grid_dropout"]
    assert grid.model_validate({"cells": 4}).meaning() == grid.model_validate({"cells": [4, 4]}).meaning()
