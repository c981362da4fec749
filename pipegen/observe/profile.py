"""Profiles: where the time of a pipeline goes, and which settings of `runtime:` would help, as text, plain values and a page of HTML."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipegen.frozen import dataclass
from pipegen.memory import available_cores, ram_budget
from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.fields.notes import count
from pipegen.ops.stage import Stage
from pipegen.page import Page, bar, element, page, table
from pipegen.phases.compilation import optimise
from pipegen.physical.facts import BATCH, CACHE, INDEX, READ, called, scopes
from pipegen.physical.nodes import Examples, Fill, Filter, Map, Physical, SliceOwnRows, forms_of
from pipegen.plan.cost import ASSUMED_FILE, Circumstances, NodeCost, example_bytes, plan_cost
from pipegen.plan.nodes import Batch, Cache, Element, Index, Kernel, Node, Plan, Read
from pipegen.plan.plan_text import stage_text
from pipegen.plan.stages import Branch
from pipegen.spec.models import DiskCache
from pipegen.spec.units import format_bytes
from pipegen.terminal import aligned, json_text

if TYPE_CHECKING:
    from pipegen.api.pipeline import Pipeline
    from pipegen.observe.measured import Recording


_OWN = {Index: (INDEX, "order and random numbers"), Read: (READ, "reading"), Cache: (CACHE, "the cache"), Batch: (BATCH, "batches")}
"""The scope and the name of a node's own time, beside its stages."""

_UNLIKE = 2.0  # the largest plausible ratio of made examples to those handed over; beyond it, the part runs at times of its own


@dataclass(frozen=True)
class Part:
    """The measured time of one node or stage."""

    name: str  # the names of its steps
    text: str  # its line in `explain`
    us: float  # microseconds of a thread per example; the cost model has `expected` so many
    share: float  # its share of all measured time
    estimated: bool  # the cost model divided the time of a compiled kernel
    stage: Stage | None
    node: Node
    expected: float

    @property
    def calls_python(self) -> bool:
        """It calls a function of the user."""
        return self.stage is not None and any(isinstance(ref.step, CustomTransform) for ref in self.stage.uses())


def measured_parts(plan: Plan, recorded: Recording, sizes: Collection[int], given: Circumstances) -> list[Part]:
    """Computes the time of each node and stage of the plan that ran, in order; the cost model divides compiled kernels.

    `sizes` are the plan's `run_sizes`.
    """
    us = {scope: 1e6 * seconds / max(_made(recorded, scope, sizes), 1) for scope, seconds in recorded.trace.busy.items()}
    total = sum(us.values()) or 1.0
    found: list[Part] = []
    for node, cost in zip(plan.nodes, plan_cost(plan, given).nodes, strict=True):
        own = _OWN.get(type(node))
        if own is not None:
            took = us.get(own[0], 0.0)
            found.append(Part(own[1], own[1], took, took / total, False, None, node, cost.us - sum(cost.stages)))
        for stage, took, estimated, expected in _stages(plan, node, cost, us):
            found.append(Part(called(stage), stage_text(stage), took, took / total, estimated, stage, node, expected))
    return found


def run_sizes(ran: Physical) -> tuple[int, ...]:
    """Lists the possible numbers of examples, below a batch, in a run of a part.

    Empty if a plan makes more examples than it hands over, or an epoch at once: then runs do not tell the number of examples.
    """
    more = any(isinstance(o, Filter) or (isinstance(o, Map) and o.grain == "epoch") for o in ran.operations)
    more = more or any(isinstance(function, (Fill, SliceOwnRows)) for function in ran.functions)
    return () if more else tuple({1, *(function.chunk for function in ran.functions if isinstance(function, Examples))})


def _made(found: Recording, scope: str, sizes: Collection[int]) -> float:
    """Estimates the number of examples of a part in the trace.

    It differs from the number handed over meanwhile: some of those were made before, and prefetched ones come later. But it is close
    enough to choose among the possible sizes of a run.
    """
    runs, handed = found.trace.runs.get(scope, 0), found.traced_examples
    if not runs or not handed or not sizes:
        return handed
    possible = [runs * size for size in (*sizes, handed / max(found.traced_batches, 1))]
    nearest = min(possible, key=lambda made: abs(math.log(made / handed)))
    return nearest if 1 / _UNLIKE < nearest / handed < _UNLIKE else handed


