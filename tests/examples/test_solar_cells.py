"""The example on solar cells learns both targets from the table of an installed package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "solar_cells" / "train.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("solar_cells_train", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.tf
def test_without_the_package_it_says_what_to_install(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="pip install elpv-dataset"):
        script.find_table()


@pytest.mark.tf
@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_both_targets_are_learnt(script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    pytest.importorskip("elpv_dataset")
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--epochs", "3", "--size", "32"])
    scores = script.main()
    told = capsys.readouterr().out
    assert "train: 1,837 examples" in told
    assert "train            752   1,085" in told
    assert scores["kind_accuracy"] > 0.8, "the larger class alone is 59%"
    assert scores["defect_mae"] < 0.35, "the median alone is 0.375"
