"""Tries settings of `runtime:` on this machine: which cache, how many threads, how many batches ahead.

One setting is decided after the other, each candidate beside the best so far, in turns: what else runs meanwhile hits all of them.
A candidate wins only where it was faster in nearly every turn. A turn in which other programs held much of the cores does not count: more
threads win a larger share of contended cores, and nothing on a quiet machine. Settings of `runtime:` change no number that a model sees.
"""

from __future__ import annotations

import datetime
import statistics
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pipegen.errors import DataError
from pipegen.memory import available_cores, ram_budget
from pipegen.observe.measured import warm_steps
from pipegen.observe.trace import Usage
from pipegen.phases.machine import Tuned, ignored
from pipegen.plan.cost import example_bytes, fitted_as
from pipegen.plan.nodes import Cache, Prefetch
from pipegen.spec.units import format_bytes
from pipegen.terminal import aligned

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from pipegen.api.pipeline import Pipeline
    from pipegen.observe.profile import Profile


_LEAST_US = 1.0
"""What takes less is measured too badly, ..."""
_LEAST_FACTOR, _MOST_FACTOR = 0.1, 50.0
"""... and so is what seems to take so little: it runs where no trace tells. Storage may be slow beyond all measure."""


def fitted_factors(made: Profile) -> dict[str, float]:
    """Returns the factors of a profile, by `fitted_as`; it must come from the costs as they stand.

    Functions of the user are left out. Time that other programs took from this one does not count, and is taken from all parts alike.
    """
    alone = made.recording.trace.alone
    measured: dict[str, float] = {}
    expected: dict[str, float] = {}
    for part in made.parts:
        if part.calls_python or not part.us or not part.expected:
            continue
        kind = fitted_as(part.node, part.stage)
        measured[kind] = measured.get(kind, 0.0) + part.us * alone
        expected[kind] = expected.get(kind, 0.0) + part.expected
    known = {kind: measured[kind] / expected[kind] for kind in measured if min(measured[kind], expected[kind]) >= _LEAST_US}
    return {kind: round(min(_MOST_FACTOR, factor), 3) for kind, factor in known.items() if factor >= _LEAST_FACTOR}


def today() -> str:
    """Returns the date, such as 2026-11-23."""
    return datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()


if TYPE_CHECKING:
    Build = Callable[[Mapping[str, Any]], Pipeline]
    """Builds the pipeline with settings laid over the `runtime` section."""

WORTH = 1.03
"""A candidate has to be so much faster even in its worse turns: less is not worth a setting."""
MOST_HELD = 0.1
"""The share of the cores that other programs may hold in a turn that counts."""
LEAST_TURNS = 5
"""Turns that have to count before a candidate is taken."""
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
        cpu_us: Microseconds of processor time per image, likewise.
        times: How many times as fast as the best before, the median.
        low: The same in its worse turns: the lower quartile.
        high: And in its better ones.
        taken: Whether it is the best from now on.
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
    """Holds what was tried, and what is best.

    Attributes:
        split: The split that was run.
        trials: What was tried, in order; the first is what pipegen chooses by itself.
        best: The settings that won, as `runtime:` takes them; empty where none did.
        tuned: The same, to be kept.
        undecided: What other programs left too few turns for.
        notes: What was not tried, and why.
    """

    split: str
    trials: list[Trial] = field(default_factory=list)
    best: dict[str, Any] = field(default_factory=dict)
    tuned: Tuned = field(default_factory=Tuned)
    undecided: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """Says in one sentence what is best."""
        if not self.best and self.undecided:
            return f"nothing is decided: other programs held more than {MOST_HELD:.0%} of the cores; try again when they have ended"
        if not self.best:
            return "what pipegen chooses by itself is as fast as anything that was tried"
        found = self.tuned
        return (
            f"{written(self.best)} is {found.times:.2f} × as fast ({found.low:.2f} to {found.high:.2f}) as what pipegen chooses by itself"
        )

    def text(self) -> str:
        """Lists what was tried, for people."""
        rows = [("images/s", "processor µs an image", "times as fast as the best before", "")]
        for number, trial in enumerate(self.trials):
            gain = f"{trial.times:.2f} ({trial.low:.2f} to {trial.high:.2f})" if number else ""
            rows.append((f"{trial.rate:>8,.0f}", f"{trial.cpu_us:>21,.0f}", gain, trial.setting + (", taken" if trial.taken else "")))
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
            "undecided": self.undecided,
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
        turns: How often each candidate is measured beside the best; at least `LEAST_TURNS` to decide anything.
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
        turn = self._best.turn(self._seconds)
        found.trials.append(Trial("what pipegen chooses by itself", turn.rate, turn.cpu_us))
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
        trial = self._trial(written(setting), candidate, self._best)
        if trial is not None and trial.low > WORTH:
            self._found.trials[-1] = replace(trial, taken=True)
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

    def _trial(self, name: str, a: _Running, b: _Running) -> Trial | None:
        """Measures how many times as fast as `b` `a` is, in turns; `None` where other programs left too few of them that count."""
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
                f"{self._turns} turns, and {LEAST_TURNS} have to be left"
            )
            return None
        low, middle, high = statistics.quantiles([times for times, _ in counted], n=4, method="inclusive")
        rate, cpu_us = (statistics.median(getattr(turn, figure) for _, turn in counted) for figure in ("rate", "cpu_us"))
        found.trials.append(Trial(name, rate, cpu_us, middle, low, high))
        return found.trials[-1]

    def _compared(self) -> Tuned:
        """The best beside what pipegen chooses by itself, once more, as it is to be kept."""
        plain, best = Tuned(examples=self._first.pipe.num_examples(self._found.split), date=today()), self._best
        if best is self._first:
            return plain
        trial = self._trial(f"{written(best.settings)}, beside what pipegen chooses", best, self._first)
        if trial is None or trial.low <= WORTH:  # the noise of the first time has chosen it
            self._best = self._first
            self._found.best = {}
            return plain
        cache = best.settings.get("cache")
        kept: dict[str, Any] = {name: best.settings.get(name) for name in ("threads", "prefetch")}
        kept |= {"times": trial.times, "low": trial.low, "high": trial.high}
        return replace(plain, **kept, cache=cache if isinstance(cache, str) else None)


@dataclass(frozen=True)
class Turn:
    """Holds what was measured of a pipeline in a while.

    Attributes:
        rate: Images per second.
        cpu_us: Microseconds of processor time per image.
        held: The share of the cores that other programs held.
    """

    rate: float
    cpu_us: float
    held: float


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

    def turn(self, seconds: float) -> Turn:
        """Measures it over so many seconds and at least a few batches."""
        for _ in range(self._ready):  # they were made before
            next(self._batches)
        before, start, done = self._count.examples, Usage.now(), 0
        while done < 4 or time.perf_counter() - start.seconds < seconds:
            next(self._batches)
            done += 1
        used, images = Usage.now().since(start), self._count.examples - before
        return Turn(images / used.seconds, 1e6 * used.cpu / images, used.share_held(available_cores()))


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
