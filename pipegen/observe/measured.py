"""Recordings: the speed of a split alone or with a model, and a trace of its threads.

A trace is made by TensorFlow's profiler, which records the beginning and the length of operations on every thread. An operation's name has
the scopes that it was made in (`physical/facts.py`). The time of an operation inside another one, on the same thread, counts only for the
inner one. An operation without a known scope counts for the one around it, and in a function for its caller. A trace has only operations
that begin and end within it, so the runs of each part are counted, too: some batches handed over meanwhile were begun before, and others
are still on their way.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from importlib import import_module
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.errors import DataError
from pipegen.frozen import dataclass
from pipegen.memory import read_text
from pipegen.ops.kinds.base import called
from pipegen.physical.facts import BATCH, scope_in, scopes
from pipegen.plan.nodes import Cache

if TYPE_CHECKING:
    from pipegen.api.pipeline import Pipeline
    from pipegen.backend.running.execute import Executor


_IDLE = (3, 4)  # indices of the idle times in a line of `/proc/stat`: idle, or waiting for storage
_TIMES = 8  # number of times in such a line that add up to all; later ones are included in them


@dataclass(frozen=True)
class Usage:
    """The usage of processors up to some moment, or between two, in seconds: the time, and the processor time of this process.

    Its threads were `queued` while they were ready to run, but had no core. `busy` is the processor time of all programs on the cores that
    it may use; `None` if the system does not tell.
    """

    seconds: float
    cpu: float
    queued: float
    busy: float | None

    @staticmethod
    def now() -> Usage:
        """Measures the usage up to now."""
        seconds, cpu = time.perf_counter(), time.process_time()
        stats = ((read_text(file) or "").split() for file in Path("/proc/self/task").glob("*/schedstat"))
        queued = sum(int(words[1]) for words in stats if len(words) > 1)
        wanted = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        rows = [line.split() for line in (read_text(Path("/proc/stat")) or "").splitlines() if line.startswith("cpu")]
        ticks = [[int(word) for word in row[1 : 1 + _TIMES]] for row in rows if row[0] in wanted]
        busy = sum(sum(times) - sum(times[place] for place in _IDLE) for times in ticks) / os.sysconf("SC_CLK_TCK")
        return Usage(seconds, cpu, queued / 1e9, busy if ticks else None)

    def since(self, earlier: Usage) -> Usage:
        """Subtracts an earlier usage."""
        busy = None if self.busy is None or earlier.busy is None else max(0.0, self.busy - earlier.busy)
        return Usage(self.seconds - earlier.seconds, self.cpu - earlier.cpu, max(0.0, self.queued - earlier.queued), busy)

    @property
    def held(self) -> float:
        """Seconds of cores that other programs held while this one waited for them; waits of its threads for each other do not count."""
        return self.queued if self.busy is None else min(self.queued, max(0.0, self.busy - self.cpu))

    def share_held(self, cores: int) -> float:
        """Computes the share of cores that other programs held."""
        return min(1.0, self.held / (self.seconds * cores)) if self.seconds > 0 else 0.0


FORMAT = "tensorflow.tsl.profiler.protobuf.xplane_pb2"  # the module with the format of TensorFlow's traces, in 2.16 to 2.21
_HOST = "/host:CPU"


@dataclass
class Trace:
    """The sums of a trace, in seconds: its length, and the time of threads in each part of the plan, by `scope_in`.

    A part runs for one example, a few or a batch; `runs` lacks parts that run only in branches or loops. `cpu` is the processor time of the
    whole process; its threads were `queued` while they were ready, but other programs held the cores.
    """

    seconds: float = 0.0
    busy: dict[str, float] = field(default_factory=dict)
    cpu: float = 0.0
    queued: float = 0.0
    runs: dict[str, int] = field(default_factory=dict)

    @property
    def alone(self) -> float:
        """The share of time with a core, of the time in which threads were ready to run."""
        return self.cpu / (self.cpu + self.queued) if self.cpu else 1.0

    @property
    def undisturbed(self) -> float:
        """The share of the parts' time that stays without other programs, which prolong work, but not sleeps and waits for storage."""
        busy = sum(self.busy.values())
        return max(self.alone, 1 - self.queued / busy) if busy else self.alone

    @property
    def unattributed(self) -> float:
        """The share of processor time outside of all parts."""
        return max(0.0, 1 - self.alone * sum(self.busy.values()) / self.cpu) if self.cpu else 0.0


