"""The record of a watched run: writes and reads it, sums it up, and reduces it to curves of a bounded number of points."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import IO, Any

from pipegen.waiting import Wait

Row = dict[str, Any]


class Record:
    """A writer of the rows of a run to a file, if there is one; each is flushed before the next sample is taken."""

    def __init__(self, path: Path | None) -> None:
        self._file: IO[str] | None = None if path is None else open(path, "w", encoding="utf-8")  # noqa: SIM115
        self.failed: OSError | None = None  # the error after which nothing more was written

    def write(self, rows: Iterable[Row]) -> None:
        """Writes rows. An error ends the record, but not the run."""
        if self._file is None:
            return
        try:
            for row in rows:
                self._file.write(json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            self.failed = error
            self.close()

    def close(self) -> None:
        """Closes the file."""
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        except OSError as error:
            self.failed = self.failed or error


def wait_rows(waits: Iterable[Wait], at: float, done: Counter[tuple[int, str]]) -> list[Row]:
    """Makes a row for each process and split that waited, and counts its steps in `done`; `at` is in seconds since the run began."""
    several: dict[tuple[int, str], list[Wait]] = {}
    for wait in waits:
        several.setdefault((wait.pid, wait.split), []).append(wait)
    rows = []
    for key, group in several.items():
        figures = {"wait_ms": [round(1e3 * w.seconds, 3) for w in group], "step_ms": [round(1e3 * w.step_seconds, 3) for w in group]}
        rows.append({"t": round(at, 3), "steps": {"pid": key[0], "split": key[1], "first": done[key], **figures}})
        done[key] += len(group)
    return rows


def read_record(path: Path) -> Iterator[Row]:
    """Yields the rows of a record, also of a run that was killed or still runs. Raises `ValueError` if it is not a record."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file):
            try:
                row = json.loads(line)
            except ValueError:
                if number and not line.endswith("\n"):  # the last one was being written
                    return
                row = None
            if not isinstance(row, dict) or (not number and row.get("event") != "start"):
                raise ValueError(f"{path}: line {number + 1} is not from a record of `pipegen monitor --out`")
            yield row


_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: float) -> str:
    """Formats bytes in the largest binary unit that leaves a number above one."""
    unit = 0
    while abs(count) >= 1024 and unit < len(_UNITS) - 1:
        count, unit = count / 1024, unit + 1
    return f"{count:.1f} {_UNITS[unit]}" if unit else f"{count:.0f} B"


