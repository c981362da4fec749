"""Compares the expected memory of a spec with its budget and with the limits of its process, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pipegen.data.shares import HELD, window_bytes
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Advice, Diagnostic, write
from pipegen.errors import SpecError
from pipegen.frozen import dataclass
from pipegen.memory import granted_memory, ram_budget, threads
from pipegen.passes import Compiled
from pipegen.phases.compilation import bind, compile_plans
from pipegen.phases.hosts import resolve_share
from pipegen.phases.layered import readers_of
from pipegen.phases.machine_settings import circumstances
from pipegen.phases.specs import Spec
from pipegen.plan.cost import example_bytes, plan_cost
from pipegen.plan.nodes import Batch, Cache, Element, Kernel, Node, Plan, Prefetch
from pipegen.spec.models import PipelineSpec
from pipegen.spec.source_map import KeyPath
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest

_PASSING: dict[type[Node], str] = {Element: "examples", Batch: "batches", Kernel: "batches", Prefetch: "prefetch"}
"""The part that the memory of a node belongs to, for parts that each split has on its own."""
TENSORFLOW = 512 << 20  # bytes that TensorFlow itself takes


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
        for reader, held in _stored(model, manifest, done.plan):
            stored[reader] = max(stored.get(reader, 0), held)
        count = manifest.num_examples(split)
        given = circumstances(model, used, examples=count, file_bytes=manifest.mean_bytes(split), stored=0)
        costs = [(plan, plan_cost(plan, given)) for plan in done.plan.buckets or (done.plan,)]
        plan, cost = max(costs, key=lambda pair: pair[1].bytes)
        of_split = passing[split] = dict.fromkeys(_PASSING.values(), 0)
        for node, own in zip(plan.nodes, cost.nodes, strict=True):
            if type(node) in _PASSING:
                of_split[_PASSING[type(node)]] += own.bytes
            elif isinstance(node, Cache) and own.bytes:
                cache, cached = cache + own.bytes, cached + count
        batch = max(batch, example_bytes(plan.out) * -(-plan.batch.size // given.hosts))
    at_once = [parts for split, parts in passing.items() if split == "train"]
    at_once += sorted((parts for split, parts in passing.items() if split != "train"), key=lambda parts: sum(parts.values()))[-1:]
    found = {"cache": cache, "stored": sum(stored.values())}
    found |= {part: sum(parts[part] for parts in at_once) for part in dict.fromkeys(_PASSING.values())}
    return Held(found, batch, cached)


def _stored(model: PipelineSpec, manifest: Manifest, plan: Plan) -> Iterator[tuple[int, int]]:
    """Yields the id of each reader of a split, and the bytes that it keeps in memory: arrays, and the blocks of a shuffle window."""
    split, budget = plan.split, ram_budget(model.runtime)
    window = model.shuffle.window if not isinstance(model.shuffle, str) else None
    for _, part, reader, features in readers_of(manifest, plan):
        size = reader.held_bytes(features, budget)
        if reader.at_once > 1 and split == "train" and model.shuffle != "none":
            whole = int(part.mean_bytes(split) * part.num_examples(split))
            size += min(HELD * window_bytes(window, part, split), budget, whole)
        yield id(reader), size


def memory_findings(spec: Spec, manifest: Manifest, compiled: Mapping[str, Compiled]) -> list[Diagnostic]:
    """Warns if a compiled spec is expected to need more memory than its budget, or than its process may have."""
    held, limit = memory_held(spec, manifest, compiled), _limit(spec.model)
    if limit is None or held.bytes <= limit.bytes:
        return []
    used = threads(spec.model.runtime)
    each, on = f"of {format_bytes(held.batch)} each", f"on {used} thread{'s' * (used > 1)}"
    parts: dict[str, tuple[KeyPath, str]] = {
        "cache": (("runtime", "cache"), f"the cache of {held.cached:,} examples"),
        "stored": (("source", spec.model.source.op), "what the source keeps in memory"),
        "examples": (("transforms",), f"the examples that are being decoded {on}"),
        "batches": (("batch", "size"), f"the batches that are being made {on}, {each}"),
        "prefetch": (("runtime", "prefetch"), f"the finished batches that wait for the model, {each}"),
    }
    place, said = parts[held.largest]
    message = (
        f"training is expected to hold {format_bytes(held.bytes)} of memory, and {limit.said}; the largest part, "
        f"{format_bytes(held.parts[held.largest])}, is {said}"
    )
    help_ = tuple(_ways_out(spec, held, limit, partial(_fits, spec, manifest)))
    return [make("PG425", message, spec.loaded.locate.label(place), help=help_)]


@dataclass(frozen=True)
class _Limit:
    """A limit in bytes, its origin in words, and true if the spec sets it."""

    bytes: int
    said: str
    by_spec: bool


def _limit(model: PipelineSpec) -> _Limit | None:
    """Finds the lowest limit: `ram_budget` if it is set, the control group's, or the machine's memory."""
    limits = []
    if model.runtime.ram_budget != "auto":
        limits.append(_Limit(model.runtime.ram_budget, f"`ram_budget` is {format_bytes(model.runtime.ram_budget)}", True))
    granted = granted_memory()
    if granted is not None:
        said = f"{granted[1]} {format_bytes(granted[0])}, of which TensorFlow itself takes about {format_bytes(TENSORFLOW)}"
        limits.append(_Limit(granted[0] - TENSORFLOW, said, False))
    return min(limits, key=lambda limit: limit.bytes, default=None)


def _fits(spec: Spec, manifest: Manifest, **sections: dict[str, Any]) -> bool:
    """Decides if a spec fits its limit with some arguments of its sections changed."""
    changed = {name: getattr(spec.model, name).model_copy(update=update) for name, update in sections.items()}
    other = replace(spec, model=spec.model.model_copy(update=changed), tuned=None)
    try:
        held = memory_held(other, manifest, compile_plans(other, manifest, bind(other, manifest).plans))
    except SpecError:
        return False
    limit = _limit(other.model)
    return limit is None or held.bytes <= limit.bytes


def _largest(below: int, unit: int, fits: Callable[[int], bool]) -> int | None:
    """Finds the largest number below `below` that fits and is `unit` times a power of two."""
    powers = [unit << i for i in range(below.bit_length()) if unit << i < below]
    return next(filter(fits, reversed(powers)), None)


def _ways_out(spec: Spec, held: Held, limit: _Limit, fits: Callable[..., bool]) -> Iterator[Advice | str]:
    """Yields settings that are enough each by itself; if none is, several together and other advice."""
    runtime, size, hosts = spec.model.runtime, spec.model.batch.size, resolve_share(spec.model.runtime).count
    found: list[Advice] = []
    if held.parts["cache"] and fits(runtime={"cache": "none"}):
        said = "keep no cache in memory: {}; or `cache: {disk: FOLDER}`, which keeps it on a disk"
        found.append(write("runtime: {cache: none}", "spec", said))
    smaller = _largest(size, hosts, lambda n: fits(batch={"size": n}))
    if smaller is not None:
        found.append(write(f"batch: {{size: {smaller}}}", "spec", "make batches smaller: {}"))
    fewer = _largest(threads(runtime), 1, lambda n: fits(runtime={"threads": n}))
    if fewer is not None:
        found.append(write(f"runtime: {{threads: {fewer}}}", "spec", "use fewer threads, which is slower: {}"))
    if held.largest == "prefetch" and fits(runtime={"prefetch": 1}):
        found.append(write("runtime: {prefetch: 1}", "spec", "let one batch wait: {}"))
    # Budgets are tried, since with more memory more is cached.
    budgets = (-(-int(held.bytes * factor) // 2**20) for factor in (1.0, 1.25, 2.0, 4.0) if limit.by_spec)
    enough = next((budget for budget in budgets if fits(runtime={"ram_budget": budget * 2**20})), None)
    if enough is not None:
        found.append(write(f"runtime: {{ram_budget: {enough}MiB}}", "spec", "or allow as much, where the machine has it: {}"))
    if not found:
        both = _largest(size, hosts, lambda n: fits(batch={"size": n}, runtime={"threads": 1, "prefetch": 1, "cache": "none"}))
        if both is not None:
            lines = f"batch: {{size: {both}}}\nruntime: {{threads: 1, prefetch: 1, cache: none}}"
            found.append(write(lines, "spec", "no setting is enough by itself; together these are: {}"))
    yield from found
    if held.largest == "stored" and spec.model.source.has_rows():
        yield "arrays in `.npy` files stay in their files where they are large beside `ram_budget`"
    elif not found:
        yield "make the images smaller, or ask for a machine with more memory"