@contextmanager
def traced(known: Collection[str]) -> Iterator[Trace]:
    """Traces the body with TensorFlow's profiler; fills in the yielded trace at the end. `known` are the scopes of stages and kernels.

    Raises `tf.errors.AlreadyExistsError` if the profiler is running.
    """
    import tensorflow as tf

    found = Trace()
    with tempfile.TemporaryDirectory(prefix="pipegen-trace-") as folder:
        tf.profiler.experimental.start(folder)
        before = Usage.now()
        try:
            yield found
        finally:
            used = Usage.now().since(before)
            found.seconds, found.cpu, found.queued = used.seconds, used.cpu, used.held
            tf.profiler.experimental.stop()
            for file in Path(folder).rglob("*.xplane.pb"):
                found.busy, found.runs = busy_seconds(file.read_bytes(), known)


def busy_seconds(content: bytes, known: Collection[str]) -> tuple[dict[str, float], dict[str, int]]:
    """Adds up the seconds of each part of a plan in the bytes of an `xplane.pb`, and counts its runs.

    `known` are the scopes of the plan's stages and kernels.
    """
    space: Any = import_module(FORMAT).XSpace()
    space.ParseFromString(content)
    picoseconds: dict[str, int] = {}
    runs: dict[str, int] = {}
    for plane in space.planes:
        if plane.name == _HOST:
            read = _Plane(plane, known)
            for events in read.threads:
                _add_up(events, picoseconds)
            runs |= read.runs()
    return {part: amount / 1e12 for part, amount in picoseconds.items() if part not in _BETWEEN}, runs


_WAITS, _RUNS, _UNKNOWN = "-", "+", ""
"""Placeholders for the part of an event: a thread waits for others, an executor runs operation after operation, or the name is unknown."""
_BETWEEN = (_WAITS, _RUNS, _UNKNOWN)
_AT_TIMES = re.compile(r"^Iterator::|(?:^|/)(?:cond|switch_case|while|[a-z_]*map)(?:_\d+)?/")
"""Matches operations that a run of a part does not do exactly once."""
_EXECUTOR, _ASYNCHRONOUS = "ExecutorState::Process", "ExecutorState::ProcessAsync::Start"

Cause = tuple[int, int]
"""Links an event to those that it causes, perhaps on other threads, by a kind and a number. A call causes all operations of a function."""


@dataclass(slots=True)
class _Event:
    """An event of a thread, in picoseconds: the part in its name, or one of `_BETWEEN`; links to its cause, and to what it causes."""

    start: int
    length: int
    part: str
    cause: Cause | None = None
    causes: Cause | None = None


