"""The values of pipelines with TensorFlow as users have it: with oneDNN, which is on by default, with XLA's optimization, and with nothing
replaced. Other tests run without, see `conftest.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ASKED = "from tensorflow.python.util import _pywrap_util_port as port; print(port.IsMklEnabled())"

pytestmark = [pytest.mark.tf, pytest.mark.nightly]

KERNELS = ("bicubic", "blocks", "masks", "perspective", "policies", "rows", "stream", "warp", "warp_lines")
PROVEN = {
    "steps": ["tests/ops"],
    "passes": ["tests/passes", *(f"tests/test_{name}.py" for name in ("pixels", "jax_batches", "serving", "evaluation_layer"))],
    "kernels": [f"tests/backend/test_{name}.py" for name in KERNELS],
}


@pytest.mark.parametrize("paths", PROVEN.values(), ids=PROVEN)
def test_what_is_proven_by_day_holds_with_onednn(paths: list[str]) -> None:
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "1", "XLA_FLAGS": ""}
    asked = subprocess.run([sys.executable, "-c", ASKED], env=environment, capture_output=True, text=True, check=True, timeout=600)
    if asked.stdout.split() != ["True"]:
        pytest.skip("this TensorFlow has no oneDNN")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "tf", "--as-users", *paths]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=3500)
    assert done.returncode == 0, done.stdout[-4000:]
