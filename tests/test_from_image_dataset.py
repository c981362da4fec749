"""The page for those who come from Keras' utility is true: the same files, and pixels as near as it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pipegen
from pipegen.compat import DirectoryDataset

pytestmark = pytest.mark.tf

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "how-to" / "from-image-dataset.md").read_text(encoding="utf-8")
SAME: list[Any] = [{"decode": {"jpeg": "tensorflow", "exif": "ignore"}}, {"cast": {"dtype": "float32"}}]
ROUNDED: list[Any] = SAME[:1]
Array = np.ndarray[Any, Any]


@pytest.fixture
def flowers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`flowers/` in the working directory: photographs as cameras and editors store them, in three classes."""
    monkeypatch.chdir(tmp_path)
    photos = [Image.open(path) for path in sorted((ROOT / "examples" / "quickstart").rglob("*.jpg"))[:24:2]]
    pictures = [Image.open(ROOT / "docs" / "pictures" / f"{name}.jpg") for name in ("affine", "hue", "sepia")]
    for i, image in enumerate([*photos, *pictures]):
        folder = tmp_path / "flowers" / ("daisy", "Rose", "tulip")[i % 3]
        folder.mkdir(parents=True, exist_ok=True)
        if i % 5 == 4:
            image.save(folder / f"{i}.png")
        else:
            turned = Image.Exif()
            turned[0x0112] = 6 if i % 4 == 1 else 1  # an EXIF orientation: lying, or upright
            image.convert("RGB").save(folder / f"{i}.jpg", quality=90, subsampling=i % 3, exif=turned)
    return tmp_path / "flowers"


def of_utility(folder: Path, **arguments: Any) -> dict[str, Array]:
    """The pixels of each file, by its path, as the utility reads it."""
    import keras

    data = keras.utils.image_dataset_from_directory(str(folder), shuffle=False, batch_size=None, verbose=False, **arguments)
    return {path: image.numpy() for path, (image, _) in zip(data.file_paths, data, strict=True)}


def of_spec(folder: Path, *steps: Any) -> dict[str, Array]:
    """The pixels of each file, by its path, behind the steps of a spec."""
    parts = {"train": 0.01, "validation": 0.99}
    spec = {
        "pipegen": 1,
        "source": {"image_folder": {"path": str(folder)}},
        "splits": {"parts": parts, "method": "keras_utility"},
        "transforms": list(steps),
        "batch": {"size": 1},
        "runtime": {"jit": "never"},
    }
    pipe = pipegen.build(spec)
    return {path: x.numpy()[0] for path, (x, _) in zip(pipe.files("validation"), pipe.validation, strict=True)}


def differences(folder: Path, steps: list[Any], **arguments: Any) -> Array:
    ours, theirs = of_spec(folder, *steps), of_utility(folder, **arguments)
    assert len(ours) > 10
    return np.stack([np.abs(ours[path] - theirs[path]) for path in ours])


@pytest.mark.nightly
def test_the_code_and_the_spec_of_the_page_give_the_same(flowers: Path) -> None:
    code, text = (re.search(rf"<!-- example: {tag} -->\n```[^\n]*\n(.*?)```", PAGE, re.DOTALL) for tag in ("utility", "same"))
    assert code is not None
    assert text is not None
    names: dict[str, Any] = {}
    exec(code[1], names)
    few = text[1].replace("size: 32", "size: 4")  # of the twelve files in training
    (flowers.parent / "same.pipegen.yaml").write_text(few, encoding="utf-8")
    pipe = pipegen.build("same.pipegen.yaml")
    ours = [(x.numpy(), y.numpy()) for x, y in pipe.validation.unbatch()]
    theirs = [(x.numpy(), y.numpy()) for x, y in names["validation"].unbatch()]
    assert len(ours) == len(theirs) == 3
    for pair in zip(*(sorted(examples, key=lambda example: float(example[0].sum())) for examples in (ours, theirs)), strict=True):
        (x, y), (x_there, y_there) = pair
        np.testing.assert_allclose(x, x_there, rtol=0, atol=1e-6)
        assert y == y_there
    import keras

    data = keras.utils.image_dataset_from_directory("flowers/", validation_split=0.2, subset="training", seed=123, verbose=False)
    assert sorted(Path(path).resolve() for path in data.file_paths) == sorted(Path(path) for path in pipe.files("train"))


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["bilinear", "area"])
def test_the_same_pixels_to_the_bit(flowers: Path, method: str) -> None:
    """Photographs that lie on their sides, chroma of every subsampling, PNG."""
    found = differences(flowers, [*SAME, {"resize": {"size": [48, 60], "method": method}}], image_size=(48, 60), interpolation=method)
    assert found.max() == 0


