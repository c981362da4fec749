"""`pipegen.compat.image_dataset_from_directory` reads the files, labels and pixels that Keras' utility reads."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import pipegen
from pipegen.compat import UnsupportedArgument, image_dataset_from_directory

pytestmark = pytest.mark.tf

FILES = (
    "b/c/x.png", "b/d.png", "b/\u00e9.png", "b/Z.JPG", "b/c.png", "b/z10.png", "b/z9.png",
    "a/1.gif", "a/z/y/2.bmp", "a/10.png", "a/2.jpeg", "a/3.jpg", "a/.h.png", "b/w.webp", "c d/0.png", "root.png", ".e/1.png",
)  # fmt: skip
ODD = ("a/.h.png", "b/w.webp")
"""Files that one of both leaves out: hidden ones, and those of other formats."""
SMALL: dict[str, Any] = {"image_size": (24, 32), "batch_size": 4, "verbose": False}
utility = keras.utils.image_dataset_from_directory


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Nested folders, names that sort otherwise by bytes, and every format."""
    return str(written(tmp_path_factory.mktemp("photos"), FILES))


def written(root: Path, names: Iterable[str]) -> Path:
    draws = np.random.default_rng(0)
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(draws.integers(0, 256, (40, 52, 3), np.uint8).repeat(2, 0).repeat(2, 1))
        (image.quantize() if name.endswith("gif") else image).save(root / name)
    return root


def flat(dataset: Any) -> list[Any]:
    return [[part.numpy() for part in tf.nest.flatten(element)] for element in dataset]


def decoded(path: str) -> Any:
    content = tf.io.decode_image(tf.io.read_file(path), 3, expand_animations=False)
    return tf.image.resize(content, SMALL["image_size"]).numpy()


CASES = [*itertools.product((0, 123), (0.1, 0.3), (True, False), ("inferred", None), ("training", "validation"))]


@pytest.mark.nightly
@pytest.mark.parametrize(("seed", "split", "shuffle", "labels", "subset"), CASES)
def test_the_files_of_each_subset(seed: int, split: float, shuffle: bool, labels: Any, subset: str, folder: str) -> None:
    given = {"labels": labels, "validation_split": split, "subset": subset, "seed": seed, "shuffle": shuffle, **SMALL}
    ours, theirs = image_dataset_from_directory(folder, **given), utility(folder, **given)
    assert (ours.file_paths, ours.class_names) == (theirs.file_paths, theirs.class_names)
    assert (ours.element_spec, len(ours)) == (theirs.element_spec, len(theirs))
    found = flat(ours)
    if subset == "validation" or not shuffle:
        assert np.abs(np.concatenate([x for x, *_ in found]) - np.stack([decoded(path) for path in ours.file_paths])).max() <= 0.5
    if labels:
        of = [theirs.class_names.index(Path(path).relative_to(folder).parts[0]) for path in theirs.file_paths]
        seen = np.concatenate([y for _, y in found]).tolist()
        assert seen == of if subset == "validation" or not shuffle else sorted(seen) == sorted(of)


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["bilinear", "area", "bicubic", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"])
def test_every_interpolation(method: str, folder: str) -> None:
    pair = [make(folder, shuffle=False, interpolation=method, **SMALL) for make in (image_dataset_from_directory, utility)]
    for (x, y), (x_there, y_there) in zip(*map(flat, pair), strict=True):
        assert np.abs(x - x_there).max() <= 0.5
        np.testing.assert_array_equal(y, y_there)


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "given",
    [
        {"label_mode": "categorical"},
        {"label_mode": "binary", "class_names": ["b", "a"]},
        {"label_mode": None},
        {"labels": [i % 3 for i in range(16)]},
        {"batch_size": None},
        {"batch_size": None, "label_mode": None, "data_format": "channels_first"},
        {"data_format": "channels_first"},
        {"image_size": 20},
        {"color_mode": "grayscale", "class_names": ["b", "c d"]},
        {"class_names": ["c d"]},
    ],
    ids=str,
)
def test_every_form_of_a_batch(given: dict[str, Any], folder: str) -> None:
    given = {**SMALL, "shuffle": False, **given}
    ours, theirs = image_dataset_from_directory(folder, **given), utility(folder, **given)
    assert (ours.element_spec, ours.class_names, ours.file_paths) == (theirs.element_spec, theirs.class_names, theirs.file_paths)
    level = 1.5 if given.get("color_mode") else 0.5  # the gray of a PNG is Pillow's
    for parts, others in zip(flat(ours), flat(theirs), strict=True):
        assert [part.dtype for part in parts] == [other.dtype for other in others]
        assert np.abs(parts[0] - others[0]).max() <= level
        for part, other in zip(parts[1:], others[1:], strict=True):
            np.testing.assert_array_equal(part, other)


