"""What a pipeline opened is closed when the pipeline is gone, and not while anything that was made of it is used."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path
from pipes import RESIZE, sections, stream, write_photos
from typing import Any

import numpy as np
import pytest

import pipegen

pytestmark = pytest.mark.tf


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("released")
    write_photos(root / "photos", per_class=1)
    images = np.arange(8 * 24 * 24 * 3, dtype=np.int64).astype(np.uint8).reshape(8, 24, 24, 3)
    np.savez(root / "a.npz", image=images, label=np.arange(8) % 3)
    return root


def spec_of(folder: Path, kind: str) -> dict[str, Any]:
    if kind == "folder":
        return sections(folder / "photos", transforms=[RESIZE], splits={}, batch={"size": 2})
    arrays = {"arrays": {"path": str(folder / "a.npz"), "features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}}
    if kind == "arrays":
        return {"pipegen": 1, "source": arrays, "transforms": [RESIZE], "batch": {"size": 2}}
    photos = {"image_folder": {"path": str(folder / "photos")}}
    mix = {"epoch": "shortest", "parts": {"a": {"source": photos}, "b": {"source": arrays}}}
    return {"pipegen": 1, "source": {"mix": mix}, "transforms": [RESIZE], "batch": {"size": 2}}


def opened(folder: Path) -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue
    return sorted(name for name in found if name.startswith(str(folder)))


def build(folder: Path, kind: str, cache: Any) -> pipegen.Pipeline:
    return pipegen.build(spec_of(folder, kind), runtime={"jit": "never", "cache": cache})


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are listed by Linux")
@pytest.mark.parametrize("kind", ["folder", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("arrays", "mix"))])
def test_files_of_a_cache_are_closed_with_the_pipeline(folder: Path, tmp_path: Path, kind: str) -> None:
    for epoch in range(2):
        pipe = build(folder, kind, {"disk": str(tmp_path / "cache")})
        for _ in pipe.dataset("train", epoch=epoch):
            pass
        assert opened(tmp_path) or opened(folder), "the test would find nothing"
        engine = weakref.ref(pipe._engine)
        del pipe
        gc.collect()
        assert engine() is None
        assert opened(tmp_path) + opened(folder) == []


@pytest.mark.parametrize("use", ["iterator", *(pytest.param(use, marks=pytest.mark.nightly) for use in ("dataset", "derived", "train"))])
def test_what_was_made_of_a_pipeline_goes_on_without_it(folder: Path, tmp_path: Path, use: str) -> None:
    expected = stream(build(folder, "folder", "none").dataset("train", epoch=0))
    pipe = build(folder, "folder", {"disk": str(tmp_path / "cache")})
    made: Any = pipe.train if use == "train" else pipe.dataset("train", epoch=0)
    if use == "derived":
        made = made.map(lambda x, y: (x, y)).prefetch(1)
    if use == "iterator":
        made = iter(made)
    del pipe
    gc.collect()
    got = stream(made)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)
