"""The command: `python -m benchmarks.boxes`. What boxes and keypoints add to the cost of the geometric recipe.

The same images in memory go through the same steps without anything on them, with boxes and their classes, and with keypoints, in turns;
what is counted is processor time of all threads, to which other programs add least. Nothing is decoded there, so that what is added
shows. It is set against the same steps in memory, and against the whole recipe: the same images as JPEG files, in the same turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

import pipegen

HEIGHT, WIDTH, IMAGES = 375, 500, 256
STEPS: list[Any] = [
    {"resize": {"size": 224, "antialias": False}},
    {"random_affine": {"degrees": 20, "x": 0.1, "y": 0.1, "factor": 0.2, "fill": {"constant": 0}}},
    "random_flip",
    {"random_brightness": {"factor": 0.2}},
]
FEATURES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "boxes": {"boxes": {"kind": "boxes", "max": 20}, "classes": {"kind": "label", "with": "boxes", "classes": 5}},
    "keypoints": {"points": {"kind": "keypoints", "names": [f"joint_{i}" for i in range(17)]}},
}
FILES = "nothing, from files"


def made(images: int = IMAGES) -> dict[str, Any]:
    """Images of soft noise, as JPEG files about as large as photographs, each with up to 20 boxes of 5 classes and 17 keypoints."""
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 21, images)
    corners = [rng.uniform(0, 250, (n, 2)) for n in counts]
    return {
        "image": np.stack([_soft(rng) for _ in range(images)]),
        "boxes": [np.concatenate([at, at + rng.uniform(20, 120, at.shape)], 1).astype(np.float32) for at in corners],
        "classes": [rng.integers(0, 5, n) for n in counts],
        "points": rng.uniform(0, 370, (images, 17, 2)).astype(np.float32),
    }


def _soft(rng: np.random.Generator) -> Any:
    """One image: large spots, and a grain over them."""
    spots = Image.fromarray(rng.integers(0, 256, (24, 32, 3), np.uint8)).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
    return np.clip(np.asarray(spots) + rng.normal(0, 5, (HEIGHT, WIDTH, 3)), 0, 255).astype(np.uint8)


def from_files(folder: Path, data: dict[str, Any], batch: int) -> Any:
    """The pipeline of the recipe over the images as JPEG files."""
    (folder / "images").mkdir()
    for i, image in enumerate(data["image"]):
        Image.fromarray(image).save(folder / "images" / f"{i:05}.jpg", quality=90)
    spec = {
        "pipegen": 1,
        "source": {"image_folder": {"path": str(folder)}},
        "splits": {"parts": {"train": len(data["image"])}},
        "transforms": STEPS,
        "batch": {"size": batch},
        "output": {"x": "image"},
        "runtime": {"cache": "none"},
    }
    return pipegen.build(spec)


def built(name: str, data: dict[str, Any], batch: int) -> Any:
    """The pipeline of the recipe with what one of `FEATURES` puts on its images."""
    features = {"image": {"kind": "image", "size": [HEIGHT, WIDTH]}} | FEATURES[name]
    targets = {other: other for other in FEATURES[name]}
    spec = {
        "pipegen": 1,
        "source": {"arrays": {"features": features}},
        "splits": {"parts": {"train": len(data["image"])}},
        "transforms": STEPS,
        "batch": {"size": batch},
        "output": {"x": "image"} | ({"y": targets} if targets else {}),
    }
    return pipegen.build(spec, data={other: data[other] for other in features})


def measured(data: dict[str, Any], batch: int, turns: int) -> dict[str, list[float]]:
    """Milliseconds of processor time for an image in each turn, after all has been compiled and run."""
    with tempfile.TemporaryDirectory() as folder:
        pipes = {name: built(name, data, batch) for name in FEATURES} | {FILES: from_files(Path(folder), data, batch)}
        datasets = {name: pipe.dataset("train", epoch=0) for name, pipe in pipes.items()}
        found: dict[str, list[float]] = {name: [] for name in datasets}
        for turn in range(turns + 1):
            for name, dataset in datasets.items():
                before = time.process_time()
                for _ in dataset:
                    pass
                if turn:
                    found[name].append((time.process_time() - before) * 1e3 / len(data["image"]))
    return found


def main(argv: list[str] | None = None) -> None:
    """Print what an image costs with each, and how much of the whole recipe is added to it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.boxes", description="Measure what boxes and keypoints cost.")
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--turns", type=int, default=9)
    given = parser.parse_args(argv)
    found = measured(made(given.images), given.batch, given.turns)
    table = Table("on the images", "ms an image", "of the recipe from files", "of that in memory")
    for name, times in found.items():
        added = [
            statistics.median((own - plain) / whole for own, plain, whole in zip(times, found["nothing"], found[base], strict=True))
            for base in (FILES, "nothing")
        ]
        table.add_row(name, f"{statistics.median(times):.3f}", *(f"{a:+.1%}" if name not in ("nothing", FILES) else "" for a in added))
    Console().print(table)


if __name__ == "__main__":
    main()
