"""An array beside an image that a step moves is a warning where it may have a value for each pixel, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from pipegen.phases.compilation import inspect


def warned(shape: list[int], *steps: Any, output: Any = None) -> bool:
    features = {
        "image": {"kind": "image", "path": "a"},
        "depth": {"kind": "array", "path": "b", "format": "npy", "shape": shape},
    }
    spec = {"pipegen": 1, "source": {"files": {"features": features}}, "transforms": [*steps, {"resize": {"size": 64}}]}
    found = inspect(spec | {"output": output or {"x": "image", "y": "depth"}})
    assert not found.diagnostics.has_errors, found.diagnostics
    return any(d.code == "PG628" for d in found.diagnostics)


@pytest.mark.parametrize(
    "step",
    [
        {"random_crop": {"size": 16}},
        "random_flip",
        "random_d4",
        {"random_rotation": {"degrees": 10}},
        {"random_resized_crop": {"size": 64}},
        {"random_translation": {"x": 0.1}},
        {"random_elastic": {"alpha": 4.0, "sigma": 4.0}},
        {"center_crop": {"size": 16}},
        {"one_of": {"steps": ["random_flip", {"random_brightness": {"factor": 0.2}}]}},
    ],
    ids=str,
)
def test_steps_that_move_images(step: Any) -> None:
    before = [] if "crop" in str(step) else [{"resize": {"size": 32}}]
    assert warned([32, 32, 2], *before, step)


@pytest.mark.parametrize(
    "step", [{"random_brightness": {"factor": 0.2}}, {"gaussian_blur": {"sigma": 1.0}}, {"rescale": {"scale": 0.5}}], ids=str
)
def test_steps_that_move_nothing(step: Any) -> None:
    before = [] if "rescale" in str(step) else [{"resize": {"size": 32}}]
    assert not warned([32, 32, 2], *before, step)


@pytest.mark.parametrize(
    ("shape", "expected"), [([20, 30], True), ([2, 20, 30], True), ([3, 3], False), ([3, 4], False), ([512], False), ([77, 768], False)]
)
def test_shapes_that_can_be_those_of_an_image(shape: list[int], expected: bool) -> None:
    assert warned(shape, {"random_crop": {"size": 16}}) is expected


def test_an_array_that_the_model_does_not_receive() -> None:
    assert not warned([20, 30], {"random_crop": {"size": 16}}, output={"x": "image", "y": None})
