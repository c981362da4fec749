"""Compares the expected memory of a spec with its budget and with the limits of its process, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.data.shares import HELD, window_bytes
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import write
from pipegen.errors import SpecError
from pipegen.frozen import dataclass
from pipegen.memory import granted_memory, ram_budget, threads
from pipegen.phases.compilation import bind, compile_plans
from pipegen.phases.hosts import resolve_share
from pipegen.phases.layered import read_by_reader
from pipegen.phases.machine_settings import circumstances
from pipegen.plan.cost import example_bytes, plan_cost
from pipegen.plan.nodes import Batch, Cache, Element, Kernel, Node, Plan, Prefetch
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Advice, Diagnostic
    from pipegen.passes import Compiled
    from pipegen.phases.specs import BoundSpec, Spec
    from pipegen.spec.models import PipelineSpec

TENSORFLOW = 512 << 20
"""Bytes that TensorFlow itself takes."""


@dataclass(frozen=True)
class Held:
    """The expected memory of a spec while it trains, without that of TensorFlow itself.

    `parts` has the bytes of `cache`, `stored`, `examples`, `batches` and `prefetch`; `batch` are the bytes of a finished batch, and
    `cached` is the number of examples in the caches.
    """

    parts: Mapping[str, int]
    batch: int
    cached: int

    @property
    def bytes(self) -> int:
        """The sum of the parts."""
        return sum(self.parts.values())

    @property
    def largest(self) -> str:
        """The name of the largest part."""
        return max(self.parts, key=lambda name: self.parts[name])


def memory_held(spec: Spec, manifest: Manifest, compiled: Mapping[str, Compiled]) -> Held:
    """Adds up the memory of the splits of a compiled spec.

    Counts the caches and stored arrays of all splits, and the examples and batches of training and of the largest other split: `fit`
    evaluates while the training split waits.
    """
    model, used = spec.model, threads(spec.model.runtime)
    stored: dict[int, int] = {}
    cache = cached = batch = 0
    passing: dict[str, dict[str, int]] = {}
    for split, done in compiled.items():
        _stored(model, manifest, split, done.plan, stored)
        count, size = manifest.num_examples(split), manifest.mean_bytes(split) or None
        given = circumstances(model, used, examples=count, file_bytes=size, stored=0)
        costs = [(plan, plan_cost(plan, given)) for plan in done.plan.buckets or (done.plan,)]
        plan, cost = max(costs, key=lambda pair: pair[1].bytes)
        of_split = passing[split] = dict.fromkeys(("examples", "batches", "prefetch"), 0)
        for node, own in zip(plan.nodes, cost.nodes, strict=True):
            part = _part(node)
            if part is not None:
                of_split[part] += own.bytes
            elif isinstance(node, Cache) and own.bytes:
                cache, cached = cache + own.bytes, cached + count
        batch = max(batch, example_bytes(plan.out) * -(-plan.batch.size // given.hosts))
    at_once = [parts for split, parts in passing.items() if split == "train"]
    at_once += sorted((parts for split, parts in passing.items() if split != "train"), key=lambda parts: sum(parts.values()))[-1:]
    found = {"cache": cache, "stored": sum(stored.values())}
    found |= {part: sum(parts[part] for parts in at_once) for part in ("examples", "batches", "prefetch")}
    return Held(found, batch, cached)


def _part(node: Node) -> str | None:
    """The part that a node's memory belongs to, for parts that each split has on its own."""
    match node:
        case Element():
            return "examples"
        case Batch() | Kernel():
            return "batches"
        case Prefetch():
            return "prefetch"
    return None


def _stored(model: PipelineSpec, manifest: Manifest, split: str, plan: Plan, found: dict[int, int]) -> None:
    """Counts the bytes that a split's readers keep in memory, each reader once: arrays, and the blocks of a shuffle window."""
    parts, budget = manifest.of(split), ram_budget(model.runtime)
    window = model.shuffle.window if not isinstance(model.shuffle, str) else None
    for part, read in zip(parts.values(), plan.part_reads(len(parts)), strict=True):
        reader = part.listing.reader(split)
        size = reader.held_bytes(read_by_reader(part, split, read), budget)
        if reader.at_once > 1 and split == "train" and model.shuffle != "none":
            whole = int(part.mean_bytes(split) * part.num_examples(split))
            size += min(HELD * window_bytes(window, part, split), budget, whole)
        found[id(reader)] = max(found.get(id(reader), 0), size)


def memory_findings(spec: Spec, manifest: Manifest, compiled: Mapping[str, Compiled], root: Path = Path("/")) -> list[Diagnostic]:
    """Warns if a compiled spec is expected to need more memory than its budget, or than its process may have.

    `root` is the folder of `proc` and `sys`.
    """
    held, limit = memory_held(spec, manifest, compiled), _limit(spec.model, root)
    if limit is None or held.bytes <= limit.bytes:
        return []
    part = held.largest
    message = (
        f"training is expected to hold {format_bytes(held.bytes)} of memory, and {limit.said}; the largest part, "
        f"{format_bytes(held.parts[part])}, is {_in_words(part, held, threads(spec.model.runtime))}"
    )
    source = ("source", spec.model.source.op)
    place = {"cache": ("runtime", "cache"), "stored": source, "examples": ("transforms",), "batches": ("batch", "size")}
    help_ = tuple(_ways_out(_Trial(spec, manifest, held, limit, root)))
    return [make("PG425", message, spec.loaded.locate.label(place.get(part, ("runtime", "prefetch"))), help=help_)]


