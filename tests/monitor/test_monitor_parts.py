"""What the monitor is made of: process trees, GPUs, waits told through a pipe, series of bounded length."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pipegen.observe.run_record import Record, Series, Summary, curves, duration, live_line, read_record, size, wait_rows
from pipegen.observe.sampler import Gpus, Sampler, Tree
from pipegen.observe.watch import WaitPipe
from pipegen.waiting import VARIABLE, Wait, Waits, for_monitor

BURN = "import time\nt = time.process_time()\nwhile time.process_time() - t < {}: pass"


def process(proc: Path, pid: int, parent: int, *, ticks: tuple[int, int, int, int], pages: int, io: str | None, state: str = "S") -> None:
    """A process in a made-up `/proc`; its name holds what a name may hold."""
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    fields = [state, parent, *[0] * 9, *ticks, *[0] * 6, pages, *[0] * 20]
    (folder / "stat").write_text(f"{pid} (a) b (c) {' '.join(map(str, fields))}\n")
    if io is not None:
        (folder / "io").write_text(io)


def test_a_tree_adds_up_what_its_processes_and_those_that_ended_have_used(tmp_path: Path) -> None:
    io = "rchar: 9\nread_bytes: 1000\nwrite_bytes: 30\n"
    process(tmp_path, 10, 1, ticks=(100, 50, 25, 25), pages=10, io=io)
    process(tmp_path, 11, 10, ticks=(10, 0, 0, 0), pages=2, io=io)
    process(tmp_path, 12, 11, ticks=(1, 0, 0, 0), pages=1, io=io)
    process(tmp_path, 13, 11, ticks=(0, 4, 0, 0), pages=0, io=None, state="Z")
    process(tmp_path, 99, 1, ticks=(9999, 0, 0, 0), pages=999, io=io)
    used = Tree(10, tmp_path).used()
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    assert (used["processes"], used["cpu"], used["rss"]) == (4, 215 / tick, 13 * page)
    assert (used["read"], used["written"]) == (3000, 90)
    (tmp_path / "12/io").unlink()
    assert Tree(10, tmp_path).used()["read"] is None, "a figure that misses a part is none"
    assert Tree(77, tmp_path).used()["processes"] == 0


def test_children_are_read_off_the_threads_where_the_kernel_lists_them(tmp_path: Path) -> None:
    for pid in (os.getpid(), 11, 12, 99):
        process(tmp_path, pid, 1, ticks=(5, 0, 0, 0), pages=1, io="read_bytes: 1\nwrite_bytes: 1\n")
    me = os.getpid()
    for pid, thread, children in ((me, me, "11 "), (me, 5, ""), (11, 11, ""), (11, 6, "12 "), (12, 12, "")):
        (tmp_path / f"{pid}/task/{thread}").mkdir(parents=True)
        (tmp_path / f"{pid}/task/{thread}/children").write_text(children)
    assert Tree(me, tmp_path).used()["processes"] == 3


def test_short_lived_children_of_children_are_counted() -> None:
    inner = f"import subprocess, sys\nfor _ in range(3): subprocess.run([sys.executable, '-S', '-c', {BURN.format(0.1)!r}])"
    script = f"import subprocess, sys, time\nsubprocess.run([sys.executable, '-S', '-c', {inner!r}])\nprint(flush=True)\ntime.sleep(20)"
    with subprocess.Popen([sys.executable, "-S", "-c", script], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        used = Tree(child.pid).used()
        child.kill()
    assert used["processes"] == 1
    assert 0.3 <= used["cpu"] < 3


class NvmlError(Exception):
    pass


def fake_nvml(monkeypatch: pytest.MonkeyPatch, **functions: Any) -> None:
    module = ModuleType("pynvml")
    found = {
        "NVMLError": NvmlError,
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda number: number,
        "nvmlDeviceGetName": lambda handle: b"Old" if handle else "NVIDIA H200",
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(total=1000, used=10 + handle),
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=93),
    }
    vars(module).update(found | functions)
    monkeypatch.setitem(sys.modules, "pynvml", module)


def refuse(*_: object) -> Any:
    raise NvmlError("Not Supported")


def test_gpus_are_read_and_what_they_do_not_tell_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nvml(monkeypatch)
    gpus = Gpus()
    assert gpus.about == [{"name": "NVIDIA H200", "memory": 1000}, {"name": "Old", "memory": 1000}]
    assert gpus.read() == [{"busy": 93, "memory": 10}, {"busy": 93, "memory": 11}]
    assert gpus.absent == ""
    fake_nvml(monkeypatch, nvmlDeviceGetUtilizationRates=refuse)
    assert Gpus().read()[0] == {"busy": None, "memory": 10}


def test_absent_gpus_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nvml(monkeypatch, nvmlInit=refuse)
    assert Gpus().absent == "the NVIDIA driver does not answer (not supported)"
    fake_nvml(monkeypatch, nvmlDeviceGetCount=lambda: 0)
    assert Gpus().absent == "the NVIDIA driver lists none"
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "pip install 'pipegen[monitor]'" in Gpus().absent
    assert Gpus().read() == []


def test_counts_become_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 10.5, 10.6, 12.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    told: list[Wait] = []
    waits = Waits(told.append)
    for split, seconds, batches in (("train", 2.0, 1), ("train", 2.1, 2), ("validation", 7.0, 30), ("validation", 7.2, 31)):
        waits(SimpleNamespace(split=split, seconds=seconds, batches=batches))
    assert [(w.split, pytest.approx(w.seconds), pytest.approx(w.step_seconds)) for w in told] == [
        ("train", 2.0, 2.0),
        ("train", 0.1, 0.5),
        ("validation", 0.2, 1.4),
    ]


def test_waits_go_through_the_pipe_and_training_goes_on_without_a_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = WaitPipe()
    path = pipe.path
    monkeypatch.setenv(VARIABLE, path)
    tell, count = for_monitor(), SimpleNamespace(split="my split", seconds=0.25, batches=1)
    assert tell is not None
    tell(count)
    code = f"import os; os.write(os.open({path!r}, os.O_WRONLY), b'garbage\\n1 2 3\\n7 1.0 0.5 0.75 other\\n8 1.0 0.')"
    subprocess.run([sys.executable, "-S", "-c", code], check=True, timeout=120)
    first, second = pipe.read()
    assert (first.pid, first.split, first.seconds) == (os.getpid(), "my split", 0.25)
    assert second == Wait(7, 1.0, 0.5, 0.75, "other")
    assert pipe.read() == []
    for _ in range(30_000):  # more than it holds
        tell(count)
    assert len(pipe.read()) > 10_000
    pipe.close()
    tell(count)
    assert not Path(path).parent.exists()
    assert for_monitor() is None


def test_steps_are_grouped_and_summed(tmp_path: Path) -> None:
    done = Counter[tuple[int, str]]()
    rows = wait_rows([Wait(1, 0, 0.5, 1.0, "train"), Wait(1, 0, 0.1, 1.0, "train"), Wait(1, 0, 0.0, 1.0, "validation")], 3.0, done)
    rows += wait_rows([Wait(1, 0, 0.3, 1.0, "train")], 4.0, done)
    assert [(r["steps"]["split"], r["steps"]["first"]) for r in rows] == [("train", 0), ("validation", 0), ("train", 2)]
    sample = {"t": 4.0, "run": {"cores": 1.0, "rss": 0, "read": None}, "machine": {"received": None}, "gpu": []}
    assert live_line(sample, rows, {"cores_granted": 2}).endswith(" · train waits 30% of 3 steps · validation waits 0% of 1 steps")
    summary = Summary()
    for row in rows:
        summary.add(row)
    assert summary.waits["train"].share == pytest.approx(0.2), "the first batch pays for the start"
    assert "waited 20% of the time of its train steps" in summary.verdict()
    assert "waits are unknown" in Summary().verdict()
    record = Record(tmp_path / "x.jsonl")
    record.write([{"event": "start"}, *rows])
    record.close()
    assert list(read_record(tmp_path / "x.jsonl"))[1:] == rows


def test_a_full_disk_ends_the_record_and_not_the_run() -> None:
    record = Record(Path("/dev/full"))
    record.write([{"event": "start"}])
    record.write([{"t": 1}])
    assert record.failed is not None
    assert record.failed.strerror == "No space left on device"


def test_series_of_any_length_have_few_points_and_the_same_mean() -> None:
    series = Series()
    for i in range(20_000):
        series.add([i, None])
    assert 1000 <= len(series.rows) < 2400
    first = series.column(0)
    assert first == sorted(first)
    assert sum(first) / len(first) == pytest.approx(10_000, rel=0.02)
    assert all(math.isnan(value) for value in series.column(1))


def test_dear_samples_are_further_apart() -> None:
    spent = iter([0.0, 0.001, 0.051, 0.052])
    sampler = Sampler(1.0, clock=lambda: next(spent))
    sampler.start(os.getpid())
    assert [sampler.pause() for _ in range(3)] == pytest.approx([1.0, 10.0, 7.0])


def test_gpus_and_several_splits_have_panels_of_their_own() -> None:
    pytest.importorskip("matplotlib")
    from pipegen.observe.picture import draw

    gpu = {"name": "NVIDIA H200", "memory": 1000}
    rows: list[dict[str, Any]] = [{"event": "start", "cores_granted": 2, "memory_granted": 2**31, "gpus": [gpu], "no_gpu": None}]
    rows.append({"event": "epoch", "epoch": 1, "t": 1.5})
    for t in range(1, 4):
        run = {"processes": 2, "cores": 1.5, "rss": 2**30, "read": None, "written": None}
        machine = {"memory": 2**30, "disk_read": 0, "disk_written": 0, "received": 5, "sent": 5}
        cgroup = {"cores": 1.4, "memory": 2**30, "throttled": None}
        rows.append({"t": t, "cpu": [50.0, 99.0], "run": run, "machine": machine, "cgroup": cgroup, "gpu": [{"busy": None, "memory": 400}]})
        rows.append({"t": t, "steps": {"pid": 1, "split": "train", "first": t, "wait_ms": [5.0], "step_ms": [10.0]}})
    found = curves(rows)
    assert b"<svg" in draw(found)
    assert dict(found.summary.facts())["GPU 0"] == "NVIDIA H200: 0 % busy in the mean, 400 B at the highest"
    assert found.summary.verdict().startswith("The model waited 50%")


def test_units() -> None:
    assert [size(n) for n in (0, 1023, 1024, 2048, 3.5 * 2**30, 5000 * 2**40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "2.0 KiB",
        "3.5 GiB",
        "5000.0 TiB",
    ]
    assert [duration(s) for s in (0.04, 59.94, 60, 61, 3600, 7325)] == ["0.0 s", "59.9 s", "0:01:00", "0:01:01", "1:00:00", "2:02:05"]
