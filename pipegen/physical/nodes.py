"""The nodes of a physical plan: a closed set of frozen dataclasses. An operation is one of `tf.data`; a map calls functions in turn.

A grain is what one element of a dataset is: an `epoch` (its number, and the step to begin with), a `step` (its number), a `record` (its
number, in a cycle through the data), an `example`, a `chunk` of a few examples, or a `batch`. A request to a served model is a batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal, Union

from pipegen.plan import nodes as logical
from pipegen.plan.cost import LARGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.physical.extent import Extent
    from pipegen.types import ElementType


Grain = Literal["epoch", "step", "record", "example", "chunk", "batch"]
Guard = Literal["none", "name", "replace", "tell", "mark"]
"""What is done about a damaged record: nothing, so that it fails; a failure that names its file; another in its place; or it is told
whether a record is whole, alone or beside its features."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Holds what a physical plan depends on beside the plan and its form.

    Attributes:
        extent: How long an epoch is, and which part of it is this host's.
        threads: Threads of the pipeline's pool.
        jit: Whether XLA may compile.
        replaces: Whether another record takes the place of a damaged one.
        python: What reading records calls Python for, in words.
        columns: Whether ids, paths and the like are looked up in columns; where records lie in shards, they may be worked out.
        held: What reading records keeps in this process, in words.
        held_elsewhere: Whether what may run elsewhere would need that, too.
        fetches: Whether reading waits for other machines, so that it is begun some steps ahead.
    """

    extent: Extent
    threads: int
    jit: bool = True
    replaces: bool = False
    python: str = ""
    columns: bool = True
    held: str = ""
    held_elsewhere: bool = False
    fetches: bool = False


# What a map calls


@dataclass(frozen=True, slots=True)
class Index:
    """Names the examples of a step, or of what is left of an epoch, and makes their draws.

    Attributes:
        order: `stored`, `global` or `window`.
        window_bytes: The window of `order: window`, in bytes of stored records.
        blocks: What `order: window` permutes whole first, in words; empty for nothing.
        shard: Which share of each global batch is named, and of how many.
        draws: Numbers drawn for each example.
        rows: The rows of a batch that is widened to whole mix groups, or `None`.
        grouped: Whether it says who is in a mix group.
        compiled: Whether XLA compiles the ciphers.
        whole: Whether it names all that is left of an epoch, in stored order, rather than a step.
        sampled: Whether an epoch has other examples than each of the split once.
        parts: The parts of a mix.
        interleaves: Whether an epoch has a number of examples of each of them.
        buckets: The sizes of which each batch has one, and says which.
    """

    order: Literal["stored", "global", "window"]
    window_bytes: int | None
    blocks: str
    shard: tuple[int, int]
    draws: int
    rows: int | None
    grouped: bool
    compiled: bool
    whole: bool
    sampled: bool = False
    parts: tuple[str, ...] = ()
    interleaves: bool = False
    buckets: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Ahead:
    """Begins to fetch what a step will read from other machines.

    Attributes:
        node: What will read it.
    """

    node: logical.Read


@dataclass(frozen=True, slots=True)
class Draw:
    """Makes the draws of a record that is asked for, as its cycle has them.

    Attributes:
        draws: Numbers drawn for it.
        buckets: Whether it says which bucket the record is in.
    """

    draws: int
    buckets: bool = False


@dataclass(frozen=True, slots=True)
class Fill:
    """Repeats the last row of a batch that has fewer than `size`: without it, single steps would take those of the next."""

    size: int


@dataclass(frozen=True, slots=True)
class Cut:
    """Cuts a batch's rows into chunks; where not every batch is `full`, the last chunk repeats a row."""

    chunk: int
    full: bool


@dataclass(frozen=True, slots=True)
class Examples:
    """Reads records and works on single examples.

    Attributes:
        nodes: What is done.
        chunk: How many examples one call works on.
        guard: What is done about damaged records.
    """

    nodes: tuple[logical.Read | logical.Element, ...]
    chunk: int = 1
    guard: Guard = "none"


@dataclass(frozen=True, slots=True)
class Each:
    """Works on each example of a request, several at a time."""

    nodes: tuple[logical.Element, ...]


@dataclass(frozen=True, slots=True)
class Keep:
    """Fills the cache with the record, or those of a batch, that it has not.

    Attributes:
        cache: The cache.
        examples: What computes one record.
        at_once: How many of a batch are computed at a time; `None` for a single record.
    """

    cache: logical.Cache
    examples: Examples
    at_once: int | None


@dataclass(frozen=True, slots=True)
class Fetch:
    """Takes what the cache holds: of a record, or of a whole batch; what it could not take is computed again."""

    cache: logical.Cache
    examples: Examples
    whole: bool


@dataclass(frozen=True, slots=True)
class Sort:
    """Puts the examples of an epoch into the order of their slots."""