def duration(seconds: float) -> str:
    """Formats a time as `12.3 s`, or as hours, minutes and seconds."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


_SMALL = 0.05  # the share of waiting below which the input keeps up


@dataclass
class Waits:
    """The sums of the waits of a split."""

    steps: int = 0
    wait_s: float = 0.0
    step_s: float = 0.0
    first_s: float | None = None  # the wait for the first batch, which includes the start of the pipeline and is left out of the sums

    @property
    def share(self) -> float:
        """The share of waiting in the time of steps."""
        return self.wait_s / self.step_s if self.step_s else 0.0

    def add(self, steps: Row) -> None:
        """Adds a row."""
        waits, whole = steps["wait_ms"], steps["step_ms"]
        if self.first_s is None and waits:
            self.first_s, waits, whole = waits[0] / 1e3, waits[1:], whole[1:]
            self.steps += 1
        self.steps += len(waits)
        self.wait_s += sum(waits) / 1e3
        self.step_s += sum(whole) / 1e3


@dataclass
class Summary:
    """The sums of a run, row by row; their memory does not grow with the run."""

    start: Row = field(default_factory=dict)
    end: Row | None = None
    seconds: float = 0.0
    samples: int = 0
    peak: dict[str, float] = field(default_factory=dict)
    total: dict[str, float] = field(default_factory=dict)
    waits: dict[str, Waits] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Adds a row of the record."""
        match row:
            case {"event": "start"}:
                self.start = row
            case {"event": "end"}:
                self.end, self.seconds = row, row["t"]
            case {"steps": steps}:
                self.waits.setdefault(steps["split"], Waits()).add(steps)
            case {"run": run}:
                passed = row["t"] - self.seconds
                self.seconds, self.samples = row["t"], self.samples + 1
                peaks = {"rss": run["rss"], "cgroup": (row["cgroup"] or {}).get("memory"), "cores": run["cores"]}
                sums = {**{name: run[name] for name in ("cores", "read", "written")}, "received": row["machine"]["received"]}
                for number, gpu in enumerate(row["gpu"]):
                    peaks[f"gpu{number}"], sums[f"gpu{number}"] = gpu["memory"], gpu["busy"]
                for name, value in peaks.items():
                    self.peak[name] = max(self.peak.get(name, 0), value or 0)
                for name, value in sums.items():
                    self.total[name] = self.total.get(name, 0.0) + passed * (value or 0)

    def mean(self, name: str) -> float:
        """Computes the mean of a figure over the run."""
        return self.total.get(name, 0.0) / self.seconds if self.seconds else 0.0

    @property
    def cores(self) -> float:
        """The mean number of busy cores: counted by the system at the end, else by the samples."""
        counted = (self.end or {}).get("cpu_s")
        return counted / self.seconds if counted is not None and self.seconds else self.mean("cores")

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yields the names and the figures of the run."""
        ended = "" if self.end is not None else ", and the end is not in the record"
        if self.end is not None and "code" in self.end:
            ended = f", exit code {self.end['code']}" + (f" ({self.end['signal']})" if self.end["signal"] else "")
        yield "time", duration(self.seconds) + ended
        granted = self.start.get("cores_granted")
        yield "processor", f"{self.cores:.2f} of {granted} cores in the mean"
        if self.samples:
            limit = self.start.get("memory_granted") or self.start.get("memory")
            yield "memory", f"{size(self.peak['rss'])} at the highest{f', of {size(limit)}' if limit else ''}"
            yield "disk", f"{size(self.total['read'])} read, {size(self.total['written'])} written"
            yield "network", f"{size(self.total['received'])} received by the machine"
        for number, gpu in enumerate(self.start.get("gpus", ())):
            used = size(self.peak.get(f"gpu{number}", 0))
            yield f"GPU {number}", f"{gpu['name']}: {self.mean(f'gpu{number}'):.0f} % busy in the mean, {used} at the highest"
        if not self.start.get("gpus"):
            yield "GPU", f"none: {self.start.get('no_gpu')}"
        for split, waits in self.waits.items():
            yield f"waits, {split or 'unnamed'}", _of_waits(waits)
        if self.end is not None:
            yield "the monitor", f"{self.end['monitor_share']:.2%} of one core while the run ran"

    def as_json(self) -> dict[str, Any]:
        """Converts the figures to plain values: seconds, bytes, shares from 0 to 1."""
        waits = {
            split: {"steps": w.steps, "wait_s": w.wait_s, "step_s": w.step_s, "share": w.share, "first_batch_s": w.first_s}
            for split, w in self.waits.items()
        }
        gpus = [
            {**gpu, "busy_percent": self.mean(f"gpu{n}"), "peak_memory": self.peak.get(f"gpu{n}", 0)}
            for n, gpu in enumerate(self.start.get("gpus", ()))
        ]
        means = {"cores": self.cores, "cores_granted": self.start.get("cores_granted"), "peak_rss": self.peak.get("rss", 0)}
        moved = {name: self.total.get(name, 0.0) for name in ("read", "written", "received")}
        about = {"version": 1, "command": self.start.get("command"), "seconds": self.seconds, "samples": self.samples}
        return {**about, **means, **moved, "gpus": gpus, "no_gpu": self.start.get("no_gpu"), "waits": waits, "end": self.end}

    def verdict(self) -> str:
        """Describes in a sentence what the run waited for."""
        if not self.waits:
            return "No batch of a pipegen dataset was requested, so waits are unknown."
        split = "train" if "train" in self.waits else max(self.waits, key=lambda name: self.waits[name].step_s)
        share = self.waits[split].share
        if share < _SMALL:
            return f"The input keeps up: the model waited {share:.1%} of the time of its {split} steps."
        return f"The model waited {share:.0%} of the time of its {split} steps: `pipegen profile` finds the stage that it waits for."


def _of_waits(waits: Waits) -> str:
    count = f"{waits.steps:,} step{'s' if waits.steps != 1 else ''}"
    first = f"; the first batch took {waits.first_s:.1f} s" if waits.first_s is not None and waits.first_s >= 0.05 else ""
    if not waits.step_s:
        return f"{count}{first}"
    per_s = (waits.steps - 1) / waits.step_s
    return f"{waits.share:.1%} of the time, {count} at {per_s:.1f} a second{first}"


def live_line(row: Row, steps: list[Row], start: Row) -> str:
    """Formats a sample in one line for a terminal."""
    run, machine = row["run"], row["machine"]
    parts = [f"cpu {run['cores'] or 0:.1f} of {start['cores_granted']} cores", f"memory {size(run['rss'])}"]
    if run["read"] is not None:
        parts.append(f"disk {run['read'] / 1e6:.1f} MB/s in, {run['written'] / 1e6:.1f} MB/s out")
    parts.append("net ? in" if machine["received"] is None else f"net {machine['received'] / 1e6:.1f} MB/s in")
    for number, gpu in enumerate(row["gpu"]):
        busy = "busy unknown" if gpu["busy"] is None else f"{gpu['busy']} %"
        parts.append(f"GPU{f' {number}' if len(row['gpu']) > 1 else ''} {busy}, {size(gpu['memory'] or 0)}")
    for split in dict.fromkeys(found["steps"]["split"] for found in steps):
        own = [found["steps"] for found in steps if found["steps"]["split"] == split]
        waited, whole = (sum(sum(each[name]) for each in own) for name in ("wait_ms", "step_ms"))
        if whole:
            parts.append(f"{split or 'data'} waits {waited / whole:.0%} of {sum(len(each['wait_ms']) for each in own)} steps")
    return f"{duration(row['t'])}  {' · '.join(parts)}"


_POINTS = 1200  # more than a picture has columns for a curve


class Series:
    """Collects rows of figures; when they are too many, each two become their mean."""

    def __init__(self) -> None:
        self.rows: list[list[float]] = []
        self._group, self._sums, self._held = 1, [0.0], 0

    def add(self, figures: Sequence[float | None]) -> None:
        """Adds a row, always of the same number of figures; `None` stands for an unknown one."""
        values = [nan if value is None else float(value) for value in figures]
        self._sums = values if not self._held else [a + b for a, b in zip(self._sums, values, strict=True)]
        self._held += 1
        if self._held == self._group:
            self.rows.append([value / self._held for value in self._sums])
            self._held = 0
        if len(self.rows) >= 2 * _POINTS:
            self.rows = [[(a + b) / 2 for a, b in zip(*pair, strict=True)] for pair in zip(self.rows[::2], self.rows[1::2], strict=True)]
            self._group *= 2

    def column(self, number: int) -> list[float]:
        """The values of one figure in all rows."""
        return [row[number] for row in self.rows]


SAMPLE = ("t", "cores", "rss", "cgroup", "read", "written", "received", "sent")
"""The figures of a sample that have a curve, in order; then come the percent and the bytes of each GPU."""


@dataclass
class Curves:
    """The contents of a picture: the figures named by `SAMPLE`, the time and the percent of each core, for each split the time of each step
    and its share of waiting, the times that epochs began with their numbers, and the sums of the run."""

    samples: Series = field(default_factory=Series)
    cores: Series = field(default_factory=Series)
    waits: dict[str, Series] = field(default_factory=dict)
    epochs: list[tuple[float, int]] = field(default_factory=list)
    summary: Summary = field(default_factory=Summary)

    def column(self, name: str) -> list[float]:
        """The curve of a name."""
        return self.samples.column(SAMPLE.index(name))


def curves(rows: Iterable[Row]) -> Curves:
    """Collects the rows of a record."""
    found = Curves()
    for row in rows:
        found.summary.add(row)
        if "run" in row:
            run, machine, cgroup = row["run"], row["machine"], row["cgroup"] or {}
            gpus = [figure for gpu in row["gpu"] for figure in (gpu["busy"], gpu["memory"])]
            moved = [run["read"], run["written"], machine["received"], machine["sent"]]
            found.samples.add([row["t"], run["cores"], run["rss"], cgroup.get("memory"), *moved, *gpus])
            found.cores.add([row["t"], *row["cpu"]])
        elif "steps" in row:
            steps, series = row["steps"], found.waits.setdefault(row["steps"]["split"], Series())
            when = row["t"] - sum(steps["step_ms"]) / 1e3  # the last step ended at about the row's time
            for wait, whole in zip(steps["wait_ms"], steps["step_ms"], strict=True):
                when += whole / 1e3
                series.add([when, wait / whole if whole else 0.0])
        elif row.get("event") == "epoch":
            found.epochs.append((row["t"], row["epoch"]))
    return found
