"""Tries settings of `runtime:` on this machine: the cache, the number of threads, the number of prefetched batches.

One setting is decided after the other. Each candidate runs in turns with the best so far, so that other programs slow down both. It wins
only if it was faster in nearly every turn. A turn in which other programs held much of the cores does not count: there, more threads win a
larger share of the cores, but they gain nothing on a quiet machine. Settings of `runtime:` never change what a model sees.
"""

from __future__ import annotations

import datetime
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from pipegen.errors import DataError
from pipegen.frozen import dataclass
from pipegen.memory import available_cores, ram_budget
from pipegen.observe.measured import Usage, warmed
from pipegen.phases.machine_settings import Tuned, ignored
from pipegen.plan.cost import example_bytes, fitted_as
from pipegen.plan.nodes import Cache, Prefetch
from pipegen.spec.units import format_bytes
from pipegen.terminal import aligned

if TYPE_CHECKING:
    from pipegen.api.pipeline import Pipeline
    from pipegen.observe.profile import Profile


_LEAST_US = 1.0  # the least time of a part that is measured well enough
_LEAST_FACTOR, _MOST_FACTOR = 0.1, 50.0
"""The range of factors: a lower one means that the part runs outside of the trace; a higher one, very slow storage, is cut."""


def fitted_factors(made: Profile) -> dict[str, float]:
    """Computes measured over modelled cost by `fitted_as`, from a profile that used no factors.

    Leaves out functions of the user. Subtracts the time that other programs held the cores from all parts alike.
    """
    alone = made.recording.trace.alone
    measured, expected = defaultdict[str, float](float), defaultdict[str, float](float)
    for part in made.parts:
        if part.us and part.expected and not part.calls_python:
            kind = fitted_as(part.node, part.stage)
            measured[kind] += part.us * alone
            expected[kind] += part.expected
    known = {kind: measured[kind] / expected[kind] for kind in measured if min(measured[kind], expected[kind]) >= _LEAST_US}
    return {kind: round(min(_MOST_FACTOR, factor), 3) for kind, factor in known.items() if factor >= _LEAST_FACTOR}


def today() -> str:
    """The date, such as 2026-11-23."""
    return datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()


if TYPE_CHECKING:
    Build = Callable[[Mapping[str, Any]], Pipeline]
    """Builds the pipeline with settings that override its `runtime` section."""

WORTH = 1.03  # the least speed-up of a candidate, in its worse turns
MOST_HELD = 0.1  # the most share of the cores that other programs may hold in a turn that counts
LEAST_TURNS = 5  # the least number of turns that count, to take a candidate
_MOST_READY = 16  # the most batches that may be ready before a turn
_PATIENCE_S = 120.0  # the longest time to fill a cache that is tried


@dataclass(frozen=True)
class Trial:
    """The result of one candidate, such as `threads: 4`: medians of its turns.

    These are images per second, microseconds of processor time per image, and the speed-up over the best before, with its quartiles. If it
    was `taken`, it is the best from now on.
    """

    setting: str
    rate: float
    cpu_us: float
    times: float = 1.0
    low: float = 1.0
    high: float = 1.0
    taken: bool = False


@dataclass
class Tuning:
    """The trials, and the best settings.

    The first trial is pipegen's own choice. `best` are the settings that won, as `runtime:` takes them; `tuned` is what is kept of them.
    `undecided` candidates have too few turns that count; `notes` says which were not tried, and why.
    """

    split: str
    trials: list[Trial] = field(default_factory=list)
    best: dict[str, Any] = field(default_factory=dict)
    tuned: Tuned = field(default_factory=Tuned)
    undecided: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        if not self.best and self.undecided:
            return f"undecided: other programs held more than {MOST_HELD:.0%} of the cores; try again when they have ended"
        if not self.best:
            return "pipegen's own choice is as fast as anything that was tried"
        found = self.tuned
        return f"{written(self.best)} is {found.times:.2f} × as fast ({found.low:.2f} to {found.high:.2f}) as pipegen's own choice"

    def text(self) -> str:
        """Formats the result as text."""
        rows = [("examples/s", "processor µs an example", "times as fast as the best before", "")]
        for number, trial in enumerate(self.trials):
            gain = f"{trial.times:.2f} ({trial.low:.2f} to {trial.high:.2f})" if number else ""
            rows.append((f"{trial.rate:>10,.0f}", f"{trial.cpu_us:>23,.0f}", gain, trial.setting + (", taken" if trial.taken else "")))
        return "\n".join([self.sentence, "", *aligned(rows), *([""] if self.notes else []), *self.notes])

    def as_json(self) -> dict[str, Any]:
        """Converts the result to plain values."""
        trials = [vars(trial) for trial in self.trials]
        gain = {name: getattr(self.tuned, name) for name in ("times", "low", "high")}
        head = {"version": 1, "sentence": self.sentence, "split": self.split, "best": self.best}
        return {**head, **gain, "trials": trials, "undecided": self.undecided, "notes": self.notes}


