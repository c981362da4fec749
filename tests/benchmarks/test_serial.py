"""The benchmark of what is serial: it finds the parts of a pipeline, and measures each."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the harness is not part of the installed package

from benchmarks import serial
from pipegen.physical.decide import INDEXED_AT_ONCE

pytestmark = pytest.mark.skipif(not serial.TASKS.exists(), reason="the processor time of a thread is read from /proc, which Linux has")


def test_the_slowest_stage_is_the_cap() -> None:
    index = serial.Part(0, "index", INDEXED_AT_ONCE, [1600.0, 3200.0], [800.0, 0.0])
    thread, function = serial.Part(1, "thread", 1, [300.0, 200.0]), serial.Part(1, "join", 1, [90.0, 100.0], [40.0, 50.0])
    found = serial.Found("x", 256, [index, thread, function], [2000.0, 1506.0])
    assert [found.stage(number) for number in found.stages] == [1600 / INDEXED_AT_ONCE, 200.0 + 50.0]
    assert found.cap == 256 * 1e6 / 250
    assert found.parallel == (1506 - 250) / 256
    console = Console(width=120, record=True)
    console.print(serial.table(found), serial.summary([found]))
    said = console.export_text()
    assert "2,560,000" in said, "of 16 calls at a time"
    assert said.count("1,024,000") == 2


@pytest.mark.tf
@pytest.mark.by_day(1)
@pytest.mark.parametrize("shape", list(serial.shapes(Path())))
def test_the_command_measures_every_stage(shape: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[serial.Found] = []
    monkeypatch.setattr(serial, "measure", lambda *given, measure=serial.measure: measured.append(measure(*given)) or measured[-1])
    assert serial.main(["--shapes", shape, "--batches", "16", "--pictures", "64", "--steps", "8", "--repeats", "2"]) == 0
    (found,) = measured
    names = [part.name for part in found.parts]
    assert names[0].startswith("index")
    assert names[1] == "index: own thread"
    assert {"examples: own thread", "kernel: own thread", "emit: function", "prefetch: own thread"} <= set(names)
    assert names[-1] == serial.HANDED_OVER
    assert all(len(part.us) == 2 for part in found.parts)
    assert found.parts[-1].least > 0
    said = capsys.readouterr().out
    assert f"{shape}, batches of 16" in said
    assert f"{found.cap:,.0f}" in said
