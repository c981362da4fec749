"""The parts of the nightly tests: together all of them, none twice, and each short enough."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from nightly_parts import PARTS, files, parts_of, table

ROOT = Path(__file__).parents[1]
NIGHTLY = files(ROOT)


def test_each_file_with_nightly_tests_is_in_one_part() -> None:
    assert len(NIGHTLY) > 100
    assert {path: found for path in NIGHTLY if len(found := parts_of(path)) != 1} == {}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_has_no_path_in_vain_and_ends_in_time(name: str) -> None:
    part = PARTS[name]
    assert [own for own in part.paths if not any(path == own or path.startswith(f"{own}/") for path in NIGHTLY)] == []
    assert part.minutes < 30


def test_the_page_has_the_parts() -> None:
    assert f"<!-- nightly: parts -->\n{table()}\n" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.nightly
def test_a_part_collects_its_nightly_tests_alone() -> None:
    """Of a part with few imports, as pytest counts them."""
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "--collect-only", "--part", "arguments"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=200)
    assert {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line} == {
        "tests/ops/test_wrong_arguments.py::test_every_wrong_argument_is_judged"
    }


@pytest.mark.nightly
def test_cases_are_spread_over_the_day_and_the_night(tmp_path: Path) -> None:
    """Of seven cases three run by day, and the other four by night; one that is named runs."""
    mark = "mark" + ".by_day(3)"  # apart: this file has no nightly tests
    text = f"import pytest\n@pytest.{mark}\n@pytest.mark.parametrize('n', range(7))\ndef test_it(n): pass\n"
    (tmp_path / "test_cases.py").write_text(text)

    def ran(*more: str) -> list[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "--collect-only", *more]
        own = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
        done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, check=True, timeout=100)
        return re.findall(r"::test_it\[(\d)\]", done.stdout)

    assert (by_day := ran()) == ["0", "2", "4"]
    assert sorted(by_day + ran("-m", "nightly")) == [*"0123456"]
    assert ran("test_cases.py::test_it[6]") == ["6"]
