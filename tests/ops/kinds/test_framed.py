"""Points follow the steps that pad, enlarge and resize their image."""

from __future__ import annotations

from typing import Any

import pytest
from open_scenes import spec, stream
from test_open_set import check_places

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("open_set")]

ONE_BY_ONE: list[Any] = [
    {"random_zoom_out": {"canvas": [1, 1.5], "probability": 0.7}},
    {"random_shorter_side": {"between": [40, 60], "longer_side": 80}},
    {"scale_jitter": {"size": [64, 80], "scale": [0.8, 1.2]}},
]
BATCHED: list[Any] = [
    {"random_flip": {"fill": {"constant": 0}}},
    {"random_crop": {"size": [40, 50], "padding": 6}},
    {"resize": {"shorter_side": 60, "longer_side": 70}},
    {"pad": {"divisor": 32}},
]


@pytest.mark.parametrize("steps", [ONE_BY_ONE, BATCHED], ids=["single", "batch"])
def test_points_follow(steps: list[Any]) -> None:
    import pipegen

    pipe = pipegen.build(spec(steps), runtime={"jit": "never", "cache": "none"})
    assert check_places(pipe, stream(pipe), 0.35) >= 8
