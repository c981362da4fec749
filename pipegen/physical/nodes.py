"""The nodes of a physical plan, a closed set of frozen dataclasses: operations of `tf.data`, and functions that maps call in turn.

The grain of a dataset is the content of one element: an `epoch` (its number and first step), a `step` (its number), a `record` (its number,
in a cycle through the data), an `example`, a `chunk` of a few examples, or a `batch`. A request to a served model is a batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Literal, Union

from pipegen.frozen import dataclass
from pipegen.physical.extent import Extent
from pipegen.plan import nodes as logical
from pipegen.plan.cost import LARGE
from pipegen.types import ElementType

Grain = Literal["epoch", "step", "record", "example", "chunk", "batch"]
Guard = Literal["none", "name", "replace", "tell", "mark"]
"""Treatment of damaged records: `none` fails; `name` fails and names the file; `replace` takes another record; `tell` gives only
whether a record is intact; `mark` gives that beside the features, for a chunk as a whole."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The circumstances that a physical plan depends on, beside the plan and its form."""

    extent: Extent  # the length of an epoch, and this host's part of it
    threads: int  # threads of the pipeline's pool
    jit: bool = True  # whether XLA may compile
    replaces: bool = False  # whether a damaged record is replaced by another one
    python: str = ""  # the work in Python that reading needs, in words
    columns: bool = True  # whether ids, paths etc. are looked up in columns; for records in shards, they may be computed.
    held: str = ""  # what reading keeps in this process, in words; a derived plan, which may run elsewhere, does not need it
    fetches: bool = False  # whether reading waits for other machines, so that records are requested some steps ahead


# Functions of a map


@dataclass(frozen=True, slots=True)
class Index:
    """Selects the records of a step, or of the rest of an epoch, and draws their random numbers."""

    node: logical.Index  # the node of the plan, with the order of its shuffle if that is a node of its own
    shard: tuple[int, int]  # the share of each global batch, and the number of shares
    rows: int | None  # the rows of a batch that is widened to whole combined groups, or `None`
    grouped: bool  # whether it gives the combined group of each example
    compiled: bool  # whether XLA compiles the cipher of the draws
    whole: bool  # whether it selects the rest of an epoch, in stored order, rather than a step


@dataclass(frozen=True, slots=True)
class PrefetchRemote:
    """Requests the records of a step from other machines, ahead of their reading by `node`."""

    node: logical.Read


@dataclass(frozen=True, slots=True)
class Draw:
    """Draws the random numbers of a requested record in its cycle; with `buckets`, it also gives the bucket of the record."""

    draws: int
    buckets: bool = False


@dataclass(frozen=True, slots=True)
class Fill:
    """Repeats the last row of a batch up to `size`, as requested steps would else take rows of the next one."""

    size: int


@dataclass(frozen=True, slots=True)
class Cut:
    """Cuts a batch's rows into chunks; unless every batch is `full`, the last chunk repeats a row."""

    chunk: int
    full: bool


@dataclass(frozen=True, slots=True)
class Examples:
    """Runs nodes on single examples, from their reading on, `chunk` of them in a call; `guard` treats damaged records."""

    nodes: tuple[logical.Read | logical.Element, ...]
    chunk: int = 1
    guard: Guard = "none"


@dataclass(frozen=True, slots=True)
class MapRequest:
    """Runs nodes on each example of a request, several in parallel."""

    nodes: tuple[logical.Element, ...]


@dataclass(frozen=True, slots=True)
class FillCache:
    """Adds the missing records of an example or a batch to the cache: `at_once` in parallel, `None` for a single record."""

    cache: logical.Cache
    examples: Examples
    at_once: int | None


@dataclass(frozen=True, slots=True)
class ReadCache:
    """Reads a record or a batch from the cache; recomputes misses."""

    cache: logical.Cache
    examples: Examples
    whole: bool


@dataclass(frozen=True, slots=True)
class Sort:
    """Sorts the examples of an epoch by their slots."""


@dataclass(frozen=True, slots=True)
class Join:
    """Concatenates the chunks of a batch."""

    out: ElementType
    size: int
    chunk: int
    full: bool


@dataclass(frozen=True, slots=True)
class Trim:
    """Removes the rows that `Fill` added to a batch."""


