"""From a plan to a `tf.data.Dataset`: one method for each node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend import guard
from pipegen.backend.budget import threads
from pipegen.backend.cache import MemoryCache
from pipegen.backend.draws import Draws
from pipegen.backend.kernels import lower_kernel
from pipegen.backend.lower import Features, apply_element
from pipegen.backend.order import Order, make_order
from pipegen.errors import InternalError
from pipegen.plan.nodes import Batch, Cache, Element, Emit, Index, Kernel, Plan, Prefetch, Read, Shard, Shuffle

if TYPE_CHECKING:
    from pipegen.backend.guard import Quarantine
    from pipegen.backend.records import Records
    from pipegen.plan.nodes import Node
    from pipegen.spec.models import PipelineSpec
    from pipegen.types import ElementType


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
    """

    plan: Plan
    spec: PipelineSpec
    records: Records
    shard: tuple[int, int] = (0, 1)
    quarantine: Quarantine | None = None
    place: str = ""
    advice: str = "leave it out"


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
        self.tensors = job.records.tensors()
        self.draws = Draws(spec.seed, index.draws)
        self._kernels: dict[int, Callable[[Features], Features]] = {}

    @cached_property
    def cache(self) -> MemoryCache:
        """The memory cache, made when the first dataset needs it."""
        node = next(n for n in self.plan.nodes if isinstance(n, Cache))
        return MemoryCache(node.out, len(self.job.records))

    @property
    def steps(self) -> int:
        """Steps in an epoch."""
        return self.order.steps

    def batches(self, epochs: tf.data.Dataset, *, name_damaged: bool = False) -> tf.data.Dataset:
        """The batches of some epochs, one after another.

        Args:
            epochs: Elements `(epoch, first step)`, int64 scalars.
            name_damaged: Guard each record, so that a failure names its file whatever is built on the dataset.

        Returns:
            Elements `(epoch, step, batch)`, where `batch` is what the model receives.
        """
        run = _Run(self, name_damaged)
        ds = epochs
        for node in self.plan.nodes:
            ds = run.node(ds, node)
        return ds

    def kernel(self, node: Kernel, entry: ElementType) -> Callable[[Features], Features]:
        """The lowered kernel of a node, compiled once."""
        if id(node) not in self._kernels:
            batch = self.order.local_batch
            self._kernels[id(node)] = lower_kernel(node, entry, batch, self.job.spec.runtime.jit)
        return self._kernels[id(node)]

    def compute(self, nodes: list[Read | Element]) -> Callable[[tf.Tensor, tf.Tensor], Features]:
        """A function from a record and its draws to its features, through Read and Element nodes."""

        def run(record: tf.Tensor, draws: tf.Tensor) -> Features:
            features: Features = {"@record": record, "@draws": draws}
            for node in nodes:
                self.element(node, features)
            return {name: features[name] for name, _ in nodes[-1].out.items()}

        return run

    def element(self, node: Read | Element, features: Features) -> None:
        """Run a node on one example, in place."""
        if isinstance(node, Read):
            features.update(self.read(features["@record"], node.out))
            return
        for stage in node.stages:
            apply_element(stage, features)
        for name, t in node.out.items():
            features[name].set_shape(t.shape)

    def read(self, record: tf.Tensor, out: ElementType) -> Features:
        """The stored features of one record."""
        features: Features = {}
        for name, t in out.items():
            features[name] = self.tensors.read(record) if t.kind == "encoded" else self.label(record)
        return features

    def label(self, record: tf.Tensor) -> tf.Tensor:
        """The class index of records."""
        if self.tensors.labels is None:
            raise InternalError("a label was asked of unlabelled records")
        return tf.gather(self.tensors.labels, record)


