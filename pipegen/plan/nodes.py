"""The nodes of a plan: a closed set of frozen dataclasses, each with the type of the edge that leaves it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Union

from pipegen.errors import InternalError
from pipegen.ops.stage import Stage, StepRef
from pipegen.plan.caches import IN_MEMORY, CacheKind
from pipegen.spec.models import Output, Remainder
from pipegen.types import ElementType


@dataclass(frozen=True, slots=True)
class PartDraws:
    """Says what the steps of one part of a mix draw, its own and the common ones: in the one vector of draws, each has its place."""

    name: str
    draws: tuple[StepRef, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """Names the examples: positions become records, and every random number of an example is drawn.

    Attributes:
        order: `stored`, or `global` and `window` once shuffling has moved here.
        window_bytes: The window of `order: window`, in bytes of stored records.
        shard: Whether only this host's block of each global batch is named.
        draws: The steps that draw, in the order of the vector of draws.
        blocks: What `order: window` permutes whole, in words, before windows of what stands there one after another: `files` of many
            examples, or what such files are read by, such as `row groups`; empty for nothing.
        sampled: Whether an epoch, or a pass through a part of a mix, has other examples than each of the split once.
        parts: Of a mix, what each part draws. On the training split an epoch then has so many examples of each, interleaved, and `order` is
            that within each part; the other splits hold the parts one after another.
        width: Of a mix, the length of an example's vector of draws.
        buckets: The sizes of which each batch has one, height and width in pixels each: an epoch then permutes the examples of each bucket,
            and the batches of all. Empty for batches of one size.
    """

    out: ElementType
    split: str
    order: Literal["stored", "global", "window"]
    window_bytes: int | None
    shard: bool
    draws: tuple[StepRef, ...]
    blocks: str = ""
    sampled: bool = False
    parts: tuple[PartDraws, ...] = ()
    width: int = 0
    buckets: tuple[tuple[int, int], ...] = ()

    @property
    def num_draws(self) -> int:
        """The length of an example's vector of draws."""
        return self.width if self.parts else sum(r.num_draws for r in self.draws)

    @property
    def names(self) -> tuple[str, ...]:
        """The parts of a mix; none of a single source."""
        return tuple(part.name for part in self.parts)

    @property
    def interleaves(self) -> bool:
        """Returns whether an epoch has a number of examples of each part of a mix."""
        return bool(self.parts) and self.split == "train"

    @property
    def scheduled(self) -> bool:
        """Returns whether a step changes over the epochs."""
        return any(r.step.schedules() for r in (*self.draws, *(r for part in self.parts for r in part.draws)))


@dataclass(frozen=True, slots=True)
class Read:
    """Reads the stored record of each example.

    Attributes:
        parts: Of a mix whose parts are not alike from the start: how a record of each part is read, and what is done to it alone until
            all parts are of the type `out`.
    """

    out: ElementType
    parts: tuple[tuple[Read | Element, ...], ...] = ()

    @property
    def stored(self) -> tuple[ElementType, ...]:
        """The types of records as they are stored: of a mix those of its parts, where they differ."""
        return tuple(part[0].out for part in self.parts) or (self.out,)


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Puts the examples of an epoch into the order of the spec, by holding them all."""

    out: ElementType
    order: Literal["global", "window"]
    window_bytes: int | None
    blocks: str = ""


@dataclass(frozen=True, slots=True)
class Shard:
    """Keeps this host's block of each global batch."""

    out: ElementType


@dataclass(frozen=True, slots=True)
class Element:
    """Works on single examples, of whatever shape: on up to `chunk` of a batch in one call, and where it is parallel in several calls at
    once."""

    out: ElementType
    stages: tuple[Stage, ...]
    parallel: bool = False
    chunk: int = 1


@dataclass(frozen=True, slots=True)
class Cache:
    """Keeps what reaches it, by example."""

    out: ElementType
    kind: CacheKind = IN_MEMORY


@dataclass(frozen=True, slots=True)
class Batch:
    """Stacks `size` examples into a global batch; `remainder` is what happens to a last batch that is not full."""

    out: ElementType
    size: int
    remainder: Remainder


