"""The example on sound: words are spoken, shown and learnt."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "keywords"


@pytest.mark.nightly  # by day the quickstart is run
@pytest.mark.tf
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng, which speaks the words, is not installed")
def test_words_are_spoken_shown_and_learnt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.chdir(tmp_path)
    for name in ("train", "make_words"):
        monkeypatch.delitem(sys.modules, name, raising=False)  # another example has one, too
    import train

    monkeypatch.setattr(sys, "argv", ["train.py", "--folder", "spoken"])
    learnt = train.main()
    assert "train: 360 examples, 11 batches of 32" in capsys.readouterr().out
    assert learnt > 0.5, "ten words: guessing is 0.1"
    assert (tmp_path / "keywords-preview.png").stat().st_size > 0
    monkeypatch.delitem(sys.modules, "train")
    monkeypatch.delitem(sys.modules, "make_words")