def _stages(plan: Plan, node: Node, cost: NodeCost, us: Mapping[str, float]) -> Iterator[tuple[Stage, float, bool, float]]:
    """Yields the stages of a node, with the time of each, true if it is an estimate, and the expected time."""
    if not isinstance(node, (Element, Kernel)):
        return
    names = scopes(plan)
    seen = [us.get(names[id(stage)], 0.0) for stage in node.stages]
    around = us.get(names[id(node)], 0.0) if isinstance(node, Kernel) else 0.0
    estimated = isinstance(node, Kernel) and around > sum(seen) and len(node.stages) > 1
    weights = list(cost.stages) if around > sum(seen) else seen
    whole = sum(weights)
    for stage, own, weight, expected in zip(node.stages, seen, weights, cost.stages, strict=True):
        yield stage, own + around * (weight / whole if whole else 1 / len(node.stages)), estimated, expected


def predict_us(plan: Plan, parts: list[Part], given: Circumstances) -> float:
    """Predicts the microseconds of a thread per example of a plan with a full cache.

    Uses the measured times of another plan of the same spec; parts that this plan lacks come from the cost model, corrected by its
    error there.
    """
    known = {(_key(p.stage) if p.stage is not None else (type(p.node).__name__,)): p.us for p in parts}
    sound = [part for part in parts if part.us and part.expected and not part.calls_python]
    error = min(5.0, max(0.2, sum(p.us for p in sound) / sum(p.expected for p in sound))) if sound else 1.0
    total = 0.0
    for node, cost in zip(plan.nodes, plan_cost(plan, given).nodes, strict=True):
        if cost.cached:
            continue
        own = cost.us - sum(cost.stages)
        total += known.get((type(node).__name__,), error * own) if own else 0.0
        if isinstance(node, (Element, Kernel)):
            total += sum(known.get(_key(stage), error * us) for stage, us in zip(node.stages, cost.stages, strict=True))
    return total


def _key(stage: Stage) -> tuple[object, ...]:
    """Identifies a stage or a kernel in other plans of the spec, where it may run on all examples or on some of them alone."""
    bare = stage.stage if isinstance(stage, Branch) else stage
    return type(bare).__name__, stage.feature, tuple(ref.id for ref in stage.uses())


WORTH = 1.1  # the least expected speed-up of a remedy
_MOST_TIMES = 8  # the most times as many threads that are advised, since other limits are unknown
_STAYS = 0.75
"""The share of the time outside of operations that stays when a cache saves operations. Measurements gave a quarter to three quarters;
the highest is used, so that promises are kept."""
_BLOCKED = 0.5  # the share of time in which threads of a blocked pipeline neither run nor wait for a core


@dataclass(frozen=True)
class Remedy:
    """A change of `runtime:`, such as `cache: memory`; the expected speed-up of the pipeline, and the bytes of memory or disk it needs."""

    setting: str
    times: float
    bytes: int = 0

    def __str__(self) -> str:
        size = f", {format_bytes(self.bytes)}" if self.bytes else ""
        return f"`{self.setting}` would make it {self.times:.1f} × faster{size}"


def remedies(pipe: Pipeline, found: Recording, parts: list[Part], given: Circumstances) -> list[Remedy]:
    """Lists the changes with a worthwhile gain, the best first.

    Memory is preferred to a disk. The model's own time bounds every gain.
    """
    every = [*_caches(pipe, found, parts, given), *_threads(found)]
    worth = [remedy for remedy in every if remedy.times >= WORTH]
    return sorted(worth, key=lambda remedy: -remedy.times)


def blocked_share(found: Recording) -> float:
    """The share of measured time in which threads waited for storage, locks or sleeps, not for a core."""
    busy = sum(found.trace.busy.values())
    return min(1.0, max(0.0, 1 - (found.trace.cpu + found.trace.queued) / busy)) if busy else 0.0


def is_blocked(found: Recording) -> bool:
    """Decides if threads mostly wait, and not for a lock that lets only one of them run."""
    return blocked_share(found) > _BLOCKED and found.trace.cpu < 0.7 * found.trace.seconds * min(found.threads, available_cores())


def _bounded(found: Recording, times: float) -> float:
    """Limits a speed-up of the pipeline by the model's own time."""
    if not found.examples:
        return 1.0
    now = found.seconds / found.examples
    least = (found.model_ms or 0.0) / 1000 * found.batches / found.examples
    return now / max(now / times, least) if least < now else 1.0


