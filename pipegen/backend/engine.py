"""Everything that runs for one spec: an executor for each split, the progress of training, and the datasets."""

from __future__ import annotations

import json
import os
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.datasets.pipeline_dataset import PipelineDataset, fixed_dataset, training_dataset
from pipegen.backend.datasets.progress import Progress
from pipegen.backend.datasets.requested import RequestedBatches
from pipegen.backend.reading import damage
from pipegen.backend.reading.guard import Quarantine
from pipegen.backend.reading.records import files_of, records_from
from pipegen.backend.running.execute import Executor, Job
from pipegen.cache.key import describe_cache
from pipegen.cache.room import cache_folder, unusable
from pipegen.cache.store import open_store
from pipegen.diagnostics.advice import write
from pipegen.diagnostics.catalog import make
from pipegen.errors import DataError, SpecError
from pipegen.garbage import uncollected
from pipegen.plan.nodes import Prefetch
from pipegen.spec.models import ShardIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np

    from pipegen.backend.datasets.derived import Translate
    from pipegen.cache.store import Store
    from pipegen.data.manifest import Manifest
    from pipegen.plan.build import Locate
    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import PipelineSpec, Runtime


class Engine:
    """Runs the compiled plans of one spec on its data.

    Args:
        spec: The spec.
        plans: An optimised plan for each split; called when the split is first used.
        manifest: The data.
        locate: Finds the place of a key path, for messages.
    """

    def __init__(self, spec: PipelineSpec, plans: Callable[[str], Plan], manifest: Manifest, locate: Locate) -> None:
        self.spec = spec
        self.manifest = manifest
        self._plans = plans
        self._locate = locate
        self._executors: dict[tuple[str, tuple[int, int]], Executor] = {}
        self._datasets: dict[str, PipelineDataset] = {}
        self._stores: dict[str, Store] = {}
        self._requested: dict[str, RequestedBatches] = {}
        self._lock = threading.RLock()
        self.shard = resolve_shard(spec.runtime)
        problem = self._odd_shard(self.shard)
        if problem is not None:
            raise SpecError([make("PG412", problem, locate(("batch", "size")), help=(f"use a multiple of {self.shard[1]}",))])
        self.progress: Progress | None = None

    def executor(self, split: str, shard: tuple[int, int] | None = None) -> Executor:
        """The executor of one split on one host, made on first use."""
        key = (split, shard or self.shard)
        with self._once():
            if key not in self._executors:
                self._check_last_batch(split, key[1])
                plan = self._plans(split)
                self._executors[key] = Executor(self.job(split, plan, self._quarantine(plan), key[1]))
            return self._executors[key]

    @contextmanager
    def _once(self) -> Iterator[None]:
        """Whatever is kept is made by one thread, and eagerly: what is made for the graph of one function is out of scope in the next."""
        with self._lock, tf.init_scope(), uncollected():
            yield

    def job(self, split: str, plan: Plan, quarantine: Quarantine | None, shard: tuple[int, int] = (0, 1)) -> Job:
        """A plan on the records of a split."""
        place = damage.place_of_decode(plan, self.where)
        advice = damage.advice(split, skips=quarantine is not None)
        records = records_from(self.manifest, split, plan.read, self.spec.runtime)
        rows = partial(self.manifest.numbers, split)
        return Job(plan, self.spec, records, shard, quarantine, place, advice, partial(self.store, plan), rows)

    def store(self, plan: Plan) -> Store:
        """The cache on disk of a plan, opened once for all splits that share it.

        Raises:
            SpecError: `PG417` when it can be neither made nor read.
        """
        folder = cache_folder(self.spec)
        about = describe_cache(self.spec, plan, self.manifest)
        with self._lock:
            if about.key not in self._stores:
                try:
                    self._stores[about.key] = open_store(folder, about)
                except OSError as error:
                    raise SpecError([unusable(folder, error, self._locate)]) from None
            return self._stores[about.key]

    def _odd_shard(self, shard: tuple[int, int]) -> str | None:
        index, count = shard
        if not 0 <= index < count:
            return f"there is no share {index} of {count}: shares count from 0"
        if self.spec.batch.size % count:
            return f"a global batch of {self.spec.batch.size} does not divide among {count} hosts"
        return None

    def _quarantine(self, plan: Plan) -> Quarantine | None:
        skip = self.spec.errors.skip
        if skip is None or plan.split != "train":
            return None
        files, beside = self.manifest.files(plan.split), self.manifest.beside(plan.split)
        columns = [beside.get(name, files) for name in files_of(plan.read)] or [files]

        def path(record: int) -> str:
            return " or ".join(files[record] for files in columns)  # which of them it is, nobody has looked

        return Quarantine(path, len(files), skip.max_fraction, skip.report)

    def _check_last_batch(self, split: str, shard: tuple[int, int]) -> None:
        """Every host must get something of the last batch, or it would take fewer steps than the others."""
        rest = self.manifest.num_examples(split) % self.spec.batch.size
        if shard[1] > 1 and self.spec.batch.remainder_for(split) == "keep" and 0 < rest < shard[1]:
            message = f"the last batch of split `{split}` has {rest} examples, fewer than the {shard[1]} hosts"
            lines = f"batch: {{remainder: {{{split}: pad}}}}"
            help_ = (write(lines, "spec", "use {}, so that every host takes the same number of steps"),)
            raise SpecError([make("PG412", message, self._locate(("batch",)), help=help_)])

    def train_progress(self) -> Progress:
        """Returns where the training split stands."""
        with self._once():
            if self.progress is None:
                self.progress = Progress(self.executor("train").steps)
            return self.progress

    def dataset(self, split: str) -> PipelineDataset:
        """The dataset of a split, the same object each time."""
        with self._once():
            if split not in self._datasets:
                executor = self.executor(split)
                device = self._device(executor.plan)
                if split == "train":
                    self._datasets[split] = training_dataset(executor, self.train_progress(), self._translate(executor), device)
                else:
                    self._datasets[split] = fixed_dataset(executor, 0, 0, self._translate(executor), device)
            return self._datasets[split]

    def fixed(self, split: str, epoch: int, step: int, shard: tuple[int, int] | None, device: str | None) -> PipelineDataset:
        """One epoch of a split from one step on, without a variable.

        Raises:
            ValueError: For an unknown share or device.
        """
        problem = self._odd_shard(shard) if shard is not None else None
        if problem is not None:
            raise ValueError(problem)
        with self._once():
            executor = self.executor(split, shard)
            return fixed_dataset(executor, epoch, step, self._translate(executor), resolve_device(device) if device else None)

    def requested(self, split: str) -> RequestedBatches:
        """Single batches of a split, whichever are asked for; the same object each time."""
        with self._once():
            if split not in self._requested:
                executor = self.executor(split)
                self._requested[split] = RequestedBatches(executor, self._translate(executor))
            return self._requested[split]

    def order_of(self, split: str, epoch: int) -> np.ndarray[Any, Any]:
        """The examples of one epoch in their order, by where the split lists them: int64 `(examples,)`."""
        order = self.executor(split).order
        cycle, position, _ = order.at(tf.constant(epoch, tf.int64), tf.range(order.num_examples, dtype=tf.int64))
        return order.records(cycle, position).numpy()

    def _device(self, plan: Plan) -> str | None:
        last = plan.nodes[-1]
        if not isinstance(last, Prefetch) or not last.device:
            return None
        try:
            return resolve_device(last.device)
        except ValueError as error:
            raise SpecError([make("PG105", str(error), self._locate(("runtime", "prefetch", "device")))]) from None

    def where(self, path: tuple[str | int, ...]) -> str:
        """The place of a key path: `file:line:column`, or the path in words."""
        label = self._locate(path, key=True)
        return str(label.span) if label.span is not None else label.path

    def problem(self, split: str, record: int, epoch: int, error: Exception) -> DataError:
        """Returns what to say of one record that could not be decoded on its own."""
        executor = self.executor(split)
        found = damage.find_problem(executor, record, epoch, self.where)
        if found is None:  # the window that an epoch draws may lie before the damage
            job = executor.job
            found = f"cannot decode {job.records.paths[record]}{job.place}: {damage.reason(error)}; {job.advice}"
        return DataError(found)

    def _translate(self, executor: Executor) -> Translate:
        return lambda error, at: damage.explain_failure(executor, error, at, self.where)


