"""Traces this process with TensorFlow's profiler, and adds up the time of each part of a plan.

TensorFlow notes on every thread when an operation began and how long it took. An operation's name has the scopes that it was made in
(`physical/scopes.py`). What runs inside another operation, on the same thread, counts for the inner one alone; an operation whose name
says nothing counts for the one around it. Only what begins and ends within the trace is seen, so how often each part ran is counted too:
batches that were handed over meanwhile may have been begun before, and others wait behind them.
"""

from __future__ import annotations

import importlib
import re
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.cgroup import read_text
from pipegen.physical.scopes import BATCH, scope_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_MODULES = ("tensorflow.tsl.profiler.protobuf.xplane_pb2", "tsl.profiler.protobuf.xplane_pb2")
"""Where TensorFlow has had the format of its traces; 2.16 to 2.21 have it at the first place."""
_HOST = "/host:CPU"


@dataclass
class Trace:
    """Holds what a trace adds up to.

    Attributes:
        seconds: How long it lasted.
        busy: Seconds of threads in each part of the plan, by `scope_in`.
        runs: How often each part ran: for one example, for a few or for a batch; those that only run in branches or loops are left out.
        cpu: Seconds of processor time that the whole process took.
        queued: Seconds that its threads could have run and had no core, since others had them; 0 where the system does not tell.
    """

    seconds: float = 0.0
    busy: dict[str, float] = field(default_factory=dict)
    cpu: float = 0.0
    queued: float = 0.0
    runs: dict[str, int] = field(default_factory=dict)

    @property
    def alone(self) -> float:
        """The share of the time in which threads could run that no other program took from them."""
        return self.cpu / (self.cpu + self.queued) if self.cpu else 1.0

    @property
    def undisturbed(self) -> float:
        """The share of its parts' time that would stay without other programs: these prolong work, but no sleep and no wait for storage."""
        busy = sum(self.busy.values())
        return max(self.alone, 1 - self.queued / busy) if busy else self.alone


