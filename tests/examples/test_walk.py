"""The walk from shared specs to a served model: the page's files are written, and its commands run, as they stand there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "from-specs-to-a-server.md"
BLOCK = re.compile(r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]*)")?\n(?P<text>.*?)^```$', re.DOTALL | re.MULTILINE)
WHATEVER = "…"
"""Stands on the page for output that is not of interest or differs from run to run."""
pytestmark = [
    pytest.mark.tf,
    pytest.mark.nightly,
    pytest.mark.skipif(find_spec("pip") is None or find_spec("setuptools") is None, reason="pip and setuptools install the package"),
    pytest.mark.timeout(1200),
]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables of a shell in a new environment that sees pipegen and what it needs, and that installs without network."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True, capture_output=True, timeout=120)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (site / "here.pth").write_text(f"{ROOT}\n{sysconfig.get_paths()['purelib']}\n")
    commands = tmp_path / "env" / "bin"
    for name in ("pip", "pipegen"):
        (commands / name).write_text(f'#!/bin/sh\nexec "{commands}/python" -m {name} "$@"\n')
        (commands / name).chmod(0o755)
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "COLUMNS": "120", "NO_COLOR": "1"}
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_DEPS": "1", "PIP_QUIET": "2"}  # 0 is how pip spells that switch
    rest = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return rest | quiet | offline | {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path / "caches")}


def test_the_page_is_run_word_for_word(tmp_path: Path, environment: dict[str, str]) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(ROOT / "examples" / "shared", clone / "examples" / "shared")
    shutil.copytree(ROOT / "examples" / "quickstart" / "photos", clone / "examples" / "quickstart" / "photos")
    project, folder, commands = clone / "examples" / "shared", clone, 0
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        if block["kind"] == "console":
            for command, shown in session(block["text"]):
                folder = run(command, shown, folder, environment)
                commands += 1
        elif (project / block["title"]).exists():
            assert (project / block["title"]).read_text() == block["text"]
        else:
            (project / block["title"]).write_text(block["text"])
    assert commands > 8


def session(text: str) -> list[tuple[str, str]]:
    """The commands of a block, and what stands below each."""
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in text.removeprefix("$ ").split("\n$ ")]


def run(command: str, shown: str, folder: Path, environment: dict[str, str]) -> Path:
    """Runs a line, compares what it prints with the page, and gives the folder that the shell is in then."""
    line = f"set -e\n{command}\npwd >&3"
    out, into = os.pipe()
    try:
        ran = subprocess.run(
            ["bash", "-c", f"exec 3>&{into}\n{line}"],
            cwd=folder,
            env=environment,
            pass_fds=[into],
            capture_output=True,
            text=True,
            timeout=300,
        )
    finally:
        os.close(into)
    with os.fdopen(out) as stream:
        at = stream.read().strip()
    assert ran.returncode == 0, f"$ {command}\n{ran.stdout}{ran.stderr}"
    wanted = ".*".join(re.escape(part) for part in shown.strip().split(WHATEVER))
    assert re.fullmatch(wanted, ran.stdout.strip(), re.DOTALL), f"$ {command}\n{ran.stdout}{ran.stderr}"
    return Path(at)
