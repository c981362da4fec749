"""`pipegen monitor` as people call it."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pipegen.cli.commands import app

ROOT = Path(__file__).resolve().parents[2]

TRAINS = """\
import sys, time
from types import SimpleNamespace
from pipegen.waiting import for_monitor
tell = for_monitor()
train = SimpleNamespace(split="train", seconds=0.0, batches=0)
for _ in range(40):
    time.sleep(0.06)  # waits, ...
    train.seconds, train.batches = train.seconds + 0.06, train.batches + 1
    tell(train)
    time.sleep(0.02)  # ... and works
sys.stderr.write("its own complaint\\n")
print(sys.stdin.read().upper(), sys.argv[1:])
raise SystemExit(4)
"""
"""Stands for a training: what the datasets of a pipeline do is called here by hand."""


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from typer.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERMINAL_WIDTH", "140")
    return lambda *args: CliRunner().invoke(app, ["monitor", *args], prog_name="pipegen")


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A run of 3 s, its record and its pictures."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "train.py").write_text(TRAINS)
    options = ["--out", "run.jsonl", "--picture", "run.html", "--live", "1", "--every", "0.2"]
    command = [sys.executable, "-m", "pipegen", "monitor", *options, "--", sys.executable, "train.py", "--data", "x", "--out"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, input="typed", capture_output=True, text=True, timeout=60, env=environment, check=False)
    return folder, done


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]


@pytest.mark.nightly
def test_the_child_has_its_streams_its_arguments_and_its_code(watched: Any) -> None:
    _, done = watched
    assert done.stdout == "TYPED ['--data', 'x', '--out']\n"
    assert done.returncode == 4
    assert "its own complaint\n" in done.stderr
    assert re.search(r"^\d\.\d s  cpu .* · train waits \d+% of \d+ steps$", done.stderr, re.MULTILINE), "live lines"
    assert "wrote run.jsonl, run.html" in done.stderr


def test_the_record_has_samples_and_the_wait_of_every_step(watched: Any) -> None:
    first, *between, last = rows(watched[0])
    assert first["event"] == "start"
    assert first["command"][1:] == ["train.py", "--data", "x", "--out"]
    assert first["gpus"] or first["no_gpu"]
    samples = [row for row in between if "run" in row]
    assert len(samples) >= 4
    assert all(len(row["cpu"]) == first["cores"] for row in samples)
    assert max(row["run"]["rss"] for row in samples) > 5e6
    steps = [row["steps"] for row in between if "steps" in row]
    assert [s["first"] for s in steps] == [sum(len(t["wait_ms"]) for t in steps[:i]) for i in range(len(steps))]
    waits, whole = ([ms for s in steps for ms in s[name]] for name in ("wait_ms", "step_ms"))
    assert len(waits) == len(whole) == 40
    assert sorted(waits)[20] == pytest.approx(60, rel=0.15)
    assert 80 <= sorted(whole)[20] < 120
    assert (last["code"], last["signal"]) == (4, None)


def test_the_monitor_takes_less_than_a_hundredth_of_a_core(watched: Any) -> None:
    last = rows(watched[0])[-1]
    assert 0 < last["monitor_share"] < 0.01, "though it was asked for five samples a second"


def test_the_page_has_a_picture_and_is_safe(watched: Any) -> None:
    page = (watched[0] / "run.html").read_text()
    found = re.search('data:image/svg.xml;base64,([^"]+)', page)
    assert found is not None
    assert ElementTree.fromstring(base64.b64decode(found[1])).tag.endswith("svg")
    assert "default-src &#x27;none&#x27;" in page
    assert "<script" not in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "The model waited" in page


def test_an_earlier_record_is_shown_and_drawn(watched: Any, cli: Any, tmp_path: Path) -> None:
    record = str(watched[0] / "run.jsonl")
    shown = cli("--read", record, "--picture", "again.png")
    assert shown.exit_code == 0, shown.output
    assert re.search(r"The model waited (6|7)\d% of the time of its train steps: `pipegen profile`", shown.output)
    assert "exit code 4" in shown.output
    assert (tmp_path / "again.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(cli("--read", record, "--format", "json").output)
    assert found["waits"]["train"]["steps"] == 40
    assert 0.6 < found["waits"]["train"]["share"] < 0.8


def test_a_record_that_was_cut_off_is_shown_as_far_as_it_goes(watched: Any, cli: Any, tmp_path: Path) -> None:
    text = (watched[0] / "run.jsonl").read_text()
    (tmp_path / "cut.jsonl").write_text(text[: len(text) * 2 // 3])
    shown = cli("--read", "cut.jsonl")
    assert shown.exit_code == 0, shown.output
    assert "the end is not in the record" in shown.output


@pytest.mark.parametrize(("args", "code", "says"), [
    ((), 2, "pipegen monitor -- python train.py"),
    (("--read", "none.jsonl"), 2, "cannot read none.jsonl: no such file or directory"),
    (("--read", "empty"), 2, "empty is empty"),
    (("--read", "text"), 2, "line 1 is not from a record"),
    (("--read", "text", "--", "true"), 2, "shows an earlier run"),
    (("--picture", "run.gif", "--", "true"), 2, "ends in .html, .svg, .png, .pdf"),
    (("--picture", "no/run.svg", "--", "true"), 2, "there is no folder no"),
    (("--out", "no/run.jsonl", "--", "true"), 2, "there is no folder no"),
    (("--", "pyhton", "train.py"), 127, "command `pyhton` not found"),
    (("pyhton", "train.py", "--epochs", "3"), 127, "command `pyhton` not found"),
])  # fmt: skip
def test_what_cannot_be_done_is_said(cli: Any, tmp_path: Path, args: tuple[str, ...], code: int, says: str) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("hello\nthere\n")
    result = cli(*args)
    assert result.exit_code == code, result.output
    assert says in re.sub(r"[\s│]+", " ", result.output)


def test_a_run_that_ends_at_once_has_a_record_and_a_picture(cli: Any, tmp_path: Path) -> None:
    assert cli("--out", "run.jsonl", "--picture", "run.svg", "--", "true").exit_code == 0
    assert [row["event"] for row in rows(tmp_path)] == ["start", "end"]
    assert (tmp_path / "run.svg").exists()
    assert cli("--read", "run.jsonl").exit_code == 0


@pytest.mark.parametrize(("missing", "args"), [("psutil", ()), ("matplotlib", ("--picture", "run.svg"))])
def test_a_missing_library_is_said_before_anything_runs(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, args: tuple[str, ...]
) -> None:
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == missing else found(name, *rest))
    result = cli(*args, "--", "touch", "ran")
    assert result.exit_code == 2
    assert missing in result.output
    assert "pip install 'pipegen[monitor]'" in result.output
    assert not (tmp_path / "ran").exists()
