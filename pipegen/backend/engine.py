"""Everything that runs for one spec: an executor for each split, the progress of training, and the datasets."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend import damage
from pipegen.backend.datasets import PipelineDataset, Progress, fixed_dataset, training_dataset
from pipegen.backend.execute import Executor, Job
from pipegen.backend.guard import Quarantine
from pipegen.backend.records import Records
from pipegen.diagnostics.catalog import make
from pipegen.errors import DataError, SpecError
from pipegen.plan.nodes import Prefetch
from pipegen.spec.models import ShardIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipegen.backend.datasets import Translate
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
        self.shard = resolve_shard(spec.runtime)
        if spec.batch.size % self.shard[1]:
            message = f"a global batch of {spec.batch.size} does not divide among {self.shard[1]} hosts"
            raise SpecError([make("PG412", message, locate(("batch", "size")), help=(f"use a multiple of {self.shard[1]}",))])
        self.progress: Progress | None = None

    def executor(self, split: str, shard: tuple[int, int] | None = None) -> Executor:
        """The executor of one split on one host, made on first use."""
        key = (split, shard or self.shard)
        if key not in self._executors:
            self._check_last_batch(split, key[1])
            plan, quarantine = self._plans(split), self._quarantine(split)
            remedy = f"{damage.place_of_decode(plan, self._where)}; {damage.advice(split, skips=quarantine is not None)}"
            self._executors[key] = Executor(Job(plan, self.spec, records_from(self.manifest, split), key[1], quarantine, remedy))
        return self._executors[key]

    def _quarantine(self, split: str) -> Quarantine | None:
        skip = self.spec.errors.skip
        if skip is None or split != "train":
            return None
        return Quarantine(self.manifest.files(split), skip.max_fraction, skip.report)

    def _check_last_batch(self, split: str, shard: tuple[int, int]) -> None:
        """Every host must get something of the last batch, or it would take fewer steps than the others."""
        rest = self.manifest.num_examples(split) % self.spec.batch.size
        if shard[1] > 1 and self.spec.batch.remainder_for(split) == "keep" and 0 < rest < shard[1]:
            message = f"the last batch of split `{split}` has {rest} examples, fewer than the {shard[1]} hosts"
            help_ = (f"use `batch: {{remainder: {{{split}: pad}}}}`, so that every host takes the same number of steps",)
            raise SpecError([make("PG412", message, self._locate(("batch",)), help=help_)])

    def train_progress(self) -> Progress:
        """Where the training split stands."""
        if self.progress is None:
            self.progress = Progress(self.executor("train").steps)
        return self.progress

    def dataset(self, split: str) -> PipelineDataset:
        """The dataset of a split, the same object each time."""
        if split not in self._datasets:
            executor = self.executor(split)
            device = self._device(executor.plan)
            if split == "train":
                self._datasets[split] = training_dataset(executor, self.train_progress(), self._translate(executor), device)
            else:
                self._datasets[split] = fixed_dataset(executor, 0, 0, self._translate(executor), device)
        return self._datasets[split]

    def fixed(self, split: str, epoch: int, step: int, shard: tuple[int, int] | None, device: str | None) -> PipelineDataset:
        """One epoch of a split from one step on, without a variable."""
        executor = self.executor(split, shard)
        return fixed_dataset(executor, epoch, step, self._translate(executor), resolve_device(device) if device else None)

    def _device(self, plan: Plan) -> str | None:
        last = plan.nodes[-1]
        return resolve_device(last.device) if isinstance(last, Prefetch) and last.device else None

    def _where(self, path: tuple[str | int, ...]) -> str:
        label = self._locate(path, key=True)
        return str(label.span) if label.span is not None else label.path

    def problem(self, split: str, record: int, epoch: int, error: Exception) -> DataError:
        """What to say of one record that could not be decoded on its own."""
        executor = self.executor(split)
        found = damage.find_problem(executor, record, epoch, self._where)
        if found is None:  # the window that an epoch draws may lie before the damage
            place = damage.place_of_decode(executor.plan, self._where)
            help_ = damage.advice(split, skips=executor.job.quarantine is not None)
            found = f"cannot decode {executor.job.records.paths[record]}{place}: {damage.reason(error)}; {help_}"
        return DataError(found)

    def _translate(self, executor: Executor) -> Translate:
        return lambda error, at: damage.explain_failure(executor, error, at, self._where)


def records_from(manifest: Manifest, split: str) -> Records:
    """The records of a split."""
    return Records(manifest.files(split), manifest.ids(split), manifest.labels(split), manifest.mean_bytes(split))


def resolve_shard(runtime: Runtime, environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """This host's share and how many there are: what the spec says, else TensorFlow's cluster (`TF_CONFIG`)."""
    if isinstance(runtime.shard, ShardIndex):
        return runtime.shard.index, runtime.shard.count
    if runtime.shard == "none" or not environment.get("TF_CONFIG"):
        return 0, 1
    config: dict[str, Any] = json.loads(environment["TF_CONFIG"])
    cluster: dict[str, list[str]] = config.get("cluster", {})
    task: dict[str, Any] = config.get("task", {})
    chiefs, workers = cluster.get("chief", []), cluster.get("worker", [])
    count = len(chiefs) + len(workers)
    if count < 2 or task.get("type") not in ("chief", "worker"):
        return 0, 1
    offset = len(chiefs) if task["type"] == "worker" else 0
    return offset + int(task.get("index", 0)), count


def resolve_device(device: str) -> str:
    """A TensorFlow device name; `auto` is the first accelerator, or the CPU."""
    if device != "auto":
        return device if device.startswith("/") else f"/{device}"
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
