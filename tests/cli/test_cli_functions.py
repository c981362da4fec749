"""`--allow-code`: every command that runs a pipeline takes it, and none runs a function without."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cli_helpers import GOOD, Cli

CALLS = GOOD.replace("  - random_flip\n", "  - python: {function: my_pkg.filters:STEP}\n")
LEARNS = CALLS.replace("batch:", "  - standardize: {statistics: featurewise}\nbatch:")
RUNS = {
    "preview": ["preview", "calls.pipegen.yaml", "--rows", "1", "--draws", "1", "-o", "sheet.png"],
    "export": ["export", "calls.pipegen.yaml", "out", "--examples", "1"],
    "bench": ["bench", "calls.pipegen.yaml", "--steps", "1"],
    "fit": ["fit", "calls.pipegen.yaml"],
    "validate": ["validate", "calls.pipegen.yaml", "--data=1"],
}


@pytest.fixture(autouse=True)
def search_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where modules are looked for, which the option adds to."""
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.mark.tf
@pytest.mark.parametrize("command", list(RUNS))
def test_a_command_calls_what_is_allowed_and_nothing_else(command: str, cli: Cli, photos: Path) -> None:
    Path("calls.pipegen.yaml").write_text((LEARNS if command == "fit" else CALLS).replace("STEP", "blur"))
    refused = cli(*RUNS[command])
    assert refused.exit_code == 1
    assert "error[PG240]: `python` calls `my_pkg.filters:blur`" in refused.stdout + refused.stderr
    allowed = cli(*RUNS[command], "--allow-code", "my_pkg")
    assert allowed.exit_code == 0, allowed.output
    assert "PG240" not in allowed.output


@pytest.mark.tf
def test_files_that_a_function_fails_on_are_found_with_the_damaged_ones(cli: Cli, photos: Path) -> None:
    Path("calls.pipegen.yaml").write_text(CALLS.replace("STEP", "refuses"))
    result = cli("validate", "calls.pipegen.yaml", "--data=all", "--allow-code", "my_pkg")
    assert result.exit_code == 1
    assert "error[PG406]: cannot process" in result.stdout
    assert "`my_pkg.filters:refuses` raised ValueError: the first pixel is bright" in result.stdout


def test_a_permission_is_a_name_and_is_for_running(cli: Cli, tmp_path: Path) -> None:
    Path("calls.pipegen.yaml").write_text(CALLS.replace("STEP", "blur"))
    assert cli("validate", "calls.pipegen.yaml", "--strict").exit_code == 0
    wrong = cli("bench", "calls.pipegen.yaml", "--allow-code", "my-pkg")
    assert wrong.exit_code == 2
    assert "is not a valid name" in wrong.stderr
    idle = cli("validate", "calls.pipegen.yaml", "--allow-code", "my_pkg")
    assert idle.exit_code == 2
    assert "needs `--data`" in idle.stderr