class _Plane:
    """The threads of a trace, with the part of the plan of each event.

    Operations in a function of their own, such as a branch of a condition, have names without the scopes of the calling operation. They are
    traced back to that operation, and count for its part.
    """

    def __init__(self, plane: Any, known: Collection[str]) -> None:
        self._known = known
        self._names = {number: meta.name for number, meta in plane.event_metadata.items()}
        self._parts = {number: self._part(name) for number, name in self._names.items()}
        self._texts = {number: meta.name for number, meta in plane.stat_metadata.items()}
        self._seen: Counter[tuple[str, str]] = Counter()
        self._callers: dict[Cause, tuple[str, Cause | None]] = {}
        self._last: dict[Cause, tuple[int, str]] = {}
        threads = [sorted(map(self._read, line.events), key=lambda event: (event.start, -event.length)) for line in plane.lines]
        for events in threads:
            self._note_callers(events)
        self.threads = [[self._resolved(event) for event in events] for events in threads]

    def runs(self) -> dict[str, int]:
        """Counts the runs of each part: the most frequent count of its operations."""
        counts: dict[str, Counter[int]] = {}
        for (part, name), count in self._seen.items():
            if part not in _BETWEEN and not _AT_TIMES.search(name):
                counts.setdefault(part, Counter())[count] += 1
        return {part: max(found, key=lambda count: (found[count], count)) for part, found in counts.items()}

    def _read(self, event: Any) -> _Event:
        name, part = self._names[event.metadata_id], self._parts[event.metadata_id]
        stats = {self._texts[stat.metadata_id]: stat for stat in event.stats}
        if name == _ASYNCHRONOUS and "name" in stats:  # such an event has the operation's name in its statistics
            name = stats["name"].str_value or self._texts.get(stats["name"].ref_value, "")
            part = scope_in(name, self._known) or _UNKNOWN
        self._seen[part, name] += 1

        def link(number: str, kind: str) -> Cause | None:
            if number not in stats or kind not in stats:
                return None
            return stats[kind].int64_value or stats[kind].uint64_value, stats[number].uint64_value or stats[number].int64_value

        return _Event(event.offset_ps, event.duration_ps, part, cause=link("_c", "_ct"), causes=link("_p", "_pt"))

    def _part(self, name: str) -> str:
        if name == _EXECUTOR:
            return _RUNS
        if name.startswith("Iterator::"):
            return BATCH if name.rpartition("::")[2].startswith(("Batch", "ParallelBatch")) else _WAITS
        return scope_in(name, self._known) or _UNKNOWN

    def _note_callers(self, events: list[_Event]) -> None:
        """Records the part or the function of each event that causes others, and the last part of each function."""
        around: list[_Event] = []
        for event in events:
            while around and around[-1].start + around[-1].length <= event.start:
                around.pop()
            around.append(event)
            if event.causes is not None:
                inner = next((e for e in reversed(around) if e.part not in _BETWEEN or e.cause is not None), None)
                if inner is not None:
                    self._callers[event.causes] = (inner.part, inner.cause)
            function = around[-2].cause if len(around) > 1 and around[-2].part == _RUNS else None
            if function is not None and event.part not in _BETWEEN:
                self._last[function] = max(self._last.get(function, (0, "")), (event.start, event.part))

    def _resolved(self, event: _Event) -> tuple[int, int, str]:
        """Finds the beginning and the end of an event, and the part that it counts for."""
        part, cause, seen = event.part, event.cause, set[Cause]()
        while part in (_RUNS, _UNKNOWN) and cause in self._callers and cause not in seen:
            seen.add(cause)
            part, cause = self._callers[cause]
        if part in _BETWEEN and event.cause is not None:  # in a function of several parts: its end, or its executor
            part = self._last.get(event.cause, (0, _RUNS))[1] if event.part == _UNKNOWN else event.part
        elif part in _BETWEEN:
            part = event.part
        return event.start, event.start + event.length, part


def _add_up(events: list[tuple[int, int, str]], into: dict[str, int]) -> None:
    """Adds the own time of a thread's events to their parts.

    In an executor, the time before an operation counts for that operation, and the time after the last one for the last.
    """
    around: list[list[Any]] = []  # for each open event: its end, its part, the time accounted for so far, the last part in it

    def add(part: str, amount: int) -> None:
        into[part] = into.get(part, 0) + amount

    def leave() -> None:
        end, part, until, last = around.pop()
        if part == _RUNS and last:
            add(last, end - until)
            add(_RUNS, until - end)
        if around:
            around[-1][2] = end

    for start, end, said in (*events, (sys.maxsize, sys.maxsize, _UNKNOWN)):
        while around and around[-1][0] <= start:
            leave()
        outer = around[-1][1] if around else _UNKNOWN
        part = outer if said == _UNKNOWN else said
        add(outer, start - end)
        add(part, end - start)
        if outer == _RUNS and part not in _BETWEEN:
            add(part, start - around[-1][2])
            add(_RUNS, around[-1][2] - start)
            around[-1][3] = part
        around.append([end, part, start, ""])


WARM = 6  # batches before the clock starts, during which TensorFlow compiles and optimises the graph
SECONDS = 4.0  # seconds of each of the two measurements, without and with a trace
_LEAST = 8  # the least number of batches of each measurement


