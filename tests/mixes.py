"""Mixes for tests: two folders in which every image is a class of its own, so that the label says which example it is."""

from __future__ import annotations

from pipes import SIZE, picture
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.api.pipeline import Pipeline

PHOTOS, DRAWINGS = 11, 5
COMMON: list[Any] = [{"resize": {"size": SIZE}}, "random_flip", {"random_rotation": {"degrees": 20}}]
OWN: dict[str, list[Any]] = {"photos": [], "drawings": [{"random_invert": {"probability": 0.5}}]}


def write_parts(root: Path) -> Path:
    """Eleven photographs and five drawings, of many sizes."""
    from PIL import Image

    for part, count, first in (("photos", PHOTOS, 0), ("drawings", DRAWINGS, 50)):
        for i in range(count):
            folder = root / part / f"{part}{i:02d}"
            folder.mkdir(parents=True)
            Image.fromarray(picture(first + i, 30 + 3 * (i % 5), 34 + 2 * (i % 7))).save(folder / "image.png")
    return root


def part(root: Path, name: str, weight: Any, **more: Any) -> dict[str, Any]:
    """One part, with its own steps."""
    return {"weight": weight, "source": {"image_folder": {"path": str(root / name)}}, "transforms": OWN.get(name, []), **more}


def mixed(root: Path, epoch: Any = 25, weights: tuple[Any, Any] = (0.8, 0.2), **own: Any) -> dict[str, Any]:
    """A spec of both parts."""
    parts = {name: part(root, name, weight) for name, weight in zip(("photos", "drawings"), weights, strict=True)}
    return {
        "pipegen": 1,
        "source": {"mix": {"epoch": epoch, "parts": parts}},
        "transforms": COMMON,
        "batch": {"size": 8},
        **own,
    }


def build(spec: dict[str, Any], **runtime: Any) -> Pipeline:
    """A running pipeline; plain TensorFlow kernels and no cache unless told otherwise, so that tests are quick."""
    import pipegen

    return pipegen.build(spec, runtime={"jit": "never", "cache": "none", **runtime})


def visits(pipe: Any, epoch: int) -> list[tuple[str, int]]:
    """The key of each example of an epoch in their order, and the pass of its part that it is of."""
    import tensorflow as tf

    order = pipe._engine.executor("train").order
    records, cycles, _ = order.found(epoch, tf.range(order.num_examples, dtype=tf.int64))
    keys = pipe._manifest.keys("train")
    return [(keys[int(r)], int(c)) for r, c in zip(records.numpy(), cycles.numpy(), strict=True)]


def pixels(dataset: Any) -> list[tuple[int, np.ndarray[Any, Any]]]:
    """The label of each example and its pixels, in their order."""
    return [(int(label), image) for x, y in dataset for image, label in zip(x.numpy(), y.numpy(), strict=True)]