def _caches(pipe: Pipeline, found: Recording, parts: list[Part], given: Circumstances) -> Iterator[Remedy]:
    """Yields a cache in memory if it fits, else on a disk; none if there is one already."""
    model, manifest, split = pipe.spec.model, pipe._manifest, found.split
    if any(isinstance(n, Cache) for n in pipe._compiled.splits[split].plan.nodes):
        return
    budget = ram_budget(model.runtime)
    for wanted in ("memory", DiskCache(disk=os.devnull)):
        with_cache = model.model_copy(update={"runtime": model.runtime.model_copy(update={"cache": wanted})})
        count = manifest.num_examples(split)
        plan = optimise(with_cache, pipe._plans[split], num_examples=count, ram_budget=budget, file_bytes=found.file_bytes).plan
        node = next((n for n in plan.nodes if isinstance(n, Cache)), None)
        if node is None:
            continue
        size = example_bytes(node.out) * sum(manifest.num_examples(name) for name in pipe.splits)
        if wanted == "memory" and size > budget:
            continue
        alone = [replace(part, us=found.trace.undisturbed * part.us) for part in parts]
        before = sum(part.us for part in alone)
        hidden = _hidden_us(found, before)
        after = predict_us(plan, alone, given) + _STAYS * hidden
        times = _bounded(found, (before + hidden) / max(after, 1e-9))
        yield Remedy("cache: memory" if wanted == "memory" else "cache: {disk: FOLDER}", times, size)
        return


def _hidden_us(found: Recording, measured: float) -> float:
    """The microseconds of threads per example outside of operations and of waits for cores: TensorFlow's own overhead.

    `measured` is the time of the operations, without waits for a core that another program had.
    """
    own = max(found.trace.seconds * found.threads - found.trace.queued, found.trace.cpu)
    return max(0.0, 1e6 * own / max(found.traced_examples, 1) - measured)


def _threads(found: Recording) -> Iterator[Remedy]:
    """Yields more threads if cores are left, or if threads wait for something else than a core."""
    cores, busy = available_cores(), sum(found.trace.busy.values())
    if not busy:
        return
    if found.threads < cores:
        yield Remedy("threads: auto", _bounded(found, _with_threads(found, cores, cores)))
    elif is_blocked(found):
        wanted = min(_MOST_TIMES * found.threads, max(found.threads + 1, round(found.threads * busy / max(found.trace.cpu, 0.05 * busy))))
        yield Remedy(f"threads: {wanted}", _bounded(found, _with_threads(found, wanted, cores)))


def _with_threads(found: Recording, threads: int, cores: int) -> float:
    """Computes the speed-up of a number of threads: they share the waits, but the number of cores bounds processor time."""
    busy, cpu = sum(found.trace.busy.values()), found.trace.cpu
    now = max(busy / found.threads, cpu / min(cores, found.threads))
    return now / max(busy / threads, cpu / min(cores, threads))


STARVED = 0.05  # the share of its time from which on waiting counts as a problem
UNATTRIBUTED = 0.15  # the share of processor time outside of all parts from which on the report mentions it
_SHOWN = 0.005  # the least share of a part with a line of its own
_IDLE = 0.5  # the share of time below which busy threads are not what a model waits for: handing over batches takes the rest


