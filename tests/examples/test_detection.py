"""The example on detection: scenes are made, shown and learnt from."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "detection"


@pytest.mark.tf
@pytest.mark.timeout(300)
@pytest.mark.parametrize("epochs", [2, pytest.param(12, marks=pytest.mark.nightly)])
def test_scenes_are_made_shown_and_learnt(epochs: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("skimage")
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.chdir(tmp_path)
    import train

    if epochs == 2:
        monkeypatch.setattr(train, "SCENES", {"train": 64, "validation": 16})
    monkeypatch.setattr(sys, "argv", ["train.py", "--epochs", str(epochs), "--folder", "scenes"])
    learnt = train.main()
    printed = capsys.readouterr().out
    assert f"train: {train.SCENES['train']} examples" in printed
    losses = [float(line.split("- loss: ")[1].split()[0]) for line in printed.splitlines() if "- loss: " in line]
    assert len(losses) == epochs
    assert losses[-1] < losses[0]
    assert learnt > 0.6 or epochs == 2
    content = json.loads((tmp_path / "scenes/train.json").read_text())
    assert {annotation["category_id"] for annotation in content["annotations"]} == {0, 1, 2}
    with Image.open(tmp_path / "scenes-preview.png") as sheet:
        shown = np.asarray(sheet).astype(int)
    assert ((shown[..., 2] - shown[..., 0]) > 100).any(), "boxes have colours on gray grounds"
    monkeypatch.delitem(sys.modules, "train")
    monkeypatch.delitem(sys.modules, "make_scenes")
