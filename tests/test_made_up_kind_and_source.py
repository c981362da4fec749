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


KINDS = {"mask", "depth", "label", "tags", "vector", "weight", "boxes", "name", "score", "parts", "numbers", "face", "spots"}
SOURCES = {"csv", "jsonl", "tfrecord", "webdataset"}


@pytest.mark.parametrize(
    ("kinds", "sources"), [({"boxes"}, {"tfrecord"}), pytest.param(KINDS, SOURCES, marks=pytest.mark.nightly)], ids=["few", "all"]
)
def test_they_meet(kinds: set[str], sources: set[str], tmp_path: Path, as_users: bool) -> None:
    paths = os.pathsep.join([str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    given = [str(tmp_path), ",".join(kinds), ",".join(sources), "as users" if as_users else "quick"]
    command = [sys.executable, str(HERE / "made_up" / "meet.py"), *given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env={**os.environ, "PYTHONPATH": paths}, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    compared = json.loads(done.stdout.splitlines()[-1])
    assert {op for op, name in compared if name == "circles"} == {"notes", *sources}
    assert {name for op, name in compared if op == "notes"} == {"circles", *kinds}
