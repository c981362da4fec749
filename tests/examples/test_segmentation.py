"""The example on segmentation: scenes are made, shown and learnt from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "segmentation"


@pytest.mark.nightly  # by day the quickstart is run
@pytest.mark.tf
@pytest.mark.timeout(300)
def test_scenes_are_made_shown_and_learnt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.chdir(tmp_path)
    for name in ("train", "make_scenes"):
        monkeypatch.delitem(sys.modules, name, raising=False)  # another example has one, too
    import train

    monkeypatch.setattr("keras.src.trainers.trainer.model_supports_jit", lambda _: False)  # XLA would compile for most of the time
    monkeypatch.setattr(train, "SCENES", {"train": 64, "validation": 16})
    monkeypatch.setattr(sys, "argv", ["train.py", "--epochs", "2", "--size", "32", "--folder", "scenes"])
    learnt = train.main()
    assert "train: 64 examples, 4 batches of 16" in capsys.readouterr().out
    assert learnt > 0.1
    with Image.open(tmp_path / "scenes" / "train" / "masks" / "000.png") as mask:
        assert mask.mode == "P"
        assert set(np.unique(np.asarray(mask))) == {0, 1, 2}
    with Image.open(tmp_path / "scenes-preview.png") as sheet:
        shown = np.asarray(sheet).astype(int)
    assert ((shown[..., 0] - shown[..., 2]) > 60).any(), "grass is red on a gray photo"
    monkeypatch.delitem(sys.modules, "train")
    monkeypatch.delitem(sys.modules, "make_scenes")