@dataclass(frozen=True, slots=True)
class Kernel:
    """Works on a whole batch of fixed shape, compiled by XLA into one kernel or not; where it is parallel, on several batches at once."""

    out: ElementType
    stages: tuple[Stage, ...]
    compiled: bool = False
    parallel: bool = False


@dataclass(frozen=True, slots=True)
class Emit:
    """Arranges the features as the model takes them: `x`, `(x, y)` or `(x, y, sample_weight)`."""

    out: ElementType
    output: Output


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Keeps finished batches ready, on a device or, where that is `None`, in this host's memory: so many besides those that a parallel
    kernel has ready."""

    out: ElementType
    device: str | None
    batches: int = 2


Node = Union[Index, Read, Shuffle, Shard, Element, Cache, Batch, Kernel, Emit, Prefetch]


@dataclass(frozen=True, slots=True)
class Plan:
    """A linear program for one split: its nodes from the first to the last.

    Attributes:
        buckets: Where each batch has the size of a bucket: the plan of each, which runs. `nodes` then stand for all of them: the types on
            their edges are those that a batch can have, their stages those of the first bucket.
    """

    split: str
    nodes: tuple[Node, ...]
    buckets: tuple[Plan, ...] = ()

    @property
    def out(self) -> ElementType:
        """The type of the last edge."""
        return self.nodes[-1].out

    @property
    def index(self) -> Index:
        """The node that names the examples."""
        node = self.nodes[0]
        assert isinstance(node, Index)  # noqa: S101 - the verifier's first rule
        return node

    @property
    def read(self) -> ElementType:
        """The type of a record as it is stored."""
        return next(node.out for node in self.nodes if isinstance(node, Read))

    @property
    def emit(self) -> Emit:
        """The node that arranges what the model takes."""
        return next(node for node in reversed(self.nodes) if isinstance(node, Emit))

    @property
    def batch(self) -> Batch:
        """The node that stacks them."""
        return next(n for n in self.nodes if isinstance(n, Batch))

    def stages(self) -> tuple[Stage, ...]:
        """Every stage, in order."""
        return tuple(s for n in self.nodes if isinstance(n, (Element, Kernel)) for s in n.stages)

    def part_reads(self, count: int) -> tuple[ElementType, ...]:
        """The types of the records of so many parts, as they are stored."""
        read = next(n for n in self.nodes if isinstance(n, Read))
        return read.stored if read.parts else (read.out,) * count

    def part_stages(self) -> tuple[Stage, ...]:
        """Every stage that works on the records of one part of a mix alone."""
        parts = next(n.parts for n in self.nodes if isinstance(n, Read))
        return tuple(s for part in parts for n in part if isinstance(n, Element) for s in n.stages)

    def with_nodes(self, nodes: list[Node] | tuple[Node, ...]) -> Plan:
        """The same split with other nodes; where there are buckets, see `each`."""
        if self.buckets:
            raise InternalError("a plan of several buckets is changed bucket by bucket")
        return replace(self, nodes=tuple(nodes))

    def each(self, change: Callable[[Plan], Plan]) -> Plan:
        """Returns what a change makes of the plan; where there are buckets, of that of each."""
        return for_buckets([change(plan) for plan in self.buckets]) if self.buckets else change(self)


def for_buckets(plans: Sequence[Plan]) -> Plan:
    """Joins the plans of all buckets to one, in their order."""
    first = plans[0]
    alike = all([type(n) for n in plan.nodes] == [type(n) for n in first.nodes] for plan in plans)
    columns = zip(*(plan.nodes for plan in plans), strict=True) if alike else [(n,) for n in first.nodes]
    nodes: list[Node] = [replace(own[0], out=ElementType.any_of([n.out for n in own])) for own in columns]
    if not alike:  # the last edges are those of the output
        out = ElementType.any_of([plan.out for plan in plans])
        nodes = [replace(n, out=out) if isinstance(n, (Emit, Prefetch)) else n for n in nodes]
    return Plan(first.split, tuple(nodes), tuple(plans))