@dataclass(frozen=True)
class Profile:
    """The analysis of a recording: the time of each node and stage, and settings that would help."""

    recording: Recording
    parts: tuple[Part, ...]
    remedies: tuple[Remedy, ...]

    @property
    def dearest(self) -> Part:
        """The part that takes the most time."""
        return max(self.parts, key=lambda part: part.us)

    @property
    def starves(self) -> bool:
        """The consumer of the batches waits for them."""
        return self.recording.wait_share >= STARVED

    def of_threads(self, part: Part) -> float:
        """Computes the share of a part in the time of all threads."""
        trace = self.recording.trace
        return min(1.0, part.us * self.recording.traced_examples / 1e6 / (trace.seconds * self.recording.threads)) if trace.seconds else 0.0

    @property
    def sentence(self) -> str:
        """What the model waits for, and the best remedy, in one sentence."""
        found, part = self.recording, self.dearest
        made = 1e-3 * sum(p.us for p in self.parts) / found.threads * found.examples / max(found.batches, 1)
        if not self.starves:
            step = 1000 * (found.seconds - found.waited) / max(found.batches, 1)
            makers = count(found.threads, "thread")
            return f"the model does not wait: its step takes {step:.0f} ms, and {makers} can make a batch in {made:.0f} ms"
        blocked = is_blocked(found)
        unit = "thread" if blocked else "core"
        whose = f"the model waits {found.wait_share:.0%} of its time: " if found.model_ms is not None else ""
        waits = ", mostly waiting" if blocked else ""
        name = part.name + (" (estimated)" if part.estimated else "")
        return f"{whose}{name} takes {self.of_threads(part):.0%} of {count(found.threads, unit)}{waits}; {self._remedy()}"

    def _remedy(self) -> str:
        if self.remedies:
            return str(self.remedies[0])
        if is_blocked(self.recording):
            return "no setting of `runtime:` would help by much"
        if self._occupied < _IDLE:
            rest = f"{1 - self._occupied:.0%}"
            return f"the threads rest {rest} of the time, so neither a setting of `runtime:` nor more cores would help by much"
        return "no setting of `runtime:` would help by much, more cores would"

    def text(self) -> str:
        """Formats the profile as text."""
        found = self.recording
        shown = [(p.share, p.us, p.text + (", estimated" if p.estimated else "")) for p in self.parts if p.share >= _SHOWN]
        rows = [("share", "µs each", ""), *((f"{share:>5.0%}", f"{us:>7,.0f}", text) for share, us, text in shown)]
        lines = [self.sentence, "", *aligned(self._facts()), "", *aligned(rows)]
        small = sum(part.share < _SHOWN and part.us > 0 for part in self.parts)
        lines += [f"and {small} that take less"] if small else []
        if len(self.remedies) > 1:
            lines += ["", "also:", *(f"  {remedy}" for remedy in self.remedies[1:])]
        lines += ["", *found.notes] if found.notes else []
        return "\n".join(lines)

    def _facts(self) -> list[tuple[str, str]]:
        found = self.recording
        beside = "only the pipeline ran" if found.model_ms is None else f"a model of {found.model_ms:.0f} ms a step took them"
        measured = f"{found.batches:,} batches of split {found.split} in {found.seconds:.1f} s, and {found.trace.seconds:.1f} s traced"
        facts = [
            (f"{found.records}/s", f"{found.rate:,.0f}; {beside}"),
            ("threads", f"{found.threads}, busy {self._occupied:.0%} of the time"),
            ("measured", measured),
        ]
        if found.trace.queued > 0.1 * found.trace.cpu:
            share = found.trace.queued / (found.trace.queued + found.trace.cpu)
            facts.append(("other programs", f"held the cores for {share:.0%} of the time that this one could have used"))
        if found.trace.unattributed > UNATTRIBUTED:
            lost = f"{found.trace.unattributed:.0%} of the processor time: the shares and the gains below are uncertain"
            facts.append(("in no part", lost))
        return facts

    @property
    def _occupied(self) -> float:
        return min(1.0, sum(map(self.of_threads, self.parts)))

    def as_json(self) -> dict[str, Any]:
        """Converts the profile to plain values."""
        found, part = self.recording, self.dearest
        return {
            "version": 1,
            "sentence": self.sentence,
            "split": found.split,
            "starves": self.starves,
            "stage": part.name,
            "stage_share_of_threads": self.of_threads(part),
            "wait_share": found.wait_share,
            "images_per_s": found.rate,
            "model_ms": found.model_ms,
            "threads": found.threads,
            "threads_busy": self._occupied,
            "blocked_share": blocked_share(found),
            "unattributed_share": found.trace.unattributed,
            "batches": found.batches,
            "images": found.examples,
            "seconds": found.seconds,
            "traced": {"images": found.traced_examples, **{k: v for k, v in vars(found.trace).items() if k != "busy"}},
            "parts": [
                {"name": p.name, "text": p.text, "us": p.us, "share": p.share, "estimated": p.estimated, "expected_us": p.expected}
                for p in self.parts
            ],
            "remedies": [{"setting": r.setting, "times": r.times, "bytes": r.bytes or None} for r in self.remedies],
            "notes": list(found.notes),
        }

    def rendered(self, form: str) -> str:
        """Formats the profile as `text`, `json` or `html`."""
        return self.text() if form == "text" else json_text(self.as_json()) if form == "json" else self.page()

    def page(self) -> Page:
        """Makes a page of the profile, with a bar for each stage."""
        rows = [
            (f"{p.share:.0%}", f"{p.us:,.0f}", bar(p.share), p.text + (", estimated" if p.estimated else "")) for p in self.parts if p.us
        ]
        also = [element("p", str(remedy)) for remedy in self.remedies[1:]]
        notes = [element("p", text, class_="quiet") for text in self.recording.notes]
        stages = table(("share", "µs each", "", "stage"), rows, (0, 1))
        head = (element("h1", "Profile"), element("p", self.sentence), table((), self._facts()))
        more = (element("h2", "What else would help"), *also) if also else ()
        return page("Profile", *head, element("h2", "Where the time goes"), stages, *more, *notes, style=_STYLE)


_STYLE = "td:nth-child(3) { min-width: 8rem; }"


def analyse(pipe: Pipeline, found: Recording, factors: Mapping[str, float] | None = None) -> Profile:
    """Analyses a recording of one of a pipeline's splits; `factors` of the machine are those of `phases/machine_settings.py`."""
    executor = pipe._engine.executor(found.split)
    plan = executor.plan
    given = Circumstances(
        found.file_bytes or ASSUMED_FILE, found.threads, len(executor.records), assumed=not found.file_bytes, factors=factors or {}
    )
    parts = measured_parts(plan, found, run_sizes(executor.physical(forms_of(plan)[0])), given)
    best = remedies(pipe, found, parts, given) if found.wait_share >= STARVED else []
    return Profile(found, tuple(parts), tuple(best))
