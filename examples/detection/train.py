"""Train a small network to say where things lie and what they are, on photos and boxes that move together.

Run it from any folder: `python examples/detection/train.py`; `--help` lists what can be changed. It needs scikit-image, whose photographs
the scenes are made of.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np
from keras import ops
from make_scenes import CLASSES, write_scenes

import pipegen

HERE = Path(__file__).resolve().parent
SCENES = {"train": 320, "validation": 64}
HEIGHT, WIDTH = 96, 128
STRIDE = 8
"""Pixels of the side of a cell: each cell of a grid says what has its centre there, and how large it is."""
COMMON = 32.0
"""Pixels of a usual side, in parts of which a cell says it."""


class Detector(keras.Model):
    """Says for each cell how sure it is of each class, and where the box of what has its centre there lies."""

    def __init__(self) -> None:
        super().__init__()
        layers = keras.layers
        steps: list[Any] = []
        for filters in (16, 32, 48):
            steps += [layers.Conv2D(filters, 3, 2, "same", use_bias=False), layers.BatchNormalization(), layers.ReLU()]
        for _ in range(2):
            steps += [layers.Conv2D(64, 3, padding="same", use_bias=False), layers.BatchNormalization(), layers.ReLU()]
        self.body = keras.Sequential(steps)
        rare = keras.initializers.Constant(-4.0)  # hardly a cell has anything
        self.classes = layers.Conv2D(len(CLASSES), 1, bias_initializer=rare)
        self.sides = layers.Conv2D(4, 1)

    def call(self, image: Any) -> dict[str, Any]:
        features = self.body(image)
        cells = (HEIGHT // STRIDE) * (WIDTH // STRIDE)
        return {
            "classes": ops.reshape(self.classes(features), (-1, cells, len(CLASSES))),
            "sides": ops.reshape(self.sides(features), (-1, cells, 4)),
        }

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True) -> Any:
        """Compares cells with the boxes whose centres lie in them."""
        there = ops.cast(y["there"], "float32")
        cell, sides = placed(y["boxes"])
        cells = ops.shape(y_pred["classes"])[1]
        found = ops.one_hot(cell, cells) * there[..., None]
        classes = ops.one_hot(y["labels"], len(CLASSES))
        wanted = ops.clip(ops.einsum("nic,nik->nck", found, classes), 0, 1)
        sure = keras.losses.BinaryFocalCrossentropy(apply_class_balancing=False, from_logits=True, reduction="none")
        many = ops.maximum(ops.sum(there), 1.0)
        class_loss = ops.sum(sure(wanted[..., None], y_pred["classes"][..., None])) / many
        own = ops.take_along_axis(y_pred["sides"], ops.repeat(cell[..., None], 4, axis=-1), axis=1)
        side_loss = ops.sum(ops.abs(own - sides) * there[..., None]) / many
        return class_loss + side_loss


def placed(boxes: Any) -> tuple[Any, Any]:
    """The cell of each box, and what the cell is to say of it: where its centre lies, and its width and height."""
    centre, size = (boxes[..., 2:] + boxes[..., :2]) / 2, ops.maximum(boxes[..., 2:] - boxes[..., :2], 1.0)
    column, row = (
        ops.cast(ops.clip(ops.floor(centre[..., i] / STRIDE), 0, side // STRIDE - 1), "int32") for i, side in enumerate((WIDTH, HEIGHT))
    )
    corner = ops.cast(ops.stack([column, row], -1) * STRIDE, "float32")
    return row * (WIDTH // STRIDE) + column, ops.concatenate([(centre - corner) / STRIDE, ops.log(size / COMMON)], -1)


def detections(model: keras.Model, images: Any) -> list[list[tuple[float, int, Any]]]:
    """What is found on each image: how sure, the class, and the box; of those that overlap, the surest."""
    told = model(images, training=False)
    scores, sides = np.asarray(ops.sigmoid(told["classes"])), np.asarray(told["sides"])
    cells = np.arange(scores.shape[1])
    corner = np.stack([cells % (WIDTH // STRIDE), cells // (WIDTH // STRIDE)], -1) * STRIDE
    centre, half = corner + sides[..., :2] * STRIDE, np.exp(np.minimum(sides[..., 2:], 3)) * COMMON / 2
    boxes = np.concatenate([centre - half, centre + half], -1)
    found: list[list[tuple[float, int, Any]]] = []
    for own, places in zip(scores, boxes, strict=True):
        kept: list[tuple[float, int, Any]] = []
        for cell, name in sorted(zip(*np.nonzero(own > 0.05), strict=True), key=lambda at: -own[at]):
            if all(other != name or overlap(places[cell], box) < 0.4 for _, other, box in kept):
                kept.append((float(own[cell, name]), int(name), places[cell]))
        found.append(kept)
    return found


def overlap(a: Any, b: Any) -> float:
    """Intersection over union of two boxes."""
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    shared = np.prod(np.maximum(sides, 0))
    return float(shared / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared))


def average_precision(model: keras.Model, pipe: pipegen.Pipeline) -> dict[str, float]:
    """On the validation scenes, of each class: the area below precision over recall, where boxes count that overlap by half."""
    told: dict[int, list[tuple[float, bool]]] = {i: [] for i in range(len(CLASSES))}
    many = np.zeros(len(CLASSES))
    for x, y in pipe.validation:
        for found, boxes, labels, there in zip(
            detections(model, x), *(y[key].numpy() for key in ("boxes", "labels", "there")), strict=True
        ):
            left = [(int(label), box) for label, box in zip(labels[there], boxes[there], strict=True)]
            for label, _ in left:
                many[label] += 1
            for sure, name, box in found:
                hit = next((i for i, (label, true) in enumerate(left) if label == name and overlap(box, true) >= 0.5), None)
                told[name].append((sure, hit is not None))
                if hit is not None:
                    left.pop(hit)
    scores = {}
    for i, name in enumerate(CLASSES):
        hits = np.array([hit for _, hit in sorted(told[i], key=lambda one: -one[0])], float)
        precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
        best = np.maximum.accumulate(precision[::-1])[::-1]
        scores[name] = float((best * hits).sum() / max(many[i], 1))
    return scores


def main() -> float:
    """Make the scenes, build, preview, train, evaluate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20, help="passes over the training scenes (default: 20)")
    parser.add_argument("--folder", type=Path, help="where the scenes are written; by default a folder that is removed afterwards")
    parser.add_argument("--preview", default="scenes-preview.png", help="where the contact sheet is written (default: scenes-preview.png)")
    args = parser.parse_args()
    keras.utils.set_random_seed(0)

    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        write_scenes(folder, SCENES)
        pipe = pipegen.build(HERE / "scenes.pipegen.yaml", params={"data": str(folder)})
        print(pipe)
        pipe.preview("train", rows=4, draws=4).save(args.preview)
        print(f"{args.preview} shows boxes on their photos, as the model will see them")

        model = Detector()
        model.compile(keras.optimizers.Adam(3e-3))
        print(f"\nTraining, {args.epochs} epochs of {pipe.steps('train')} steps")
        # `shuffle=False` only keeps Keras from warning that it leaves the shuffling to the dataset, as it always does.
        model.fit(pipe.train, validation_data=pipe.validation, epochs=args.epochs, shuffle=False, verbose=2)
        scores = average_precision(model, pipe)
    mean = float(np.mean(list(scores.values())))
    each = ", ".join(f"{name} {score:.2f}" for name, score in scores.items())
    print(f"\naverage precision on {SCENES['validation']} validation scenes: {mean:.3f} ({each})")
    return mean


if __name__ == "__main__":
    main()
