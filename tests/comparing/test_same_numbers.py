"""Runs what `pipegen diff` says of two specs: the same numbers are the same, and steps that stay draw what they drew."""

from __future__ import annotations

from pathlib import Path
from pipes import sections
from typing import Any

import numpy as np
import pytest
import yaml

import pipegen
from pipegen.comparing.comparison import compare

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
