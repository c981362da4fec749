"""What an unaugmented flow reads from JPEG files is what Keras reads: the same pixels, for every filter, size and colour mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from pipegen.compat import ImageDataGenerator

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("plain_kernels")]

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of scikit-image as JPEGs: upright and across, with chroma at full, half and quarter size, one of them gray."""
    data = pytest.importorskip("skimage.data")
    root = tmp_path_factory.mktemp("photographs")
    for number, name in enumerate(("astronaut", "coffee", "chelsea", "camera", "rocket", "immunohistochemistry")):
        (root / "ab"[number % 2]).mkdir(exist_ok=True)
        image = Image.fromarray(getattr(data, name)())
        image = image.crop((0, 0, 300 + 40 * number, 400 - 30 * number))
        image.save(root / "ab"[number % 2] / f"{name}.jpg", quality=90 - 5 * number, subsampling=number % 3)
    return root


def both(folder: Path, asked: dict[str, Any]) -> tuple[Array, Array]:
    """What a flow of ours gives of every file, and what Keras' gives."""
    from keras.src.legacy.preprocessing import image

    asked = {"batch_size": 6, "class_mode": None, "shuffle": False, **asked}
    ours, theirs = (kind().flow_from_directory(folder, **asked) for kind in (ImageDataGenerator, image.ImageDataGenerator))
    return next(ours), theirs[0]


@pytest.mark.nightly
@pytest.mark.parametrize("asked", [
    {"target_size": (96, 128), "color_mode": "grayscale", "interpolation": "bilinear"},
    {"target_size": (100, 80), "interpolation": "lanczos", "keep_aspect_ratio": True},
    {"target_size": (60, 61), "interpolation": "box", "color_mode": "rgba"},
    *(pytest.param(asked, marks=pytest.mark.nightly) for asked in (
        {"target_size": (150, 150)},
        {"target_size": (224, 224), "interpolation": "bilinear"},
        {"target_size": (64, 400), "interpolation": "bicubic"},
        {"target_size": (99, 77), "interpolation": "nearest", "keep_aspect_ratio": True, "color_mode": "grayscale"},
        {"target_size": (500, 120), "interpolation": "hamming"},
    )),
], ids=str)  # fmt: skip
def test_pixels_are_keras(photographs: Path, asked: dict[str, Any]) -> None:
    ours, theirs = both(photographs, asked)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.nightly
def test_small_photographs_are_keras(photo_folder: Path) -> None:
    """JPEGs with EXIF, and a PNG."""
    ours, theirs = both(photo_folder, {"target_size": (48, 56), "interpolation": "bilinear", "batch_size": 64})
    assert len(ours) > 40
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.nightly
def test_the_table_and_the_spec_read_the_same(photographs: Path, tmp_path: Path) -> None:
    import pandas as pd

    import pipegen

    asked: dict[str, Any] = {"target_size": (90, 120), "interpolation": "bicubic", "class_mode": None}
    _, theirs = both(photographs, asked)
    names = sorted(str(path.relative_to(photographs)) for path in photographs.rglob("*.jpg"))
    rows = ImageDataGenerator().flow_from_dataframe(pd.DataFrame({"filename": names}), photographs, shuffle=False, batch_size=6, **asked)
    np.testing.assert_array_equal(next(rows), theirs)
    ImageDataGenerator().to_spec(photographs, write=tmp_path / "a.pipegen.yaml", shuffle=False, batch_size=6, **asked)
    pipe = pipegen.build(tmp_path / "a.pipegen.yaml", runtime={"jit": "never", "cache": "none"})
    np.testing.assert_array_equal(next(iter(pipe.dataset("train", epoch=0))), theirs)
