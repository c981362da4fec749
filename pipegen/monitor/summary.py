"""Adds up the rows of a run, and says in lines what they come to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pipegen.monitor.units import duration, rate, size

Row = dict[str, Any]
_SMALL = 0.05
"""A wait below this share is not worth a remedy."""


@dataclass
class Waits:
    """Adds up what the steps of a split waited."""

    steps: int = 0
    wait_s: float = 0.0
    step_s: float = 0.0
    first_s: float | None = None
    """The wait of the very first batch, which pays for starting the pipeline and is left out of the sums."""

    @property
    def share(self) -> float:
        """Returns the share of the steps' time that was waited."""
        return self.wait_s / self.step_s if self.step_s else 0.0

    def add(self, steps: Row) -> None:
        """Adds the row of one while."""
        waits, whole = steps["wait_ms"], steps["step_ms"]
        if self.first_s is None and waits:
            self.first_s, waits, whole = waits[0] / 1e3, waits[1:], whole[1:]
            self.steps += 1
        self.steps += len(waits)
        self.wait_s += sum(waits) / 1e3
        self.step_s += sum(whole) / 1e3


@dataclass
class Summary:
    """Adds up a run row by row; one of hours takes no more memory than one of seconds."""

    start: Row = field(default_factory=dict)
    end: Row | None = None
    latest: Row | None = None
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
            case {"run": _}:
                self._add_sample(row)

    def _add_sample(self, row: Row) -> None:
        passed = row["t"] - self.seconds
        self.latest, self.seconds, self.samples = row, row["t"], self.samples + 1
        cgroup = row["cgroup"] or {}
        peaks = {"rss": row["run"]["rss"], "cgroup": cgroup.get("memory"), "cores": row["run"]["cores"]}
        sums = {name: row["run"][name] for name in ("cores", "read", "written")}
        sums |= {"received": row["machine"]["received"]}
        for number, gpu in enumerate(row["gpu"]):
            peaks[f"gpu{number}"], sums[f"gpu{number}"] = gpu["memory"], gpu["busy"]
        for name, value in peaks.items():
            self.peak[name] = max(self.peak.get(name, 0), value or 0)
        for name, value in sums.items():
            self.total[name] = self.total.get(name, 0.0) + passed * (value or 0)

    def mean(self, name: str) -> float:
        """Returns the mean of a figure over the run."""
        return self.total.get(name, 0.0) / self.seconds if self.seconds else 0.0

    @property
    def cores(self) -> float:
        """Returns how many cores the run kept busy: by what the system counted at its end, or else by the samples."""
        counted = (self.end or {}).get("cpu_s")
        return counted / self.seconds if counted is not None and self.seconds else self.mean("cores")

    def facts(self) -> Iterator[tuple[str, str]]:
        """Returns the figures of the run, each with its name."""
        yield "time", f"{duration(self.seconds)}{self._how_it_ended()}"
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
        """Returns the figures as plain values: seconds, bytes, shares from 0 to 1."""
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

    def _how_it_ended(self) -> str:
        if self.end is None:
            return ", and the end is not in the record"
        if "code" not in self.end:
            return ""
        by = f" ({self.end['signal']})" if self.end["signal"] else ""
        return f", exit code {self.end['code']}{by}"

    def verdict(self) -> str:
        """Says in a sentence what the run waited for."""
        if not self.waits:
            return "No batch of a pipegen dataset was asked for, so nothing is known of waiting."
        split = "train" if "train" in self.waits else max(self.waits, key=lambda name: self.waits[name].step_s)
        share = self.waits[split].share
        if share < _SMALL:
            return f"The input keeps up: the model waited {share:.1%} of the time of its {split} steps."
        return f"The model waited {share:.0%} of the time of its {split} steps: `pipegen profile` says which stage holds it up."


def _of_waits(waits: Waits) -> str:
    count = f"{waits.steps:,} step{'s' if waits.steps != 1 else ''}"
    first = f"; the first batch took {waits.first_s:.1f} s" if waits.first_s is not None and waits.first_s >= 0.05 else ""
    if not waits.step_s:
        return f"{count}{first}"
    per_s = (waits.steps - 1) / waits.step_s
    return f"{waits.share:.1%} of the time, {count} at {per_s:.1f} a second{first}"


def live_line(row: Row, steps: list[Row], start: Row) -> str:
    """Returns a sample in one line for a terminal."""
    run, machine = row["run"], row["machine"]
    parts = [f"cpu {run['cores'] or 0:.1f} of {start['cores_granted']} cores", f"memory {size(run['rss'])}"]
    if run["read"] is not None:
        parts.append(f"disk {rate(run['read'])} in, {rate(run['written'])} out")
    parts.append(f"net {rate(machine['received'])} in")
    for number, gpu in enumerate(row["gpu"]):
        busy = "busy unknown" if gpu["busy"] is None else f"{gpu['busy']} %"
        parts.append(f"GPU{f' {number}' if len(row['gpu']) > 1 else ''} {busy}, {size(gpu['memory'] or 0)}")
    for found in steps:
        waited, whole = sum(found["steps"]["wait_ms"]), sum(found["steps"]["step_ms"])
        if whole:
            parts.append(f"{found['steps']['split'] or 'data'} waits {waited / whole:.0%} of {len(found['steps']['wait_ms'])} steps")
    return f"{duration(row['t'])}  {' · '.join(parts)}"
