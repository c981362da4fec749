"""A plugin of pytest: which test functions ran which lines of a package, and their processor time. `COVERING` names the folder for it.

What fails without a mistake says nothing of one, so its name is noted, too.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

FOLDER = Path(os.environ["COVERING"])
MEASURED = os.environ["COVERING_SOURCE"].split(os.pathsep)

_seconds: dict[str, float] = defaultdict(float)
_needs_tf: set[str] = set()
_failed: set[str] = set()
_function = ""
_here = str(FOLDER / uuid.uuid4().hex)
_measured = coverage.Coverage(data_file=f"{_here}.lines", include=[f"{folder}/*" for folder in MEASURED], config_file=False)
_measured.set_option("run:relative_files", True)


def function_of(nodeid: str) -> str:
    """The test function of a case."""
    return nodeid.partition("[")[0]


def _measure_for(name: str) -> None:
    """Lines are a function's from now on. Each change writes to a file, so that the cases of a function share one."""
    global _function
    if name != _function:
        _measured.switch_context(name)
        _function = name


def pytest_sessionstart() -> None:
    """Begins to note lines: what runs before the first test is nobody's."""
    _measured.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Lines are the running function's."""
    name = function_of(item.nodeid)
    _measure_for(name)
    began = sum(os.times()[:4])
    if item.get_closest_marker("tf"):
        _needs_tf.add(name)
    try:
        return (yield)
    finally:
        _seconds[name] += sum(os.times()[:4]) - began


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Notes what failed."""
    if report.failed:
        _failed.add(function_of(report.nodeid))


def pytest_sessionfinish() -> None:
    """Writes what was noted, each process its own."""
    _measured.stop()
    _measured.save()
    told = {"seconds": _seconds, "needs_tf": sorted(_needs_tf), "failed": sorted(_failed)}
    Path(f"{_here}.json").write_text(json.dumps(told), encoding="utf-8")
