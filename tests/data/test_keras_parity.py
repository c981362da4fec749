"""`method: keras` deals files out as Keras' own iterator does."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