@dataclass(frozen=True, slots=True)
class SetBatchSize:
    """Sets the static batch dimension."""

    rows: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Reads the rows of a whole batch, except for features that the kernel reads `in_place`, from the memory that holds them."""

    node: logical.Read
    in_place: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kernel:
    """Runs a kernel on a batch of type `entry`."""

    node: logical.Kernel
    entry: ElementType
    batch: int  # rows of a full batch; 0 for any number
    depth: int  # the number of results in use at a time if they reuse memory of earlier ones, else 0

    @property
    def reuses(self) -> tuple[str, ...]:
        """The features whose results reuse the memory of earlier batches."""
        changed = dict.fromkeys(stage.feature for stage in self.node.stages) if self.depth else ()
        return tuple(name for name in changed if (self.node.out[name].num_bytes or 0) * self.batch >= LARGE)


@dataclass(frozen=True, slots=True)
class Prepare:
    """Computes the parameters of a kernel that a device runs: the one of this `number`, on features of type `entry`."""

    node: logical.Kernel
    entry: ElementType
    number: int


@dataclass(frozen=True, slots=True)
class SliceOwnRows:
    """Cuts a batch that was widened to whole combined groups to the rows of this host: `size` of them, if equal for all batches."""

    size: int | None


@dataclass(frozen=True, slots=True)
class Emit:
    """Arranges a batch as the model takes it, with its epoch and step in front; with `weighs`, padding has the weight 0."""

    node: logical.Emit
    weighs: bool


@dataclass(frozen=True, slots=True)
class SplitForDevice:
    """Collects `features` and the parameters of kernels for a device stage, which arranges `node`, with epoch and step in front.

    With `weighs`, padding has the weight 0.
    """

    node: logical.Emit
    features: tuple[str, ...]
    weighs: bool


@dataclass(frozen=True, slots=True)
class Send:
    """Collects the features of `node` and the numbers of the index, with epoch and step in front, for the trainer."""

    node: logical.Send


@dataclass(frozen=True, slots=True)
class Receive:
    """Takes the batches that `Send` sends, in the order of steps; makes late ones up to there."""

    node: logical.Send


@dataclass(frozen=True, slots=True)
class Deliver:
    """Delivers a batch: with `numbered`, its epoch and step, too. With `notes` they are stored, and the next iterator continues there."""

    notes: bool
    numbered: bool


@dataclass(frozen=True, slots=True)
class SwitchBucket:
    """Calls the functions of the bucket of a batch or an example in turn; `sizes` are height and width of each bucket, in pixels, or its
    length."""

    sizes: tuple[tuple[int, ...], ...]
    functions: tuple[tuple[Function, ...], ...]


BeforeBatch = Union[Index, PrefetchRemote, Draw, Fill, Cut, Examples, FillCache, ReadCache, Sort, Receive]
OnBatch = Union[MapRequest, Join, Trim, SetBatchSize, Rows, Kernel, Prepare, SliceOwnRows, Emit, SplitForDevice, Send, Deliver]
Function = Union[BeforeBatch, OnBatch, SwitchBucket]


# Operations


@dataclass(frozen=True, slots=True)
class Enter:
    """The first elements of the dataset."""

    enters: Enters
    grain: Grain


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of an epoch, from its first step on."""


@dataclass(frozen=True, slots=True)
class Map:
    """Functions, called on each element in turn, in `threads` parallel calls; `None` is one, in the thread of the consumer."""

    functions: tuple[Function, ...]
    grain: Grain
    threads: int | None = None

    @property
    def main(self) -> Function:
        """The function that names it: the first one, or that behind those that only make a batch of what was stacked."""
        return next((f for f in self.functions if not isinstance(f, (Join, Trim))), self.functions[0])


@dataclass(frozen=True, slots=True)
class Unbatch:
    """A split of elements along their first axis."""


@dataclass(frozen=True, slots=True)
class Filter:
    """This host's block of each global batch."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack of `size` elements, also the last one if `full`: a batch or, if `held`, an epoch to be sorted."""

    size: int
    full: bool
    held: bool = False


@dataclass(frozen=True, slots=True)
class Prefetch:
    """A buffer of finished batches or, with `steps`, of steps whose records are being fetched.

    `device` is `None` for this host's memory. After a device there may be no operation.
    """

    batches: int
    device: str | None = None
    steps: bool = False


Operation = Union[Enter, Steps, Map, Unbatch, Filter, Stack, Prefetch]


