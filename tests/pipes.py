"""Running pipelines for tests: a folder of small photographs, specs on it, and whole streams as arrays."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipegen.api.pipeline import Pipeline

Array = np.ndarray[Any, Any]

SIZE = 24
"""The side of every image that a model would see."""
RESIZE: dict[str, Any] = {"resize": {"size": SIZE}}
GEOMETRY: list[Any] = [RESIZE, "random_flip", {"random_rotation": {"degrees": 25}}, {"random_zoom": {"factor": 0.2}}]
"""Moves pixels, and nothing else: bit for bit the same whatever the runtime."""
FLIPPED: list[Any] = [RESIZE, "random_flip"]
"""The least that draws something for each example, for what does not depend on the steps: traced in half the time."""
COLOUR: list[Any] = [
    *GEOMETRY,
    {"random_brightness": {"factor": 0.3}},
    {"random_contrast": {"factor": 0.3}},
    {"normalize": {"preset": "tf"}},
]
"""Ends in floats of [-1, 1], whose last bits may differ within E1."""
E1_OF_COLOUR = 1e-6 * 2
"""E1 for what `COLOUR` gives: 1e-6 of the width of its interval."""

CLASSES = ("daisy", "rose", "tulip")
PER_CLASS = 14


def picture(seed: int, height: int, width: int) -> Array:
    """A smooth image that is like no other: waves and gradients of its own."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = [
        127 + 60 * np.sin(x * rng.uniform(0.05, 0.4) + rng.uniform(0, 6)) + 60 * np.cos(y * rng.uniform(0.05, 0.4) + rng.uniform(0, 6))
        for _ in range(3)
    ]
    return np.clip(np.stack(waves, -1), 0, 255).astype(np.uint8)


def write_photos(root: Path, classes: Iterable[str] = CLASSES, per_class: int = PER_CLASS) -> Path:
    """JPEGs of many sizes in a folder for each class, and one PNG in the last."""
    from PIL import Image

    names = list(classes)
    for number, name in enumerate(names):
        (root / name).mkdir(parents=True)
        for i in range(per_class):
            seed = 100 * number + i
            Image.fromarray(picture(seed, 30 + 3 * (seed % 7), 34 + 5 * (seed % 5))).save(root / name / f"{i:02d}.jpg", quality=92)
    Image.fromarray(picture(9999, 41, 29)).save(root / names[-1] / "drawing.png")
    return root


def sections(folder: Path, **own: Any) -> dict[str, Any]:
    """A spec on a folder: batches of 8, three quarters for training, unless told otherwise."""
    return {
        "pipegen": 1,
        "source": {"image_folder": {"path": str(folder)}},
        "splits": {"parts": {"train": 0.75, "validation": 0.25}},
        "transforms": GEOMETRY,
        "batch": {"size": 8},
        **own,
    }


def pipeline(folder: Path, runtime: Mapping[str, Any] | None = None, **own: Any) -> Pipeline:
    """A running pipeline; plain TensorFlow kernels and no cache unless told otherwise, so that tests are quick."""
    import pipegen

    return pipegen.build(sections(folder, **own), runtime={"jit": "never", "cache": "none", **(runtime or {})}, allow_write=["/"])


def shared(folder: Path, runtime: Mapping[str, Any] | None = None, **own: Any) -> Pipeline:
    """The same, made once for all tests that ask for it, since tracing takes longest; read it with `epoch_of`."""
    return _shared(str(folder), json.dumps(runtime), json.dumps(own))


@cache
def _shared(folder: str, runtime: str, own: str) -> Pipeline:
    return pipeline(Path(folder), json.loads(runtime), **json.loads(own))


def at(pipe: Pipeline, epoch: int = 0, step: int = 0) -> Any:
    """The training dataset from one step on, to be read at once; traced once, while each epoch of `pipe.dataset` may be a graph."""
    pipe.seek(epoch, step)
    return pipe.train


def epoch_of(pipe: Pipeline, epoch: int, step: int = 0) -> tuple[Array, ...]:
    """The stream of one training epoch from one step on, wherever the pipeline stands."""
    return stream(at(pipe, epoch, step))


def batches(dataset: Iterable[Any]) -> list[tuple[Array, ...]]:
    """Every batch of a dataset as a tuple of arrays."""
    import tensorflow as tf

    return [tuple(np.asarray(t) for t in tf.nest.flatten(batch)) for batch in dataset]


def stream(dataset: Iterable[Any]) -> tuple[Array, ...]:
    """Every example of a dataset that gives some, in order: one array for each part of a batch."""
    whole = batches(dataset)
    assert whole, "the dataset gives nothing"
    return tuple(np.concatenate(parts) for parts in zip(*whole, strict=True))


def same(a: Iterable[Array], b: Iterable[Array]) -> None:
    """Two streams are equal, bit for bit, and there is something to compare."""
    pairs = list(zip(a, b, strict=True))
    assert pairs
    for one, other in pairs:
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def close(a: tuple[Array, ...], b: tuple[Array, ...], atol: float = E1_OF_COLOUR) -> None:
    """The images of two streams are equal within `atol`, and everything else is equal."""
    np.testing.assert_allclose(a[0], b[0], rtol=0, atol=atol)
    same(a[1:], b[1:])


def numbered(train: int = 32, validation: int = 12, **own: Any) -> Pipeline:
    """A running pipeline over tiny arrays, shuffled, whose `y` is the number of the row: from 0, and from 1,000 in the validation split."""
    import pipegen

    def rows(first: int, count: int) -> dict[str, Any]:
        return {"image": np.zeros((count, 2, 2, 1), np.uint8), "row": np.arange(first, first + count, dtype=np.float32)}

    spec = {
        "pipegen": 1,
        "source": {"arrays": {"features": {"image": {"kind": "image"}, "row": {"kind": "tensor"}}}},
        "batch": {"size": 2},
        "output": {"x": "image", "y": "row"},
        **own,
    }
    data = {"train": rows(0, train), "validation": rows(1000, validation)}
    spec["source"] = {"by_split": {split: spec["source"] for split in data}}
    return pipegen.build(spec, runtime={"jit": "never", "cache": "none"}, data=data)


class Identify:
    """Knows each file of a split by the pixels that it has without augmentation."""

    def __init__(self, folder: Path, split: str = "train", **own: Any) -> None:
        own = {**own, "transforms": [RESIZE], "shuffle": "none", "batch": {"size": 1}}
        pipe = shared(folder, **own)
        images = stream(pipe[split])[0]
        self.names = {image.tobytes(): i for i, image in enumerate(images)}
        assert len(self.names) == pipe.num_examples(split), "each photograph must be like no other"

    def __call__(self, images: Array) -> list[int]:
        """The place of each image's file in `pipe.files(split)`."""
        return [self.names[image.tobytes()] for image in images]
