"""Code around Keras' `image_dataset_from_directory` runs with the import changed: the same shapes, labels, files and pixels."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.tf

HEAD = """
import keras, os, pathlib
import tensorflow as tf
from keras import layers
AUTOTUNE = tf.data.AUTOTUNE
"""
STYLES = {
    "a split by two calls": """
        train = image_dataset_from_directory(
            "photos", validation_split=0.25, subset="training", seed=123, image_size=(24, 32), batch_size=4
        )
        result = image_dataset_from_directory(
            "photos", validation_split=0.25, subset="validation", seed=123, image_size=(24, 32), batch_size=4
        ).unbatch()
        names, files = train.class_names, sorted(train.file_paths)
        sizes = len(train)
    """,
    "both at once": """
        train, result = image_dataset_from_directory(
            "photos", validation_split=0.5, subset="both", seed=7, image_size=(24, 32), shuffle=False
        )
        names, files = result.class_names, result.file_paths
    """,
    "one folder each": """
        result = image_dataset_from_directory(os.path.join("photos"), shuffle=False, image_size=(20, 20), batch_size=5)
        names, files = result.class_names, result.file_paths
    """,
    "a path object": """
        result = image_dataset_from_directory(pathlib.Path("photos"), labels="inferred", shuffle=False, image_size=(20, 20))
        names = result.class_names
    """,
    "positional arguments": """
        result = image_dataset_from_directory("photos", "inferred", "int", None, "rgb", 3, (24, 24), False)
        files = result.file_paths
    """,
    "one-hot labels": """
        result = image_dataset_from_directory("photos", label_mode="categorical", shuffle=False, image_size=(24, 32), batch_size=4)
    """,
    "two classes": """
        result = image_dataset_from_directory("photos", label_mode="binary", class_names=["b", "a"], shuffle=False, image_size=(24, 32))
        names = result.class_names
    """,
    "images alone": """
        result = image_dataset_from_directory("photos", labels=None, shuffle=False, image_size=(24, 32), batch_size=4)
        files = result.file_paths
    """,
    "labels of one's own": """
        result = image_dataset_from_directory("photos", labels=[i % 2 for i in range(18)], shuffle=False, image_size=(24, 32))
    """,
    "gray": """
        result = image_dataset_from_directory("photos", color_mode="grayscale", shuffle=False, image_size=(24, 32), batch_size=6)
    """,
    "single images": """
        result = image_dataset_from_directory("photos", batch_size=None, shuffle=False, image_size=(24, 32)).batch(7)
    """,
    "another method": """
        result = image_dataset_from_directory("photos", interpolation="area", shuffle=False, image_size=(24, 32))
    """,
    "scaled in a map": """
        scale = layers.Rescaling(1.0 / 255)
        data = image_dataset_from_directory("photos", shuffle=False, image_size=(24, 32), batch_size=4)
        result = data.map(lambda x, y: (scale(x), y), num_parallel_calls=AUTOTUNE).cache().prefetch(buffer_size=AUTOTUNE)
    """,
    "scaled by arithmetic": """
        data = image_dataset_from_directory("photos", shuffle=False, image_size=(24, 32), batch_size=4)

        def prepared(image, label):
            return tf.cast(image, tf.float32) / 127.5 - 1, label

        result = data.map(prepared).prefetch(AUTOTUNE)
    """,
    "encoded in a map": """
        data = image_dataset_from_directory("photos", shuffle=False, image_size=(24, 32), batch_size=4)
        result = data.map(lambda x, y: (x, tf.one_hot(y, depth=3)))
    """,
    "validation divided for a test": """
        data = image_dataset_from_directory(
            "photos", validation_split=0.5, subset="validation", seed=1, shuffle=False, image_size=(24, 32), batch_size=2
        )
        batches = tf.data.experimental.cardinality(data)
        test = data.take(batches // 5)
        result = data.skip(batches // 5).prefetch(AUTOTUNE)
    """,
    "a first batch": """
        data = image_dataset_from_directory("photos", shuffle=False, image_size=(24, 32), batch_size=4)
        for images, labels in data.take(1):
            shapes = images.shape, labels.shape
        result = data
        names = [data.class_names[label] for label in labels.numpy()]
    """,
    "batched again": """
        data = image_dataset_from_directory("photos", shuffle=False, image_size=(24, 32), batch_size=4)
        result = data.unbatch().batch(5, drop_remainder=True)
    """,
    "labels gathered": """
        data = image_dataset_from_directory("photos", shuffle=False, image_size=(24, 32), batch_size=4)
        result = data
        names = [int(label) for _, batch in data for label in batch]
    """,
    "a filter behind it": """
        data = image_dataset_from_directory("photos", shuffle=False, image_size=(24, 32), batch_size=None)
        result = data.filter(lambda x, y: y != 1).batch(4)
    """,
    "joined to another": """
        data = image_dataset_from_directory("photos", shuffle=False, image_size=(24, 32), batch_size=4)
        result = data.concatenate(data.map(lambda x, y: (tf.image.flip_left_right(x), y)))
    """,
    "a model of the library": """
        data = image_dataset_from_directory("photos", shuffle=False, image_size=(32, 32), batch_size=4)
        result = data.map(lambda x, y: (keras.applications.mobilenet_v2.preprocess_input(x), y))
    """,
}


SHUFFLED = ("a split by two calls",)
"""Styles whose images Keras gives in an order of its own: it shuffles a validation subset that is asked for alone."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`photos/` with three classes of JPEG files, and a PNG in each."""
    root, draws = tmp_path_factory.mktemp("changed"), np.random.default_rng(0)
    for i in range(18):
        (root / "photos" / "abc"[i % 3]).mkdir(parents=True, exist_ok=True)
        smooth = Image.fromarray(draws.integers(0, 256, (5, 6, 3), np.uint8)).resize((50 + i, 44), Image.Resampling.BICUBIC)
        smooth.save(root / "photos" / "abc"[i % 3] / f"{i:02}.{'png' if i < 3 else 'jpg'}")
    return root


def ran(style: str, utility: str) -> dict[str, Any]:
    """The names of a program that takes the function from a module."""
    names: dict[str, Any] = {}
    exec(f"{HEAD}from {utility} import image_dataset_from_directory\n{dedent(STYLES[style])}", names)
    return names


@pytest.mark.by_day(5)
@pytest.mark.parametrize("style", STYLES)
def test_code_runs_with_the_import_changed(style: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    due, own = ran(style, "keras.utils"), ran(style, "pipegen.compat")
    assert own.get("names") == due.get("names")
    assert own.get("files") == due.get("files")
    assert own.get("shapes") == due.get("shapes")
    assert own.get("sizes") == due.get("sizes")
    batches = [[[np.asarray(part) for part in batch] for batch in _pairs(names["result"])] for names in (own, due)]
    assert len(batches[0]) == len(batches[1]) > 0
    if style in SHUFFLED:
        batches = [sorted(found, key=lambda parts: float(parts[0].mean())) for found in batches]
    scaled = max(float(np.ptp(image)) for image, *_ in batches[1])
    width = scaled / 255 if scaled < 3 else 1.0
    for (image, *label), (image_due, *label_due) in zip(*batches, strict=True):
        assert (image.shape, image.dtype) == (image_due.shape, image_due.dtype)
        # the gray of a colour PNG is Pillow's, which rounds otherwise
        np.testing.assert_allclose(image, image_due, rtol=0, atol=(1.51 if style == "gray" else 0.51) * max(width, 1 / 255))
        for one, other in zip(label, label_due, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def _pairs(data: Any) -> list[tuple[Any, ...]]:
    """Batches as tuples, also those of images alone."""
    return [batch if isinstance(batch, tuple) else (batch,) for batch in data]
