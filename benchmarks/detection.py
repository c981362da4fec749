"""The command: `python -m benchmarks.detection FOLDER`. A recipe of detection, beside Albumentations in PyTorch's `DataLoader`.

Photographs with up to 20 boxes each go through the same steps: large-scale jitter to 224×224 pixels, a mirror, colour jitter, and
normalise, in batches of 64 with their boxes padded. Both have a turn in each repeat; the ratio is taken within it. The peer shows one
of 43 sizes where pipegen draws any, since Albumentations would resize twice otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

import pipegen
from benchmarks import steps as s
from benchmarks.measure import ratio
from benchmarks.systems.base import cores
from benchmarks.systems.torch_loader import _epochs

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE, MOST, CLASSES = 224, 20, 5
SCALE = (0.5, 2.0)
PEER = "DataLoader + Albumentations"
TARGET = 1.5
"""The least ratio to the peer that pipegen is meant to reach."""


def made_boxes(files: list[Path]) -> list[tuple[Any, Any]]:
    """Makes boxes `(n, 4)`, as left, top, right and bottom in pixels, and their classes `(n,)` for each image; seeded."""
    rng = np.random.default_rng(0)
    found = []
    for file in files:
        with Image.open(file) as image:
            width, height = image.size
        count = int(rng.integers(1, MOST + 1))
        near = rng.uniform(0, 0.7, (count, 2))
        far = near + rng.uniform(0.05, 0.3, (count, 2))
        found.append((np.concatenate([near, far], 1) * [width, height, width, height], rng.integers(0, CLASSES, count)))
    return found


def spec_of(folder: Path, files: list[Path], boxes: list[tuple[Any, Any]], to: Path, batch: int) -> dict[str, Any]:
    """Writes the annotations, and returns the spec of the recipe."""
    images, annotations = [], []
    for i, (file, (corners, classes)) in enumerate(zip(files, boxes, strict=True)):
        with Image.open(file) as image:
            width, height = image.size
        images.append({"id": i, "file_name": file.relative_to(folder).as_posix(), "width": width, "height": height})
        for (left, top, right, bottom), label in zip(corners.tolist(), classes.tolist(), strict=True):
            box = [left, top, right - left, bottom - top]
            annotations.append({"id": len(annotations), "image_id": i, "category_id": label, "bbox": box})
    categories = [{"id": i, "name": f"kind {i}"} for i in range(CLASSES)]
    (to / "boxes.json").write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    jitter = s.ColorJitter()
    return {
        "pipegen": 1,
        "source": {"coco": {"images": str(folder), "annotations": str(to / "boxes.json")}},
        "transforms": [
            {"scale_jitter": {"size": SIZE, "scale": list(SCALE)}},
            "random_flip",
            {
                "random_color_jitter": {
                    "brightness_factor": jitter.brightness,
                    "contrast_factor": jitter.contrast,
                    "saturation_factor": jitter.saturation,
                    "hue_degrees": jitter.hue,
                }
            },
            {"rescale": {"to": [0, 1]}},
            {"normalize": {"mean": list(s.Normalise().mean), "std": list(s.Normalise().std)}},
        ],
        "batch": {"size": batch},
        "output": {"x": "image", "y": {"boxes": "boxes", "labels": "labels", "there": "boxes_valid"}},
        "runtime": {"cache": "none"},
    }


class Examples:
    """A map-style dataset: image `i` and its boxes, transformed by Albumentations."""

    def __init__(self, files: list[str], boxes: list[tuple[Any, Any]]) -> None:
        os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask the network for a newer version
        import albumentations as a

        jitter, normal = s.ColorJitter(), s.Normalise()
        around = [(1 - m, 1 + m) for m in (jitter.brightness, jitter.contrast, jitter.saturation)]
        sides = range(int(SIZE * SCALE[0]), int(SIZE * SCALE[1]) + 1, 8)
        self.files, self.boxes = files, boxes
        self.transform = a.Compose(
            [
                a.LongestMaxSize(list(sides)),
                a.PadIfNeeded(SIZE, SIZE, position="top_left"),
                a.RandomCrop(SIZE, SIZE),
                a.HorizontalFlip(),
                a.ColorJitter(*around, hue=(-jitter.hue / 360, jitter.hue / 360), p=1.0),
                a.Normalize(normal.mean, normal.std),
            ],
            bbox_params=a.BboxParams("pascal_voc", label_fields=["labels"], clip=True),
        )

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, i: int) -> tuple[Any, Any, Any]:
        import cv2

        cv2.setNumThreads(0)
        image = cv2.cvtColor(cv2.imread(self.files[i]), cv2.COLOR_BGR2RGB)
        made = self.transform(image=image, bboxes=self.boxes[i][0], labels=self.boxes[i][1])
        return np.asarray(made["image"], np.float32), made["bboxes"], made["labels"]


def padded(examples: list[tuple[Any, Any, Any]]) -> tuple[Any, dict[str, Any]]:
    """A batch of examples, with their boxes padded."""
    import torch

    boxes, labels = np.zeros((len(examples), MOST, 4), np.float32), np.zeros((len(examples), MOST), np.int64)
    for i, (_, corners, classes) in enumerate(examples):
        count = len(corners)
        if count:
            boxes[i, :count], labels[i, :count] = corners, classes
    images = torch.from_numpy(np.stack([image for image, _, _ in examples]))
    return images, {"boxes": torch.from_numpy(boxes), "labels": torch.from_numpy(labels)}


def peer(files: list[Path], boxes: list[tuple[Any, Any]], batch: int) -> Iterator[Any]:
    """The batches of the peer, epoch after epoch.

    Raises:
        ImportError: Where PyTorch or Albumentations is not installed.
    """
    import torch.utils.data

    return _epochs(
        torch.utils.data.DataLoader(
            Examples([str(file) for file in files], boxes),
            batch_size=batch,
            shuffle=True,
            drop_last=True,
            num_workers=cores(),
            persistent_workers=True,
            collate_fn=padded,
            multiprocessing_context="forkserver",  # a fork of a process that runs TensorFlow may hang
        )
    )


def rate(batches: Iterator[Any], batch: int, seconds: float) -> float:
    """Images a second over whole batches, after a second in which what was ready beforehand is used up."""
    end = time.perf_counter() + 1
    while time.perf_counter() < end:
        next(batches)
    start, count = time.perf_counter(), 0
    while (now := time.perf_counter()) < start + seconds:
        next(batches)
        count += 1
    return count * batch / (now - start)


def main(argv: list[str] | None = None) -> None:
    """Print the rates of both, and their ratio."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection", description="Measure a recipe of detection.")
    parser.add_argument("folder", type=Path, help="a folder of JPEG photographs, in any folders below it")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--batch", type=int, default=64)
    given = parser.parse_args(argv)
    folder = given.folder.resolve()
    files = sorted(folder.rglob("*.jpg"))
    boxes = made_boxes(files)
    rates: dict[str, list[float]] = {"pipegen": [], PEER: []}
    console = Console()
    with tempfile.TemporaryDirectory() as to:
        pipe = pipegen.build(spec_of(folder, files, boxes, Path(to), given.batch))
        for turn in range(given.repeats):
            for name in (list(rates), list(reversed(rates)))[turn % 2]:
                try:
                    batches = iter(pipe.train.repeat()) if name == "pipegen" else peer(files, boxes, given.batch)
                except ImportError as error:
                    console.print(f"{PEER}: left out, since it does not import: {error}")
                    continue
                rates[name].append(rate(batches, given.batch, given.seconds))
                del batches
    table = Table("system", "images/s", "pipegen / it")
    for name, found in rates.items():
        of = ratio(rates["pipegen"], found)
        table.add_row(name, f"{statistics.median(found):,.0f}" if found else "", f"{of:.2f}" if of and name != "pipegen" else "")
    console.print(table)
    reached = ratio(rates["pipegen"], rates[PEER])
    if reached is not None:
        console.print(f"target: {TARGET} ×, {'reached' if reached >= TARGET else 'not reached'}")


if __name__ == "__main__":
    main()