@dataclass(frozen=True, slots=True)
class Join:
    """Makes a batch of its chunks."""

    out: ElementType
    size: int
    chunk: int
    full: bool


@dataclass(frozen=True, slots=True)
class Trim:
    """Takes away the rows that filled up a batch."""


@dataclass(frozen=True, slots=True)
class Settle:
    """Says that every batch has so many rows."""

    rows: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Reads the rows of a whole batch.

    Attributes:
        node: What is read.
        in_place: The features that are not read here, but by the kernel, from the memory that holds them.
    """

    node: logical.Read
    in_place: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kernel:
    """Works on a whole batch.

    Attributes:
        node: What is done.
        entry: The type of what enters.
        batch: Rows of a full batch; 0 where a batch has any number of them.
        depth: How many of its results are in use at a time, where they take the memory of earlier ones; else 0.
    """

    node: logical.Kernel
    entry: ElementType
    batch: int
    depth: int

    @property
    def reuses(self) -> tuple[str, ...]:
        """The features whose results take the memory of earlier batches."""
        changed = dict.fromkeys(stage.feature for stage in self.node.stages) if self.depth else ()
        return tuple(name for name in changed if (self.node.out[name].num_bytes or 0) * self.batch >= LARGE)


@dataclass(frozen=True, slots=True)
class Prepare:
    """Computes the parameters of a kernel that a device runs.

    Attributes:
        node: What the device does.
        entry: The type of what enters.
        number: Its place among the kernels on the device.
    """

    node: logical.Kernel
    entry: ElementType
    number: int


@dataclass(frozen=True, slots=True)
class Own:
    """Leaves the examples of other hosts out of a batch that was widened to whole mix groups.

    Attributes:
        size: The host's own examples, where that is the same for each batch.
    """

    size: int | None


@dataclass(frozen=True, slots=True)
class Emit:
    """Arranges a batch as the model takes it, with its epoch and step in front.

    Attributes:
        weighs: Whether what fills up the last batch weighs nothing.
    """

    node: logical.Emit
    weighs: bool


@dataclass(frozen=True, slots=True)
class Send:
    """Puts together what a device makes a batch of, with its epoch and step in front.

    Attributes:
        node: What the device arranges at last.
        features: What goes to it, beside the parameters of its kernels.
        weighs: Whether what fills up the last batch weighs nothing.
    """

    node: logical.Emit
    features: tuple[str, ...]
    weighs: bool


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hands a batch over.

    Attributes:
        notes: Whether its epoch and step are noted, so that the next iterator goes on behind the last one.
        numbered: Whether these go with it.
    """

    notes: bool
    numbered: bool


@dataclass(frozen=True, slots=True)
class Choose:
    """Calls the functions of the bucket that a batch, or an example of it, is of.

    Attributes:
        sizes: Height and width of each bucket, in pixels.
        functions: What is called for it, one after another.
    """

    sizes: tuple[tuple[int, int], ...]
    functions: tuple[tuple[Function, ...], ...]


Function = Union[
    Index,
    Ahead,
    Draw,
    Fill,
    Cut,
    Examples,
    Each,
    Keep,
    Fetch,
    Sort,
    Join,
    Trim,
    Settle,
    Rows,
    Kernel,
    Prepare,
    Own,
    Choose,
    Emit,
    Send,
    Deliver,
]


# Operations


@dataclass(frozen=True, slots=True)
class Enter:
    """Stands for what the dataset begins with."""

    enters: Enters
    grain: Grain


@dataclass(frozen=True, slots=True)
class Steps:
    """An epoch as its steps, from the one to begin with."""


