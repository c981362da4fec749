"""The walk along a plan's nodes that makes a `tf.data.Dataset`: one method for each node."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.index import mixing
from pipegen.backend.index.order import Order
from pipegen.backend.kernels.lower import Features
from pipegen.backend.process import xla
from pipegen.backend.process.budget import threads
from pipegen.backend.reading import guard
from pipegen.backend.reading.cache import fill_all
from pipegen.backend.reading.records import files_of
from pipegen.backend.running import chunks
from pipegen.plan.nodes import Batch, Cache, Element, Emit, Index, Kernel, Prefetch, Read, Shard, Shuffle

if TYPE_CHECKING:
    from pipegen.backend.running.execute import Executor
    from pipegen.plan.nodes import Node
    from pipegen.types import ElementType


class Run:
    """One walk along the nodes, with what the nodes so far have settled.

    With `single`, the elements that enter name one step each, and not the rest of an epoch.
    """

    def __init__(self, executor: Executor, name_damaged: bool, *, single: bool = False) -> None:
        self.x = executor
        self.single = single
        self.job = executor.job
        nodes = executor.plan.nodes
        self.shuffle = next((n for n in nodes if isinstance(n, Shuffle)), None)
        self.filtered = any(isinstance(n, Shard) for n in nodes) and executor.wide is None
        """Whether a node behind the index keeps this host's share, rather than the index naming nothing else."""
        self.gathers = any(isinstance(n, Cache) and isinstance(after, Batch) for n, after in pairwise(nodes))
        """Whether a batch is gathered from the cache as one."""
        self.guarded = name_damaged or executor.job.quarantine is not None
        batch = executor.plan.batch
        self.size = executor.order.local_batch
        self.full = batch.remainder in ("drop", "pad") or executor.order.epoch_steps is not None
        """Whether every batch has that size."""
        self.all_full = self.full or executor.wide is not None
        """Whether every batch has one size, be it that of whole mix groups."""
        self.filled = single and not self.all_full
        """Whether a batch with fewer examples is filled up until it is stacked: it would take those of the next step. Otherwise only the
        last batch of all can have fewer."""
        self.pending: list[Read | Element] = []
        self.missing: Callable[[Features], Features]
        """Computes one example that a cache has not; set where there is a cache."""
        alone = (Shuffle, Shard) if self.gathers else (Shuffle, Shard, Read, Element)
        self.together = not any(isinstance(n, alone) for n in takewhile(lambda n: not isinstance(n, Batch), nodes))
        """Whether batches are never taken apart: then one function makes a batch out of the number of its step."""
        self.chain: list[Callable[..., Any]] = []
        self.entry: ElementType = nodes[0].out
        self.threads = threads(executor.job.spec.runtime)
        self.chunk = self._chunk()
        """How many examples of a batch one call of the element stage works on."""
        self.reuses = not name_damaged
        """Whether batches take the memory of earlier ones. What is derived from a dataset may run on another machine, where the
        variables of this process are not."""

    def _chunk(self) -> int:
        """The most that the plan allows and that a batch is a multiple of; 1 where each record is looked after by itself."""
        allowed = max((n.chunk for n in self.x.plan.nodes if isinstance(n, Element)), default=1)
        return 1 if self.guarded else chunks.size(self.x.wide or self.size, allowed)

    def node(self, ds: tf.data.Dataset, node: Node) -> tf.data.Dataset:
        """Extend the dataset by one node."""
        match node:
            case Index():
                ds = self.index(ds, node)
            case Read() if self.together and not self.gathers:
                self.chain.append(lambda f: f | self.x.read(f["@record"], node.out))
            case Read() | Element():
                ds = self.element(ds, node)
            case Shuffle():
                ds = self.hold_and_shuffle(self.flush(ds))
            case Shard():
                ds = self.flush(ds).filter(_plain(self._is_ours)) if self.filtered else self.flush(ds)
            case Cache():
                ds = self.fill_cache(ds, node)
            case Batch() if self.together:
                self.chain.append(lambda f: self.stacked(f, node.out))
            case Batch():
                ds = self.batch(self.flush(ds), node)
            case Kernel():
                ds = self.kernel(ds, node)
            case Emit():
                self.chain.append(lambda f: self.emit(f, node))
                parallel = self.together and any(isinstance(n, (Kernel, Element)) and n.parallel for n in self.x.plan.nodes)
                ds = plain_map(ds, self.whole_batch, self.threads if parallel else None)
            case Prefetch():
                ds = ds.prefetch(node.batches)
        self.entry = node.out
        return ds

    def kernel(self, ds: tf.data.Dataset, node: Kernel) -> tf.data.Dataset:
        """Work on whole batches; the last kernel that mixes examples leaves this host's own."""
        kernel = self.x.kernel(node, self.entry, reuses=self.reuses)
        if node is self.x.mixing and self.x.wide is not None:
            kernel = mixing.then_own_rows(kernel, self.size if self.full else None)
        if self.together:
            self.chain.append(kernel)
            return ds
        return plain_map(ds, kernel, self.threads if node.parallel else None)

    def index(self, ds: tf.data.Dataset, node: Index) -> tf.data.Dataset:
        """Each epoch's steps, each step's records and draws, one by one."""
        x = self.x
        shard = (0, 1) if self.filtered else self.job.shard
        order = Order(**(x.order.__dict__ | {"shard": shard, "kind": self.shuffle.order if self.shuffle else node.order}))
        if self.shuffle is not None and self.shuffle.window_bytes:
            window = max(1, int(self.shuffle.window_bytes / max(self.job.records.mean_bytes, 1.0)))
            order = Order(**(order.__dict__ | {"window": window}))

        jit = self.shuffle is None and self.job.spec.runtime.jit != "never" and xla.available()

        def named(epoch: tf.Tensor, slot: tf.Tensor) -> Features:
            cycle, position, weight = order.at(epoch, slot)
            record = order.records(cycle, position, jit=jit)
            full = tf.zeros_like(slot) + epoch
            draws = x.draws(x.tensors, record, cycle, calendar=full, jit=jit)
            features = {"@epoch": full, "@slot": slot, "@record": record, "@draws": draws, "@weight": weight}
            return features if x.mixing is None else features | {"@member": slot < mixing.limit(order)}

        def step(epoch: tf.Tensor, number: tf.Tensor) -> Features:
            if x.wide is not None:
                slot, own = mixing.widened(order, number, x.wide)
                return named(epoch, slot) | {"@own": own}
            low, high = order.block(number)
            return named(epoch, number * order.batch + tf.range(low, high, dtype=tf.int64))

        def whole(epoch: tf.Tensor, first: tf.Tensor) -> Features:
            if x.wide is not None:
                slot, own = (tf.reshape(t, [-1]) for t in mixing.widened(order, tf.range(first, x.steps, dtype=tf.int64), x.wide))
                features = named(epoch, slot) | {"@own": own, "@place": tf.range(tf.size(slot))}
            else:
                last = order.num_examples if order.remainder == "keep" and order.epoch_steps is None else x.steps * order.batch
                features = named(epoch, tf.range(first * order.batch, last, dtype=tf.int64))
            stored = tf.argsort(features["@record"], stable=True)
            return {k: tf.gather(v, stored) for k, v in features.items()}

        if self.shuffle is not None:
            return plain_map(ds, whole).unbatch()
        steps = tf.constant(x.steps, tf.int64)
        rest = _plain(lambda epoch, first: plain_map(tf.data.Dataset.range(first, steps), lambda s: (epoch, s)))
        numbered = ds if self.single else ds.flat_map(rest)
        if self.together:
            self.chain.append(step)
            return numbered

        def rows(epoch: tf.Tensor, number: tf.Tensor) -> Features:
            features = chunks.filled(step(epoch, number), self.size) if self.filled else step(epoch, number)
            return chunks.cut(features, self.chunk, full=self.all_full or self.filled) if self.chunk > 1 else features

        return plain_map(numbered, rows).unbatch()

    def whole_batch(self, *given: Any) -> Any:
        """All that was put off until the batch is whole."""
        made = self.chain[0](*given)
        for function in self.chain[1:]:
            made = function(made)
        return made

    def stacked(self, features: Features, out: ElementType) -> Features:
        """A batch that the index has named as one, with what a cache has of it; its size is known where every batch has the same."""
        if self.all_full:
            for value in features.values():
                value.set_shape([self.x.wide or self.size, *value.shape[1:]])
        return self._gather(features, out) if self.gathers else features

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
        if any(isinstance(n, Element) for n in nodes) and not parallel and self.chunk == 1:
            for node in nodes:
                ds = plain_map(ds, lambda f, node=node: self._each(f, [node]))
            return ds
        return plain_map(ds, lambda f: self._each(f, nodes), calls)

    def _each(self, features: Features, nodes: list[Read | Element]) -> Features:
        if self.chunk > 1:
            return chunks.each(features, nodes, self.x.read_each, self.x.element, self.chunk)
        features = dict(features)
        for node in nodes:
            self.x.element(node, features)
        return features

    def _guard(self, features: Features, nodes: list[Read | Element]) -> Features:
        x, out = self.x, nodes[-1].out
        compute = x.compute(nodes)
        if self.job.quarantine is None:
            path = x.tensors.path(features["@record"])
            return guard.name_damaged(compute, features, out, path, f"{self.job.place}; {self.job.advice}")

        def draw(record: tf.Tensor, cycle: tf.Tensor) -> tf.Tensor:
            return x.draws(x.tensors, record[None], cycle[None], occurrence=1, calendar=features["@epoch"][None])[0]

        def alternates(epoch: tf.Tensor, slot: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return x.order.alternates(epoch, slot, guard.MAX_TRIES)

        files = files_of(x.plan.read) or ("",)
        return guard.replace_damaged(
            compute, features, out, alternates, draw, self.job.quarantine, lambda record: x.tensors.path(record, files)
        )

    def fill_cache(self, ds: tf.data.Dataset, node: Cache) -> tf.data.Dataset:
        """Compute what is missing. The values themselves are gathered once a batch, unless single examples are worked on first."""
        nodes, self.pending = self.pending, []
        x, cache = self.x, self.x.cache  # made here, since what is made while a function is traced belongs to that function

        def compute(features: Features) -> Features:
            if self.guarded:
                return self._guard(features, nodes)
            return x.compute(nodes)(features["@record"], features["@draws"])

        def fill(features: Features) -> Features:
            done = features | {"@record": cache.fill(features["@record"], lambda: compute(features))}
            if self.gathers:
                return done
            one = self._gather({name: value[None] for name, value in done.items()}, node.out)
            return {name: value[0] for name, value in one.items()}

        self.missing = compute
        if self.together:
            # Batches are filled side by side; where there are fewer of them than threads, each takes more of these.
            at_once = -(-self.threads // max(1, min(self.threads, x.steps)))
            self.chain.append(lambda f: fill_all(cache, f, compute, at_once))
            return ds
        parallel = any(isinstance(n, Element) and n.parallel for n in nodes)
        return plain_map(ds, fill, self.threads if parallel else None)

    def _gather(self, features: Features, out: ElementType) -> Features:
        """Examples with their features from the cache, and those that it does not hold, since they are at hand."""
        values = self.x.cache.gather(features, self.missing)
        for name, t in out.items():
            if t.indexed and name not in features:
                values[name] = self.x.tensors.indexed(name, features["@record"])
        return features | values

    def batch(self, ds: tf.data.Dataset, node: Batch) -> tf.data.Dataset:
        """Stack, and gather from the cache where there is one."""
        size, full = self.x.wide or self.size, self.all_full or self.filled
        if self.chunk > 1:
            of = self.entry
            chunked = ds.batch(size // self.chunk, drop_remainder=full)
            ds = plain_map(chunked, lambda f: chunks.joined(f, of, size, self.chunk, full=full))
        else:
            ds = ds.batch(size, drop_remainder=full)
        ds = plain_map(ds, chunks.real) if self.filled else ds
        return plain_map(ds, lambda f: self._gather(f, node.out), self.threads) if self.gathers else ds

    def hold_and_shuffle(self, ds: tf.data.Dataset) -> tf.data.Dataset:
        """Hold every example of an epoch, and put them in the order of their slots."""
        order = self.x.order
        held = self.x.steps * (self.x.wide or order.batch)
        if order.remainder == "keep" and order.epoch_steps is None and self.x.wide is None:
            held = order.num_examples

        def sort(features: Features) -> Features:
            by_slot = tf.argsort(features.get("@place", features["@slot"]), stable=True)
            return {k: tf.gather(v, by_slot) for k, v in features.items()}

        return plain_map(ds.batch(held), sort).unbatch()

    def _is_ours(self, features: Features) -> tf.Tensor:
        """Returns whether an example is in this host's block of its global batch."""
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