@dataclass
class Recording:
    """The measurements of one split, as plain values."""

    split: str
    threads: int  # threads of the pipeline's pool
    file_bytes: float  # the mean size of a stored record, 0 if unknown
    batches: int = 0  # batches measured without a trace, with so many `examples` in so many `seconds`, for which Python `waited` in part
    examples: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    traced_examples: int = 0
    traced_batches: int = 0  # batches handed over while the trace ran
    trace: Trace = field(default_factory=Trace)
    model_ms: float | None = None  # the time of the model's training step in ms; `None` if only the pipeline ran
    notes: list[str] = field(default_factory=list)
    records: str = "images"  # the word for the examples

    @property
    def wait_share(self) -> float:
        """The share of the time that the consumer of the batches waited."""
        return min(1.0, self.waited / self.seconds) if self.seconds else 0.0

    @property
    def rate(self) -> float:
        """Examples per second."""
        return self.examples / self.seconds if self.seconds else 0.0


def about(executor: Executor) -> Recording:
    """Makes an empty recording of an executor's split."""
    word = called(x for _, x in executor.plan.read.items())
    return Recording(executor.plan.split, executor.setting.threads, executor.records.mean_bytes, records=word)


def record(
    pipe: Pipeline, split: str, *, model_ms: float | None = None, steps: int | None = None, tick: Callable[[int], None] = lambda _: None
) -> Recording:
    """Runs a split, epoch after epoch, first without and then with a trace: `steps` batches each, or four seconds of them.

    `model_ms` are slept after each batch, in place of a model on a device. `tick` is called with the number of batches done.
    """
    executor, batches = warmed(pipe, split, (model_ms or 0.0) / 1000, tick)
    found = about(executor)
    found.model_ms = model_ms
    for _ in measuring(found, executor, steps):
        next(batches)
    return found


def measuring(found: Recording, executor: Executor, steps: int | None = None) -> Generator[None, None, None]:
    """Measures an executor, first without and then with a trace, for `steps` batches each or four seconds of them.

    It pauses until the next batch is taken. If it is closed during the trace, the recording has what was traced so far.
    """
    before, start = replace(executor.waiting), time.perf_counter()
    yield from _some(steps)
    taken, found.seconds = executor.waiting.since(before), time.perf_counter() - start
    found.batches, found.examples, found.waited = taken.batches, taken.examples, taken.seconds
    before = replace(executor.waiting)
    with traced(frozenset(scopes(executor.plan).values())) as found.trace:
        try:
            yield from _some(steps)
        finally:
            taken = executor.waiting.since(before)
            found.traced_batches, found.traced_examples = taken.batches, taken.examples


def warmed(pipe: Pipeline, split: str, nap: float, tick: Callable[[int], None] = lambda _: None) -> tuple[Executor, Iterator[Any]]:
    """Runs the batches of a split before the clock starts: a few, and all examples once to fill a cache.

    Returns its executor, and the batches after these; for the arguments see `endless`. Raises `DataError` if the split has no batch.
    """
    if pipe.steps(split) == 0:
        raise DataError(f"split `{split}` has no batch to measure")
    executor, batches = pipe._engine.executor(split), endless(pipe, split, nap, tick)
    for _ in range(WARM + filling_steps(executor)):
        next(batches)
    return executor, batches


def filling_steps(executor: Executor) -> int:
    """Counts the batches of all examples that fill a cache; 0 without one."""
    cached = any(isinstance(n, Cache) for n in executor.plan.nodes)
    return -(-len(executor.records) // executor.order.local_batch) if cached else 0


def _some(steps: int | None) -> Iterator[None]:
    """Pauses for a number of batches, or for as many as fit into the time."""
    start, done = time.perf_counter(), 0
    while done < (steps or _LEAST) or (steps is None and time.perf_counter() - start < SECONDS):
        yield
        done += 1


def endless(pipe: Pipeline, split: str, nap: float = 0.0, tick: Callable[[int], None] = lambda _: None) -> Iterator[Any]:
    """Yields batches for ever, sleeping for some seconds after each; `tick` is called with the number of batches so far."""
    for done, batch in enumerate(chain.from_iterable(repeat(pipe[split])), 1):
        if nap:
            time.sleep(nap)
        tick(done)
        yield batch
