"""Gray files of 16 bits in a flow keep their values, as with Keras."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from pipegen.compat import ImageDataGenerator
from pipegen.compat.frames import files_below, is_deep

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    values = np.random.default_rng(0).integers(0, 1 << 16, (4, 9, 8), np.uint16)
    values[:, 0, 0] = (0, 255, 256, 65535)
    for i, one in enumerate(values):
        (tmp_path / "ab"[i % 2]).mkdir(exist_ok=True)
        Image.fromarray(one).save(tmp_path / "ab"[i % 2] / f"{i}.png")
    return tmp_path


@pytest.mark.nightly
@pytest.mark.tf
def test_values_of_16_bits_are_keras(deep: Path) -> None:
    pd = pytest.importorskip("pandas")
    from keras.src.legacy.preprocessing.image import ImageDataGenerator as Original

    asked: dict[str, Any] = {"target_size": (9, 8), "color_mode": "grayscale", "class_mode": "sparse", "shuffle": False, "batch_size": 4}
    x, y = next(ImageDataGenerator(rescale=0.5).flow_from_directory(deep, **asked))
    other, labels = next(Original(rescale=0.5).flow_from_directory(str(deep), **asked))
    np.testing.assert_array_equal(x, other)
    np.testing.assert_array_equal(y, labels)
    assert x.max() > 255
    rows = pd.DataFrame({"filename": [f"{'ab'[i % 2]}/{i}.png" for i in range(4)], "class": [*"abab"]})
    table, _ = next(ImageDataGenerator(rescale=0.5).flow_from_dataframe(rows, deep, **asked))
    np.testing.assert_array_equal(table, x[[0, 2, 1, 3]])


def test_a_spec_says_so(deep: Path) -> None:
    spec = ImageDataGenerator().to_spec(deep, color_mode="grayscale")
    assert spec["transforms"][0] == {"decode": {"exif": "ignore", "jpeg": "accurate", "channels": 1, "bits": 16}}
    assert "bits" not in ImageDataGenerator().to_spec(deep)["transforms"][0]["decode"]


def test_the_first_image_decides(deep: Path) -> None:
    (deep / "a" / "notes.txt").write_text("")
    assert is_deep(files_below(deep))
    Image.new("L", (8, 9)).save(deep / "a" / "!.jpg")
    assert not is_deep(files_below(deep))
    (deep / "a" / " .png").write_bytes(b"no image")
    assert not is_deep(files_below(deep))
    assert not is_deep([])
