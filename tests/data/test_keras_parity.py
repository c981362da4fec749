"""`method: keras` deals files out as Keras' own iterator does, and `method: keras_utility` as its utility does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pipegen.data.collect import collect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipegen.spec.models import PipelineSpec

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("fraction", [0.1, 0.29, 0.3, 0.5, 0.7])
def test_the_same_files_in_the_same_subsets(files: Callable[..., Path], make_spec: Callable[..., PipelineSpec], fraction: float) -> None:
    image = pytest.importorskip("keras.src.legacy.preprocessing.image")
    root = files("b cat/*10", "a/*23", "a/z/*4", "a/z-1/*5", "a/Z/deep/*3", "a/0.png", "c/*100", "c/1.bmp", "d/*2")
    parts = {"train": 1 - fraction, "validation": fraction}
    manifest = collect(make_spec(root, splits={"method": "keras", "parts": parts}, batch={"size": 1})).manifest
    assert manifest is not None
    generator = image.ImageDataGenerator(validation_split=fraction)
    for split, subset in (("train", "training"), ("validation", "validation")):
        theirs = generator.flow_from_directory(str(root), subset=subset, shuffle=False)
        assert sorted(theirs.filenames) == sorted(manifest.keys(split))
        labels = dict(zip(manifest.keys(split), manifest.labels(split), strict=True))
        assert [labels[name] for name in theirs.filenames] == list(theirs.classes)


TREES = {
    "classes of many sizes": ("b cat/*10", "a/*23", "a/z/*4", "a/z-1/*5", "a/Z/deep/*3", "a/0.png", "c/*100", "c/1.bmp", "d/*2"),
    "two classes": ("cat/*7", "dog/*6"),
    "one class": ("cat/*11",),
    "five files": ("a/*2", "B/*1", "c/d/*2"),
}


def both_subsets(root: Path, fraction: float, seed: int, **arguments: Any) -> list[list[str]]:
    """Relative paths of what Keras' utility has in training and in validation; it opens no file to say so."""
    import keras

    keywords = {"validation_split": fraction, "seed": seed, "verbose": False, **arguments}
    found = []
    for subset in ("training", "validation"):
        data = keras.utils.image_dataset_from_directory(str(root), subset=subset, **keywords)
        found.append([path.removeprefix(f"{root}/") for path in data.file_paths])
    return found


@pytest.mark.by_day(7)
@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize(("fraction", "seed"), [(0.2, 123), (0.29, 0), (0.5, 7), (0.7, 2**32 - 1)])
def test_the_same_files_as_of_the_utility(
    files: Callable[..., Path], make_spec: Callable[..., PipelineSpec], tree: str, fraction: float, seed: int
) -> None:
    root = files(*TREES[tree])
    splits = {"method": "keras_utility", "parts": {"train": 1 - fraction, "validation": fraction}, "seed": seed}
    for source, arguments in (({}, {}), ({"labels": "none"}, {"labels": None})):
        manifest = collect(make_spec(root, source, splits=splits, batch={"size": 1})).manifest
        assert manifest is not None
        assert [sorted(manifest.keys(split)) for split in ("train", "validation")] == [
            sorted(names) for names in both_subsets(root, fraction, seed, **arguments)
        ]


def test_the_same_files_of_chosen_classes_and_of_both_subsets_at_once(
    files: Callable[..., Path], make_spec: Callable[..., PipelineSpec]
) -> None:
    import keras

    root = files("cat/*17", "dog/*9", "eel/*12")
    chosen = ["eel", "cat"]
    splits = {"method": "keras_utility", "parts": {"train": 0.75, "validation": 0.25}, "seed": 5}
    manifest = collect(make_spec(root, {"classes": chosen}, splits=splits, batch={"size": 1})).manifest
    assert manifest is not None
    pair = keras.utils.image_dataset_from_directory(
        str(root), class_names=chosen, validation_split=0.25, subset="both", seed=5, verbose=False
    )
    for split, data in zip(("train", "validation"), pair, strict=True):
        assert sorted(manifest.keys(split)) == sorted(path.removeprefix(f"{root}/") for path in data.file_paths)
    assert list(manifest.class_names) == chosen
