"""Tries settings of `runtime:` on this machine: which cache, how many threads, how many batches ahead.

One setting is decided after the other, each candidate beside the best so far, in turns: what else runs meanwhile hits all of them.
A candidate wins only where it was faster in nearly every turn. Settings of `runtime:` change no number that a model sees.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pipegen.errors import DataError
from pipegen.memory import available_cores, ram_budget
from pipegen.phases.machine import Tuned, ignored
from pipegen.plan.cost import example_bytes
from pipegen.plan.nodes import Cache, Prefetch
from pipegen.profiling.fitting import today
from pipegen.profiling.record import warm_steps
from pipegen.spec.units import format_bytes
from pipegen.terminal import aligned

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from pipegen.api.pipeline import Pipeline

    Build = Callable[[Mapping[str, Any]], Pipeline]
    """Builds the pipeline with settings laid over the `runtime` section."""

WORTH = 1.03
"""A candidate has to be so much faster even in its worse turns: less is not worth a setting."""
_MOST_READY = 16
"""Batches that lie ready in front of a turn, at most."""
_PATIENCE_S = 120.0
"""A cache is tried where filling it takes no longer."""


@dataclass(frozen=True)
class Trial:
    """Holds what one candidate came to beside the best before it.

    Attributes:
        setting: What was tried, such as `threads: 4`.
        rate: Images per second, the median of its turns.
        times: How many times as fast as the best before, the median.
        low: The same in its worse turns: the lower quartile.
        high: And in its better ones.
        taken: Whether it is the best from now on.
    """

    setting: str
    rate: float
    times: float = 1.0
    low: float = 1.0
    high: float = 1.0
    taken: bool = False


@dataclass
class Tuning:
    """Holds what was tried, and what is best.

    Attributes:
        split: The split that was run.
        trials: What was tried, in order; the first is what pipegen chooses by itself.
        best: The settings that won, as `runtime:` takes them; empty where none did.
        tuned: The same, to be kept.
        notes: What was not tried, and why.
    """

    split: str
    trials: list[Trial] = field(default_factory=list)
    best: dict[str, Any] = field(default_factory=dict)
    tuned: Tuned = field(default_factory=Tuned)
    notes: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """Says in one sentence what is best."""
        if not self.best:
            return "what pipegen chooses by itself is as fast as anything that was tried"
        found = self.tuned
        return (
            f"{written(self.best)} is {found.times:.2f} × as fast ({found.low:.2f} to {found.high:.2f}) as what pipegen chooses by itself"
        )

    def text(self) -> str:
        """Lists what was tried, for people."""
        rows = [("images/s", "times as fast as the best before", "")]
        for number, trial in enumerate(self.trials):
            gain = f"{trial.times:.2f} ({trial.low:.2f} to {trial.high:.2f})" if number else ""
            rows.append((f"{trial.rate:>8,.0f}", gain, trial.setting + (", taken" if trial.taken else "")))
        return "\n".join([self.sentence, "", *aligned(rows), *([""] if self.notes else []), *self.notes])

    def as_json(self) -> dict[str, Any]:
        """The same as plain values."""
        trials = [vars(trial) for trial in self.trials]
        gain = {name: getattr(self.tuned, name) for name in ("times", "low", "high")}
        return {
            "version": 1,
            "sentence": self.sentence,
            "split": self.split,
            "best": self.best,
            **gain,
            "trials": trials,
            "notes": self.notes,
        }


def written(settings: Mapping[str, Any]) -> str:
    """Returns settings as `runtime:` has them, on one line: `threads: 4, cache: {disk: /ssd}`."""
    shown = {name: "{" + ", ".join(f"{k}: {v}" for k, v in s.items()) + "}" if isinstance(s, dict) else s for name, s in settings.items()}
    return ", ".join(f"{name}: {value}" for name, value in shown.items())


def tune(
    build: Build,
    split: str,
    *,
    disk: str | None = None,
    model_ms: float = 0.0,
    turns: int = 7,
    seconds: float = 1.0,
    said: Callable[[str], None] = lambda _: None,
) -> Tuning:
    """Tries settings of the ones that a spec leaves to pipegen.

    Args:
        build: Builds the pipeline with settings laid over its `runtime` section.
        split: The split to run.
        disk: A folder for a cache on a disk; without it none is tried, since that writes a copy of the data.
        model_ms: How long a training step takes, in ms; a faster pipeline than the model needs gains nothing.
        turns: How often each candidate is measured beside the best.
        seconds: How long a turn lasts, for each of the two.
        said: Called with what is being tried.

    Raises:
        DataError: If the split has no batch.
    """
    with ignored():
        return _Search(build, split, disk, model_ms / 1000, turns, seconds, said).run()


class _Search:
    def __init__(
        self, build: Build, split: str, disk: str | None, nap: float, turns: int, seconds: float, said: Callable[[str], None]
    ) -> None:
        self._build, self._disk, self._nap, self._turns, self._seconds, self._said = build, disk, nap, turns, seconds, said
        self._found = Tuning(split)

    def run(self) -> Tuning:
        found = self._found
        self._said("what pipegen chooses by itself")
        self._first = self._best = _Running(self._build({}), found.split, self._nap)
        rate = self._best.rate(self._seconds)
        found.trials.append(Trial("what pipegen chooses by itself", rate))
        runtime = self._best.pipe.spec.model.runtime
        cores = available_cores()
        threads = [] if runtime.threads != "auto" else [n for n in (max(1, cores // 2), cores + 1, 2 * cores, 4 * cores) if n != cores]
        for name, values in (
            ("cache", self._caches()),
            ("threads", threads),
            ("prefetch", [1, 4, 8] if runtime.prefetch == "auto" else []),
        ):
            for value in dict.fromkeys(map(_hashable, values)):
                self._try({name: dict(value) if isinstance(value, tuple) else value})
        found.best = dict(self._best.settings)
        found.tuned = self._compared()
        return found

    def _caches(self) -> list[Any]:
        """The caches to try, where the spec leaves that to pipegen; one that takes too long to fill is not."""
        pipe, found = self._first.pipe, self._found
        if pipe.spec.model.runtime.cache != "auto":
            return []
        is_cached = any(isinstance(n, Cache) for n in pipe._compiled.splits[found.split].plan.nodes)
        wanted: list[Any] = ["none"] if is_cached else ["memory"]
        took = sum(map(pipe.num_examples, pipe.splits)) / max(self._found.trials[0].rate, 1e-9)
        if not is_cached and took > _PATIENCE_S:
            found.notes.append(f"no cache was tried: to fill it takes about {took:.0f} s")
            return []
        if self._disk is not None:
            wanted.append({"disk": self._disk})
        return wanted

    def _try(self, setting: dict[str, Any]) -> None:
        """Runs a candidate beside the best, in turns, and takes it where it is faster."""
        self._said(written(setting))
        settings = {**self._best.settings, **setting}
        try:
            candidate = _Running(self._build(settings), self._found.split, self._nap, settings)
        except DataError:
            raise
        except Exception as error:  # such as a cache that does not fit
            self._found.notes.append(f"{written(setting)} was not tried: {_first_line(error)}")
            return
        if settings.get("cache") == "memory" and not self._fits(candidate.pipe):
            return
        times, rates = self._ratios(candidate, self._best)
        low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
        taken = low > WORTH
        self._found.trials.append(Trial(written(setting), statistics.median(rates), middle, low, high, taken))
        if taken:
            self._best = candidate

    def _fits(self, pipe: Pipeline) -> bool:
        """Returns whether `auto` would have the memory for a cache; what `build` reads later has the same rule."""
        plan = pipe._compiled.splits[self._found.split].plan
        node = next((n for n in plan.nodes if isinstance(n, Cache)), None)
        size = example_bytes(node.out) * pipe.num_examples(self._found.split) if node is not None else 0
        if node is None or 2 * size > ram_budget(pipe.spec.model.runtime):
            why = "nothing can be cached" if node is None else f"{format_bytes(size)} is more than half of the RAM budget"
            self._found.notes.append(f"cache: memory was not tried: {why}")
            return False
        return True

    def _ratios(self, a: _Running, b: _Running) -> tuple[list[float], list[float]]:
        """Measures how many times as fast as `b` `a` is, turn by turn, and how fast it is."""
        times, rates = [], []
        for turn in range(max(2, self._turns)):
            first, second = (a, b) if turn % 2 else (b, a)
            rate = {running: running.rate(self._seconds) for running in (first, second)}
            times.append(rate[a] / rate[b])
            rates.append(rate[a])
        return times, rates

    def _compared(self) -> Tuned:
        """The best beside what pipegen chooses by itself, once more, as it is to be kept."""
        plain, best = Tuned(examples=self._first.pipe.num_examples(self._found.split), date=today()), self._best
        if best is self._first:
            return plain
        times, rates = self._ratios(best, self._first)
        low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
        self._found.trials.append(
            Trial(f"{written(best.settings)}, beside what pipegen chooses", statistics.median(rates), middle, low, high)
        )
        if low <= WORTH:  # the noise of the first time has chosen it
            best = self._best = self._first
            self._found.best = {}
            return plain
        cache = best.settings.get("cache")
        kept: dict[str, Any] = {name: best.settings.get(name) for name in ("threads", "prefetch")}
        return replace(plain, **kept, cache=cache if isinstance(cache, str) else None, times=middle, low=low, high=high)


class _Running:
    """Runs a pipeline now and then, where it stood before, with its cache full."""

    def __init__(self, pipe: Pipeline, split: str, nap: float, settings: dict[str, Any] | None = None) -> None:
        if pipe.steps(split) == 0:
            raise DataError(f"split `{split}` has no batch to measure")
        self.pipe, self.settings = pipe, settings or {}
        executor = pipe._engine.executor(split)
        self._count = executor.waiting
        self._ready = min(_MOST_READY, executor.setting.threads + sum(n.batches for n in executor.plan.nodes if isinstance(n, Prefetch)))
        self._batches = _endless(pipe, split, nap)
        for _ in range(warm_steps(executor)):
            next(self._batches)

    def rate(self, seconds: float) -> float:
        """Images per second, over so many seconds and at least a few batches."""
        for _ in range(self._ready):  # they were made before
            next(self._batches)
        before, start, done = self._count.examples, time.perf_counter(), 0
        while done < 4 or time.perf_counter() - start < seconds:
            next(self._batches)
            done += 1
        return (self._count.examples - before) / (time.perf_counter() - start)


def _endless(pipe: Pipeline, split: str, nap: float) -> Generator[None, None, None]:
    dataset = pipe[split]
    while True:
        for _ in dataset:
            if nap:
                time.sleep(nap)
            yield


def _hashable(value: Any) -> Any:
    return tuple(value.items()) if isinstance(value, dict) else value


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
