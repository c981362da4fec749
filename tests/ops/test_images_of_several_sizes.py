"""Every step on images of several sizes, before any step makes them alike, beside boxes, keypoints, masks and maps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

import pipegen
from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.registry import transforms
from pipegen.ops.step_bases import CropTransform

pytestmark = pytest.mark.tf

COUNT = 6
STEPS = [name for name, op in transforms().items() if not issubclass(op, (DecodeTransform, CombiningTransform))]


@pytest.fixture(scope="module", name="photos")
def _photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of images of two sizes, each with a mask, a map, boxes and points."""
    folder, rng, rows = tmp_path_factory.mktemp("photos"), np.random.default_rng(0), []
    for i in range(COUNT):
        height, width = (40, 48) if i % 2 else (56, 44)
        pixels = {"image": rng.integers(0, 256, (height, width, 3), np.uint8), "mask": rng.integers(0, 3, (height, width), np.uint8)}
        pixels["depth"] = rng.integers(0, 256, (height, width), np.uint8)
        for name, values in pixels.items():
            Image.fromarray(values).save(folder / f"{name}-{i}.png")
        boxes = [[4 + k, 5, 20 + k, 30] for k in range(1 + i % 3)]
        points = [[10.0 + k, 20.0, 2.0] for k in range(1 + i % 3)]
        rows.append({**{name: f"{name}-{i}.png" for name in pixels}, "boxes": boxes, "points": points})
    (folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


KINDS: dict[str, dict[str, Any]] = {
    "mask": {"kind": "mask", "column": "mask", "classes": 3},
    "depth": {"kind": "dense", "column": "depth"},
    "boxes": {"kind": "boxes", "column": "boxes"},
    "points": {"kind": "keypoints", "column": "points"},
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", STEPS)
def test_a_step_before_the_resize_gives_what_it_gives_in_any_batch(name: str, photos: Path) -> None:
    """With every kind that `validate` lets pass beside it, one after the other, and with all of these at once."""
    import tensorflow as tf

    written = yaml.safe_load(transforms()[name].examples[0].yaml)
    if isinstance(written, dict) and issubclass(transforms()[name], CropTransform):
        written[name] = {key: 24 if key == "size" else value for key, value in written[name].items()}  # none is larger than an image
    allowed: dict[str, dict[str, Any]] = {}

    def build(kinds: dict[str, Any], size: int) -> pipegen.Pipeline:
        features = {"image": {"kind": "image", "column": "image"}, **kinds}
        valid = [f"{kind}_valid" for kind in ("boxes", "points") if kind in kinds]
        spec = {
            "pipegen": 1,
            "source": {"jsonl": {"path": str(photos / "t.jsonl"), "features": features}},
            "transforms": [written, {"resize": {"size": 24}}],
            "batch": {"size": size, "remainder": "keep"},
            "shuffle": "none",
            "output": {"x": "image", "y": [*kinds, *valid] or "image"},
        }
        return pipegen.build(spec, runtime={"jit": "never"})

    for kind, feature in KINDS.items():
        try:
            build({kind: feature}, 2)
        except pipegen.SpecError:
            continue
        allowed[kind] = feature
    for kinds in ({}, *({kind: feature} for kind, feature in allowed.items()), allowed):
        try:
            pipes = [build(kinds, size) for size in (2, 3)]
        except pipegen.SpecError:
            continue
        rows = []
        for pipe in pipes:
            batches = [[np.asarray(part) for part in tf.nest.flatten(batch)] for batch in pipe.dataset("train", epoch=0)]
            rows.append([[part[i] for part in batch] for batch in batches for i in range(len(batch[0]))])
        assert len(rows[0]) == len(rows[1]) == COUNT
        for one, other in zip(*rows, strict=True):
            for part, again in zip(one, other, strict=True):
                np.testing.assert_array_equal(part, again)