@pytest.mark.nightly
def test_both_subsets_at_once_and_an_epoch_of_each(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = {**SMALL, "verbose": True, "validation_split": 0.3, "seed": 7}
    train, validation = image_dataset_from_directory(folder, subset="both", **given)
    said = capsys.readouterr().out
    assert "Found 14 files belonging to 3 classes." in said
    assert "Using 4 files for validation." in said
    assert "Each epoch has a new order of all training files" in said
    assert train.file_paths == utility(folder, subset="training", **given).file_paths
    epochs = [np.concatenate([x for x, _ in flat(train)]) for _ in range(2)]
    assert not np.array_equal(*epochs)
    np.testing.assert_array_equal(*(np.sort(epoch.sum((1, 2, 3))) for epoch in epochs))
    model = keras.Sequential([keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(3)])
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(train.map(lambda x, y: (x / 255, y)).prefetch(2), validation_data=validation, epochs=2, verbose=0)
    assert len(history.history["val_loss"]) == 2
    np.testing.assert_array_equal(np.concatenate([x for x, _ in flat(validation.take(1))]), flat(validation)[0][0])


def test_the_spec_gives_the_same_batches(folder: str, tmp_path: Path) -> None:
    """Of every epoch, whatever the order of the files within a class."""
    given = {"validation_split": 0.3, "subset": "training", "seed": 5, **SMALL}
    with pytest.raises(UnsupportedArgument, match=r"Keras reads, and a spec does not, 'a/\.h\.png' and 1 more such file"):
        image_dataset_from_directory(folder, **given).spec()
    plain = written(tmp_path, [name for name in FILES if name not in ODD])
    with pytest.raises(UnsupportedArgument, match="`shuffle`: without it, validation is the end of the sorted list"):
        image_dataset_from_directory(plain, shuffle=False, **given).spec()
    train = image_dataset_from_directory(plain, **given)
    pipe = pipegen.build(train.spec())
    for _ in range(2):
        for parts, others in zip(flat(train), flat(pipe.train), strict=True):
            for part, other in zip(parts, others, strict=True):
                np.testing.assert_array_equal(part, other)


def test_a_cache_on_disk_tells_the_orders_of_two_seeds_apart(folder: str) -> None:
    """Both read the same files, and a cache keeps them by their places."""
    given = [{"validation_split": 0.5, "subset": "validation", "seed": seed, **SMALL} for seed in (1, 2)]
    found = [image_dataset_from_directory(folder, **own).pipeline._manifest for own in given]
    assert len({manifest.split_fingerprint for manifest in found}) == 2
    assert len({manifest.listing.location.keys[0] for manifest in found}) == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"label_mode": "one"}, "`label_mode` is one of"),
        ({"color_mode": "bgr"}, "`color_mode` is one of"),
        ({"interpolation": "cubic"}, "`interpolation` is one of"),
        ({"subset": "test", "validation_split": 0.2}, "`subset` is one of"),
        ({"labels": "infered"}, "`labels` is 'inferred', None, or a list"),
        ({"labels": [0, 1]}, "`labels` has 2 numbers, but there are 16 images"),
        ({"labels": None, "class_names": ["a"]}, "`class_names` needs"),
        ({"class_names": ["x"]}, "but the sub-folders of"),
        ({"image_size": (1, 2, 3)}, "`image_size` is a pair"),
        ({"validation_split": 1.2, "subset": "training"}, "between 0 and 1"),
        ({"subset": "training"}, "go together"),
        ({"validation_split": 0.2}, "go together"),
        ({"validation_split": 0.2, "subset": "training"}, "give a `seed`"),
        ({"validation_split": 0.01, "subset": "validation", "seed": 1}, "no validation images found"),
        ({"label_mode": "binary"}, "exactly 2 classes"),
        ({"crop_to_aspect_ratio": True, "pad_to_aspect_ratio": True}, "only one of"),
        ({"format": "numpy"}, "`format` is one of"),
    ],
)
def test_wrong_arguments(given: dict[str, Any], says: str, folder: str) -> None:
    with pytest.raises(ValueError, match=says):
        image_dataset_from_directory(folder, **{**SMALL, **given})