class Tracing:
    """Runs the profiler from `start` to `stop`, once; `known` are the scopes of the plan's stages and kernels."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = known

    def start(self) -> None:
        """Starts it.

        Raises:
            tf.errors.AlreadyExistsError: When someone else has started one.
        """
        import tensorflow as tf

        self._folder = tempfile.TemporaryDirectory(prefix="pipegen-trace-")
        try:
            tf.profiler.experimental.start(self._folder.name)
        except BaseException:
            self._folder.cleanup()
            raise
        self._begin, self._cpu, self._queued = time.perf_counter(), time.process_time(), _queued()

    def stop(self) -> Trace:
        """Ends it, and adds up what it saw."""
        import tensorflow as tf

        found = Trace(time.perf_counter() - self._begin, {}, time.process_time() - self._cpu, max(0.0, _queued() - self._queued))
        with self._folder:
            tf.profiler.experimental.stop()
            for file in Path(self._folder.name).rglob("*.xplane.pb"):
                found.busy, found.runs = busy_seconds(file.read_bytes(), self._known)
        return found


@contextmanager
def traced(known: Collection[str]) -> Iterator[Trace]:
    """Traces what runs inside; the trace that it gives is filled in at the end. See `Tracing`."""
    found, tracing = Trace(), Tracing(known)
    tracing.start()
    try:
        yield found
    finally:
        vars(found).update(vars(tracing.stop()))


def busy_seconds(content: bytes, known: Collection[str]) -> tuple[dict[str, float], dict[str, int]]:
    """Adds up the seconds of each part of a plan in the bytes of an `xplane.pb`, and counts how often it ran.

    `known` are the scopes of the plan's stages and kernels.
    """
    space: Any = _format().XSpace()
    space.ParseFromString(content)
    picoseconds: dict[str | None, int] = {}
    runs: dict[str, int] = {}
    for plane in space.planes:
        if plane.name == _HOST:
            part_of = _Parts(plane, known)
            for line in plane.lines:
                _add_up(sorted((e.offset_ps, -e.duration_ps, part_of(e)) for e in line.events), picoseconds)
            runs |= part_of.runs()
    return {part: amount / 1e12 for part, amount in picoseconds.items() if part is not None and part not in _BETWEEN}, runs


_WAITS, _RUNS, _UNKNOWN = "-", "+", ""
"""Stand for the part of an event in which a thread waits for others, of one in which it runs one operation after another, and of one
whose name says nothing."""
_BETWEEN = (_WAITS, _RUNS, _UNKNOWN)
_AT_TIMES = re.compile(r"^Iterator::|(?:^|/)(?:cond|switch_case|while|[a-z_]*map)(?:_\d+)?/")
"""Finds names of what a run of a part does not do exactly once."""


class _Parts:
    """Says which part of a plan an event of a trace belongs to."""

    def __init__(self, plane: Any, known: Collection[str]) -> None:
        self._known = known
        self._names = {number: meta.name for number, meta in plane.event_metadata.items()}
        self._parts = {number: self._part(name) for number, name in self._names.items()}
        self._texts = {number: meta.name for number, meta in plane.stat_metadata.items()}
        self._asynchronous = {number for number, name in self._names.items() if name == _ASYNCHRONOUS}
        self._seen: Counter[tuple[str, str]] = Counter()

    def __call__(self, event: Any) -> str:
        name, part = self._names[event.metadata_id], self._parts[event.metadata_id]
        if event.metadata_id in self._asynchronous:  # such an operation's name is no part of the event's
            named = (stat for stat in event.stats if self._texts[stat.metadata_id] == "name")
            name = next((stat.str_value or self._texts.get(stat.ref_value, "") for stat in named), "")
            part = scope_in(name, self._known) or _UNKNOWN
        self._seen[part, name] += 1
        return part

    def runs(self) -> dict[str, int]:
        """Returns how often each part ran, which is how often most of its operations did."""
        counts: dict[str, Counter[int]] = {}
        for (part, name), count in self._seen.items():
            if part not in _BETWEEN and not _AT_TIMES.search(name):
                counts.setdefault(part, Counter())[count] += 1
        return {part: max(found, key=lambda count: (found[count], count)) for part, found in counts.items()}

    def _part(self, name: str) -> str:
        if name == _EXECUTOR:
            return _RUNS
        if name.startswith("Iterator::"):
            return BATCH if name.rpartition("::")[2].startswith(("Batch", "ParallelBatch")) else _WAITS
        return scope_in(name, self._known) or _UNKNOWN


_EXECUTOR, _ASYNCHRONOUS = "ExecutorState::Process", "ExecutorState::ProcessAsync::Start"


def _add_up(events: list[tuple[int, int, str]], into: dict[str | None, int]) -> None:
    """Adds the own time of a thread's events to their parts.

    What passes before an operation, where one runs after another, is the executor at work for it, and counts for it.
    """
    around: list[list[Any]] = []  # of each event that is not over: where it ends, its part, and up to where it is accounted for
    for start, negative, said in events:
        while around and around[-1][0] <= start:
            end = around.pop()[0]
            if around:
                around[-1][2] = end
        outer = around[-1][1] if around else None
        part = outer if said == _UNKNOWN else said
        if part != outer:
            into[outer] = into.get(outer, 0) + negative
            into[part] = into.get(part, 0) - negative
        if outer == _RUNS and part not in _BETWEEN:
            into[part] += start - around[-1][2]
        around.append([start - negative, part, start])


@cache
def _format() -> Any:
    for name in _MODULES:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError(f"this TensorFlow keeps the format of its traces elsewhere than in {_MODULES[0]}")


def _queued() -> float:
    """Seconds that the threads of this process have waited for a core."""
    found = 0
    for file in Path("/proc/self/task").glob("*/schedstat"):
        words = (read_text(file) or "").split()
        found += int(words[1]) if len(words) > 1 else 0
    return found / 1e9
