"""Specs of scenes with points on them, and what their pipelines give."""

from __future__ import annotations

from typing import Any

import numpy as np

MOST = 5
FILL = {"fill": {"constant": 0}}
STEPS: list[Any] = [
    {"random_flip": FILL},
    {"random_rotation": {"degrees": 30, **FILL}},
    {"random_perspective": {"x": 0.1, "y": 0.1, "probability": 0.5, **FILL}},
    {"random_crop": {"size": [32, 40]}},
    {"random_brightness": {"factor": [1, 1]}},
    {"resize": {"size": [48, 50]}},
]


def spec(steps: list[Any], *, size: int = 4, **source: Any) -> dict[str, Any]:
    return {
        "pipegen": 1,
        "source": {"scenes": source},
        "splits": {"parts": {"train": 10, "validation": 2}},
        "shuffle": "none",
        "transforms": steps,
        "batch": {"size": size, "remainder": "keep"},
        "output": {"x": "image", "y": {"points": "points", "there": "points_valid"}},
    }


def stream(pipe: Any, split: str = "train", epoch: int = 0) -> tuple[Any, Any, Any]:
    got = [(x.numpy(), y["points"].numpy(), y["there"].numpy()) for x, y in pipe.dataset(split, epoch=epoch)]
    return tuple(np.concatenate(part) for part in zip(*got, strict=True))
