"""What the iterators carry beside batches: the attributes that people read, against Keras' own iterators."""

from __future__ import annotations

from pathlib import Path
from pipes import picture
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipegen.compat import ImageDataGenerator

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("plain_kernels")]

X = np.random.default_rng(3).integers(0, 256, (10, 6, 8, 3)).astype(np.uint8)
Y = np.arange(10.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("drawings")
    for i in range(4):
        (root / "ab"[i % 2]).mkdir(exist_ok=True)
        Image.fromarray(picture(i, 20, 31)).save(root / "ab"[i % 2] / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def theirs() -> Any:
    from keras.src.legacy.preprocessing import image

    return image.ImageDataGenerator


@pytest.mark.nightly
def test_arrays_are_the_subset_and_no_copy(theirs: Any) -> None:
    asked = {"batch_size": 4, "subset": "training", "ignore_class_split": True, "seed": 6}
    ours, other = (kind(validation_split=0.3).flow((X, [Y * 2]), Y, **asked) for kind in (ImageDataGenerator, theirs))
    for name in ("n", "batch_size", "seed", "shuffle"):
        assert getattr(ours, name) == getattr(other, name), name
    assert ours.subset == "training"
    np.testing.assert_array_equal(ours.x, other.x)
    np.testing.assert_array_equal(ours.y, other.y)
    np.testing.assert_array_equal(ours.x_misc, other.x_misc)
    assert ours.sample_weight is other.sample_weight is None
    assert np.shares_memory(ours.x, X)
    assert ours.x.dtype == np.uint8
    weighted = ImageDataGenerator(validation_split=0.3).flow(X, Y, sample_weight=Y + 1, **asked)
    np.testing.assert_array_equal(weighted.sample_weight, Y[3:] + 1)


@pytest.mark.nightly
def test_folders_say_what_they_were_given(folder: Path, theirs: Any) -> None:
    asked: dict[str, Any] = {"target_size": (6, 8), "seed": 3, "color_mode": "grayscale", "interpolation": "bilinear"}
    ours, other = (kind().flow_from_directory(str(folder), **asked, follow_links=True) for kind in (ImageDataGenerator, theirs))
    for name in ("directory", "seed", "color_mode", "interpolation", "image_shape", "target_size", "class_indices", "samples"):
        assert getattr(ours, name) == getattr(other, name), name
    assert ours.follow_links is True
    table = ImageDataGenerator().flow_from_dataframe({"filename": ours.filenames}, str(folder), class_mode=None, target_size=(6, 8), seed=9)
    assert (table.directory, table.seed, table.filepaths) == (str(folder), 9, [f"{folder}/{name}" for name in ours.filenames])
    with ours.lock:
        pass
