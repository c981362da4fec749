"""Sees whether tensorflow-io loads, where it is installed: its libraries fit one release of TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from pipegen.doctor.asking import reason, run_python
from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line

_PATIENCE = 120.0
_LOADS = "from tensorflow_io.python.ops import core_ops; dir(core_ops)"
"""Importing it loads nothing yet; looking into it does."""


def check(examination: Examination) -> Iterator[Line]:
    """Loads it in another process."""
    try:
        installed = version("tensorflow-io")
    except PackageNotFoundError:
        yield Line("tensorflow-io", "is not installed, and nothing here needs it", figures={"installed": None})
        return
    code, _, err = run_python(["-c", _LOADS], {**examination.machine.environment, "TF_CPP_MIN_LOG_LEVEL": "3"}, _PATIENCE)
    if code == 0:
        yield Line("tensorflow-io", f"{installed} loads", figures={"installed": installed, "loads": True})
        return
    why = next((line for line in reversed(err.splitlines()) if "undefined symbol" in line), reason(code, err, _PATIENCE))
    fact = f"{installed} does not load: {'its libraries are for another TensorFlow' if 'undefined symbol' in why else why}"
    remedy = "pip uninstall tensorflow-io, unless you need it: 0.37.1, the last release, is for TensorFlow 2.16"
    yield Line("tensorflow-io", fact, "warning", remedy, {"installed": installed, "loads": False, "why": why})
