"""Translation of a physical plan into a `tf.data.Dataset`, node by node. The plan has made all decisions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.features import Features
from pipegen.backend.index import combined_groups
from pipegen.backend.index.bucketed_order import BucketedOrder
from pipegen.backend.index.draws import STANDS_IN
from pipegen.backend.index.order import START, From, window_size
from pipegen.backend.process.devices import ANY_THREADS, make_options
from pipegen.backend.process.traced_functions import Traced, available, map_and_stack, plain, plain_flat_map, plain_map, plain_unbatch
from pipegen.backend.reading import damage
from pipegen.backend.reading.graph_caches import fill, fill_all
from pipegen.backend.reading.manifest_columns import columns_captured
from pipegen.backend.reading.split_records import files_of
from pipegen.backend.running import chunks
from pipegen.backend.running.damaged_record import place_of_decode
from pipegen.backend.running.execute import Executor
from pipegen.backend.running.requests import WEIGHT, batch_of, chained, each
from pipegen.errors import InternalError
from pipegen.kept import COLUMNS, kept_folder
from pipegen.physical import nodes as p
from pipegen.physical.decide import decide
from pipegen.types import ElementType

if TYPE_CHECKING:
    from pipegen.backend.datasets.progress import Progress


_PREPARED = "@prepared/"  # prefix of the names of parameters for a device
_INDEXED = ("@draws", "@epoch", "@slot", "@record", "@member", "@own", "@bucket", "@step", WEIGHT)  # what kernels read beside features


class Run:
    """The datasets and functions of one physical plan.

    Profiles show the plan's names: each operation has its own, a map that also stacks has both, and each function is a name scope.
    """

    def __init__(
        self,
        executor: Executor,
        plan: p.Physical,
        progress: Progress | None = None,
        receive: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], Features] | None = None,
    ) -> None:
        self.x = executor
        self.plan = plan
        self.progress = progress
        self.receive = receive  # the features of a batch that a worker has sent, by epoch, step and `(origin, shift)`

    def dataset(self, ds: tf.data.Dataset, *, hands_over: bool = False) -> tf.data.Dataset:
        """Makes numbered batches from start positions; with `hands_over`, the delivered batches from numbered ones."""
        with columns_captured(kept_folder(self.x.spec.runtime.cache, COLUMNS)) if self.plan.form.derived else nullcontext():
            todo = [(name, operation) for name, operation in self.plan.named() if p.hands_over(operation) == hands_over]
            while todo:
                name, operation = todo.pop(0)
                if isinstance(operation, p.Map) and todo and isinstance(stack := todo[0][1], p.Stack):
                    functions = self._traced(operation.functions, ds.element_spec)
                    name = f"{name}_{todo.pop(0)[0]}"
                    ds = map_and_stack(ds, functions, operation.threads, stack.size, full=stack.full, name=name)
                else:
                    ds = self.operation(ds, operation, name)
        return ds

    def one(self) -> Callable[..., Features]:
        """Returns the function of the only map of a plan, not traced."""
        (functions,) = (operation.functions for operation in self.plan.operations if isinstance(operation, p.Map))
        return chained(functions, self.function)

    def operation(self, ds: tf.data.Dataset, operation: p.Operation, name: str) -> tf.data.Dataset:
        """Extends the dataset by one operation."""
        match operation:
            case p.Steps():
                return plain_flat_map(ds, self._steps, name=name)
            case p.Map():
                return plain_map(ds, self._traced(operation.functions, ds.element_spec), operation.threads, name=name)
            case p.Unbatch():
                return plain_unbatch(ds, name)
            case p.Filter():
                return ds.filter(plain(self._is_ours), name=name)
            case p.Stack():
                return ds.batch(operation.size, drop_remainder=operation.full, name=name)
            case p.Prefetch(device=str()):
                ds = ds.with_options(make_options(self.x.spec.runtime))  # nothing may come after the next
                return ds.apply(tf.data.experimental.prefetch_to_device(operation.device, operation.batches))
            case p.Prefetch():
                return ds.prefetch(operation.batches, name=name)
        return ds

    def _steps(self, epoch: tf.Tensor, first: tf.Tensor, since: tf.Tensor | None = None) -> tf.data.Dataset:
        """The steps of an epoch, each with `(origin, shift)` and the order's tensors for the whole epoch."""
        laid, end = self.x.order.laid(epoch), self.x.order.steps_of(counted_from(since))
        counted = tf.zeros([2], tf.int64) if since is None else since
        return plain_map(tf.data.Dataset.range(first, end), lambda step: (epoch, step, counted, *laid))

    def _traced(self, functions: tuple[p.Function, ...], entry: Any) -> Traced:
        """Traces the functions of a map once for all eager datasets of the executor, except for those that hold state."""
        if self.progress is not None or not tf.executing_eagerly() or any(isinstance(function, p.Receive) for function in functions):
            return Traced(chained(functions, self.function), entry)
        form = self.plan.form
        key = functions, entry, form.derived, form.tells, tf.constant(0).device  # a trace is placed on the current `tf.device`
        return self.x.traced(key, lambda: Traced(chained(functions, self.function), entry))

    def function(self, function: p.Function) -> Callable[..., Any]:  # noqa: C901 - one line for each function of a closed set
        """Lowers a function of the plan."""
        match function:
            case p.Index():
                return self._index(function)
            case p.PrefetchRemote():
                return lambda f: self.x.tensors.ahead(f, function.node.out)
            case p.Draw():
                return partial(self._draw, buckets=function.buckets)
            case p.SwitchBucket():
                return self._choose(function)
            case p.Fill():
                return lambda f: chunks.filled(f, function.size)
            case p.Cut():
                return lambda f: chunks.cut(f, function.chunk, full=function.full)
            case p.Examples() if function.chunk > 1:
                of = self.plan.plan.batch.out if self.plan.plan.buckets else None
                if function.guard in ("none", "mark"):
                    each_of = chunks.each_marked if function.guard == "mark" else chunks.each
                    return lambda f: each_of(f, function.nodes, self.x, function.chunk, of)
                one, out = self._one(function), of or function.nodes[-1].out
                return lambda f: chunks.guarded(f, one, function.chunk, out)
            case p.Examples():
                return self._one(function)
            case p.MapRequest():
                return each(function.nodes, self.plan.plan.read)
            case p.FillCache():
                cache, compute, at_once = self.x.cache, self._one(function.examples), function.at_once
                if at_once is None:
                    return lambda f: f | {"@record": fill(cache, f["@record"], lambda: compute(f))}
                return lambda f: fill_all(cache, f, compute, at_once)
            case p.ReadCache():
                return self._fetch(function)
            case p.Sort():
                return _sorted
            case p.Join():
                return lambda f: chunks.joined(f, function.out, function.size, function.chunk, full=function.full)
            case p.Trim():
                return chunks.real
            case p.SetBatchSize():
                return lambda f: with_rows(f, function.rows)
            case p.Rows():
                return lambda f: f | self.x.tensors.locate(f["@record"], function.node.out, function.in_place)
            case p.Kernel():
                return self.x.kernel(function.node, function.entry, function.batch, function.depth)
            case p.Prepare():
                kernel, prefix = self.x.device_kernel(function), f"{_PREPARED}{function.number:03}/"
                return lambda f: f | {f"{prefix}{i:03}": leaf for i, leaf in enumerate(kernel.parameters(f))}
            case p.SliceOwnRows():
                return lambda f: combined_groups.own_rows(damage.all_whole(f), function.size)
            case p.Emit():
                return lambda f: (*self._numbers(f), batch_of(function, f))
            case p.SplitForDevice():
                return lambda f: self._split(f, function)
            case p.Send():
                return lambda f: self._send(f, function)
            case p.Receive():
                return self._receive
            case p.Deliver():
                return partial(self._deliver, function)

    def _index(self, index: p.Index) -> Callable[..., Features]:
        """Makes a function from an epoch and a step to the slots, records and draws of that step, or of all steps from there on."""
        x, rows = self.x, index.rows
        window = window_size(index.node.window_bytes, self.x.records.mean_bytes)
        order = replace(x.order, shard=index.shard, kind=index.node.order, window=window)
        jit = index.compiled and available()
        placed = self.plan.setting.replaces or any(isinstance(operation, p.Filter) for operation in self.plan.operations)

        def named(epoch: tf.Tensor, slot: tf.Tensor, since: From, laid: tuple[tf.Tensor, ...] = ()) -> Features:
            cycle, position, weight = order.at(epoch, slot, since)
            found = order.visits(cycle, position, laid=laid)
            full = tf.zeros_like(slot) + epoch
            draws = x.draws(x.tensors, *found, calendar=full, group=order.group(slot, since), jit=jit)
            features = {"@epoch": full, "@slot": slot, "@record": found.record, "@draws": draws, "@weight": weight}
            if placed:
                features["@since"] = tf.tile(tf.cast(tf.stack([*since]), tf.int64)[None], [tf.size(slot), 1])
            return features | {"@member": order.member(slot, since)} if index.grouped else features

        def step(epoch: tf.Tensor, number: tf.Tensor, counted: tf.Tensor | None = None, *laid: tf.Tensor) -> Features:
            since, own = counted_from(counted), {}
            if rows is not None:
                slot, own["@own"] = combined_groups.widened(order, number, rows, since, epoch)
            else:
                slot = order.slots_of(number, since, epoch)
            if isinstance(order, BucketedOrder):  # the step's: rows that complete combined groups may be of another bucket
                bucket = order.bucket_of(order.first_slot(number, epoch))
                own |= {"@bucket": tf.zeros_like(slot, tf.int32) + bucket, "@step": tf.zeros_like(slot) + number}
            with x.compiling_late(epoch, slot[0]):
                return named(epoch, slot, since, laid) | own

        def whole(epoch: tf.Tensor, first: tf.Tensor, counted: tf.Tensor | None = None) -> Features:
            since = counted_from(counted)
            if rows is not None:
                steps = tf.range(first, order.steps_of(since), dtype=tf.int64)
                slot, own = (tf.reshape(t, [-1]) for t in combined_groups.widened(order, steps, rows, since))
                features = named(epoch, slot, since) | {"@own": own, "@place": tf.range(tf.size(slot))}
            else:
                end = order.num_examples - since.origin if order.ends_short else order.steps_of(since) * order.batch
                features = named(epoch, tf.range(first * order.batch, end, dtype=tf.int64), since)
            stored = tf.argsort(features["@record"], stable=True)
            return {k: tf.gather(v, stored) for k, v in features.items()}

        return whole if index.whole else step

    def _draw(self, record: tf.Tensor, cycle: tf.Tensor, *numbers: tf.Tensor, buckets: bool) -> Features:
        """Draws for one record; `numbers` are the epoch and the number of its group, if groups share draws."""
        given = dict(zip(("calendar", "group"), (number[None] for number in numbers), strict=False))
        drawn = {"@record": record, "@draws": self.x.draws(self.x.tensors, record[None], cycle[None], **given)[0]}
        return drawn | {"@bucket": tf.cast(self.x.bucket_of(record), tf.int32)} if buckets else drawn

    def _choose(self, choose: p.SwitchBucket) -> Callable[[Features], Features]:
        """Makes a function that calls the functions of the batch's bucket."""
        made = [chained(functions, self.function) for functions in choose.functions]

        def alone(own: Callable[..., Any], features: Features) -> Features:
            # Copies, whose shapes a branch may set. Internal features of a branch stay there.
            done: Features = own({name: tf.identity(value) for name, value in features.items()})
            kept = (*features, damage.WHOLE, damage.GOOD)
            return {name: value for name, value in done.items() if name in kept or not name.startswith("@")}

        def chosen(features: Features) -> Features:
            bucket = tf.reshape(features["@bucket"], [-1])[0]
            done: Features = tf.switch_case(bucket, [partial(alone, own, features) for own in made])
            return done

        return chosen

    def _one(self, examples: p.Examples) -> Callable[[Features], Features]:
        """Makes a function that runs nodes on one example and handles damage."""
        x, compute, out = self.x, self.x.compute(examples.nodes), examples.nodes[-1].out
        if examples.guard == "none":
            return compute
        if examples.guard == "tell":
            return lambda f: {"@record": f["@record"], damage.GOOD: damage.attempt(compute, f["@record"], f["@draws"], out)[1]}
        if examples.guard == "mark":
            return lambda f: damage.mark_damaged(compute, f, out)
        if examples.guard == "name":
            advice = f"{place_of_decode(x)}; {x.damage.advice}"
            return lambda f: damage.name_damaged(compute, f, out, x.tensors.path(f["@record"]), advice)
        quarantine, files = x.damage.quarantine, files_of(x.plan.read)
        assert quarantine is not None  # noqa: S101 - records are replaced only with one

        def replaced(features: Features) -> Features:
            def draw(record: tf.Tensor, cycle: tf.Tensor, occurrence: tf.Tensor) -> tf.Tensor:
                group = x.order.group(features["@slot"], counted_from(features["@since"]))[None]
                calendar = features["@epoch"][None]
                return x.draws(x.tensors, record[None], cycle[None], occurrence[None], calendar=calendar, group=group)[0]

            def alternates(epoch: tf.Tensor, slot: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
                since = counted_from(features["@since"])
                record, cycle, occurrence = x.order.alternates(epoch, slot, damage.MAX_TRIES, since)
                return record, cycle, tf.ones_like(cycle) if occurrence is None else occurrence + STANDS_IN

            return damage.replace_damaged(compute, features, out, alternates, draw, quarantine, lambda r: x.tensors.path(r, files))

        return replaced

    def _fetch(self, fetch: p.ReadCache) -> Callable[[Features], Features]:
        """Makes a function that reads features from the cache, and those the cache leaves out from columns."""
        x, cache, compute = self.x, self.x.cache, self._one(fetch.examples)

        def gather(features: Features) -> Features:
            there = features | cache.gather(features, compute)
            beside = [(name, fetch.cache.out[name]) for name in fetch.cache.columns if name not in there]
            return there | x.tensors.read(features["@record"], ElementType(tuple(beside)))

        if fetch.whole:
            return gather
        return lambda f: {name: value[0] for name, value in gather({name: value[None] for name, value in f.items()}).items()}

    def _deliver(self, deliver: p.Deliver, *numbered: Any) -> Any:
        if deliver.notes and self.progress is not None:
            numbered = self.progress.deliver(*numbered)
        return numbered if deliver.numbered else numbered[2]

    def _is_ours(self, features: Features) -> tf.Tensor:
        """Compares an example's row with this host's block of its global batch."""
        order = self.x.order
        step = features["@slot"] // order.batch
        low, high = order.block(step, counted_from(features["@since"]))
        row = features["@slot"] - step * order.batch
        return tf.logical_and(row >= low, row < high)

    def _send(self, features: Features, send: p.Send) -> tuple[tf.Tensor, tf.Tensor, Features]:
        """Returns the epoch, the step, and what the nodes behind the Send use."""
        names = (*send.node.features, *(name for name in _INDEXED if name in features))
        return *self._numbers(features), {name: features[name] for name in names}

    def _receive(self, epoch: tf.Tensor, step: tf.Tensor, counted: tf.Tensor, *_laid: tf.Tensor) -> Features:
        if self.receive is None:
            raise InternalError("batches of workers, but no connection to them")
        return self.receive(epoch, step, counted)

    def _split(self, features: Features, send: p.SplitForDevice) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """Returns the epoch, the step, and the features of the batch with the parameters of all kernels on the device."""
        names = (*send.features, WEIGHT) if send.weighs else send.features
        prepared = tuple(features[name] for name in sorted(features) if name.startswith(_PREPARED))
        return *self._numbers(features), ({name: features[name] for name in names}, prepared)

    def _numbers(self, features: Features) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the epoch and the step of a batch. If the form reports damage, a batch with a damaged record has the step -1 - step."""
        # Rows that complete combined groups may belong to other steps.
        row = tf.argmax(features["@own"]) if "@own" in features else 0
        step = features["@step"][0] if "@step" in features else features["@slot"][row] // self.x.order.batch
        if self.plan.form.tells:
            step = tf.where(tf.reduce_all(features.get(damage.WHOLE, tf.constant(True))), step, -1 - step)
        return features["@epoch"][0], step


def counted_from(numbers: tf.Tensor | None) -> From:
    """Unpacks `(origin, shift)`, int64 `(2,)`."""
    return START if numbers is None else From(*tf.unstack(numbers))


def _sorted(features: Features) -> Features:
    by_slot = tf.argsort(features.get("@place", features["@slot"]), stable=True)
    return {k: tf.gather(v, by_slot) for k, v in features.items()}


def with_rows(features: Features, rows: int) -> Features:
    """Sets the static batch dimension of features."""
    for value in features.values():
        value.set_shape([rows, *value.shape[1:]])
    return features


def plan_elsewhere(executor: Executor, form: p.Form, *, columns: bool = True) -> p.Physical:
    """Returns the physical plan of a form for another machine: without the number of threads of this one, perhaps without columns."""
    threads = executor.setting.threads if executor.spec.runtime.threads != "auto" else ANY_THREADS
    return decide(executor.plan, form, replace(executor.setting, threads=threads, columns=columns and executor.setting.columns))


def batches_of(executor: Executor, entering: tf.data.Dataset, form: p.Form = p.FIXED) -> tf.data.Dataset:
    """Makes the batches of epochs, or of single steps: elements `(epoch, step, batch)`, where `batch` is what the model receives.

    Elements of `entering` are `(epoch, first step)`, or `(epoch, step)` for single steps, int64 scalars, optionally followed by
    `(origin, shift)`, int64 `(2,)`: see `From`. Several epochs only if every batch is full: examples are stacked across epochs.
    """
    return Run(executor, executor.physical(form)).dataset(entering)


def handed_over(executor: Executor, made: tf.data.Dataset, form: p.Form, progress: Progress | None = None) -> tf.data.Dataset:
    """Makes the delivered batches from numbered ones, the result of `batches_of`; `progress` is for a form that updates it."""
    handed = Run(executor, executor.physical(form), progress).dataset(made, hands_over=True)
    return handed if form.device is not None else handed.with_options(make_options(executor.spec.runtime))