@dataclass(frozen=True)
class _Limit:
    """A limit in bytes, its origin in words, and true if the spec sets it."""

    bytes: int
    said: str
    by_spec: bool


def _limit(model: PipelineSpec, root: Path) -> _Limit | None:
    """Finds the lowest limit: `ram_budget` if it is set, the control group's, or the machine's memory."""
    limits = []
    if model.runtime.ram_budget != "auto":
        limits.append(_Limit(model.runtime.ram_budget, f"`ram_budget` is {format_bytes(model.runtime.ram_budget)}", True))
    granted = granted_memory(root)
    if granted is not None:
        said = f"{granted[1]} {format_bytes(granted[0])}, of which TensorFlow itself takes about {format_bytes(TENSORFLOW)}"
        limits.append(_Limit(granted[0] - TENSORFLOW, said, False))
    return min(limits, key=lambda limit: limit.bytes, default=None)


def _in_words(part: str, held: Held, used: int) -> str:
    each, on = f"of {format_bytes(held.batch)} each", f"on {used} thread{'s' * (used > 1)}"
    return {
        "cache": f"the cache of {held.cached:,} examples",
        "stored": "what the source keeps in memory",
        "examples": f"the examples that are being decoded {on}",
        "batches": f"the batches that are being made {on}, {each}",
        "prefetch": f"the finished batches that wait for the model, {each}",
    }[part]


@dataclass(frozen=True)
class _Trial:
    """A trial of other settings of a spec that needs too much memory."""

    spec: Spec
    manifest: Manifest
    held: Held
    limit: _Limit
    root: Path

    def fits(self, **sections: dict[str, Any]) -> bool:
        """Decides if the spec fits its limit with some arguments of its sections changed."""
        model = self.spec.model
        changed = {name: getattr(model, name).model_copy(update=update) for name, update in sections.items()}
        other = replace(self.spec, model=model.model_copy(update=changed), tuned=None)
        try:
            bound: BoundSpec = bind(other, self.manifest)
            held = memory_held(other, self.manifest, compile_plans(other, self.manifest, bound.plans))
        except SpecError:
            return False
        limit = _limit(other.model, self.root)
        return limit is None or held.bytes <= limit.bytes

    def largest(self, below: int, unit: int, fits: Callable[[int], bool]) -> int | None:
        """Finds the largest number below `below` that fits and is `unit` times a power of two."""
        number = unit
        while 2 * number < below:
            number *= 2
        while number >= unit:
            if number < below and fits(number):
                return number
            number //= 2
        return None


def _ways_out(trial: _Trial) -> Iterator[Advice | str]:
    """Yields settings that are enough each by itself; if none is, several together and other advice."""
    runtime, size, hosts = trial.spec.model.runtime, trial.spec.model.batch.size, resolve_share(trial.spec.model.runtime).count
    found: list[Advice] = []
    if trial.held.parts["cache"] and trial.fits(runtime={"cache": "none"}):
        said = "keep no cache in memory: {}; or `cache: {disk: FOLDER}`, which keeps it on a disk"
        found.append(write("runtime: {cache: none}", "spec", said))
    smaller = trial.largest(size, hosts, lambda n: trial.fits(batch={"size": n}))
    if smaller is not None:
        found.append(write(f"batch: {{size: {smaller}}}", "spec", "make batches smaller: {}"))
    fewer = trial.largest(threads(runtime), 1, lambda n: trial.fits(runtime={"threads": n}))
    if fewer is not None:
        found.append(write(f"runtime: {{threads: {fewer}}}", "spec", "use fewer threads, which is slower: {}"))
    if trial.held.largest == "prefetch" and trial.fits(runtime={"prefetch": 1}):
        found.append(write("runtime: {prefetch: 1}", "spec", "let one batch wait: {}"))
    if trial.limit.by_spec:
        found += _raised(trial)
    if not found:
        both = trial.largest(size, hosts, lambda n: trial.fits(batch={"size": n}, runtime={"threads": 1, "prefetch": 1, "cache": "none"}))
        if both is not None:
            lines = f"batch: {{size: {both}}}\nruntime: {{threads: 1, prefetch: 1, cache: none}}"
            found.append(write(lines, "spec", "no setting is enough by itself; together these are: {}"))
    yield from found
    if trial.held.largest == "stored" and trial.spec.model.source.has_rows():
        yield "arrays in `.npy` files stay in their files where they are large beside `ram_budget`"
    elif not found:
        yield "make the images smaller, or ask for a machine with more memory"


def _raised(trial: _Trial) -> Iterator[Advice]:
    """Yields a sufficient budget if the machine has it; budgets are tried, since with more memory more is cached."""
    for factor in (1.0, 1.25, 2.0, 4.0):
        enough = -(-int(trial.held.bytes * factor) // 2**20)
        if trial.fits(runtime={"ram_budget": enough * 2**20}):
            yield write(f"runtime: {{ram_budget: {enough}MiB}}", "spec", "or allow as much, where the machine has it: {}")
            return
