"""`Executor`, which runs a plan and holds the state that all its datasets share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any

import tensorflow as tf

from pipegen.backend.features import Features, Found
from pipegen.backend.index.bucketed_order import BucketedOrder
from pipegen.backend.index.draws import Draws
from pipegen.backend.index.interleaving import Counts, MixedOrder
from pipegen.backend.index.order import Order, window_size
from pipegen.backend.kernels.chain import DeviceKernel, lower_kernel
from pipegen.backend.kernels.lower import apply_branch, apply_element
from pipegen.backend.kernels.reuse import Reuse
from pipegen.backend.process.traced_functions import Traced, available
from pipegen.backend.reading.damage import Treatment, shaped
from pipegen.backend.reading.graph_caches import RowCache
from pipegen.backend.reading.manifest_columns import Column
from pipegen.backend.reading.mixed_records import MixedRecords, MixedTensors
from pipegen.backend.reading.sampled import PacedTensors, sampled
from pipegen.backend.reading.split_records import Records, RecordTensors
from pipegen.data.buckets import InBuckets
from pipegen.data.rounding import part_seed
from pipegen.data.sampling import Epochs
from pipegen.data.shares import USUAL
from pipegen.errors import InternalError
from pipegen.memory import threads
from pipegen.ops.lowering.graphs import long_run, meanwhile, plain_jpegs
from pipegen.ops.stage import Stage
from pipegen.physical.decide import decide, extent_of, widened
from pipegen.physical.device import divided
from pipegen.physical.extent import Extent
from pipegen.physical.facts import scopes
from pipegen.physical.nodes import Form, Physical, Prepare, Setting
from pipegen.plan.nodes import Cache, Element, Index, Kernel, Plan, Read
from pipegen.plan.stages import Branch
from pipegen.spec.models import PipelineSpec
from pipegen.types import ElementType
from pipegen.waiting import Waiting

LATE = 1 << 16  # examples after which a run is long: XLA takes 0.4 s for small functions, and saves some 6 us an example


class Executor:
    """Runs a plan on the records of a split, for one host, and holds the state that all its datasets share. Each dataset is a `Run`.

    Args:
        plan: The plan of one split.
        spec: The spec, for the seed, the epoch and the runtime section.
        records: The split's records.
        shard: The share of each global batch, and the number of shares.
        damage: What happens to damaged records.
        epochs: The sampled examples of an epoch, for a plan that samples.
        cache: Makes the cache of the plan.
        buckets: The bucket of each record, for a plan with buckets.
        anywhere: Whether it is for epochs begun with another batch size. Any executor is if its plan combines no examples.
    """

    def __init__(
        self,
        plan: Plan,
        spec: PipelineSpec,
        records: Records,
        shard: tuple[int, int] = (0, 1),
        *,
        damage: Treatment,
        epochs: Epochs | None = None,
        cache: Callable[[Cache], RowCache] | None = None,
        buckets: InBuckets | None = None,
        anywhere: bool = False,
    ) -> None:
        if (buckets is None) != (not plan.buckets):
            raise InternalError("the plan has buckets, but the record-to-bucket assignment is missing")
        self.plan, self.spec, self.records, self.damage = plan, spec, records, damage
        self.waiting = Waiting(plan.split)
        self._scopes = scopes(plan)
        self._make_cache = cache
        index, chosen = plan.index, None if epochs is None else sampled(epochs)
        self.buckets, counts = buckets, () if buckets is None else buckets.counts
        examples = records.epoch_examples if chosen is None else chosen.size
        extent = replace(extent_of(spec, plan, examples, shard, counts), anywhere=anywhere)
        held, reader, jit = records.in_shards, records.reader, spec.runtime.jit != "never"
        columns = held is None or held.selected.bitmap is not None
        python, replaces = reader.python(records.features, records.ram_budget), damage.quarantine is not None
        self.setting = Setting(extent, threads(spec.runtime), jit, replaces, python, columns, reader.keeps, reader.fetches)
        self.order = replace(order_of(extent, index, records, spec.seed, buckets), sampled=chosen)
        self.steps = self.order.steps  # steps in an epoch
        self.wide = widened(plan, self.order)
        """Rows of a batch up to the last kernel that combines examples, if its block is widened to whole groups."""
        self.tensors = MixedTensors(records) if isinstance(records, MixedRecords) else RecordTensors(records)
        self.draws = Draws(spec.seed, index)
        self._plain_files = records.plain_files(plan.read)
        self._kernels: dict[tuple[int, bool], Callable[[Features], Features]] = {}
        self._device_kernels: dict[int, DeviceKernel] = {}
        self._traced: list[tuple[object, Traced]] = []
        self.idle: list[Any] | None = None  # the finished iterator over single epochs, to be reused; `None` before the first dataset of one

    @cached_property
    def cache(self) -> RowCache:
        """The cache, made when the first dataset needs it."""
        node = next(n for n in self.plan.nodes if isinstance(n, Cache))
        if self._make_cache is None:
            raise InternalError(f"a plan has a cache {node.kind.where}, but no function to open it")
        return self._make_cache(node)

    @cached_property
    def bucket_of(self) -> Column:
        """The bucket of each record."""
        assert self.buckets is not None  # noqa: S101 - read only with buckets
        return Column(self.buckets.of)

    def plan_of(self, record: int) -> Plan:
        """Returns the plan of a single record: with buckets, that of the record's bucket."""
        return self.plan if self.buckets is None else self.plan.buckets[int(self.buckets.of[record])]

    def physical(self, form: Form) -> Physical:
        """Returns the physical plan of a form."""
        return decide(self.divided if form.sends else self.plan, form, self.setting)

    @cached_property
    def divided(self) -> Plan:
        """The plan with kernels split into those on the host and those on a device."""
        return divided(self.plan)

    def kernel(self, node: Kernel, entry: ElementType, batch: int | None = None, depth: int = 0) -> Callable[[Features], Features]:
        """Returns the lowered kernel of a node, compiled once, for the rows of a full batch, by default this host's.

        `depth` is the number of results in use at a time, if they reuse the memory of earlier ones; else 0.
        """
        key = id(node), bool(depth)
        if key not in self._kernels:
            reuse = Reuse(depth, self.order.batch) if depth else None
            made = lower_kernel(node, entry, batch or self.order.local_batch, self.spec.runtime.jit, reuse, self.scope)

            def run(features: Features) -> Features:
                with self.compiling_late(features["@epoch"][0], features["@slot"][0]), self.scope(node):
                    return made(features)

            self._kernels[key] = run
        return self._kernels[key]

    def compiling_late(self, epoch: tf.Tensor, slot: tf.Tensor) -> AbstractContextManager[object]:
        """Sets what is compiled once a run is long, for a graph that begins at a slot of an epoch, int64 scalars."""
        if self.spec.runtime.jit == "never" or not available():
            return nullcontext()
        return meanwhile(long_run, epoch * (self.order.steps * self.order.batch) + slot >= LATE)

    def device_kernel(self, prepared: Prepare) -> DeviceKernel:
        """Returns the host half and the device half of a kernel, made once."""
        key = id(prepared.node)
        if key not in self._device_kernels:
            with tf.init_scope():  # it may be called while a training step is traced
                self._device_kernels[key] = DeviceKernel(prepared.node, prepared.entry)
        return self._device_kernels[key]

    def traced(self, key: object, trace: Callable[[], Traced]) -> Traced:
        """Returns the trace of an equal key, or makes it."""
        for known, made in self._traced:
            if known == key:
                return made
        self._traced.append((key, trace()))
        return self._traced[-1][1]

    def scope(self, part: Stage | Kernel) -> AbstractContextManager[object]:
        """Returns the name scope of a stage or a kernel, by which profiles find it."""
        return tf.name_scope(self._scopes.get(id(part), type(part).__name__.lower()))

    def branch(self, stage: Branch) -> Callable[[Features], Features]:
        """Returns the lowered kernel of a branch, for a batch of one, compiled once."""
        key = id(stage), False
        if key not in self._kernels:
            entry = ElementType(((stage.feature, stage.entry),), 1)
            with tf.init_scope():  # it is called while a map is traced
                self._kernels[key] = lower_kernel(Kernel(entry, (stage.stage,), True), entry, 1, self.spec.runtime.jit)
        return self._kernels[key]

    def compute(self, nodes: Sequence[Read | Element]) -> Callable[[Features], Features]:
        """Makes a function that runs Read and Element nodes on one example."""

        def run(features: Features) -> Features:
            done = dict(features)
            for node in nodes:
                self.element(node, done)
            return done

        return run

    def element(self, node: Read | Element, features: Features, found: Mapping[str, Found] | None = None) -> None:
        """Runs a node on one example, in place; `found` has the surveyed windows of this example, by feature."""
        with tf.name_scope(type(node).__name__.lower()):
            if isinstance(node, Read):
                features.update(self._read_of_part(node, features) if node.parts else self.tensors.read(features["@record"], node.out))
                return
            for stage in node.stages:
                with self.scope(stage), meanwhile(plain_jpegs, stage.feature in self._plain_files):
                    if isinstance(stage, Branch) and stage.compiled:
                        apply_branch(stage, features, self.branch(stage))
                    else:
                        apply_element(stage, features, (found or {}).get(stage.feature))
            shaped(features, node.out)

    def _read_of_part(self, node: Read, features: Features) -> Features:
        """Reads one record of a mix, and runs the steps of its part."""
        tensors = self.tensors
        if not isinstance(tensors, MixedTensors):
            raise InternalError("a plan of several parts was given the records of one source")

        def one(part: int, own: tf.Tensor) -> list[tf.Tensor]:
            done = dict(features)
            read, *rest = node.parts[part]
            done.update(tensors.parts[part].read(own, read.out))
            for inner in rest:
                self.element(inner, done)
            return [done[name] for name, _ in node.out.items()]

        values = dict(zip(node.out, tensors.of_part(features["@record"], one), strict=True))
        return shaped(values, node.out)

    def nodes_of(self, record: int) -> list[Read | Element]:
        """Lists the nodes that one record goes through before the batch; in a mix, those of its part."""
        found: list[Read | Element] = []
        for node in self.plan_of(record).nodes:
            if isinstance(node, Read) and node.parts and isinstance(self.records, MixedRecords):
                found += node.parts[self.records.located(record)[0]]
            elif isinstance(node, (Read, Element)):
                found.append(node)
        return found