@pytest.mark.nightly
def test_nearest_differs_between_two_pixels_alone(flowers: Path) -> None:
    resize = {"resize": {"size": [48, 60], "method": "nearest"}}
    found = differences(flowers, [*SAME, resize], image_size=(48, 60), interpolation="nearest")
    assert 0 < (found > 0).mean() < 0.05


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["bicubic", "lanczos3"])
@pytest.mark.parametrize("size", [(48, 60), (200, 150)])
def test_the_same_pixels_of_wider_filters(flowers: Path, method: str, size: tuple[int, int]) -> None:
    found = differences(flowers, [*SAME, {"resize": {"size": list(size), "method": method}}], image_size=size, interpolation=method)
    assert found.max() == 0


@pytest.mark.nightly
def test_whole_numbers_are_half_a_level_off_at_most(flowers: Path) -> None:
    assert differences(flowers, [*ROUNDED, {"resize": {"size": [48, 60]}}], image_size=(48, 60)).max() <= 0.5


@pytest.mark.nightly
def test_the_quick_decode_is_a_few_levels_off(flowers: Path) -> None:
    found = differences(flowers, [{"decode": {"exif": "ignore"}}, {"resize": {"size": [48, 60]}}], image_size=(48, 60))
    assert 0.5 < found.mean() < 5


@pytest.mark.nightly
def test_gray_is_equal_for_jpegs_and_a_level_off_for_png(flowers: Path) -> None:
    """The gray of a colour PNG is Pillow's, which rounds otherwise than TensorFlow's."""
    decode = {"decode": {"jpeg": "tensorflow", "exif": "ignore", "channels": 1}}
    steps = [decode, SAME[1], {"resize": {"size": [48, 60]}}]
    assert differences(flowers, steps, image_size=(48, 60), color_mode="grayscale").max() < 1.001
    for png in flowers.rglob("*.png"):
        png.unlink()
    assert differences(flowers, steps, image_size=(48, 60), color_mode="grayscale").max() == 0


@pytest.mark.nightly
@pytest.mark.parametrize(("mode", "argument"), [("crop", "crop_to_aspect_ratio"), ("pad", "pad_to_aspect_ratio")])
def test_crops_and_pads_lie_within_a_pixel(tmp_path: Path, mode: str, argument: str) -> None:
    """On a slope of one level a pixel, a shift by a pixel is a level; the outermost pixels of a pad may be fill in one of both."""
    for i, (height, width) in enumerate(((97, 60), (61, 101), (80, 79), *((64 + n, 70) for n in range(9)))):
        y, x = np.mgrid[:height, :width]
        folder = tmp_path / "flowers" / "ab"[i % 2]
        folder.mkdir(parents=True, exist_ok=True)
        slope = np.stack([20 + x, 20 + y, 20 + (x + y) // 2], -1).astype(np.uint8)
        Image.fromarray(slope).save(folder / f"{i}.png")
    steps = [*SAME, {"resize": {"size": [64, 64], "mode": mode}}]
    found = differences(tmp_path / "flowers", steps, image_size=(64, 64), **{argument: True})
    assert (found > 2).mean() < (0.06 if mode == "pad" else 1e-9)


@pytest.mark.nightly
def test_the_code_with_a_changed_import_runs(flowers: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import keras

    code = re.search(r"<!-- example: import -->\n```[^\n]*\n(.*?)```", PAGE, re.DOTALL)
    assert code is not None
    model = keras.Sequential([keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(3)])
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    names: dict[str, Any] = {"model": model}
    exec(code[1].replace("epochs=10", "epochs=1, verbose=0").replace("batch_size=32", "batch_size=4"), names)
    assert isinstance(names["train"], DirectoryDataset)
    said = capsys.readouterr().out
    assert "`map` became `random_flip`, `random_rotation`, `random_zoom`" in said
    assert "'random_zoom'" in said
