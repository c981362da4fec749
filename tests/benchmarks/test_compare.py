"""Two checkouts are compared in one run: here one with itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.tf, pytest.mark.nightly]


def compared(folder: Path, other: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.compare", str(other), str(folder), "--recipes", "geometric", "--out", str(out)]
    effort = ["--turns", "4", "--seconds", "0.5"]
    return subprocess.run([*command, *effort], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


def test_a_checkout_is_as_fast_as_itself(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(8):
            Image.new("RGB", (60, 50), (30 * number, 9, 9)).save(tmp_path / "photos" / name / f"{number}.jpg")
    done = compared(tmp_path / "photos", ROOT, tmp_path / "found.json")
    assert done.returncode == 0, done.stderr[-2000:]
    (found,) = json.loads((tmp_path / "found.json").read_text())
    assert (found["recipe"], found["turns"]) == ("geometric", 4)
    assert found["quartiles"][0] <= found["median"] <= found["quartiles"][1]
    assert 0.5 < found["median"] < 2
    assert "geometric" in done.stdout
    gone = compared(tmp_path / "photos", tmp_path / "no checkout", tmp_path / "gone.json")
    assert gone.returncode == 2
    assert "holds no `pipegen/`" in gone.stderr