@dataclass(frozen=True, slots=True)
class Map:
    """Calls functions on each element, one after another.

    Attributes:
        functions: The functions.
        grain: What an element is.
        threads: How many calls run at a time, in order; `None` for one, in the thread that asks.
    """

    functions: tuple[Function, ...]
    grain: Grain
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class Unbatch:
    """Takes elements apart along their first axis."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps this host's block of each global batch."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Stacks elements.

    Attributes:
        size: How many.
        full: Whether only so many; otherwise the last may be fewer.
        held: Whether they are an epoch, to be sorted, rather than a batch.
    """

    size: int
    full: bool
    held: bool = False


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Keeps finished batches ready, or steps whose records are being fetched.

    Attributes:
        batches: How many.
        device: Where to, or `None` for this host's memory. On a device nothing may follow.
        steps: Whether these are steps.
    """

    batches: int
    device: str | None = None
    steps: bool = False


Operation = Union[Enter, Steps, Map, Unbatch, Filter, Stack, Prefetch]


def hands_over(operation: Operation) -> bool:
    """Returns whether an operation hands batches over, rather than making them."""
    if isinstance(operation, Prefetch):
        return operation.device is not None
    return isinstance(operation, Map) and isinstance(operation.functions[0], Deliver)


@dataclass(frozen=True, slots=True)
class Physical:
    """Holds what runs for one plan in one form.

    Attributes:
        form: The form.
        plan: The plan.
        setting: What else it depends on.
        operations: From the first to the last.
    """

    form: Form
    plan: logical.Plan
    setting: Setting
    operations: tuple[Operation, ...]

    def named(self) -> Iterator[tuple[str, Operation]]:
        """The operations, each with the name that it has in a profile too."""
        seen: dict[str, int] = {}
        for operation in self.operations:
            first = operation.functions[0] if isinstance(operation, Map) else operation
            first = first.functions[0][0] if isinstance(first, Choose) else first
            whole = isinstance(operation, Map) and isinstance(first, Index) and isinstance(operation.functions[-1], (Emit, Send))
            name = "whole_batch" if whole else type(first).__name__.lower()
            seen[name] = seen.get(name, 0) + 1
            yield f"{name}_{seen[name]}" if seen[name] > 1 else name, operation

    @property
    def functions(self) -> tuple[Function, ...]:
        """Every function, in order; those of all buckets where one of them is chosen."""
        called = (f for o in self.operations if isinstance(o, Map) for f in o.functions)
        return tuple(own for f in called for own in ((f, *chain(*f.functions)) if isinstance(f, Choose) else (f,)))

    def of_bucket(self, number: int) -> Physical:
        """Returns what runs for the batches of one bucket."""
        plan, operations = self.plan.buckets[number], list(self.operations)

        def own(function: Function) -> tuple[Function, ...]:
            if isinstance(function, Choose):
                return function.functions[number]
            return (replace(function, node=plan.emit),) if isinstance(function, Emit) else (function,)

        for i, operation in enumerate(operations):
            if isinstance(operation, Map):
                operations[i] = replace(operation, functions=tuple(chain(*map(own, operation.functions))))
        return replace(self, plan=plan, operations=tuple(operations))


Enters = Literal["variable", "constant", "queue", "list", "request"]


@dataclass(frozen=True, slots=True)
class Form:
    """One way to run a plan.

    Attributes:
        name: What it is for.
        enters: Where its epochs come from, or, one by one, its steps or records, or whole batches of stored values.
        takes: Which of these enter.
        derived: Whether more is built on it, which may run on another machine: it names damaged files itself, and uses no memory again.
        numbered: Whether batches are handed over with their epoch and step.
        tells: Whether a batch says if all of its records are whole, in place of failing where one is damaged.
        device: Which device they are handed over on, or `None` for this host's memory.
        sends: Whether the last kernels are left to a device, which gets what enters them, and their parameters.
    """

    name: str
    enters: Enters
    takes: Literal["epoch", "step", "record", "batch"] = "epoch"
    derived: bool = False
    numbered: bool = True
    tells: bool = False
    device: str | None = None
    sends: bool = False

    @property
    def single(self) -> bool:
        """Returns whether single steps enter."""
        return self.takes == "step"

    def built_on(self) -> Form:
        """The form of the datasets that are built on this one's."""
        return replace(self, name=f"{self.name}, for datasets built on it", derived=True, numbered=False)

    def sending(self) -> Form:
        """The form that leaves the last kernels to a device."""
        return replace(self, name=f"{self.name}, for a device stage", sends=True)

    def bare(self, device: str | None = None) -> Form:
        """The form that hands over batches alone, perhaps on a device."""
        return replace(self, numbered=False, device=device or self.device)


TRAINING = Form("training", "variable")
FIXED = Form("one epoch", "constant")
"""Of any split: in evaluation, prediction, measuring for `pipegen fit`, and wherever an epoch is asked for by its number."""
REQUESTED = Form("requested batches", "queue", "step")
SERVICE = Form("workers of the tf.data service", "list", "step", derived=True, tells=True)
"""Runs on machines that have TensorFlow and nothing of this process: a batch with a damaged record is made by the trainer, which knows what
to do about it."""
EXPORTED = Form("export", "list", "step")
SHOWN = Form("preview", "list", "record")
PROBED = Form("records tried one by one", "list", "record")
"""For `validate --data`."""
SERVED = Form("serving", "request", "batch", numbered=False)
"""A function of a request rather than a dataset. It holds nothing and draws nothing, so that a file can hold it."""


def forms_of(plan: logical.Plan) -> tuple[Form, ...]:
    """Returns the forms in which a plan is run, the usual one first."""
    device = next((n.device for n in plan.nodes if isinstance(n, logical.Prefetch)), None)
    epochs = (TRAINING, FIXED) if plan.split == "train" else (FIXED,)
    usual = (epochs[0].bare(device), *epochs[1:]) if device else epochs
    served = (SERVED,) if plan.emit.output.y is None and not plan.index.draws and plan.split != "train" else ()
    return (*(form for whole in usual for form in (whole, whole.built_on())), REQUESTED, SERVICE, EXPORTED, SHOWN, PROBED, *served)