def written(settings: Mapping[str, Any]) -> str:
    """Formats settings for `runtime:` on one line: `threads: 4, cache: {disk: /ssd}`."""
    shown = {name: "{" + ", ".join(f"{k}: {v}" for k, v in s.items()) + "}" if isinstance(s, dict) else s for name, s in settings.items()}
    return ", ".join(f"{name}: {value}" for name, value in shown.items())


def tune(build: Build, split: str, *, disk: str | None, model_ms: float, turns: int, seconds: float, said: Callable[[str], None]) -> Tuning:
    """Tries values of the settings that a spec leaves to pipegen on a split, also a cache in a folder on a `disk`.

    Each candidate has so many `turns` with the best, of so many `seconds` for each of the two; `LEAST_TURNS` decide. `said` is called with
    the candidate that is tried next. A pipeline faster than the model, whose step takes `model_ms`, gains nothing. Raises `DataError` if
    the split has no batch."""
    with ignored():
        return _Search(build, split, disk, model_ms / 1000, turns, seconds, said).run()


_OWN_CHOICE = "pipegen's own choice"


class _Search:
    def __init__(
        self, build: Build, split: str, disk: str | None, nap: float, turns: int, seconds: float, said: Callable[[str], None]
    ) -> None:
        self._build, self._disk, self._nap, self._turns, self._seconds, self._said = build, disk, nap, turns, seconds, said
        self._found = Tuning(split)

    def run(self) -> Tuning:
        found = self._found
        self._said(_OWN_CHOICE)
        self._first = self._best = _Running(self._build({}), found.split, self._nap)
        turn = self._best.turn(self._seconds)
        found.trials.append(Trial(_OWN_CHOICE, turn.rate, turn.cpu_us))
        runtime = self._best.pipe.spec.model.runtime
        cores = available_cores()
        threads = [] if runtime.threads != "auto" else [n for n in (max(1, cores // 2), cores + 1, 2 * cores, 4 * cores) if n != cores]
        for name, values in (
            ("cache", self._caches()),
            ("threads", threads),
            ("prefetch", [1, 4, 8] if runtime.prefetch == "auto" else []),
        ):
            for value in (value for i, value in enumerate(values) if value not in values[:i]):
                self._try({name: value})
        found.best = dict(self._best.settings)
        found.tuned = self._compared()
        return found

    def _caches(self) -> list[Any]:
        """Lists the caches to try, if the spec leaves the cache to pipegen; none that takes too long to fill."""
        pipe, found = self._first.pipe, self._found
        if pipe.spec.model.runtime.cache != "auto":
            return []
        is_cached = any(isinstance(n, Cache) for n in pipe._compiled.splits[found.split].plan.nodes)
        took = sum(map(pipe.num_examples, pipe.splits)) / max(self._found.trials[0].rate, 1e-9)
        if not is_cached and took > _PATIENCE_S:
            found.notes.append(f"no cache was tried: filling it takes about {took:.0f} s")
            return []
        return ["none" if is_cached else "memory", *([{"disk": self._disk}] if self._disk is not None else [])]

    def _try(self, setting: dict[str, Any]) -> None:
        """Runs a candidate in turns with the best, and takes it if it is faster."""
        self._said(written(setting))
        settings = {**self._best.settings, **setting}
        try:
            candidate = _Running(self._build(settings), self._found.split, self._nap, settings)
        except DataError:
            raise
        except Exception as error:  # such as a cache that does not fit
            why = (str(error).strip().splitlines() or [type(error).__name__])[0]
            self._found.notes.append(f"{written(setting)} was not tried: {why}")
            return
        if settings.get("cache") == "memory" and not self._fits(candidate.pipe):
            return
        trial = self._trial(written(setting), candidate, self._best)
        if trial is not None and trial.low > WORTH:
            self._found.trials[-1] = replace(trial, taken=True)
            self._best = candidate

    def _fits(self, pipe: Pipeline) -> bool:
        """Checks that `auto` would have the memory for a cache, by the rule of `build`."""
        plan = pipe._compiled.splits[self._found.split].plan
        node = next((n for n in plan.nodes if isinstance(n, Cache)), None)
        size = example_bytes(node.out) * pipe.num_examples(self._found.split) if node is not None else 0
        if node is None or 2 * size > ram_budget(pipe.spec.model.runtime):
            why = "nothing can be cached" if node is None else f"{format_bytes(size)} is more than half of the RAM budget"
            self._found.notes.append(f"cache: memory was not tried: {why}")
            return False
        return True

    def _trial(self, name: str, a: _Running, b: _Running) -> Trial | None:
        """Measures the speed-up of `a` over `b` in turns; `None` if too few turns count."""
        counted: list[tuple[float, Turn]] = []
        for number in range(self._turns):
            first, second = (a, b) if number % 2 else (b, a)
            turn = {running: running.turn(self._seconds) for running in (first, second)}
            if max(turn[a].held, turn[b].held) <= MOST_HELD:
                counted.append((turn[a].rate / turn[b].rate, turn[a]))
        found = self._found
        if len(counted) < LEAST_TURNS:
            found.undecided.append(name)
            found.notes.append(
                f"{name} is undecided: other programs held more than {MOST_HELD:.0%} of the cores in {self._turns - len(counted)} of "
                f"{self._turns} turns, and {LEAST_TURNS} others are needed"
            )
            return None
        low, middle, high = statistics.quantiles([times for times, _ in counted], n=4, method="inclusive")
        rate, cpu_us = (statistics.median(getattr(turn, figure) for _, turn in counted) for figure in ("rate", "cpu_us"))
        found.trials.append(Trial(name, rate, cpu_us, middle, low, high))
        return found.trials[-1]

    def _compared(self) -> Tuned:
        """Compares the best with pipegen's own choice once more, for the result that is kept."""
        plain, best = Tuned(examples=self._first.pipe.num_examples(self._found.split), date=today()), self._best
        if best is self._first:
            return plain
        trial = self._trial(f"{written(best.settings)}, against {_OWN_CHOICE}", best, self._first)
        if trial is None or trial.low <= WORTH:  # it was chosen by noise
            self._best = self._first
            self._found.best = {}
            return plain
        cache = best.settings.get("cache")
        kept: dict[str, Any] = {name: best.settings.get(name) for name in ("threads", "prefetch")}
        kept |= {"times": trial.times, "low": trial.low, "high": trial.high}
        return replace(plain, **kept, cache=cache if isinstance(cache, str) else None)


@dataclass(frozen=True)
class Turn:
    """Images per second, microseconds of processor time per image, and the share of the cores that other programs held, in one turn."""

    rate: float
    cpu_us: float
    held: float


class _Running:
    """A pipeline that runs turn by turn, with its cache full."""

    def __init__(self, pipe: Pipeline, split: str, nap: float, settings: dict[str, Any] | None = None) -> None:
        self.pipe, self.settings = pipe, settings or {}
        executor, self._batches = warmed(pipe, split, nap)
        self._count = executor.waiting
        self._ready = min(_MOST_READY, executor.setting.threads + sum(n.batches for n in executor.plan.nodes if isinstance(n, Prefetch)))

    def turn(self, seconds: float) -> Turn:
        """Measures the pipeline for some seconds and at least a few batches."""
        for _ in range(self._ready):  # these batches were made before the turn
            next(self._batches)
        before, start, done = self._count.examples, Usage.now(), 0
        while done < 4 or time.perf_counter() - start.seconds < seconds:
            next(self._batches)
            done += 1
        used, images = Usage.now().since(start), self._count.examples - before
        return Turn(images / used.seconds, 1e6 * used.cpu / images, used.share_held(available_cores()))