def order_of(extent: Extent, index: Index, records: Records, seed: int, buckets: InBuckets | None = None) -> Order:
    """Makes the order of a split on one host."""
    if buckets is not None:
        return BucketedOrder(**extent.__dict__, kind=index.order, window=0, seed=seed, members=Column(buckets.members))
    if isinstance(records, MixedRecords) and records.mixture is not None:
        orders = tuple(_order_of_part(records, number, extent, index, seed) for number in range(len(records.parts)))
        counts, begins = Counts(records.mixture), tuple(records.firsts())
        return MixedOrder(**extent.__dict__, kind=index.order, window=0, seed=seed, parts=orders, counts=counts, begins=begins)
    size, kind = index.window_bytes, index.order
    if index.parts and kind != "stored" and records.reader.at_once > 1:  # only some parts of a mix may be read in blocks
        kind, size = "window", size or max(USUAL, int(records.reader.at_once * records.mean_bytes))
    blocks = None if records.blocks is None else tf.constant(records.blocks)
    records.reader.hold_window(size or 0, records.ram_budget)
    return Order(**extent.__dict__, kind=kind, window=window_size(size, records.mean_bytes), seed=seed, blocks=blocks)


def _order_of_part(records: MixedRecords, number: int, extent: Extent, index: Index, seed: int) -> Order:
    """Makes the order of the passes through one part of a mix."""
    name, part = records.names[number], records.parts[number]
    epochs = records.sampled.get(name)
    passes = Extent(len(part) if epochs is None else epochs.size, extent.batch, extent.remainder, extent.shard, None)
    order = order_of(passes, index, part, part_seed(seed, name))
    if epochs is None:
        return order
    chosen = sampled(epochs)
    if isinstance(chosen, PacedTensors):
        return replace(order, sampled=chosen, passes=chosen.found, kind="stored")
    return replace(order, sampled=chosen)
