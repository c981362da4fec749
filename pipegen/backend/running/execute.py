"""From a plan to a `tf.data.Dataset`: what a plan needs to run, and what its datasets share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.backend.index import mixing
from pipegen.backend.index.draws import Draws
from pipegen.backend.index.order import Order, make_order
from pipegen.backend.kernels.branches import apply_branch
from pipegen.backend.kernels.chain import lower_kernel
from pipegen.backend.kernels.lower import Features, Found, apply_element
from pipegen.backend.kernels.reuse import Reuse
from pipegen.backend.process.budget import threads
from pipegen.backend.reading.cache import MemoryCache
from pipegen.backend.reading.columns import columns_captured
from pipegen.backend.reading.disk_cache import DiskCache
from pipegen.backend.running.walk import Run
from pipegen.errors import InternalError
from pipegen.plan.nodes import Cache, Element, Kernel, Plan, Prefetch, Read
from pipegen.plan.stages import Branch
from pipegen.types import ElementType

if TYPE_CHECKING:
    from pipegen.backend.reading.guard import Quarantine
    from pipegen.backend.reading.records import Records
    from pipegen.cache.store import Store
    from pipegen.ops.sources.strings import Ints
    from pipegen.spec.models import PipelineSpec

_HANDED_OVER = 2
"""Batches that are neither being computed nor prefetched: one is on its way, one is with the user."""


@dataclass(frozen=True)
class Job:
    """A plan, and what it needs to run.

    Attributes:
        plan: The plan of one split.
        spec: The spec, for the seed, the epoch and the runtime section.
        records: The split's records.
        shard: Which share of each global batch, and of how many.
        quarantine: Where damaged records are noted, when they are to be replaced.
        place: Added to the message of a damaged record in a derived dataset: the step that decodes, in brackets.
        advice: What a user can do about a damaged record.
        store: Opens the cache on disk of a plan that has one.
        rows: The row of each record in it.
    """

    plan: Plan
    spec: PipelineSpec
    records: Records
    shard: tuple[int, int] = (0, 1)
    quarantine: Quarantine | None = None
    place: str = ""
    advice: str = "leave it out"
    store: Callable[[], Store] | None = None
    rows: Ints | Sequence[int] = ()


class Executor:
    """Builds datasets for one job. Constants, caches and compiled kernels are made once and shared by them all."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.plan = job.plan
        spec, index, batch = job.spec, job.plan.index, job.plan.batch
        self.order: Order = make_order(
            index,
            num_examples=len(job.records),
            batch=batch.size,
            remainder=batch.remainder,
            shard=job.shard,
            epoch_steps=None if spec.epoch == "pass" or job.plan.split != "train" else spec.epoch.steps,
            seed=spec.seed,
            mean_bytes=job.records.mean_bytes,
        )
        self.mixing = next((n for n in reversed(self.plan.nodes) if isinstance(n, Kernel) and mixing.mixes(n)), None)
        """The last kernel that mixes examples."""
        self.wide = mixing.width(self.order) if self.mixing is not None else None
        """The rows that a batch has up to there, where its block is widened to whole groups."""
        self.tensors = job.records.tensors()
        self.draws = Draws(spec.seed, index.draws, scheduled=index.scheduled)
        self._kernels: dict[tuple[int, bool], Callable[[Features], Features]] = {}

    @cached_property
    def reuse(self) -> Reuse:
        """Returns how many batches are in use at a time: those that kernels make, those that wait, and those handed over."""
        prefetched = sum(n.batches for n in self.plan.nodes if isinstance(n, Prefetch))
        return Reuse(threads(self.job.spec.runtime) + prefetched + _HANDED_OVER, self.order.batch)

    @cached_property
    def cache(self) -> MemoryCache | DiskCache:
        """The cache, made when the first dataset needs it."""
        node = next(n for n in self.plan.nodes if isinstance(n, Cache))
        if not node.disk:
            return MemoryCache(node.out, len(self.job.records))
        if self.job.store is None:
            raise InternalError("a plan has a cache on disk, and its job opens none")
        records = self.job.records
        return DiskCache(self.job.store(), self.job.rows, records.paths, records.files(self.plan.read))

    @property
    def steps(self) -> int:
        """Steps in an epoch."""
        return self.order.steps

    def batches(self, epochs: tf.data.Dataset, *, name_damaged: bool = False) -> tf.data.Dataset:
        """The batches of some epochs, one after another.

        Args:
            epochs: Elements `(epoch, first step)`, int64 scalars. More than one only where every batch is full: examples are
                stacked across the end of an epoch.
            name_damaged: Guard each record, so that a failure names its file whatever is built on the dataset.

        Returns:
            Elements `(epoch, step, batch)`, where `batch` is what the model receives.
        """
        # What is derived from a dataset names its damaged records, and may run elsewhere.
        with columns_captured() if name_damaged else nullcontext():
            return self._walked(Run(self, name_damaged), epochs)

    def single_batches(self, steps: tf.data.Dataset) -> tf.data.Dataset:
        """The batches of some steps, wherever they are.

        Args:
            steps: Elements `(epoch, step)`, int64 scalars.

        Returns:
            Elements `(epoch, step, batch)`.
        """
        return self._walked(Run(self, False, single=True), steps)

    def _walked(self, run: Run, ds: tf.data.Dataset) -> tf.data.Dataset:
        for node in self.plan.nodes:
            ds = run.node(ds, node)
        return ds

    def kernel(self, node: Kernel, entry: ElementType, *, reuses: bool = False) -> Callable[[Features], Features]:
        """The lowered kernel of a node, compiled once; `reuses` says whether its results take the memory of earlier ones."""
        key = id(node), reuses
        if key not in self._kernels:
            nodes = self.plan.nodes
            mixed = self.mixing is None or nodes.index(node) > nodes.index(self.mixing)
            batch = self.order.local_batch if mixed or self.wide is None else self.wide
            self._kernels[key] = lower_kernel(node, entry, batch, self.job.spec.runtime.jit, self.reuse if reuses else None)
        return self._kernels[key]

    def branch(self, stage: Branch) -> Callable[[Features], Features]:
        """The lowered kernel of a branch, for a batch of one, compiled once."""
        key = id(stage), False
        if key not in self._kernels:
            entry = ElementType(((stage.feature, stage.entry),), 1)
            with tf.init_scope():  # it is asked for while a map is traced
                self._kernels[key] = lower_kernel(Kernel(entry, (stage.stage,), True), entry, 1, self.job.spec.runtime.jit)
        return self._kernels[key]

    def compute(self, nodes: list[Read | Element]) -> Callable[[tf.Tensor, tf.Tensor], Features]:
        """A function from a record and its draws to its features, through Read and Element nodes."""

        def run(record: tf.Tensor, draws: tf.Tensor) -> Features:
            features: Features = {"@record": record, "@draws": draws}
            for node in nodes:
                self.element(node, features)
            return {name: features[name] for name, _ in nodes[-1].out.items()}

        return run

    def element(self, node: Read | Element, features: Features, found: Mapping[str, Found] | None = None) -> None:
        """Run a node on one example, in place; `found` has what surveys of several examples say of this one, by feature."""
        if isinstance(node, Read):
            features.update(self.read(features["@record"], node.out))
            return
        for stage in node.stages:
            if isinstance(stage, Branch) and stage.compiled:
                apply_branch(stage, features, self.branch(stage))
            else:
                apply_element(stage, features, (found or {}).get(stage.feature))
        for name, t in node.out.items():
            features[name].set_shape(t.shape)

    def read_each(self, records: tf.Tensor, out: ElementType, count: int) -> dict[str, list[tf.Tensor]]:
        """The stored features of `count` records, one by one: what each is looked up by is gathered for all at once."""
        each: dict[str, list[tf.Tensor]] = {}
        for name, t in out.items():
            if t.kind == "encoded":
                each[name] = self.tensors.read_each(name, records, count)
            elif t.indexed:
                each[name] = tf.unstack(self.tensors.indexed(name, records), num=count)
            else:
                each[name] = [self.tensors.take(name, record) for record in tf.unstack(records, num=count)]
        return each

    def read(self, record: tf.Tensor, out: ElementType) -> Features:
        """The stored features of one record; where no record is a file, also of records `(n,)` at once."""
        features: Features = {}
        for name, t in out.items():
            if t.kind == "encoded":
                features[name] = self.tensors.read(name, record)
            else:
                features[name] = (self.tensors.indexed if t.indexed else self.tensors.take)(name, record)
        return features
