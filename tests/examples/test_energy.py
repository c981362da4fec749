"""The example on time series: readings are made, shown and learnt from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "energy"


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.timeout(300)
def test_the_next_day_is_predicted_better_than_by_the_day_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    monkeypatch.delitem(sys.modules, "train", raising=False)  # another example has one, too
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.chdir(tmp_path)
    import train

    monkeypatch.setattr(sys, "argv", ["train.py", "--epochs", "3", "--folder", "readings"])
    error, naive = train.main()
    assert error < naive
    assert "train: " in capsys.readouterr().out
    assert (tmp_path / "energy-preview.png").stat().st_size > 0
    monkeypatch.delitem(sys.modules, "train")
