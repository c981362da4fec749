"""`Engine`, the state of one spec in a process: an executor for each split, the training position, open caches, and the datasets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import tensorflow as tf

from pipegen.backend.datasets.pipeline_dataset import PipelineDataset, fixed_dataset, training_dataset
from pipegen.backend.datasets.progress import Progress
from pipegen.backend.datasets.requested import RequestedBatches
from pipegen.backend.process.devices import resolve_device
from pipegen.backend.reading import damage
from pipegen.backend.reading.graph_caches import DiskCache, MemoryCache, RowCache
from pipegen.backend.reading.mixed_records import records_of_plan
from pipegen.backend.reading.split_records import Records
from pipegen.backend.running.damaged_record import find_problem, place_of_decode
from pipegen.backend.running.execute import Executor
from pipegen.backend.service.feed import Fed, Feed
from pipegen.cache.folder import cache_folder, unusable
from pipegen.cache.store import Store, cache_key, describe_cache, open_store
from pipegen.data.buckets import epoch_counts, in_buckets
from pipegen.data.sampling import epochs_of
from pipegen.data.shares import last_batch
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Severity
from pipegen.errors import DataError, SpecError
from pipegen.lazy import uncollected
from pipegen.ops.families.combining import GROUP
from pipegen.ops.lowering.python_calls import reason
from pipegen.phases.compilation import read_once
from pipegen.phases.hosts import check_given_share, check_rest, check_share, resolve_share
from pipegen.phases.specs import BoundSpec
from pipegen.physical.decide import last_combining
from pipegen.physical.extent import Position
from pipegen.physical.nodes import IN_PLACE
from pipegen.plan.nodes import Cache, Plan, Prefetch
from pipegen.spec.spec_hash import spec_hash
from pipegen.waiting import WATCHERS, for_monitor


class Shared:
    """State that the engines of all stages of a training share.

    A cache in memory lives as long as the executor of a stage holds it, so finished stages free their memory.
    """

    def __init__(self) -> None:
        with tf.init_scope():
            self.progress = Progress(None)
        self.stores: dict[str, Store] = {}
        self._caches: WeakValueDictionary[tuple[str, ...], MemoryCache] = WeakValueDictionary()

    def cache(self, key: tuple[str, ...], make: Callable[[], MemoryCache]) -> MemoryCache:
        """Returns the cache of a key; makes it on first use."""
        found = self._caches.get(key)
        if found is None:
            found = self._caches[key] = make()
        return found


_monitor = for_monitor()
if _monitor is not None:
    WATCHERS.append(_monitor)


class Engine:
    """The half of a `Pipeline` that needs TensorFlow; runs the plans of one spec on its data. `validate --data` uses it alone.

    All parts are made once, on first use, for all threads.

    Args:
        bound: The spec and its data.
        plans: An optimised plan for each split.
        shared: State shared with the other stages of the training.
        verifies: Whether to compare checksums of records that reading normally skips.
    """

    def __init__(self, bound: BoundSpec, plans: Mapping[str, Plan], shared: Shared | None = None, *, verifies: bool = False) -> None:
        self._verifies = verifies
        self.spec = spec = bound.spec.model
        self.manifest = bound.manifest
        self.where = bound.spec.where
        self._plans = plans
        self._locate = bound.spec.loaded.locate.label
        self._executors: dict[tuple[str, tuple[int, int], bool, bool], Executor] = {}
        self._datasets: dict[tuple[str, bool], PipelineDataset] = {}
        self._shared = shared
        self._stores: dict[str, Store] = {} if shared is None else shared.stores
        self._requested: dict[str, RequestedBatches] = {}
        self._feeds: dict[int, Feed] = {}
        self._lock = threading.RLock()
        self.shard = resolve_share(spec.runtime).pair
        check_share(spec, self.shard[1], self._locate)
        self.progress: Progress | None = None

    def executor(self, split: str, shard: tuple[int, int] | None = None, *, moved: bool = False, unlayered: Plan | None = None) -> Executor:
        """Returns the executor of one split on one host, by default of the spec's share; makes it on first use.

        With `moved`, it is for epochs begun with another batch size, whose blocks are not aligned to groups of combined examples.
        `unlayered` is a plan without the steps that a layer of the model does, which is compiled once and without a cache.
        """
        key = (split, shard or self.shard, moved, unlayered is not None)
        with self._once():
            if key not in self._executors:
                self._check_last_batch(self._plans[split], key[1])
                plan = self._plans[split] if unlayered is None else read_once(self.spec, unlayered, self.manifest)
                usual = self.executor(split, shard) if moved and unlayered is None else None
                self._executors[key] = self.executor_of(plan, split, key[1], moved=moved, beside=usual)
            return self._executors[key]

    def _check_last_batch(self, plan: Plan, shard: tuple[int, int]) -> None:
        counts = epoch_counts(self.spec, self.manifest, plan.split)
        found = (one for examples in counts for one in last_batch(self.spec, plan.split, examples, shard[1], self._locate))
        if errors := [finding for finding in found if finding.severity is Severity.ERROR]:
            raise SpecError(errors)

    def check_last(self, split: str, at: Position) -> None:
        """Checks that the rest of an epoch has the same number of steps on every host. Raises `SpecError`: `PG412` if not."""
        check_rest(split, self.executor(split).order, at, self._locate)

    def executors(self) -> tuple[Executor, ...]:
        """Returns all executors of whole plans made so far."""
        return tuple(executor for (*_, is_unlayered), executor in list(self._executors.items()) if not is_unlayered)

    @contextmanager
    def _once(self) -> Iterator[None]:
        """Makes shared state in one thread, and eagerly: tensors of one function's graph are out of scope in the next."""
        with self._lock, tf.init_scope(), uncollected():
            yield

    def executor_of(
        self,
        plan: Plan,
        split: str,
        shard: tuple[int, int] = (0, 1),
        quarantine: damage.Quarantine | None = None,
        *,
        moved: bool = False,
        beside: Executor | None = None,
    ) -> Executor:
        """Makes the executor of any plan, on the records of a split.

        With `moved`, it is for epochs begun with another batch size. `beside` is another executor of the same plan, whose quarantine and
        cache it shares.
        """
        records, skip = records_of_plan(self.manifest, split, plan, self.spec.runtime), self.spec.errors.skip
        if self._verifies:
            records = replace(records, reader=records.reader.verifying())
        if quarantine is None and skip is not None and split == "train":
            quarantine = damage.Quarantine.of(records, plan.read, skip) if beside is None else beside.damage.quarantine
        return Executor(
            plan,
            self.spec,
            records,
            shard,
            damage=damage.Treatment(quarantine, self.where, damage.advice(split, skips=quarantine is not None)),
            epochs=epochs_of(self.spec, self.manifest) if plan.index.sampled and not plan.index.parts else None,
            cache=partial(self._cache, plan, split, records) if beside is None else lambda _: beside.cache,
            buckets=in_buckets(self.spec, self.manifest, split) if plan.buckets else None,
            anywhere=moved,
        )

    def _cache(self, plan: Plan, split: str, records: Records, node: Cache) -> RowCache:
        """Makes the cache of a plan; stages of a training that cache the same in memory share one."""
        if not node.kind.in_memory:
            return DiskCache(self.store(plan), self.manifest.numbers(split), records.paths, records.files(plan.read))
        make = partial(MemoryCache, node, len(records), records.features)
        if self._shared is None:
            return make()
        return self._shared.cache((cache_key(self.spec, plan, self.manifest), split, *node.out), make)

    def store(self, plan: Plan) -> Store:
        """Returns the cache on disk of a plan, opened once for all splits that share it. Raises `SpecError`: `PG417` if it can be neither
        made nor read."""
        folder = cache_folder(self.spec)
        about = describe_cache(self.spec, plan, self.manifest)
        with self._lock:
            if about.key not in self._stores:
                try:
                    self._stores[about.key] = open_store(folder, about)
                except OSError as error:
                    raise SpecError([unusable(folder, error, self._locate)]) from None
            return self._stores[about.key]

    def train_progress(self) -> Progress:
        """Returns the training position."""
        with self._once():
            if self.progress is None:
                whole = self._shared.progress if self._shared is not None else None
                self.progress = Progress(self.executor("train").order, self.spec.stretch, whole)
            return self.progress

    def dataset(self, split: str, *, sends: bool = False) -> PipelineDataset:
        """Returns the dataset of a split, the same object each time; with `sends` the last kernels are left to a device."""
        with self._once():
            key = split, sends
            if key not in self._datasets:
                executor = self.executor(split)
                device = self._device(executor.plan)
                if split != "train":
                    self._datasets[key] = fixed_dataset(executor, device=device, sends=sends)
                    return self._datasets[key]

                def other() -> tuple[Executor, Feed | None]:
                    moved = self.executor("train", moved=True)
                    return moved, self._feed(moved)

                feed, combines = None if sends else self._feed(executor), last_combining(executor.plan.nodes) is not None
                given = executor, self.train_progress(), device, other if combines else None, feed
                self._datasets[key] = training_dataset(*given, sends=sends)
            return self._datasets[key]

    def _feed(self, executor: Executor) -> Feed | None:
        """Returns the feed that has other machines make the batches of an executor, if the spec names a service."""
        service = self.spec.runtime.service
        if service is None:
            return None
        key = id(executor)
        if key not in self._feeds:
            here = RequestedBatches(executor, IN_PLACE)
            self._feeds[key] = Feed(executor, service, here.at, here.element_spec, f"pipegen-{spec_hash(self.spec)[:12]}")
        return self._feeds[key]

    def fed(self) -> Fed:
        """Counts the training batches made by other machines and by this process."""
        counts = [vars(feed.fed) for feed in self._feeds.values()]
        return Fed(**{name: sum(count[name] for count in counts) for name in vars(Fed())})

    def fixed(
        self,
        split: str,
        at: Position,
        shard: tuple[int, int] | None,
        device: str | None,
        *,
        sends: bool = False,
        unlayered: Plan | None = None,
    ) -> PipelineDataset:
        """Makes a dataset of one epoch from a position on, without a variable; see `fixed_dataset`.

        For `unlayered` see `executor`. Raises `ValueError` for an unknown share or device."""
        if shard is not None:
            check_given_share(self.spec, shard)
        plan = self._plans[split] if unlayered is None else unlayered
        moved = bool(at.origin % GROUP) and last_combining(plan.nodes) is not None  # groups are not aligned to batches as usual
        with self._once():
            executor = self.executor(split, shard, moved=moved, unlayered=unlayered)
            return fixed_dataset(executor, at, resolve_device(device) if device else None, sends=sends)

    def requested(self, split: str) -> RequestedBatches:
        """Returns the random access to batches of a split, the same object each time."""
        with self._once():
            if split not in self._requested:
                self._requested[split] = RequestedBatches(self.executor(split))
            return self._requested[split]

    def order_of(self, split: str, epoch: int) -> np.ndarray[Any, Any]:
        """Returns the record numbers of one epoch in their order: int64 `(examples,)`."""
        order = self.executor(split).order
        slots = order.delivered(epoch) if order.buckets else tf.range(order.num_examples, dtype=tf.int64)
        return order.found(epoch, slots).record.numpy()

    def device(self, split: str, given: str | None) -> str | None:
        """Returns the device to prefetch the batches of a split to: the given one, `none` for none, else the spec's. Raises `SpecError`:
        `PG105` if the spec's device does not exist."""
        if given is None:
            return self._device(self.executor(split).plan)
        return None if given == "none" else given

    def _device(self, plan: Plan) -> str | None:
        last = plan.nodes[-1]
        if not isinstance(last, Prefetch) or not last.device:
            return None
        try:
            return resolve_device(last.device)
        except ValueError as error:
            raise SpecError([make("PG105", str(error), self._locate(("runtime", "prefetch", "device")))]) from None

    def problem(self, split: str, record: int, epoch: int, error: Exception) -> DataError:
        """Describes a record that could not be decoded on its own."""
        executor = self.executor(split)
        found = find_problem(executor, record, epoch)
        if found is None:  # an epoch's window may end before the damage
            where, advice = f"{executor.records.locate(record)}{place_of_decode(executor)}", executor.damage.advice
            found = f"cannot decode {where}: {reason(error)}; {advice}"
        return DataError(found)
