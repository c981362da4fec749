"""Running the command line, in this process or as one of its own, in a working directory of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import GOOD, ROOT, Cli, Program, program_tree, write_images


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs a command in this process, in a working directory of its own."""
    from click.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERMINAL_WIDTH", "120")

    def run(*args: str, stdin: str | bytes | None = None) -> Any:
        return CliRunner().invoke(program_tree(), list(args), input=stdin, prog_name="pipegen")

    return run


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Runs a command as a process, in a working directory of its own."""

    def run(*args: str, env: dict[str, str | None] | None = None, **own: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pipegen", *args],
            cwd=tmp_path,
            env={name: value for name, value in {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}.items() if value is not None},
            capture_output=True,
            text=True,
            check=False,
            **own,
        )

    return run


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """`good.pipegen.yaml` in the working directory."""
    path = tmp_path / "good.pipegen.yaml"
    path.write_text(GOOD, encoding="utf-8")
    return path


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """`photos/` in the working directory: eight JPEGs in each of two classes."""
    for name in ("rose", "tulip"):
        write_images(tmp_path / "photos" / name, 8)
    return tmp_path / "photos"
