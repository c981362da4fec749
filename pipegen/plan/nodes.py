"""The nodes of a plan: a closed set of frozen dataclasses, each with the type of the edge that leaves it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, Union

from pipegen.errors import InternalError
from pipegen.frozen import dataclass
from pipegen.ops.stage import Stage, StepRef
from pipegen.spec.models import DiskCache, Output, Remainder, Runtime
from pipegen.types import ElementType


@dataclass(frozen=True, slots=True)
class PartDraws:
    """The draws of one part of a mix: of its own steps and the common ones, which have fixed places in the one vector of draws."""

    name: str
    draws: tuple[StepRef, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """The examples of an epoch: positions become records, and all random numbers of an example are drawn."""

    out: ElementType
    split: str
    order: Literal["stored", "global", "window"]  # `stored`, or `global` and `window` once a pass has moved shuffling here
    window_bytes: int | None  # the window of `order: window`, in bytes of stored records
    shard: bool  # whether only this host's block of each global batch is read
    draws: tuple[StepRef, ...]  # the steps that draw, in the order of the vector of draws
    blocks: str = ""
    """What `order: window` permutes as a whole before windows within the result, in words: `files` of many examples, or parts of such
    files, such as `row groups`; "" for nothing."""
    sampled: bool = False  # whether an epoch, or a pass through a part of a mix, is not each example of the split once
    parts: tuple[PartDraws, ...] = ()
    """Of a mix, the draws of each part. On the training split an epoch interleaves a number of examples of each part, with `order` within
    each part; the other splits hold the parts one after another."""
    width: int = 0  # of a mix, the length of an example's vector of draws
    buckets: tuple[tuple[int, ...], ...] = ()
    """The possible sizes of batches, height and width in pixels, or a length: an epoch permutes the examples of each bucket, and the
    batches of all. Empty for batches of one size."""

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
        """Whether an epoch interleaves examples of the parts of a mix."""
        return bool(self.parts) and self.split == "train"

    @property
    def scheduled(self) -> bool:
        """Whether a step changes over the epochs."""
        return any(r.step.schedules() for r in (*self.draws, *(r for part in self.parts for r in part.draws)))


@dataclass(frozen=True, slots=True)
class Read:
    """The stored record of each example."""

    out: ElementType
    parts: tuple[tuple[Read | Element, ...], ...] = ()
    """Of a mix whose parts differ at first: for each part, how a record is read, and the steps until it has the type `out`."""

    @property
    def stored(self) -> tuple[ElementType, ...]:
        """The types of stored records: of a mix, those of its parts if they differ."""
        return tuple(part[0].out for part in self.parts) or (self.out,)

    @property
    def rows(self) -> bool:
        """Whether records are rows of arrays in memory, not files."""
        return all(not t.encoded for type_ in self.stored for _, t in type_.items())


@dataclass(frozen=True, slots=True)
class Shuffle:
    """A shuffle of an epoch that holds all of its examples."""

    out: ElementType
    order: Literal["global", "window"]
    window_bytes: int | None
    blocks: str = ""


@dataclass(frozen=True, slots=True)
class Shard:
    """This host's block of each global batch."""

    out: ElementType


@dataclass(frozen=True, slots=True)
class Element:
    """Stages on single examples of any shape: up to `chunk` examples of a batch in a call, several calls at once if parallel."""

    out: ElementType
    stages: tuple[Stage, ...]
    parallel: bool = False
    chunk: int = 1


@dataclass(frozen=True, slots=True)
class CacheKind:
    """A place for the rows of a cache, as plans and reports see it.

    To add a kind: a value below, its reader and writer in `backend/reading/graph_caches.py`, and how `Engine._cache` opens it."""

    name: str  # its name in reports
    where: str  # the place in the text of a plan
    variables: str  # what a graph holds of it in variables, in words
    in_memory: bool = False  # whether its rows take memory of this process
    outlives: bool = False
    """Whether it outlives the process, so that other processes may fill it: the steps before it have to give equal results there."""
    files: tuple[str, ...] = ()  # what is read of it in Python, in words


IN_MEMORY = CacheKind("memory", "in memory", "the cache", in_memory=True)  # rows in the memory of the process, filled in its first epoch
ON_DISK = CacheKind("disk", "on disk", "which records are there", outlives=True, files=("the files of the cache",))
"""Rows in files of a folder that the spec names, shared with later runs and other processes."""


