"""Runs what `pipegen diff` says of two specs: the same numbers are the same, and steps that stay draw what they drew."""

from __future__ import annotations

from pathlib import Path
from pipes import sections
from typing import Any

import numpy as np
import pytest
import yaml

import pipegen
from pipegen.comparing import compare

pytestmark = pytest.mark.tf

STEPS: list[Any] = [
    {"resize": {"size": 24}},
    {"random_flip": {"probability": 0}},
    {"random_flip": {"axis": "vertical"}},
    {"random_brightness": {"factor": 0.4}},
    {"rescale": {"to": [0, 1]}},
    {"normalize": {"mean": 0.5, "std": 0.25}},
]
EDITS = {
    "remove": ["random_flip"],
    "replace": {"rescale": {"rescale": {"scale": 0.0039215686274509803}}},
    "before": {"resize": [{"decode": {"channels": 3}}]},
}


def images(path: Path) -> list[Any]:
    pipe = pipegen.build(path, runtime={"jit": "never", "cache": "none"})
    return [np.asarray(x) for x, _ in pipe.dataset("train", epoch=1)]


@pytest.mark.nightly
def test_edited_steps_draw_what_they_drew(photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flip that never flips goes, and the one after it flips the same photographs; other words for a factor change no bit."""
    monkeypatch.chdir(tmp_path)
    Path("base.yaml").write_text(yaml.safe_dump(sections(photo_folder, transforms=STEPS)))
    Path("mine.yaml").write_text(yaml.safe_dump({"extends": "base.yaml", "transforms": EDITS}))
    Path("list.yaml").write_text(yaml.safe_dump({"extends": "base.yaml", "transforms": [STEPS[0], *STEPS[2:]]}))
    base, mine = images(Path("base.yaml")), images(Path("mine.yaml"))
    assert len(base) == len(mine) > 2
    assert all(np.array_equal(a, b) for a, b in zip(base, mine, strict=True))
    found = compare("base.yaml", "mine.yaml")
    assert found.draws.kept == ("random_flip#2", "random_brightness")
    assert [change.path for change in found.of("numbers")] == [("transforms", 1, "random_flip")], "that it never acts is not looked at"
    assert [step for step, _ in compare("base.yaml", "list.yaml").draws.moved] == ["random_flip"]


UNIT, PM1 = {"rescale": {"to": [0, 1]}}, {"rescale": {"to": [-1, 1]}}
SIZE = {"resize": {"size": 12}}
TORCH = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}


def steps(*own: Any, first: Any = SIZE, **sections: Any) -> dict[str, Any]:
    return {"transforms": [first, *own], **sections}


SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "to a range, a scale": (steps(UNIT), steps({"rescale": {"scale": 0.00392156862745098}})),
    "an offset of 0": (steps(UNIT), steps({"rescale": {"scale": 0.00392156862745098, "offset": 0}})),
    "a scale and an offset": (steps(PM1), steps({"rescale": {"scale": 0.00784313725490196, "offset": -1}})),
    "a preset": (steps(PM1), steps({"normalize": {"preset": "mobilenet_v2"}})),
    "a mean and a deviation": (steps(PM1), steps({"normalize": {"mean": 127.5, "std": 127.5}})),
    "one number for each channel": (steps(PM1), steps({"normalize": {"mean": [127.5] * 3, "std": [127.5] * 3}})),
    "a preset in two steps": (steps({"normalize": {"preset": "torch"}}), steps(UNIT, {"normalize": TORCH})),
    "two names of a preset": (steps({"normalize": {"preset": "caffe"}}), steps({"normalize": {"preset": "resnet50"}})),
    "two steps that rescale": (steps(PM1), steps(UNIT, {"rescale": {"scale": 2, "offset": -1}})),
    "rescale, then normalize": (steps(PM1), steps(UNIT, {"normalize": {"mean": 0.5, "std": 0.5}})),
    "two steps each": (
        steps(UNIT, {"rescale": {"scale": 2}}),
        steps({"rescale": {"scale": 2}}, {"rescale": {"scale": 0.00392156862745098}}),
    ),
    "three steps": (steps({"rescale": {"scale": 0.5}}), steps(*({"rescale": {"scale": factor}} for factor in (2, 0.5, 0.5)))),
    "a step that does nothing before": (steps(UNIT), steps({"rescale": {"scale": 1}}, UNIT)),
    "a step that does nothing after": (steps(UNIT), steps(UNIT, {"normalize": {"mean": 0, "std": 1}})),
    "a cast that does nothing": (steps(UNIT), steps(UNIT, {"cast": {"dtype": "float32"}})),
    "a cast before": (steps(UNIT), steps({"cast": {"dtype": "float32"}}, UNIT)),
    "both sides of a size": (steps(), steps(first={"resize": {"size": [12, 12]}})),
    "a method by default": (steps(), steps(first={"resize": {"size": 12, "method": "bilinear"}})),
    "no arguments": (steps("random_flip"), steps({"random_flip": {"axis": "horizontal", "probability": 0.5}})),
    "a number for a range": (steps({"random_rotation": {"degrees": 10}}), steps({"random_rotation": {"degrees": [-10, 10]}})),
    "a factor for a range": (steps({"random_brightness": {"factor": 0.2}}), steps({"random_brightness": {"factor": [0.8, 1.2]}})),
    "a float for a whole number": (steps({"random_rotation": {"degrees": 10}}), steps({"random_rotation": {"degrees": 10.0}})),
    "the only feature": (steps("random_flip"), steps({"random_flip": {"feature": "image"}})),
    "the splits by default": (steps("random_flip"), steps({"random_flip": {"when": "train"}})),
    "the id by default": (steps("random_flip"), steps({"random_flip": {"id": "random_flip"}})),
    "a decode by default": (steps(), {"transforms": [{"decode": {"channels": 3}}, SIZE]}),
    "an encoding by default": (steps(), steps(output={"encode": {"label": "int"}})),
    "an output by default": (steps(), steps(output={"x": "image", "y": "label"})),
    "a name, and a runtime": (steps(), steps(name="other", runtime={"prefetch": 3})),
}
OTHER: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "256 levels": (steps(UNIT), steps({"rescale": {"scale": 0.00390625}})),
    "a scale of few digits": (steps(UNIT), steps({"rescale": {"scale": 0.003921}})),
    "another preset": (steps({"normalize": {"preset": "torch"}}), steps({"normalize": {"preset": "mobilenet_v2"}})),
    "channels in another order": (steps({"normalize": {"mean": [9, 8, 7]}}), steps({"normalize": {"mean": [7, 8, 9]}})),
    "two steps that come to something else": (steps(PM1), steps(UNIT, {"rescale": {"scale": 2, "offset": -2}})),
    "two steps in another order": (steps({"rescale": {"scale": 2}}, {"rescale": {"scale": 1, "offset": 5}}),
                                   steps({"rescale": {"scale": 1, "offset": 5}}, {"rescale": {"scale": 2}})),
    "bytes between": (steps({"rescale": {"scale": 0.5}}),
                      steps({"rescale": {"scale": 0.25}}, {"cast": {"dtype": "uint8"}}, {"rescale": {"scale": 2}})),
    "half floats between": (steps(UNIT), steps(UNIT, {"cast": {"dtype": "float16"}}, {"cast": {"dtype": "float32"}})),
    "bytes at the end": (steps({"rescale": {"scale": 0.5}}), steps({"rescale": {"scale": 0.5}}, {"cast": {"dtype": "uint8"}})),
    "colours before and after": (steps({"random_brightness": {"factor": 0.2}}, UNIT), steps(UNIT, {"random_brightness": {"factor": 0.2}})),
    "one side": (steps({"random_rotation": {"degrees": 10}}), steps({"random_rotation": {"degrees": [0, 10]}})),
    "another id": (steps("random_flip"), steps({"random_flip": {"id": "other"}})),
    "flips that change places": (steps("random_flip", {"random_flip": {"axis": "vertical"}}),
                                 steps({"random_flip": {"axis": "vertical"}}, "random_flip")),
    "every split": (steps("random_flip"), steps({"random_flip": {"when": "all"}})),
    "another method": (steps(), steps(first={"resize": {"size": 12, "method": "nearest"}})),
    "antialias": (steps(), steps(first={"resize": {"size": 12, "antialias": True}})),
    "another encoding": (steps(), steps(output={"encode": {"label": "one_hot"}})),
    "another seed": (steps("random_flip"), steps("random_flip", seed=1)),
}  # fmt: skip
BUILT_BY_DAY = ("rescale, then normalize", "bytes between")
"""The others are built by night; what `diff` says of them is looked at by day."""


def both(folder: Path, tmp_path: Path, name: str) -> tuple[Path, Path]:
    pair = (SAME | OTHER)[name]
    files = tmp_path / "a.yaml", tmp_path / "b.yaml"
    for file, own in zip(files, pair, strict=True):
        file.write_text(yaml.safe_dump(sections(folder, **own)))
    return files


@pytest.mark.parametrize("name", [*SAME, *OTHER])
def test_the_same_numbers_are_said_of_pairs_that_have_them(photo_folder: Path, tmp_path: Path, name: str) -> None:
    a, b = both(photo_folder, tmp_path, name)
    assert compare(str(a), str(b)).same_numbers == compare(str(b), str(a)).same_numbers == (name in SAME)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("name", [n if n in BUILT_BY_DAY else pytest.param(n, marks=pytest.mark.nightly) for n in (*SAME, *OTHER)])
@pytest.mark.parametrize("jit", ["never", pytest.param("auto", marks=pytest.mark.nightly)])
def test_pairs_that_are_said_to_be_the_same_have_equal_tensors(photo_folder: Path, tmp_path: Path, name: str, jit: str) -> None:
    def tensors(file: Path) -> list[Any]:
        pipe = pipegen.build(file, runtime={"jit": jit, "cache": "none"})
        return [np.asarray(part) for split in pipe for batch in pipe.dataset(split, epoch=1) for part in batch]

    old, new = map(tensors, both(photo_folder, tmp_path, name))
    equal = len(old) == len(new) and all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(old, new, strict=True))
    assert equal == (name in SAME)


def test_settings_that_round_in_another_way_are_said_to() -> None:
    from pipegen.comparing import Comparison, verdict
    from pipegen.spec.changes import Change

    said = [verdict(Comparison(("a", "b"), (), (Change("speed", ("runtime", key), "x → y", "how fast"),))) for key in ("jit", "prefetch")]
    assert said == [
        "The model sees the same numbers, up to rounding; only speed differs.",
        "The model sees the same numbers; only speed differs.",
    ]
