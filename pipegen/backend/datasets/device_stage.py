"""A split in two parts: the batches of the host, and the kernels that an accelerator runs on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pipegen.arguments import share, text
from pipegen.backend.datasets.distributed import DistributedBatches
from pipegen.backend.datasets.owner import Owner
from pipegen.backend.datasets.pipeline_dataset import PipelineDataset
from pipegen.backend.features import Features
from pipegen.backend.process.traced_functions import available
from pipegen.backend.running.requests import batch_of
from pipegen.ops.families.combining import GROUP
from pipegen.physical import nodes as p
from pipegen.physical.device import device_kernels, obstacle
from pipegen.physical.extent import FIRST
from pipegen.private.functions import untraced


@untraced
class DeviceStage:
    """A split as features and parameters, from which kernels on a device compute the batches of `pipe.dataset`.

    The features are the inputs of the first kernel on the device, mostly uint8 images. The parameters are a few numbers an example, drawn
    on the host. So fewer bytes go to the accelerator, and its kernels cost the host no time.

    Raises:
        ValueError: If no step can run on a device.
    """

    def __init__(self, pipe: Owner, split: str) -> None:
        self._pipe, self._split = pipe._at(split), split
        engine = self._pipe._engine
        executor = engine.executor(split)
        if split == "train" and pipe.spec.model.runtime.service is not None:
            raise ValueError(
                "the workers of `runtime: {service: …}` make complete batches, which leaves no step for a device: use one of the two"
            )
        if not available():
            raise ValueError("a device stage needs XLA; this TensorFlow is built without")
        if not device_kernels(executor.divided, executor.wide):
            raise ValueError(f"no step of split `{split}` can run on a device: {obstacle(executor.divided)}")
        plan = executor.physical(p.FIXED.sending())
        self._kernels = [executor.device_kernel(f) for f in plan.functions if isinstance(f, p.Prepare)]
        self._send = next(f for f in plan.functions if isinstance(f, p.SplitForDevice))
        self._combines = any(stage.combines for f in plan.functions if isinstance(f, p.Prepare) for stage in f.node.stages)

    @property
    def batches(self) -> PipelineDataset:
        """`(features, params)` of the split, epoch by epoch, as with `pipe.train`, with which it shares the position."""
        return self._pipe._engine.dataset(self._split, sends=True)

    def dataset(
        self,
        *,
        epoch: int = 0,
        step: int = 0,
        origin: int = 0,
        shift: int = 0,
        shard: tuple[int, int] | None = None,
        device: str | None = None,
    ) -> PipelineDataset:
        """Makes a dataset of one epoch from one step on, like `pipe.dataset`, whose elements are `(features, params)`.

        `features` is a dict of tensors `(n, ...)`, the inputs of the kernels on the device; `params` is a tuple of tensors `(n, ...)`.
        Raises `ValueError` for an unknown epoch, step, share or device."""
        pipe = self._pipe
        at = pipe._position(self._split, epoch, step, origin, shift)
        where = None if device is None else text("device", device, "GPU:0")
        return pipe._engine.fixed(self._split, at, share(shard), where, sends=True)

    def distribute(self, strategy: tf.distribute.Strategy) -> DistributedBatches:
        """Distributes `(features, params)` among the replicas of a strategy, like `pipe.distribute`. Raises `ValueError` as
        `pipe.distribute`; and if replicas would get parts of groups of combined examples."""
        size, replicas = self._pipe.spec.model.batch.size, strategy.num_replicas_in_sync
        if self._combines and size % (GROUP * replicas):
            raise ValueError(
                f"examples are combined on the device in groups of {GROUP}, into which {size} examples on {replicas} replicas do not "
                f"divide: make `batch.size` a multiple of {GROUP * replicas}, or use `pipe.distribute(strategy)`"
            )
        return DistributedBatches(self._pipe, self._split, strategy, sends=True)

    def apply(self, features: Features, params: Sequence[tf.Tensor]) -> Any:
        """Computes a batch for the model from an element of `dataset`, or from a part of it: whole groups of 8 if examples are combined.

        Each kernel is a program of XLA, or part of the surrounding program inside of a function that XLA compiles. It draws no random
        numbers. Raises `ValueError` within `strategy.run`, for a part that is not a whole number of groups of combined examples."""
        context, rows = tf.distribute.get_replica_context(), next(iter(features.values())).shape[0]
        is_part = self._combines and context is not None and context.num_replicas_in_sync > 1
        if is_part and rows is not None and rows % GROUP:
            raise ValueError(f"examples are combined in groups of {GROUP}, into which {rows} examples on a replica do not divide")
        given, done = list(params), dict(features)
        for kernel in self._kernels:
            done = kernel.apply(done, given[: kernel.count])
            given = given[kernel.count :]
        return batch_of(self._send, done)

    @property
    def element_spec(self) -> Any:
        """Shapes and dtypes of `(features, params)`."""
        return self._pipe._engine.fixed(self._split, FIRST, None, None, sends=True).element_spec

    def bytes_per_example(self) -> int:
        """Counts the bytes of one example sent to the device, with parameters, without strings and tensors of unknown size."""
        return sum((t.shape[1:].num_elements() or 0) * t.dtype.size for t in tf.nest.flatten(self.element_spec) if t.dtype != tf.string)

    def __len__(self) -> int:
        return self._pipe.steps(self._split)

    def __repr__(self) -> str:
        kernels = f"{len(self._kernels)} kernel{'s' if len(self._kernels) > 1 else ''}"
        return f"<DeviceStage of {self._split}: {kernels}, {self.bytes_per_example():,} bytes an example>"
