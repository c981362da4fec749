"""Files of what was learned: found again, never half there, and another one for whatever they come from."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planning import load_spec

from pipegen.cache.store import read_statistics, statistics_file, statistics_key, write_statistics
from pipegen.data.manifest import Manifest
from pipegen.kept import kept_folder
from pipegen.ops.arguments.learned import Moments, Whitening
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.registry import transforms
from pipegen.ops.sources.listing.base import Listing, Location
from pipegen.plan.evaluation_plans import fitting_plan, learning_steps
from pipegen.spec.models import Runtime

MOMENTS = Moments(480, (0.1, 1 / 3, -250.25), (0.0, 1e-300, 1e18))
LEARNS: dict[str, Any] = {"standardize": {"statistics": "featurewise"}}
BASE: dict[str, Any] = {"transforms": [{"resize": {"size": 32}}, "random_flip", LEARNS]}
LOCATION = Location.below("/data", (f"{c}/{i}.jpg" for c in "ab" for i in range(5)), (100,) * 10)
LISTING = Listing.labelled("/data", LOCATION, np.repeat([0, 1], 5), "ab")
MANIFEST = Manifest(LISTING, {"train": (0, 1, 2, 5, 6, 7), "validation": (3, 4, 8, 9)}, "image_folder")


def key(manifest: Manifest = MANIFEST, **own: Any) -> str:
    loaded = load_spec({**BASE, **own})
    (index, _), *_ = learning_steps(loaded)

    def locate(*_args: Any, **_kwargs: Any) -> Any:
        raise AssertionError("nothing is wrong here")

    spec, plan = fitting_plan(loaded, index, "image", locate, loaded.source.infer())
    return statistics_key(spec, plan, manifest)


def test_what_was_written_is_read_bit_for_bit(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "down"
    assert read_statistics(folder, "k", Moments) is None
    write_statistics(folder, "k", MOMENTS, "flowers", "resize")
    assert read_statistics(folder, "k", Moments) == MOMENTS
    assert [p.name for p in folder.iterdir()] == ["k.json"], "nothing else is left behind"
    assert json.loads(statistics_file(folder, "k", Moments).read_text())["steps"] == "resize"


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"pipegen_statistics": 1}', '{"pipegen_statistics": 2, "key": "k", "count": 1, "mean": [1], "squares": [1]}']
    + [
        json.dumps({"pipegen_statistics": 1, "key": "k", "count": 4, "mean": [1.0], "squares": [1.0], **wrong})
        for wrong in ({"key": "other"}, {"count": 0}, {"mean": []}, {"mean": [1, 2]}, {"squares": [-1]}, {"mean": [float("nan")]})
    ],
)
def test_what_is_not_whole_is_not_there(content: str, tmp_path: Path) -> None:
    statistics_file(tmp_path, "k", Moments).write_text(content)
    assert read_statistics(tmp_path, "k", Moments) is None
    write_statistics(tmp_path, "k", MOMENTS, "", "")
    assert read_statistics(tmp_path, "k", Moments) == MOMENTS


def test_a_matrix_is_kept_as_arrays(tmp_path: Path) -> None:
    step = transforms()["whiten"]()
    assert isinstance(step, FittedTransform)
    numbers = step.gather([np.random.default_rng(0).normal(size=(50, 2, 3, 1))])
    assert read_statistics(tmp_path, "k", Whitening) is None
    write_statistics(tmp_path, "k", numbers, "flowers", "resize")
    again = read_statistics(tmp_path, "k", Whitening)
    assert again == numbers
    assert isinstance(again, Whitening)
    assert again.matrix.tobytes() == numbers.matrix.tobytes()  # type: ignore[attr-defined]
    assert [p.name for p in tmp_path.iterdir()] == ["k.npz"]
    shutil.copy(tmp_path / "k.npz", tmp_path / "other.npz")
    assert read_statistics(tmp_path, "other", Whitening) is None, "a file says itself what it is of"
    whole = statistics_file(tmp_path, "k", Whitening).read_bytes()
    statistics_file(tmp_path, "k", Whitening).write_bytes(whole[:-30])
    assert read_statistics(tmp_path, "k", Whitening) is None


@pytest.mark.parametrize("ends_at", ["fsync", "replace"])
def test_a_writer_that_ends_early_leaves_what_was_there(ends_at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_statistics(tmp_path, "k", MOMENTS, "", "")

    def end(*_args: Any, **_own: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, ends_at, end)
        with pytest.raises(KeyboardInterrupt):
            write_statistics(tmp_path, "k", replace(MOMENTS, count=1), "", "")
    assert read_statistics(tmp_path, "k", Moments) == MOMENTS
    assert [p.name for p in tmp_path.iterdir()] == ["k.json"]


def test_where_they_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept_folder(Runtime.model_validate({"cache": {"disk": "/ssd"}}).cache, "statistics") == Path("/ssd/statistics")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept_folder(Runtime().cache, "statistics") == tmp_path / "pipegen" / "statistics"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert kept_folder(Runtime().cache, "statistics") == tmp_path / "home" / ".cache" / "pipegen" / "statistics"


@pytest.mark.parametrize(
    "own",
    [
        {"transforms": [{"resize": {"size": 32}}, LEARNS, "random_flip", {"random_erasing": {"fill": {"constant": 0}}}]},
        {"transforms": [{"resize": {"size": 32, "id": "other"}}, {"random_rotation": {"degrees": 9}}, LEARNS]},
        {"transforms": [{"resize": {"size": 32}}, {"standardize": {"statistics": "featurewise", "scale": False, "epsilon": 0.5}}]},
        {"batch": {"size": 4, "remainder": "keep"}},
        {"seed": 5},
        {"epoch": {"steps": 7}},
        {"output": {"y": None, "dtype": "float16", "channels": "first"}},
        {"runtime": {"cache": {"disk": "elsewhere/"}, "jit": "never", "threads": 1}},
        {"source": {"image_folder": {"path": "/mnt/moved"}}},
    ],
    ids=str,
)
def test_what_comes_later_leaves_them_alone(own: dict[str, Any]) -> None:
    assert key(**own) == key()


@pytest.mark.parametrize(
    "own",
    [
        {"transforms": [{"resize": {"size": 33}}, LEARNS]},
        {"transforms": [{"resize": {"size": 32, "antialias": True}}, LEARNS]},
        {"transforms": [{"resize": {"size": 32}}, {"rescale": {"to": [0, 1]}}, LEARNS]},
        {"transforms": [{"resize": {"size": 40}}, {"random_crop": {"size": 32}}, LEARNS]},
        {"transforms": [{"decode": {"exif": "ignore"}}, {"resize": {"size": 32}}, LEARNS]},
        {"source": {"image_folder": {"path": "data/", "pattern": "*.jpg"}}},
    ],
    ids=str,
)
def test_what_comes_before_asks_for_others(own: dict[str, Any]) -> None:
    assert key(**own) != key()


def test_what_is_learned_is_kept_apart() -> None:
    steps = [LEARNS, {"whiten": {}}, {"whiten": {"epsilon": 0.1}}, {"whiten": {"center": "channel"}}]
    assert len({key(transforms=[{"resize": {"size": 32}}, step]) for step in steps}) == 4
    named = {"whiten": {"method": "zca", "id": "w", "when": "eval"}}
    assert key(transforms=[{"resize": {"size": 32}}, named]) == key(transforms=[{"resize": {"size": 32}}, "whiten"])


def test_other_data_and_another_training_split_ask_for_others() -> None:
    larger = replace(MANIFEST, listing=replace(LISTING, location=replace(LOCATION, sizes=(101,) + (100,) * 9)))
    dealt = replace(MANIFEST, members={"train": (0, 1, 3, 5, 6, 7), "validation": (2, 4, 8, 9)})
    smaller = replace(MANIFEST, members={"train": (0, 1, 2, 5, 6), "validation": (3, 4, 7, 8, 9)})
    assert len({key(), key(larger), key(dealt), key(smaller)}) == 4
    validated = replace(MANIFEST, members={"train": MANIFEST.members["train"], "validation": (3,)})
    assert key(validated) == key(), "what is validated on does not matter"


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_others_lay_in_a_files_place_is_not_read_and_not_written_through(tmp_path: Path, kind: str) -> None:
    folder, elsewhere = tmp_path / "shared", tmp_path / "elsewhere"
    write_statistics(elsewhere, "k", MOMENTS, "flowers", "resize")
    before = statistics_file(elsewhere, "k", Moments).read_bytes()
    folder.mkdir()
    place = statistics_file(folder, "k", Moments)
    place.symlink_to(statistics_file(elsewhere, "k", Moments)) if kind == "link" else os.mkfifo(place)
    assert read_statistics(folder, "k", Moments) is None
    write_statistics(folder, "k", replace(MOMENTS, count=3), "other", "resize")
    assert statistics_file(elsewhere, "k", Moments).read_bytes() == before
    assert read_statistics(folder, "k", Moments) == replace(MOMENTS, count=3)
