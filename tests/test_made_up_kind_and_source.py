"""A made-up kind and a made-up source, in one file each, meet each other and those of the package: nothing else knows of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tf
HERE = Path(__file__).parent


def test_they_meet(tmp_path: Path) -> None:
    paths = os.pathsep.join([str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(HERE / "made_up" / "meet.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": paths}, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    compared = json.loads(done.stdout.splitlines()[-1])
    assert ["notes", "circles"] in compared
    assert {op for op, name in compared if name == "circles"} == {"notes", "csv", "jsonl", "tfrecord", "webdataset"}
    assert {name for op, name in compared if op == "notes"} > {"mask", "numbers", "label", "vector", "boxes", "parts", "face"}
