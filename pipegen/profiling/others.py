"""Measures how much of the cores other programs hold while this process could run."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from pipegen.memory import read_text

_IDLE = (3, 4)
"""Places of the times in a line of `/proc/stat` in which a core did nothing, or waited for storage."""
_TIMES = 8
"""Times of such a line that add up to all: what follows is counted in them already."""


@dataclass(frozen=True)
class Usage:
    """Holds what was used up to some moment, or between two.

    Attributes:
        seconds: The time.
        cpu: Processor time of this process.
        queued: Seconds that its threads could have run and had no core.
        busy: Processor time of all programs on the cores that it may use; `None` where the system does not tell.
    """

    seconds: float
    cpu: float
    queued: float
    busy: float | None

    @staticmethod
    def now() -> Usage:
        """Returns what has been used up to now."""
        return Usage(time.perf_counter(), time.process_time(), _queued(), _busy())

    def since(self, earlier: Usage) -> Usage:
        """Returns what was used since an earlier moment."""
        busy = None if self.busy is None or earlier.busy is None else max(0.0, self.busy - earlier.busy)
        return Usage(self.seconds - earlier.seconds, self.cpu - earlier.cpu, max(0.0, self.queued - earlier.queued), busy)

    @property
    def held(self) -> float:
        """Seconds of cores that other programs had while this one waited for them; where its threads wait for each other is left out."""
        return self.queued if self.busy is None else min(self.queued, max(0.0, self.busy - self.cpu))

    def share_held(self, cores: int) -> float:
        """Returns which share of so many cores other programs held."""
        return min(1.0, self.held / (self.seconds * cores)) if self.seconds > 0 else 0.0


def _queued() -> float:
    """Seconds that the threads of this process have waited for a core."""
    found = 0
    for file in Path("/proc/self/task").glob("*/schedstat"):
        words = (read_text(file) or "").split()
        found += int(words[1]) if len(words) > 1 else 0
    return found / 1e9


def _busy() -> float | None:
    """Seconds that the cores have worked on which this process may run, for whomever."""
    wanted = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    rows = [line.split() for line in (read_text(Path("/proc/stat")) or "").splitlines() if line.startswith("cpu")]
    ticks = [[int(word) for word in row[1 : 1 + _TIMES]] for row in rows if row[0] in wanted]
    if not ticks:
        return None
    return sum(sum(times) - sum(times[place] for place in _IDLE) for times in ticks) / os.sysconf("SC_CLK_TCK")