@pytest.mark.parametrize(
    ("directory", "given", "says"),
    [
        (None, {"format": "grain", "batch_size": None}, "`batch_size`: Grain gets batches of a pipeline, not single images; give a number"),
        ("gs://bucket/photos", {}, "write a spec"),
        (None, {"labels": [7] * 16}, "number the classes from 0 on"),
    ],
)
def test_what_a_pipeline_cannot_do(directory: str | None, given: dict[str, Any], says: str, folder: str) -> None:
    with pytest.raises(UnsupportedArgument, match=says):
        image_dataset_from_directory(directory or folder, **{**SMALL, **given})


def test_the_names_of_keras() -> None:
    """A module of Keras is replaced by its namesake; what pipegen lacks is Keras' own."""
    from pipegen import compat
    from pipegen.compat import preprocessing, utils
    from pipegen.compat.preprocessing import image
    from pipegen.compat.preprocessing.image import ImageDataGenerator

    for module in (utils, preprocessing):
        assert module.image_dataset_from_directory is image_dataset_from_directory
    assert ImageDataGenerator is compat.ImageDataGenerator is image.ImageDataGenerator
    assert utils.load_img is image.load_img is compat.load_img
    assert utils.to_categorical is keras.utils.to_categorical
    with pytest.raises(AttributeError, match=r"keras.utils"):
        _ = utils.nothing
    with pytest.raises(ImportError, match="no text yet"):
        _ = utils.text_dataset_from_directory


@pytest.mark.by_day(1)
@pytest.mark.parametrize("batch_size", [4, None])
def test_the_speed_of_the_first_epoch_is_said_once(batch_size: int | None, folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {**SMALL, "batch_size": batch_size, "verbose": True}
    train, validation = image_dataset_from_directory(folder, validation_split=0.3, subset="both", seed=1, **asked)
    for _ in validation:
        pass
    assert "images/s" not in capsys.readouterr().out
    begun = time.perf_counter()
    for _ in train:
        time.sleep(0.05)
    seconds = time.perf_counter() - begun
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "images/s" in line]
    rate, share = re.findall(r"[0-9.,]+", line)[:2]
    assert len(train.file_paths) / seconds / 2 < float(rate.replace(",", "")) < len(train.file_paths) / (len(train) - 1) / 0.04
    assert 0 <= float(share) <= 100
    for _ in train:
        pass
    assert "images/s" not in capsys.readouterr().out


def test_a_folder_without_images_or_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no images found in"):
        image_dataset_from_directory(tmp_path, **SMALL)
    with pytest.raises(FileNotFoundError):
        image_dataset_from_directory(tmp_path / "none", **SMALL)


def test_labels_in_a_list_have_no_spec(folder: str) -> None:
    with pytest.raises(UnsupportedArgument, match="read it with `csv`"):
        image_dataset_from_directory(folder, labels=[0] * 16, **SMALL).spec()


def test_a_utility_that_is_not_there_says_so() -> None:
    with pytest.raises(ImportError, match=r"import `text_dataset_from_directory` from `keras.utils`"):
        _ = pipegen.compat.text_dataset_from_directory
