"""A model of the cost of a plan: processor time per image for each stage, and bytes in memory.

The model is small on purpose. A stage has a cost in nanoseconds for each value (pixel × channel) that it writes, a decoder
for each stored byte, a batch for each byte of fresh memory. The constants are times of one core; `python -m benchmarks.costs`
compares them with measurements. Other machines are faster or slower as a whole, so ratios are more reliable than the
figures. A step that costs more or less than its family has the trait `weight`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import pairwise
from typing import Any

from pipegen.frozen import dataclass
from pipegen.ops.kinds.base import ExampleClass, Levels, having, kind_of
from pipegen.ops.stage import Stage
from pipegen.plan.nodes import Batch, Cache, Element, Index, Kernel, Node, Plan, Prefetch, Read, Send, Shuffle
from pipegen.plan.plan_text import plan_json
from pipegen.spec.units import format_bytes
from pipegen.types import ElementType, FeatureType, times

ASSUMED_FILE = 80_000  # bytes of a stored image if the data is unknown
ASSUMED_VALUES = 500 * 375 * 3  # values of a decoded image if the data is unknown: a photograph of 500 × 375 pixels
ASSUMED_CLASSES = 100  # classes of an encoded label if the data is unknown

LARGE = 1 << 20  # bytes from which on the output of a kernel reuses the memory of earlier batches; the C library caches smaller blocks
LEAST_US = 0.05  # the least cost that has a line of its own; less rounds to 0.0
HANDED_OVER = 2  # batches that are neither being computed nor prefetched: one in transit, one with the user

_BETWEEN = 4  # batches of floats that plain TensorFlow holds at a time while it works on one batch
_EXAMPLE_US = 12.0  # taking a batch of records apart and handing them on one by one
_READ_US = 20.0  # opening a file, and a call of the element stage
_STEP_US = 10.0  # the fixed cost of a stage on a single example
_DRAW_US = 0.15  # one random number
_MATRIX_US = 4.0  # the matrix of one step, and its place in a product
_FRESH_NS = 0.25  # a byte of fresh memory for a batch, allocated page by page
_COPY_NS = 0.1  # a byte, copied into a batch
_FETCH_US = 130.0  # reading a single record from a cache
_ROW_US = 5.0  # reading a record from a cache as a row of a batch
_FILL_US = 25.0  # writing a record into a cache
_GATHER_NS = 0.3  # a byte read from a cache
_SEND_NS = 1.0  # a byte that a worker sends and the trainer receives, in both together; 2.3 in batches of more than 32 MiB


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The data and machine that the costs of a plan depend on."""

    file_bytes: float = ASSUMED_FILE  # the mean size of a stored record
    threads: int = 1  # threads of the pipeline's pool
    examples: int | None = None
    assumed: bool = True  # whether `file_bytes` is a guess
    factors: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Measured cost on this machine over that by the constants of this file, keyed by `fitted_as`; 1 if missing."""
    hosts: int = 1  # the number of processes that share a batch
    stored: int | None = None  # bytes that the source keeps in memory, or `None` if only the types of records are known


@dataclass(frozen=True, slots=True)
class NodeCost:
    """The cost of a node: microseconds of one core per image, stages included, those of each stage, and expected bytes in memory.

    It is `cached` if a full cache after it saves this cost.
    """

    us: float
    stages: tuple[float, ...]
    bytes: int
    cached: bool


@dataclass(frozen=True, slots=True)
class PlanCost:
    """The cost of a plan for each of its nodes, and what was assumed."""

    nodes: tuple[NodeCost, ...]
    given: Circumstances

    @property
    def first_us(self) -> float:
        """Microseconds of one core per image while the cache is empty."""
        return sum(n.us for n in self.nodes)

    @property
    def us(self) -> float:
        """Microseconds of one core per image, once a cache is full."""
        return sum(n.us for n in self.nodes if not n.cached)

    @property
    def bytes(self) -> int:
        """The expected bytes in memory, without TensorFlow itself."""
        return sum(n.bytes for n in self.nodes)


def plan_cost(plan: Plan, given: Circumstances) -> PlanCost:
    """Computes the expected cost of a plan; of a plan with buckets, that of the first."""
    if plan.buckets:
        return plan_cost(plan.buckets[0], given)
    at = next((i for i, n in enumerate(plan.nodes) if isinstance(n, Cache)), 0)
    done: list[NodeCost] = []
    entry = plan.nodes[0].out
    for number, node in enumerate(plan.nodes):
        parts = node.stages if isinstance(node, (Element, Kernel)) else ()
        skips = isinstance(node, Kernel) and node.rows
        shares = [st.share if skips else 1.0 for st in parts]
        each = zip(parts, shares, strict=True)
        stages = tuple(n * stage_us(st, entry, node.out, given) * given.factors.get(fitted_as(node, st), 1.0) for st, n in each)
        cached = number < at and isinstance(node, (Read, Element))
        own = _parts_us(node, given) if isinstance(node, Read) else 0.0
        own += _own_us(node, gathers(plan, number)) * given.factors.get(fitted_as(node), 1.0)
        own += _FILL_US if 0 < number == at - 1 else 0.0
        done.append(NodeCost(own + sum(stages), stages, _held(node, plan, given), cached))
        entry = node.out
    return PlanCost(tuple(done), given)


def _parts_us(node: Read, given: Circumstances) -> float:
    """Microseconds of one core for the steps that single parts of a mix have: the mean of the parts."""
    total = 0.0
    for entry, inner in (pair for part in node.parts for pair in pairwise(part)):
        total += sum(stage_us(st, entry.out, inner.out, given) for st in inner.stages) if isinstance(inner, Element) else 0.0
    return total / max(1, len(node.parts))


def stage_us(stage: Stage, entry: ElementType, out: ElementType, given: Circumstances) -> float:
    """Microseconds of one core that a stage takes for an image, by the types that enter and leave its node."""
    own = _STEP_US if stage.one_example else sum(r.num_draws > 0 for r in stage.uses()) * _MATRIX_US
    x = entry.get(stage.feature) or out[stage.feature]
    # A feature that the same node forks into views does not leave it.
    return own + stage.decode_us(given.file_bytes) + stage.ns(x) * _values(out.get(stage.feature) or x, x) / 1e3


def fitted_as(node: Node, stage: Stage | None = None) -> str:
    """The key of a node or stage in a machine's factors; stages of a kernel share one, since they cannot be measured apart."""
    if stage is None or isinstance(node, Kernel):
        return type(node).__name__.lower()
    return ".".join((stage.name.lower(), *sorted({ref.step.op for ref in stage.uses()})))