def wanted_kind(runtime: Runtime) -> CacheKind | None:
    """The kind of cache that a spec asks for: memory for `auto`, `None` for `none`."""
    if runtime.cache == "none":
        return None
    return ON_DISK if isinstance(runtime.cache, DiskCache) else IN_MEMORY


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache of examples."""

    out: ElementType
    kind: CacheKind = IN_MEMORY
    columns: tuple[str, ...] = ()  # features that it leaves out: they are in columns, and no step has changed them


@dataclass(frozen=True, slots=True)
class Batch:
    """A stack of `size` examples, the global batch; `remainder` is the treatment of an incomplete last batch."""

    out: ElementType
    size: int
    remainder: Remainder


@dataclass(frozen=True, slots=True)
class Kernel:
    """Stages on a batch of fixed shape, compiled by XLA or not; several batches at once if parallel.

    With `rows`, the program goes from example to example, and through the stages that change it alone; all stages are on one feature, whose
    dtype and shape they keep.
    """

    out: ElementType
    stages: tuple[Stage, ...]
    compiled: bool = False
    parallel: bool = False
    rows: bool = False


def one_pass_each(kernel: Kernel) -> tuple[Kernel, ...]:
    """Splits a kernel with `rows` into kernels of whole batches, one for each stage, for where all examples are computed at once."""
    return tuple(replace(kernel, stages=(stage,), rows=False) for stage in kernel.stages) if kernel.rows else (kernel,)


@dataclass(frozen=True, slots=True)
class Send:
    """The place where a worker of the tf.data service sends a batch to the trainer, which runs what follows.

    `features` are those that a later node uses. Without workers, it does nothing.
    """

    out: ElementType
    features: tuple[str, ...]

    @property
    def num_bytes(self) -> int:
        """Bytes of an example that are sent, without features of unknown size. A few numbers of the index come on top."""
        return sum(self.out[name].num_bytes or 0 for name in self.features)


@dataclass(frozen=True, slots=True)
class Emit:
    """The features in the structure that the model takes: `x`, `(x, y)` or `(x, y, sample_weight)`."""

    out: ElementType
    output: Output


@dataclass(frozen=True, slots=True)
class Prefetch:
    """A buffer of finished batches on a device, or in this host's memory if `device` is `None`.

    `batches` does not count those that a parallel kernel has ready.
    """

    out: ElementType
    device: str | None
    batches: int = 2


Node = Union[Index, Read, Shuffle, Shard, Element, Cache, Batch, Kernel, Send, Emit, Prefetch]


@dataclass(frozen=True, slots=True)
class Plan:
    """A linear program for one split."""

    split: str
    nodes: tuple[Node, ...]
    buckets: tuple[Plan, ...] = ()
    """With buckets, the plan of each, which is what runs. `nodes` then stand for all of them: their types are those that a batch can have,
    their stages those of the first bucket."""

    @property
    def out(self) -> ElementType:
        """The type of the last edge."""
        return self.nodes[-1].out

    @property
    def index(self) -> Index:
        """The node that selects the examples."""
        node = self.nodes[0]
        assert isinstance(node, Index)  # noqa: S101 - the verifier's first rule
        return node

    @property
    def reader(self) -> Read:
        """The node that reads records."""
        return next(node for node in self.nodes if isinstance(node, Read))

    @property
    def read(self) -> ElementType:
        """The type of a stored record."""
        return self.reader.out

    @property
    def emit(self) -> Emit:
        """The node that arranges the features for the model."""
        return next(node for node in reversed(self.nodes) if isinstance(node, Emit))

    @property
    def batch(self) -> Batch:
        """The node that stacks examples."""
        return next(n for n in self.nodes if isinstance(n, Batch))

    def stages(self) -> tuple[Stage, ...]:
        """Every stage, in order."""
        return tuple(s for n in self.nodes if isinstance(n, (Element, Kernel)) for s in n.stages)

    def part_reads(self, count: int) -> tuple[ElementType, ...]:
        """The types of the stored records of `count` parts."""
        return self.reader.stored if self.reader.parts else (self.read,) * count

    def part_stages(self) -> tuple[Stage, ...]:
        """Every stage that is of one part of a mix alone."""
        return tuple(s for part in self.reader.parts for n in part if isinstance(n, Element) for s in n.stages)

    def with_nodes(self, nodes: list[Node] | tuple[Node, ...]) -> Plan:
        """The same split with other nodes; for a plan with buckets, see `each`."""
        if self.buckets:
            raise InternalError("a plan of several buckets is changed bucket by bucket")
        return replace(self, nodes=tuple(nodes))

    def each(self, change: Callable[[Plan], Plan]) -> Plan:
        """Applies a change to the plan, or to that of each bucket."""
        return for_buckets([change(plan) for plan in self.buckets]) if self.buckets else change(self)


def for_buckets(plans: Sequence[Plan]) -> Plan:
    """Joins the plans of all buckets into one, in their order."""
    first = plans[0]
    alike = all([type(n) for n in plan.nodes] == [type(n) for n in first.nodes] for plan in plans)
    columns = zip(*(plan.nodes for plan in plans), strict=True) if alike else [(n,) for n in first.nodes]
    nodes: list[Node] = [replace(own[0], out=ElementType.any_of([n.out for n in own])) for own in columns]
    if not alike:  # the last edges are those of the output
        out = ElementType.any_of([plan.out for plan in plans])
        nodes = [replace(n, out=out) if isinstance(n, (Emit, Prefetch)) else n for n in nodes]
    return Plan(first.split, tuple(nodes), tuple(plans))
