"""The example on detection: scenes are made, shown and learnt from."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipegen.phases.compilation import collect_data, load

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "detection"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    pytest.importorskip("skimage")
    monkeypatch.delitem(sys.modules, "make_scenes", raising=False)  # another example has one, too
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.nightly
def test_scenes_fit_the_spec(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from make_scenes import write_scenes

    write_scenes(here / "scenes", {"train": 32, "validation": 16})
    spec = load(FOLDER / "scenes.pipegen.yaml", params={"data": str(here / "scenes")})
    manifest = collect_data(spec)
    assert [manifest.num_examples(split) for split in ("train", "validation")] == [32, 16]
    assert manifest.listing.classes["labels"] == ("coin", "cup", "retina")
    assert not manifest.listing.notes
    monkeypatch.delitem(sys.modules, "make_scenes")


@pytest.mark.tf
@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_scenes_are_shown_and_learnt(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    for name in ("train", "make_scenes"):
        monkeypatch.delitem(sys.modules, name, raising=False)  # another example has one, too
    import train

    monkeypatch.setattr(sys, "argv", ["train.py", "--epochs", "12", "--folder", "scenes"])
    learnt = train.main()
    printed = capsys.readouterr().out
    assert f"train: {train.SCENES['train']} examples" in printed
    losses = [float(line.split("- loss: ")[1].split()[0]) for line in printed.splitlines() if "- loss: " in line]
    assert len(losses) == 12
    assert losses[-1] < losses[0]
    assert learnt > 0.6
    content = json.loads((here / "scenes/train.json").read_text())
    assert {annotation["category_id"] for annotation in content["annotations"]} == {0, 1, 2}
    with Image.open(here / "scenes-preview.png") as sheet:
        shown = np.asarray(sheet).astype(int)
    assert ((shown[..., 2] - shown[..., 0]) > 100).any(), "boxes have colours on gray grounds"
    monkeypatch.delitem(sys.modules, "train")
    monkeypatch.delitem(sys.modules, "make_scenes")