def gather_us(out: ElementType, *, together: bool) -> float:
    """Microseconds for reading an example from a cache, alone or as a row of a batch."""
    return (_ROW_US if together else _FETCH_US) + example_bytes(out) * _GATHER_NS / 1e3


def send_us(node: Send) -> float:
    """Microseconds in both processes for sending an example from a worker to the trainer."""
    return node.num_bytes * _SEND_NS / 1e3


def gathers(plan: Plan, number: int) -> bool:
    """Tests if a node is a cache that whole batches are read from, the batch behind it, or one before the rows are read."""
    kinds = [type(node) for node in plan.nodes]
    here, before = tuple(kinds[number : number + 2]), tuple(kinds[max(number - 1, 0) : number + 1])
    return here in ((Cache, Batch), (Batch, Read)) or before == (Cache, Batch)


def example_bytes(out: ElementType) -> int:
    """Bytes of one example without labels; unknown dimensions are those of a photograph."""
    return sum(t.num_bytes if t.num_bytes is not None else _values(t, t) for _, t in out.items() if _is_large(t))


def _is_large(x: FeatureType) -> bool:
    """Whether a feature counts: not a label or a number."""
    return kind_of(x).storage != "dense" or (bool(x.shape) and not kind_of(x).has(ExampleClass))


