"""Holds the figures of a run of any length in a bounded number of points, for a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import nan

from pipegen.monitor.record import Row
from pipegen.monitor.summary import Summary

_POINTS = 1200
"""More than a picture has columns for a curve."""


class Series:
    """Collects rows of figures; when they are too many, each two become their mean."""

    def __init__(self) -> None:
        self.rows: list[list[float]] = []
        self._group, self._sums, self._held = 1, [0.0], 0

    def add(self, figures: Sequence[float | None]) -> None:
        """Adds a row, of as many figures each time; `None` stands for an unknown one."""
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
        """Returns one figure over all rows."""
        return [row[number] for row in self.rows]


SAMPLE = ("t", "cores", "rss", "cgroup", "read", "written", "received", "sent")
"""The figures of a sample that have a curve, in their order; behind them the percent and the bytes of each GPU."""


@dataclass
class Curves:
    """Holds what a picture shows.

    Attributes:
        samples: The figures named by `SAMPLE`.
        cores: The time and the percent of each core.
        waits: For each split the time of each step, and the share of it that was waited.
        epochs: When epochs began, and which.
        summary: The sums of the run.
    """

    samples: Series = field(default_factory=Series)
    cores: Series = field(default_factory=Series)
    waits: dict[str, Series] = field(default_factory=dict)
    epochs: list[tuple[float, int]] = field(default_factory=list)
    summary: Summary = field(default_factory=Summary)

    def column(self, name: str) -> list[float]:
        """Returns a curve by its name."""
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
            _add_steps(found, row["steps"], row["t"])
        elif row.get("event") == "epoch":
            found.epochs.append((row["t"], row["epoch"]))
    return found


def _add_steps(found: Curves, steps: Row, at: float) -> None:
    """Adds the waits of a while; the last of its steps ended close to its end."""
    series = found.waits.setdefault(steps["split"], Series())
    when = at - sum(steps["step_ms"]) / 1e3
    for wait, whole in zip(steps["wait_ms"], steps["step_ms"], strict=True):
        when += whole / 1e3
        series.add([when, wait / whole if whole else 0.0])
