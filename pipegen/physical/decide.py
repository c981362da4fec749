"""The translation of a plan and a form into a physical plan, with all decisions that depend on the order of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise, takewhile

from pipegen.errors import InternalError
from pipegen.physical import nodes as p
from pipegen.physical.device import crossing, device_kernels, divided, obstacle
from pipegen.physical.extent import Extent
from pipegen.physical.physical_rules import verify
from pipegen.plan.cost import HANDED_OVER, are_replaced
from pipegen.plan.nodes import Batch, Cache, Element, Emit, Index, Kernel, Node, Plan, Prefetch, Read, Send, Shard, Shuffle
from pipegen.spec.models import PipelineSpec, received
from pipegen.types import ElementType

INDEXED_AT_ONCE = 16
"""The most steps whose records and draws are computed at a time: a mix takes some 20 µs an example, other orders 1 µs."""
FETCHED_AHEAD = 4  # steps whose records are being fetched while another one is read
ON_DEVICE = 2  # batches in transit to a device
TRIED = 32  # records that are tried between two reports of progress


def extent_of(spec: PipelineSpec, plan: Plan, examples: int, shard: tuple[int, int] = (0, 1), buckets: tuple[int, ...] = ()) -> Extent:
    """The epochs of a plan on a host with this share.

    `examples` is their number in a pass over the data, or in an epoch if they are sampled; `buckets` that of each, by default equal.
    """
    steps = None if spec.epoch == "pass" or plan.split != "train" else spec.epoch.steps
    if steps is not None and plan.index.sampled and spec.order is not None:  # each epoch is a new sample
        return Extent(steps * plan.batch.size, plan.batch.size, plan.batch.remainder, shard, None)
    stretch = spec.stretch
    begin = (0, 0) if steps is None else (stretch.first, stretch.examples)
    if plan.buckets and not buckets:
        count = len(plan.buckets)
        buckets = tuple(examples * (i + 1) // count - examples * i // count for i in range(count))
    return Extent(examples, plan.batch.size, plan.batch.remainder, shard, steps, begin=begin, buckets=buckets)


def assumed_examples(plan: Plan) -> int:
    """The number of examples of a split without data: many whole batches."""
    return plan.batch.size << 20


def last_combining(nodes: Sequence[Node]) -> Kernel | None:
    """The last kernel that combines examples."""
    return next((n for n in reversed(nodes) if isinstance(n, Kernel) and any(st.combines for st in n.stages)), None)


def widened(plan: Plan, extent: Extent) -> int | None:
    """The rows of a batch up to the last kernel that combines examples, if it is widened to whole groups."""
    return extent.widened if last_combining(plan.nodes) is not None else None


def chunk_size(batch: int, most: int) -> int:
    """The largest divisor of `batch` up to `most`."""
    return next(n for n in range(max(1, min(batch, most)), 0, -1) if batch % n == 0)


def decide(plan: Plan, form: p.Form, setting: p.Setting) -> p.Physical:
    """Translates a plan in one form; for a form that sends, the plan is one from `divided`. Raises `InternalError` if the plan does not
    have this form."""
    enter = p.Enter(form.enters, form.takes)
    if form.enters == "variable" and not form.sends and any(isinstance(n, Send) for n in plan.nodes):
        made = p.Physical(form, plan, setting, (enter, *_Choice(plan, form, setting).received()))
        verify(made)
        return made
    if plan.buckets and not form.sends:
        each = [_Choice(own, form, setting) for own in plan.buckets]
        if form.takes == "batch" or any(choice.is_together for choice in each):
            raise InternalError(f"{form.name}: examples of several buckets do not come one by one")
        for choice in each:
            choice.chunk = min(own.chunk for own in each)
        run = each[0].alone(each) if form.takes == "record" else each[0].by_bucket(each, plan.emit)
        made = p.Physical(form, plan, setting, (enter, *run))
        for number in range(len(plan.buckets)):
            verify(made.of_bucket(number))
        return made
    choice = _Choice(plan, form, setting)
    apart = choice.together if choice.is_together else choice.apart
    made = p.Physical(form, plan, setting, (enter, *{"record": choice.alone, "batch": choice.served}.get(form.takes, apart)()))
    verify(made)
    return made


def decide_forms(plan: Plan, setting: p.Setting, *, every: bool) -> list[p.Physical]:
    """Translates a plan in its usual form, or in `every` form."""
    forms = p.forms_of(plan)
    made = [decide(plan, form, setting) for form in forms[: None if every else 1]]
    own = divided(plan)
    if every and device_kernels(own, widened(plan, setting.extent)):
        made.append(decide(own, forms[0].sending(), setting))
    return made


class _Choice:
    """The decisions that concern several nodes of a plan."""

    def __init__(self, plan: Plan, form: p.Form, setting: p.Setting) -> None:
        self.plan, self.form, self.setting, self.extent = plan, form, setting, setting.extent
        nodes = plan.nodes
        self.combining = last_combining(plan.nodes)
        self.wide = widened(plan, self.extent)
        self.rows = self.wide or self.extent.local_batch
        self.full = not self.extent.ends_short or self.wide is not None  # whether every batch has `rows` rows
        self.fills = (form.single or bool(plan.index.buckets)) and not self.full  # with buckets, any batch may be the short one
        self.before = tuple(n for n in nodes if isinstance(n, (Read, Element)))
        self.kernels = tuple(n for n in nodes if isinstance(n, Kernel))
        self.shuffle = next((n for n in nodes if isinstance(n, Shuffle)), None)
        if self.shuffle is not None and form.single:
            raise InternalError(f"{form.name}: a shuffle that holds an epoch has no single steps")
        self.filters = any(isinstance(n, Shard) for n in nodes) and self.wide is None
        self.gathers = any(isinstance(n, Cache) and isinstance(after, Batch) for n, after in pairwise(nodes))
        """Whether whole batches are read from the cache."""
        alone = (Shuffle, Shard) if self.gathers else (Shuffle, Shard, Read, Element)
        self.is_together = not any(isinstance(n, alone) for n in takewhile(lambda n: not isinstance(n, Batch), nodes))
        """Whether batches are never split into examples, so that one map makes a batch from its step."""
        self.guard: p.Guard = "mark" if form.tells else "replace" if setting.replaces else "name" if form.derived else "none"
        allowed = max((n.chunk for n in nodes if isinstance(n, Element)), default=1)
        alone_in_parts = any(isinstance(n, Read) and n.parts for n in nodes)
        self.chunk = 1 if alone_in_parts else chunk_size(self.rows, allowed)
        prefetched = sum(n.batches for n in nodes if isinstance(n, Prefetch))
        # Memory is not reused by derived datasets, which may run on another machine, nor by buckets, which would need several buffers.
        self.depth = 0 if form.derived or plan.index.buckets else setting.threads + prefetched + HANDED_OVER
        self.on_device = device_kernels(plan, self.wide) if form.sends else ()
        if form.sends and not self.on_device:
            raise InternalError(f"{form.name}: {obstacle(plan)}")
        at = next(i for i, n in enumerate(nodes) if isinstance(n, (Send, Emit)))
        self.workers, self.trainers = nodes[:at], nodes[at:]
        """The nodes that run on workers of the tf.data service if the plan is divided, and in the trainer."""
        self.own = self.workers if form.sent else nodes

    # Records by themselves

    def alone(self, each: Sequence[_Choice] = ()) -> Iterator[p.Operation]:
        """Runs the nodes, with buckets those of the record's, on single examples; the form `PROBED` gives only whether that works."""
        tried = self.form is p.PROBED
        made = [p.Examples(own.before, guard="tell" if tried else "none") for own in each or [self]]
        examples = p.SwitchBucket(self.plan.index.buckets, tuple((own,) for own in made)) if each else made[0]
        draw = p.Draw(self.plan.index.num_draws, buckets=bool(each))
        yield p.Map((draw, examples), "record", self.setting.threads if tried else None)
        yield from [p.Stack(TRIED, False)] if tried else []

    # Requests

    def served(self) -> Iterator[p.Operation]:
        """Maps the examples of a request, then the request as one batch of any size."""
        functions: list[p.Function] = []
        elements = tuple(n for n in self.before if isinstance(n, Element))
        functions += [p.MapRequest(elements)] if elements else []
        for entry, node in pairwise(self.plan.nodes):
            functions += [p.Kernel(node, entry.out, 0, 0)] if isinstance(node, Kernel) else []
        yield p.Map((*functions, p.Emit(self.plan.emit, False)), "batch")

    # Batches as a whole

    def together(self) -> Iterator[p.Operation]:
        """Makes a batch from its step in one map."""
        if not self.form.single:
            yield p.Steps()
        functions: list[p.Function] = [self._index()]
        waiting: list[Read | Element] = []
        entry, batched = self.plan.nodes[0].out, False
        for node in self.own[1:]:
            match node:
                case Read() if batched:
                    # The first stage reads in place from the memory that holds an image, which a derived form does not have.
                    firsts = {} if self.form.derived else {stage.feature: stage for stage in reversed(tuple(self.plan.stages()))}
                    functions.append(p.Rows(node, tuple(name for name in node.out if name in firsts and firsts[name].from_memory)))
                case Read() | Element():
                    waiting.append(node)
                case Cache():
                    # Batches are filled in parallel; if there are fewer of them than threads, each gets several.
                    at_once = -(-self.setting.threads // max(1, min(self.setting.threads, self.extent.steps)))
                    functions.append(p.FillCache(node, self._guarded(waiting), at_once))
                case Batch():
                    batched = True
                    functions += [p.SetBatchSize(self.rows)] if self.full else []
                    functions += self._fetch(waiting) if self.gathers else []
                case Kernel():
                    functions += self._kernel(node, entry)
                case Emit():
                    functions.append(self._emit(node))
            entry = node.out
        functions += [p.Send(self._sent)] if self.form.sent else []
        yield p.Map(tuple(functions), "step", self._threads(self.own))
        yield from self._handed_over()

    # Batches of workers

    def received(self) -> Iterator[p.Operation]:
        """Takes the batches of workers, and runs what is left to the trainer."""
        yield p.Steps()
        yield p.Map((p.Receive(self._sent),), "step")
        functions: list[p.Function] = []
        for entry, node in pairwise(self.trainers):
            functions += self._kernel(node, entry.out) if isinstance(node, Kernel) else []
        yield p.Map((*functions, self._emit(self.plan.emit)), "batch", self._threads(self.trainers))
        yield from self._handed_over()

    @property
    def _sent(self) -> Send:
        """What workers send: a finished batch, unless the plan divides it."""
        first, emit = self.trainers[0], self.plan.emit
        return first if isinstance(first, Send) else Send(emit.out, received(emit.output))

    # Examples apart, then batches

    def apart(self) -> Iterator[p.Operation]:
        """Maps examples or chunks up to the batch, then batches."""
        yield from self._indexed()
        waiting: list[Read | Element] = []
        functions: list[p.Function] = []  # what one call does with a batch: with a map for each, batches would wait between them
        entry = self.plan.nodes[0].out
        for node in self.own[1:]:
            if isinstance(node, (Read, Element)):
                waiting.append(node)
                if self.shuffle is not None and isinstance(node, Read):
                    yield from self._run(waiting, "none")
                    waiting = []
            elif isinstance(node, Cache):
                fill = p.FillCache(node, self._guarded(waiting), None)
                read = () if self.gathers else (p.ReadCache(node, fill.examples, whole=False),)  # or later, for a whole batch
                yield p.Map((fill, *read), "example", self._threads(self.before))
                cached, waiting = waiting, []
            elif isinstance(node, (Shuffle, Shard, Batch)):
                yield from self._run(waiting, self.guard)
                waiting = []
                if isinstance(node, Shuffle):
                    held = self.extent.slots if self.wide is None else self.extent.steps * self.wide
                    yield from (p.Stack(held, False, held=True), p.Map((p.Sort(),), "epoch"), p.Unbatch())
                elif isinstance(node, Shard):
                    yield from [p.Filter()] if self.filters else []
                else:
                    yield self._stack()
                    functions += self._joined(entry)
                    if self.gathers:
                        yield p.Map((*functions, *self._fetch(cached)), "batch", self.setting.threads)
                        functions = []
            elif isinstance(node, Kernel):
                functions += self._kernel(node, entry)
            elif isinstance(node, Emit):
                yield from self._on_batches(functions)
                yield p.Map((self._emit(node),), "batch")
            entry = node.out
        if self.form.sent:
            yield from self._on_batches(functions)
            yield p.Map((p.Send(self._sent),), "batch")
        yield from self._handed_over()

    def _on_batches(self, functions: Sequence[p.Function]) -> Iterator[p.Map]:
        """Maps batches through functions in one call, if there are any."""
        yield from [p.Map(tuple(functions), "batch", self._threads((*self.before, *self.kernels)))] if functions else []

    def _indexed(self) -> Iterator[p.Operation]:
        """Indexes the examples of each step, or of a whole epoch, and splits them."""
        if self.shuffle is not None:
            yield from (p.Map((self._index(),), "epoch"), p.Unbatch())
            return
        ahead = self.setting.fetches and not any(isinstance(n, Cache) for n in self.plan.nodes)
        fetch = [p.PrefetchRemote(n) for n in self.plan.nodes if isinstance(n, Read) and ahead]
        shaped: list[p.Function] = [p.Fill(self.rows)] if self.fills else []
        shaped += [p.Cut(self.chunk, self.full or self.fills)] if self.chunk > 1 else []
        threads = self._threads(self.plan.nodes)
        yield from [] if self.form.single else [p.Steps()]
        # Steps do not depend on each other, so several are indexed in parallel. Records are fetched in order, and not as far ahead.
        yield p.Map((self._index(), *([] if fetch else shaped)), "step", threads and min(threads, INDEXED_AT_ONCE))
        if fetch:
            yield from (p.Map((*fetch, *shaped), "step"), p.Prefetch(FETCHED_AHEAD, steps=True))
        yield p.Unbatch()

    def _run(self, nodes: list[Read | Element], guard: p.Guard) -> Iterator[p.Map]:
        """Runs nodes on single examples; with a guard, in one function."""
        threads = self._threads(nodes)
        guard = guard if nodes and isinstance(nodes[0], Read) else "none"
        if guard == "none" and threads is None and self.chunk == 1:
            yield from (p.Map((p.Examples((node,)),), "example") for node in nodes)
        elif nodes:
            yield p.Map((p.Examples(tuple(nodes), self.chunk, guard),), "chunk" if self.chunk > 1 else "example", threads)

    def _stack(self) -> p.Stack:
        return p.Stack(self.rows // self.chunk, self.full or self.fills)

    def _joined(self, of: ElementType) -> tuple[p.Function, ...]:
        """Makes a batch of what was stacked. The next map calls these functions, too: they copy whole batches, so they run in parallel."""
        joins = (p.Join(of, self.rows, self.chunk, self.full or self.fills),) if self.chunk > 1 else ()
        return (*joins, *((p.Trim(),) if self.fills else ()))

    # Batches of one bucket each

    def by_bucket(self, each: Sequence[_Choice], emit: Emit) -> Iterator[p.Operation]:
        """As `apart`, with the functions on examples and batches chosen by the bucket; `self` is the first of `each`."""
        yield from self._indexed()
        sizes = self.plan.index.buckets
        examples = p.SwitchBucket(sizes, tuple((p.Examples(own.before, self.chunk, self.guard),) for own in each))
        yield p.Map((examples,), "chunk" if self.chunk > 1 else "example", self._threads(self.before))
        yield self._stack()
        joins = self._joined(ElementType.any_of([own.plan.batch.out for own in each]))
        kernels = [[own._kernel(n, entry.out) for entry, n in pairwise(own.plan.nodes) if isinstance(n, Kernel)] for own in each]
        batches = p.SwitchBucket(sizes, tuple(tuple(chain(*functions)) for functions in kernels))
        if any(batches.functions):
            joins = (*joins, batches)
        if joins:
            yield p.Map(joins, "batch", self._threads(self.plan.nodes))
        yield p.Map((p.Send(self._sent) if self.form.sent else p.Emit(emit, self.extent.pads),), "batch")
        yield from self._handed_over()

    # Shared

    def _index(self) -> p.Index:
        index = self.plan.index
        ordered: Index | Shuffle = self.shuffle or index
        return p.Index(
            replace(index, order=ordered.order, window_bytes=ordered.window_bytes, blocks=ordered.blocks),
            (0, 1) if self.filters else self.extent.shard,
            self.wide,
            self.combining is not None,
            self.setting.jit and self.shuffle is None and index.num_draws > 0,
            self.shuffle is not None,
        )

    def _guarded(self, nodes: list[Read | Element]) -> p.Examples:
        return p.Examples(tuple(nodes), guard=self.guard)

    def _fetch(self, nodes: list[Read | Element]) -> list[p.Function]:
        cache = next(n for n in self.plan.nodes if isinstance(n, Cache))
        return [p.ReadCache(cache, self._guarded(nodes), whole=True)]

    def _kernel(self, node: Kernel, entry: ElementType) -> list[p.Function]:
        """Translates a kernel; up to the last one that combines, a batch has the rows of whole groups."""
        if node in self.on_device:
            return [p.Prepare(node, entry, self.on_device.index(node))]
        nodes = self.plan.nodes
        before = self.combining is not None and nodes.index(node) <= nodes.index(self.combining)
        later = [n for n in self.kernels[self.kernels.index(node) + 1 :] if n not in self.on_device]
        depth = min(self.depth, self.setting.threads) if self.depth and are_replaced(node, later) else self.depth
        kernel = p.Kernel(node, entry, self.rows if before else self.extent.local_batch, depth if node.compiled else 0)
        own = node is self.combining and self.wide is not None
        return [kernel, p.SliceOwnRows(None if self.extent.ends_short else self.extent.local_batch)] if own else [kernel]

    def _emit(self, node: Emit) -> p.Emit | p.SplitForDevice:
        if not self.form.sends:
            return p.Emit(node, self.extent.pads)
        return p.SplitForDevice(node, tuple(crossing(self.plan, self.on_device)), self.extent.pads)

    def _handed_over(self) -> Iterator[p.Operation]:
        form = self.form
        yield from (p.Prefetch(n.batches) for n in self.plan.nodes if isinstance(n, Prefetch))
        # A device takes batches ahead, so the graph cannot store the position of the consumer.
        notes = form.enters == "variable" and form.device is None
        if notes or not form.numbered:
            yield p.Map((p.Deliver(notes, form.numbered),), "batch")
        if form.device is not None:
            yield p.Prefetch(ON_DEVICE, form.device)

    def _threads(self, nodes: Iterable[Node]) -> int | None:
        return self.setting.threads if any(isinstance(n, (Element, Kernel)) and n.parallel for n in nodes) else None
