"""The recipe of detection on a few photographs: it proves that the script works, and measures nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the harness is not part of the installed package

import pipegen
from benchmarks import detection

pytestmark = pytest.mark.tf


@pytest.mark.nightly  # it is built as the other benchmarks are
def test_boxes_lie_on_their_images_and_both_systems_have_a_row(photo_folder: Path, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    files = sorted(photo_folder.rglob("*.jpg"))[:6]
    boxes = detection.made_boxes(files)
    x, y = next(iter(pipegen.build(detection.spec_of(photo_folder, files, boxes, tmp_path, 3)).train))
    assert x.shape == (3, detection.SIZE, detection.SIZE, 3)
    corners = y["boxes"].numpy()[y["there"].numpy()]
    assert len(corners) > 0
    assert ((corners >= 0) & (corners <= detection.SIZE)).all()

    def left_out(*_: Any) -> Any:
        raise ImportError("No module named 'torch'")

    monkeypatch.setattr(detection, "peer", left_out)
    detection.main([str(photo_folder), "--repeats", "1", "--seconds", "0.1", "--batch", "2"])
    said = capsys.readouterr().out
    assert "pipegen" in said
    assert "left out, since it does not import" in said
