"""`pipegen.Monitor` beside `fit`, and the waits that datasets tell a monitor in another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import pipegen
from pipegen.observe.watch import WaitPipe
from pipegen.waiting import for_monitor

pytestmark = pytest.mark.tf

NAP = 0.03
"""Seconds that making a batch takes."""


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A pipeline of 16 batches, each of which takes a while to come."""
    from pipes import numbered

    from pipegen.backend.datasets.pipeline_dataset import BareIterator

    taken = BareIterator.__next__

    def late(self: BareIterator) -> Any:
        time.sleep(NAP)
        return taken(self)

    monkeypatch.setattr(BareIterator, "__next__", late)
    return numbered()


def model() -> Any:
    import keras

    made = keras.Sequential([keras.Input((2, 2, 1)), keras.layers.Flatten(), keras.layers.Dense(1)])
    made.compile("sgd", "mse", jit_compile=False)
    return made


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_fit_is_watched_from_inside_and_outside(slow: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipegen import waiting

    outside = WaitPipe()
    monkeypatch.setattr(os, "environ", {**os.environ, waiting.VARIABLE: outside.path})
    told = for_monitor()
    assert told is not None
    monkeypatch.setattr(waiting, "WATCHERS", [*waiting.WATCHERS, told])
    monkeypatch.setattr("pipegen.observe.monitor_callback.WATCHERS", waiting.WATCHERS)
    watching = len(waiting.WATCHERS)
    monitor = pipegen.Monitor(tmp_path / "run.jsonl", tmp_path / "run.html", every=0.1)
    made = model()
    made.fit(slow.train, validation_data=slow.validation, epochs=2, callbacks=[slow.callback(), monitor], verbose=0)
    start, *between, end = rows(tmp_path / "run.jsonl")
    assert (start["event"], start["pid"], end["event"]) == ("start", os.getpid(), "end")
    assert [row["epoch"] for row in between if row.get("event") == "epoch"] == [0, 1]
    assert [row for row in between if "run" in row]
    waits = [ms for row in between if row.get("steps", {}).get("split") == "train" for ms in row["steps"]["wait_ms"]]
    assert len(waits) == 32
    assert sorted(waits)[16] == pytest.approx(1e3 * NAP, rel=0.5)
    assert [w.split for w in outside.read()].count("train") == 32
    assert "of the time of its train steps" in monitor.summary.verdict()
    assert "<svg" not in (tmp_path / "run.html").read_text(), "the drawing is an image"
    made.fit(slow.train, epochs=1, callbacks=[monitor], verbose=0)
    assert len([1 for row in rows(tmp_path / "run-2.jsonl") for _ in row.get("steps", {}).get("wait_ms", ())]) == 15, (
        "the first came before"
    )
    assert (tmp_path / "run-2.html").exists()
    assert len(waiting.WATCHERS) == watching
    outside.close()


def test_wrong_arguments_are_said_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    with pytest.raises(ValueError, match=r"\.html, \.svg"):
        pipegen.Monitor(tmp_path / "x.jsonl", "x.gif")
    with pytest.raises(ValueError, match=r"at least 0\.1 seconds"):
        pipegen.Monitor(every=0.01)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None)
    with pytest.raises(ImportError, match=r"pip install 'pipegen\[monitor\]'"):
        pipegen.Monitor(tmp_path / "x.jsonl")


@pytest.mark.nightly
def test_a_real_training_under_the_command(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    first = f"import sys\nsys.path[:0] = [{str(root / 'tests')!r}]\nfrom pipes import numbered\n"
    (tmp_path / "train.py").write_text(f"{first}for x, y in numbered().train: pass\n")
    command = [sys.executable, "-m", "pipegen", "monitor", "--out", "run.jsonl", "--", sys.executable, "train.py"]
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    assert sum(len(row["steps"]["wait_ms"]) for row in rows(tmp_path / "run.jsonl") if "steps" in row) == 16