def node_name(node: object) -> str:
    """The name of a node or stage in plans and profiles: its class in snake case."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(node).__name__).lower()


def hands_over(operation: Operation) -> bool:
    """Tests if an operation delivers batches, rather than making them."""
    if isinstance(operation, Prefetch):
        return operation.device is not None
    return isinstance(operation, Map) and isinstance(operation.functions[0], Deliver)


@dataclass(frozen=True, slots=True)
class Physical:
    """The program that runs a plan in one form."""

    form: Form
    plan: logical.Plan
    setting: Setting
    operations: tuple[Operation, ...]

    def named(self) -> Iterator[tuple[str, Operation]]:
        """Yields the operations with their names, which are also those in a profile."""
        seen: dict[str, int] = {}
        for operation in self.operations:
            first = operation.main if isinstance(operation, Map) else operation
            first = first.functions[0][0] if isinstance(first, SwitchBucket) else first
            whole = (
                isinstance(operation, Map)
                and isinstance(first, Index)
                and isinstance(operation.functions[-1], (Emit, SplitForDevice, Send))
            )
            name = "whole_batch" if whole else node_name(first)
            seen[name] = seen.get(name, 0) + 1
            yield f"{name}_{seen[name]}" if seen[name] > 1 else name, operation

    @property
    def functions(self) -> tuple[Function, ...]:
        """Every function, in order; of a switch, those of all buckets."""
        called = (f for o in self.operations if isinstance(o, Map) for f in o.functions)
        return tuple(own for f in called for own in ((f, *chain(*f.functions)) if isinstance(f, SwitchBucket) else (f,)))

    @property
    def nodes(self) -> tuple[logical.Node, ...]:
        """The nodes of the plan that run: all, or those of a worker, or of a trainer that receives its batches."""
        nodes = self.plan.nodes
        at = next((i for i, n in enumerate(nodes) if isinstance(n, (logical.Send, logical.Emit))), len(nodes))
        return nodes[:at] if self.form.sent else nodes[at:] if any(isinstance(f, Receive) for f in self.functions) else nodes

    def of_bucket(self, number: int) -> Physical:
        """The program for the batches of one bucket."""
        plan, operations = self.plan.buckets[number], list(self.operations)

        def own(function: Function) -> tuple[Function, ...]:
            if isinstance(function, SwitchBucket):
                return function.functions[number]
            return (replace(function, node=plan.emit),) if isinstance(function, Emit) else (function,)

        for i, operation in enumerate(operations):
            if isinstance(operation, Map):
                operations[i] = replace(operation, functions=tuple(chain(*map(own, operation.functions))))
        return replace(self, plan=plan, operations=tuple(operations))


Enters = Literal["variable", "constant", "queue", "list", "request"]


@dataclass(frozen=True, slots=True)
class Form:
    """One way to run a plan."""

    name: str  # its purpose
    enters: Enters  # the source of its epochs, steps, records or batches of stored values
    takes: Literal["epoch", "step", "record", "batch"] = "epoch"  # which of these enter
    derived: bool = False
    """Whether users build on it and may run it on another machine: it names damaged files itself, and reuses no memory."""
    numbered: bool = True  # whether batches are delivered with their epoch and step
    tells: bool = False  # whether a batch has a mark for damaged records, rather than failing
    device: str | None = None  # the device that batches are delivered on, or `None` for this host's memory
    sends: bool = False  # whether the last kernels are left to a device, which gets their inputs and parameters
    sent: bool = False  # whether what follows the plan's `Send` is left to the trainer

    @property
    def single(self) -> bool:
        """Whether single steps enter."""
        return self.takes == "step"

    def built_on(self) -> Form:
        """The form for datasets that users build on."""
        return replace(self, name=f"{self.name}, for datasets built on it", derived=True, numbered=False)

    def sending(self) -> Form:
        """The form that leaves the last kernels to a device."""
        return replace(self, name=f"{self.name}, for a device stage", sends=True)

    def bare(self, device: str | None = None) -> Form:
        """The form that delivers batches without numbers, perhaps on a device."""
        return replace(self, numbered=False, device=device or self.device)


TRAINING = Form("training", "variable")
FIXED = Form("one epoch", "constant")
"""One epoch of any split: in evaluation, prediction, `pipegen fit`, and for an epoch requested by its number."""
REQUESTED = Form("requested batches", "queue", "step")
SERVICE = Form("workers of the tf.data service", "list", "step", derived=True, tells=True, sent=True)
"""On machines with TensorFlow alone. A batch with a damaged record is marked, and the trainer computes it anew."""
IN_PLACE = Form("batches in place of workers'", "queue", "step", sent=True)
EXPORTED = Form("export", "list", "step")
SHOWN = Form("preview", "list", "record")
PROBED = Form("records tried one by one", "list", "record")  # for `validate --data`
SERVED = Form("serving", "request", "batch", numbered=False)
"""A function of a request rather than a dataset. Without state and draws, so that a file can hold it."""


def forms_of(plan: logical.Plan) -> tuple[Form, ...]:
    """The forms that a plan runs in, the usual one first."""
    device = next((n.device for n in plan.nodes if isinstance(n, logical.Prefetch)), None)
    epochs = (TRAINING, FIXED) if plan.split == "train" else (FIXED,)
    usual = (epochs[0].bare(device), *epochs[1:]) if device else epochs
    served = (SERVED,) if plan.emit.output.y is None and not plan.index.draws and plan.split != "train" else ()
    return (*(form for whole in usual for form in (whole, whole.built_on())), REQUESTED, SERVICE, EXPORTED, SHOWN, PROBED, *served)