def resolve_shard(runtime: Runtime, environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """This host's share and how many there are: what the spec says, else TensorFlow's cluster (`TF_CONFIG`)."""
    if isinstance(runtime.shard, ShardIndex):
        return runtime.shard.index, runtime.shard.count
    if runtime.shard == "none" or not environment.get("TF_CONFIG"):
        return 0, 1
    try:
        config: dict[str, Any] = json.loads(environment["TF_CONFIG"])
        cluster: dict[str, list[str]] = config.get("cluster", {})
        task: dict[str, Any] = config.get("task", {})
        chiefs, workers = cluster.get("chief", []), cluster.get("worker", [])
        count = len(chiefs) + len(workers)
        if count < 2 or task.get("type") not in ("chief", "worker"):
            return 0, 1
        offset = len(chiefs) if task["type"] == "worker" else 0
        return offset + int(task.get("index", 0)), count
    except (ValueError, TypeError, AttributeError) as error:
        help_ = ("set it as TensorFlow's multi-worker guide says", "`runtime: {shard: none}`, or an index and a count, does without it")
        raise SpecError([make("PG412", f"the variable TF_CONFIG does not describe a cluster: {error}", help=help_)]) from None


def resolve_device(device: str) -> str:
    """A TensorFlow device name; `auto` is the first accelerator, or the CPU.

    Raises:
        ValueError: When there is no such device.
    """
    if device != "auto":
        try:
            wanted = tf.DeviceSpec.from_string(device if device.startswith("/") else f"/{device}")
        except ValueError:
            raise ValueError(f"`{device}` is no device name; such as `GPU:0`") from None
        there = [tf.DeviceSpec.from_string(d.name) for d in tf.config.list_logical_devices()]
        if not any((d.device_type, d.device_index) == (wanted.device_type, wanted.device_index or 0) for d in there):
            known = ", ".join(f"{d.device_type}:{d.device_index}" for d in there)
            raise ValueError(f"there is no device `{device}`; TensorFlow sees {known}")
        return str(wanted.to_string())
    for kind in ("GPU", "TPU"):
        found = tf.config.list_logical_devices(kind)
        if found:
            return str(found[0].name)
    return "/CPU:0"


def hide_accelerators() -> None:
    """Keep TensorFlow off the GPU, which belongs to another framework; does nothing once TensorFlow has started."""
    try:
        tf.config.set_visible_devices([], "GPU")
    except RuntimeError:
        return