def _values(out: FeatureType, entry: FeatureType) -> int:
    """The number of values that a stage writes, assumed if unknown."""
    for t in (out, entry):
        if t.shape and all(d is not None for d in t.shape):
            return math.prod(d or 0 for d in t.shape)
    samples = kind_of(out).samples
    if samples is not None:
        return samples.assumed_length(out) * math.prod(d or 1 for d in out.shape[1:])
    return ASSUMED_CLASSES if kind_of(out).has(ExampleClass) else ASSUMED_VALUES


def _own_us(node: Node, together: bool) -> float:
    """Microseconds of a node without its stages; `together` if a batch is read from a cache as one."""
    size = example_bytes(node.out)
    match node:
        case Index():
            return node.num_draws * _DRAW_US
        case Read():
            return _READ_US if node.out.batch is None else size * _GATHER_NS / 1e3
        case Cache():
            return gather_us(node.out, together=together)
        case Batch():
            if together or not size:
                return 0.0
            return _EXAMPLE_US + size * (_COPY_NS + _FRESH_NS) / 1e3
        case Kernel():
            return size * _FRESH_NS / 1e3
        case Send():
            return send_us(node)
    return 0.0


def _held(node: Node, plan: Plan, given: Circumstances) -> int:
    """Bytes that a node holds: results of a parallel map, a batch being stacked, waiting batches, a cache."""
    example = example_bytes(node.out)
    rows = -(-plan.batch.size // given.hosts)
    match node:
        case Shuffle():
            return int(given.file_bytes) * (given.examples or 0)
        case Read() if given.stored is not None:
            return given.stored
        case Read(rows=True):
            return example * (given.examples or 0)
        case Element():
            decoded = example * min(node.chunk, rows)
            if any(stage.decode_us(ASSUMED_FILE) for stage in node.stages):  # the whole image, before it is cropped or scaled
                decoded += int(ASSUMED_VALUES * given.file_bytes / ASSUMED_FILE)
            return decoded * (given.threads if node.parallel else 1)
        case Cache():
            return example * (given.examples or 0) if node.kind.in_memory else 0
        case Batch():
            return example * rows * (given.threads if any(isinstance(n, Cache) for n in plan.nodes) else 1)
        case Kernel():
            between = 0  # intermediate results of a kernel that is not compiled
            if not node.compiled and any(stage.compilable for stage in node.stages):
                values = sum(_values(t, t) for _, t in node.out.items() if _is_large(t))
                between = _BETWEEN * 4 * values * (given.threads if node.parallel else 1)
            return rows * (example * _at_a_time(node, plan, given) + between)
        case Prefetch():
            return example * rows * node.batches
    return 0


def _at_a_time(node: Kernel, plan: Plan, given: Circumstances) -> int:
    """The number of batches of a kernel in memory at a time, without prefetched ones.

    Large results of a compiled kernel have buffers that are kept: one for each batch that is computed and, unless a later kernel
    replaces them, that waits or is in use. Of several kernels, the one that runs also has intermediate results: about a batch, as measured.
    """
    computed = given.threads if node.parallel else 1
    if not node.compiled or plan.index.buckets or example_bytes(node.out) * plan.batch.size < LARGE * given.hosts:
        return computed
    kernels = [n for n in plan.nodes if isinstance(n, Kernel)]
    later = kernels[next(i for i, kernel in enumerate(kernels) if kernel is node) + 1 :]
    if are_replaced(node, later):
        return computed
    between = computed if len(kernels) > 1 and not later else 0
    return computed + between + HANDED_OVER + (sum(n.batches for n in plan.nodes if isinstance(n, Prefetch)) if later else 0)


def are_replaced(node: Kernel, later: Iterable[Kernel]) -> bool:
    """Tests if later kernels replace all results of a kernel, so that they are dropped before their batch is finished."""
    return {stage.feature for stage in node.stages} <= {stage.feature for kernel in later for stage in kernel.stages}


def render_cost(plan: Plan, cost: PlanCost, *, dearest: int | None = None) -> str:
    """Renders the cost of each stage and the memory of each node as text, ending in a newline.

    With `dearest`, only that many stages are listed, the dearest first, and only the sum of the memory.
    """
    given = cost.given
    read = plan.reader
    rows, stored = read.rows, given.file_bytes
    if rows and given.assumed:
        stored = example_bytes(read.out)
    guess = given.assumed and not (rows and all(d is not None for _, t in read.out.items() for d in t.shape))
    size = ("rows of " if rows else "files of ") + format_bytes(stored) + (", which is a guess" if guess else "")
    nodes = plan_json(plan)["nodes"]
    parts: list[tuple[float, str]] = []
    for own, told in zip(cost.nodes, nodes, strict=True):
        parts.append((own.us - sum(own.stages), told["text"]))
        parts += [(us, stage["text"]) for us, stage in zip(own.stages, told.get("stages", ()), strict=True)]
    parts = [(us, text) for us, text in parts if us >= LEAST_US]
    shown = sorted(parts, key=lambda part: -part[0])[:dearest] if dearest is not None else parts
    what = "expected cost" if len(shown) == len(parts) else f"expected cost of the {len(shown)} most expensive stages"
    fitted = "; fitted to this machine" if given.factors else ""
    fitted += f"; in the bucket {times(plan.index.buckets[0])}" if plan.index.buckets else ""
    one, many = ("an image", "images") if having(read.out, Levels) else ("an example", "examples")
    lines = [f"{what}, in µs of one core for {one} ({size}{fitted})"]
    lines += [f"  {us:>8,.1f}  {us / cost.first_us:>4.0%}  {text}" for us, text in shown]
    if any(isinstance(n, Cache) for n in plan.nodes):
        lines.append(f"  {cost.first_us:>8,.1f}        in all while the cache fills")
        lines.append(f"  {cost.us:>8,.1f}        in all from then on: {1e6 / cost.us:,.0f} {many}/s on each core")
    else:
        rate = f": {1e6 / cost.us:,.0f} {many}/s on each core" if cost.us else ""  # a table of numbers costs next to nothing
        lines.append(f"  {cost.us:>8,.1f}        in all{rate}")
    open_end = given.examples is None and any(isinstance(n, Cache) and n.kind.in_memory for n in plan.nodes)
    lines.append(f"expected memory: {format_bytes(cost.bytes)}{' and the cache' if open_end else ''}, beside TensorFlow itself")
    for own, node, told in zip(cost.nodes, plan.nodes, nodes, strict=True) if dearest is None else ():
        if open_end and isinstance(node, Cache):
            lines.append(f"  {format_bytes(example_bytes(node.out)):>10}  {told['text']}, times the examples")
        elif own.bytes:
            lines.append(f"  {format_bytes(own.bytes):>10}  {told['text']}")
    return "\n".join(lines) + "\n"


def cost_json(plan: Plan, cost: PlanCost) -> dict[str, Any]:
    """The expected cost as JSON values: microseconds of one core per image, and bytes."""
    return {
        "file_bytes": round(cost.given.file_bytes),
        "assumed": cost.given.assumed,
        **({"fitted": True} if cost.given.factors else {}),
        "threads": cost.given.threads,
        "examples": cost.given.examples,
        "first_us": round(cost.first_us, 2),
        "us": round(cost.us, 2),
        "bytes": cost.bytes,
        "nodes": [
            {"node": type(n).__name__.lower(), "us": round(c.us, 2), "stages_us": [round(x, 2) for x in c.stages], "bytes": c.bytes}
            for n, c in zip(plan.nodes, cost.nodes, strict=True)
        ],
    }
