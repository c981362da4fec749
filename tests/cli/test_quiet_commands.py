"""No command prints TensorFlow's start-up lines, whether or not `TF_CPP_MIN_LOG_LEVEL` is set to silence them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_helpers import GOOD, ROOT, Program

from docs.generated.command_pages import every_command

STARTS_TENSORFLOW: dict[str, list[str]] = {
    "validate": ["good.pipegen.yaml", "--data"],
    "test": ["good.pipegen.yaml"],
    "explain": ["good.pipegen.yaml", "--format", "html", "-o", "plan.html"],
    "preview": ["good.pipegen.yaml"],
    "export": ["good.pipegen.yaml", "augmented/"],
    "fit": ["fitted.pipegen.yaml"],
    "prepare": ["good.pipegen.yaml", "prepared/"],
    "eject": ["--graph", "good.pipegen.yaml", "graphs/"],
    "serve-export": ["good.pipegen.yaml", "small.keras", "served/1"],
    "bench": ["good.pipegen.yaml", "--steps", "2"],
    "profile": ["good.pipegen.yaml"],
    "tune": ["good.pipegen.yaml"],
    "report": ["good.pipegen.yaml"],
    "doctor": [],
    "version": [],
}
RUNS_ON = {"service dispatcher", "service worker"}
"""Commands that end when they are interrupted; `tests/service/` runs them."""
RUNS_ANOTHER_PROGRAM = {"monitor"}
"""Commands whose standard error is that of the program they run."""
WITHOUT_TENSORFLOW = {
    *("init", "show", "diff", "lock", "migrate", "steps", "ops", "rule", "schema", "help", "cache ls", "cache clear", "cache verify"),
}
TESTED = "tests: [{examples: {split: train, min: 1}}, {range: {feature: image, within: [0, 255]}}]\n"
FITTED = GOOD.replace("  - random_flip\n", "  - standardize\n")
MODEL = """
import keras
model = keras.Sequential([keras.Input((16, 16, 3)), keras.layers.Flatten(), keras.layers.Dense(2, activation="softmax")])
model.save("small.keras")
"""
STARTUP_LINE = re.compile(r"^(WARNING: All log|[IWE]\d{4} |\d{4}-\d\d-\d\d .*: [IWE] |To enable the following)", re.MULTILINE)


def test_every_command_is_listed_here_once() -> None:
    listed = [*STARTS_TENSORFLOW, *RUNS_ON, *RUNS_ANOTHER_PROGRAM, *WITHOUT_TENSORFLOW]
    assert sorted(listed) == sorted(name for name, _ in every_command())


def test_commands_start_tensorflow_in_one_place() -> None:
    """An import of TensorFlow elsewhere would print its lines."""
    importing = [
        path.name
        for path in sorted((ROOT / "pipegen" / "cli").rglob("*.py"))
        if re.search(r"^ *(import|from) (tensorflow|keras)\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert importing == ["common.py", "export.py", "service.py"], "the last two start it by `start_tensorflow` first"


def startup_lines(program: Program, folder: Path, command: str, level: str | None) -> list[str]:
    """The lines of TensorFlow on standard error of a command that succeeds."""
    (folder / "good.pipegen.yaml").write_text(GOOD + TESTED, encoding="utf-8")
    (folder / "fitted.pipegen.yaml").write_text(FITTED, encoding="utf-8")
    done = program(*command.split(), *STARTS_TENSORFLOW[command], env={"TF_CPP_MIN_LOG_LEVEL": level, "TF_ENABLE_ONEDNN_OPTS": None})
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    return [match[0] for match in STARTUP_LINE.finditer(done.stderr)]


@pytest.mark.tf
@pytest.mark.nightly  # by day tests/backend/test_quiet_start.py has a process that says nothing, and what is held back at each level
@pytest.mark.parametrize("level", [None, "2", "3"])
@pytest.mark.parametrize("command", STARTS_TENSORFLOW)
def test_no_command_prints_a_line_of_tensorflow(program: Program, photos: Path, tmp_path: Path, command: str, level: str | None) -> None:
    if command == "serve-export":
        import subprocess
        import sys

        subprocess.run([sys.executable, "-c", MODEL], cwd=tmp_path, check=True, capture_output=True)
    assert startup_lines(program, tmp_path, command, level) == []