class _Run:
    """One walk along the nodes, with what the nodes so far have settled."""

    def __init__(self, executor: Executor, name_damaged: bool) -> None:
        self.x = executor
        self.job = executor.job
        nodes = executor.plan.nodes
        self.shuffle = next((n for n in nodes if isinstance(n, Shuffle)), None)
        self.sharded = executor.plan.index.shard or any(isinstance(n, Shard) for n in nodes)
        self.cached = any(isinstance(n, Cache) for n in nodes)
        self.guarded = name_damaged or executor.job.quarantine is not None
        self.pending: list[Read | Element] = []
        self.entry: ElementType = nodes[0].out
        self.threads = threads(executor.job.spec.runtime)

    def node(self, ds: tf.data.Dataset, node: Node) -> tf.data.Dataset:
        """Extend the dataset by one node."""
        match node:
            case Index():
                ds = self.index(ds, node)
            case Read() | Element():
                ds = self.element(ds, node)
            case Shuffle():
                ds = self.hold_and_shuffle(self.flush(ds))
            case Shard():
                ds = self.flush(ds).filter(_plain(self._is_ours))
            case Cache():
                ds = self.fill_cache(ds)
            case Batch():
                ds = self.batch(self.flush(ds), node)
            case Kernel():
                kernel = self.x.kernel(node, self.entry)
                ds = plain_map(ds, kernel, self.threads if node.parallel else None)
            case Emit():
                ds = plain_map(ds, lambda f: self.emit(f, node))
            case Prefetch():
                ds = ds.prefetch(2) if node.device is None else ds.prefetch(1)
        self.entry = node.out
        return ds

    def index(self, ds: tf.data.Dataset, node: Index) -> tf.data.Dataset:
        """Each epoch's steps, each step's records and draws, one by one."""
        x = self.x
        shard = self.job.shard if node.shard else (0, 1)
        order = Order(**(x.order.__dict__ | {"shard": shard, "kind": self.shuffle.order if self.shuffle else node.order}))
        if self.shuffle is not None and self.shuffle.window_bytes:
            window = max(1, int(self.shuffle.window_bytes / max(self.job.records.mean_bytes, 1.0)))
            order = Order(**(order.__dict__ | {"window": window}))

        def named(epoch: tf.Tensor, slot: tf.Tensor) -> Features:
            cycle, position, weight = order.at(epoch, slot)
            record = order.records(cycle, position)
            full = tf.zeros_like(slot) + epoch
            return {"@epoch": full, "@slot": slot, "@record": record, "@draws": x.draws(x.tensors, record, cycle), "@weight": weight}

        def step(epoch: tf.Tensor, number: tf.Tensor) -> Features:
            low, high = order.block(number)
            return named(epoch, number * order.batch + tf.range(low, high, dtype=tf.int64))

        def whole(epoch: tf.Tensor, first: tf.Tensor) -> Features:
            last = x.steps * order.batch
            if order.remainder == "keep" and order.epoch_steps is None:
                last = order.num_examples
            features = named(epoch, tf.range(first * order.batch, last, dtype=tf.int64))
            stored = tf.argsort(features["@record"], stable=True)
            return {k: tf.gather(v, stored) for k, v in features.items()}

        if self.shuffle is not None:
            return plain_map(ds, whole).unbatch()
        steps = tf.constant(x.steps, tf.int64)
        numbered = ds.flat_map(_plain(lambda epoch, first: plain_map(tf.data.Dataset.range(first, steps), lambda s: (epoch, s))))
        return plain_map(numbered, step).unbatch()

    def element(self, ds: tf.data.Dataset, node: Read | Element) -> tf.data.Dataset:
        """Collected until something else comes; guarded and cached runs must be one function."""
        self.pending.append(node)
        if self.shuffle is not None and isinstance(node, Read):
            return self.flush(ds, final=False)
        return ds

    def flush(self, ds: tf.data.Dataset, final: bool = True) -> tf.data.Dataset:
        """Map the collected nodes."""
        nodes, self.pending = self.pending, []
        if not nodes:
            return ds
        parallel = any(isinstance(n, Element) and n.parallel for n in nodes)
        calls = self.threads if parallel else None
        if self.guarded and final and isinstance(nodes[0], Read):
            return plain_map(ds, lambda f: self._guard(f, nodes), calls)
        if any(isinstance(n, Element) for n in nodes) and not parallel:
            for node in nodes:
                ds = plain_map(ds, lambda f, node=node: self._each(f, [node]))
            return ds
        return plain_map(ds, lambda f: self._each(f, nodes), calls)

    def _each(self, features: Features, nodes: list[Read | Element]) -> Features:
        features = dict(features)
        for node in nodes:
            self.x.element(node, features)
        return features

    def _guard(self, features: Features, nodes: list[Read | Element]) -> Features:
        x, out = self.x, nodes[-1].out
        compute = x.compute(nodes)
        if self.job.quarantine is None:
            paths = tf.constant(list(self.job.records.paths))
            return guard.name_damaged(compute, features, out, tf.gather(paths, features["@record"]), f"{self.job.place}; {self.job.advice}")

        def draw(record: tf.Tensor, cycle: tf.Tensor) -> tf.Tensor:
            return x.draws(x.tensors, record[None], cycle[None], occurrence=1)[0]

        def alternates(epoch: tf.Tensor, slot: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return x.order.alternates(epoch, slot, guard.MAX_TRIES)

        return guard.replace_damaged(compute, features, out, alternates, draw, self.job.quarantine)

    def fill_cache(self, ds: tf.data.Dataset) -> tf.data.Dataset:
        """Compute what is missing; the values themselves are gathered once a batch."""
        nodes, self.pending = self.pending, []
        x = self.x

        def fill(features: Features) -> Features:
            def compute() -> Features:
                if self.guarded:
                    return self._guard(features, nodes)
                return x.compute(nodes)(features["@record"], features["@draws"])

            done = dict(features)
            done["@record"] = x.cache.fill(features["@record"], compute)
            return done

        parallel = any(isinstance(n, Element) and n.parallel for n in nodes)
        return plain_map(ds, fill, self.threads if parallel else None)

    def batch(self, ds: tf.data.Dataset, node: Batch) -> tf.data.Dataset:
        """Stack, and gather from the cache where there is one."""
        size = self.x.order.local_batch if self.sharded else node.size
        full = node.remainder in ("drop", "pad") or self.x.order.epoch_steps is not None
        ds = ds.batch(size, drop_remainder=full)
        if not self.cached:
            return ds
        x = self.x

        def gather(features: Features) -> Features:
            values = x.cache.gather(features["@record"])
            for name, t in node.out.items():
                if t.kind == "label" and name not in features:
                    values[name] = x.label(features["@record"])
            return features | values

        return plain_map(ds, gather, self.threads)

    def hold_and_shuffle(self, ds: tf.data.Dataset) -> tf.data.Dataset:
        """Hold every example of an epoch, and put them in the order of their slots."""
        order = self.x.order
        held = self.x.steps * order.batch
        if order.remainder == "keep" and order.epoch_steps is None:
            held = order.num_examples

        def sort(features: Features) -> Features:
            by_slot = tf.argsort(features["@slot"], stable=True)
            return {k: tf.gather(v, by_slot) for k, v in features.items()}

        return plain_map(ds.batch(held), sort).unbatch()

    def _is_ours(self, features: Features) -> tf.Tensor:
        """Whether an example is in this host's block of its global batch."""
        order = self.x.order
        step = features["@slot"] // order.batch
        low, high = order.block(step)
        row = features["@slot"] - step * order.batch
        return tf.logical_and(row >= low, row < high)

    def emit(self, features: Features, node: Emit) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """Arrange a batch as the model takes it, with its epoch and step in front."""
        output = node.output
        epoch = features["@epoch"][0]
        step = features["@slot"][0] // self.x.order.batch
        parts: list[Any] = [_arrange(output.x, features)]
        padded = self.x.plan.batch.remainder == "pad" and self.x.order.epoch_steps is None
        if output.y is not None:
            parts.append(_arrange(output.y, features))
            weight = features[output.sample_weight] if output.sample_weight else None
            if padded:
                weight = features["@weight"] if weight is None else tf.cast(weight, tf.float32) * features["@weight"]
            if weight is not None:
                parts.append(weight)
        return epoch, step, tuple(parts) if len(parts) > 1 else parts[0]


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it is: our code is written as graphs, and AutoGraph would only slow the tracing and complain."""
    return tf.autograph.experimental.do_not_convert(function)


def plain_map(ds: tf.data.Dataset, function: Callable[..., Any], calls: int | None = None) -> tf.data.Dataset:
    """`Dataset.map` in order, on `calls` threads, without AutoGraph."""
    return ds.map(_plain(function), num_parallel_calls=calls, deterministic=None if calls is None else True)


def _arrange(wanted: str | list[str] | dict[str, str], features: Features) -> Any:
    if isinstance(wanted, str):
        return features[wanted]
    if isinstance(wanted, dict):
        return {key: features[name] for key, name in wanted.items()}
    return tuple(features[name] for name in wanted)
