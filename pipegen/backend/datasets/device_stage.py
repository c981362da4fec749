"""A split cut in two: what the host hands over, and what an accelerator makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.arguments import share, text
from pipegen.backend.datasets.distributed import DistributedBatches
from pipegen.backend.process.graphs import available
from pipegen.backend.running.requests import batch_of
from pipegen.lazy import untraced
from pipegen.ops.families.mixing import GROUP
from pipegen.physical import nodes as p
from pipegen.physical.device import device_kernels, obstacle
from pipegen.physical.extent import FIRST

if TYPE_CHECKING:
    from pipegen.backend.datasets.owner import Owner
    from pipegen.backend.datasets.pipeline_dataset import PipelineDataset
    from pipegen.backend.features import Features


@untraced
class DeviceStage:
    """Gives a split as features and parameters, and makes of them what `pipe.dataset` would have given.

    The features are what enters the first kernel on the device, mostly uint8 images; the parameters are a few numbers for each example,
    drawn by the host. So fewer bytes go to the accelerator, and its kernels cost the host no time.

    Args:
        pipe: The pipeline.
        split: The split.

    Raises:
        ValueError: Where no step can run on a device.
    """

    def __init__(self, pipe: Owner, split: str) -> None:
        self._pipe, self._split = pipe._at(split), split
        engine = self._pipe._engine
        executor = engine.executor(split)
        if split == "train" and pipe.spec.model.runtime.service is not None:
            said = "the workers of `runtime: {service: …}` make whole batches, so that nothing is left for a device: choose one of the two"
            raise ValueError(said)
        if not available():
            raise ValueError("a device stage is compiled by XLA, which this TensorFlow has not")
        if not device_kernels(executor.divided, executor.wide):
            raise ValueError(f"split `{split}` has nothing that a device could do: {obstacle(executor.divided)}")
        plan = executor.physical(p.FIXED.sending())
        self._kernels = [executor.device_kernel(f) for f in plan.functions if isinstance(f, p.Prepare)]
        self._send = next(f for f in plan.functions if isinstance(f, p.SplitForDevice))
        self._mixes = any(stage.mixes for f in plan.functions if isinstance(f, p.Prepare) for stage in f.node.stages)

    @property
    def batches(self) -> PipelineDataset:
        """Returns `(features, params)` of the split epoch by epoch, under the rules of `pipe.train`: they share one position."""
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
        """Returns one epoch from one step on, as `pipe.dataset` does, whose elements are `(features, params)`.

        `features` has tensors `(n, ...)` by name, as the kernels on the device take them; `params` is a tuple of tensors `(n, ...)`.

        Raises:
            ValueError: For an unknown epoch, step, share or device.
        """
        pipe = self._pipe
        at = pipe._position(self._split, epoch, step, origin, shift)
        where = None if device is None else text("device", device, "GPU:0")
        return pipe._engine.fixed(self._split, at, share(shard), where, sends=True)

    def distribute(self, strategy: tf.distribute.Strategy) -> DistributedBatches:
        """Returns `(features, params)` as values for the replicas of a strategy, as `pipe.distribute` does.

        Raises:
            ValueError: As `pipe.distribute`; and where replicas would get parts of groups whose examples are mixed.
        """
        size, replicas = self._pipe.spec.model.batch.size, strategy.num_replicas_in_sync
        if self._mixes and size % (GROUP * replicas):
            raise ValueError(
                f"{size} examples among {replicas} replicas are no whole groups of {GROUP}, within which examples are mixed on the device: "
                f"make `batch.size` a multiple of {GROUP * replicas}, or use `pipe.distribute(strategy)`"
            )
        return DistributedBatches(self._pipe, self._split, strategy, sends=True)

    def apply(self, features: Features, params: Sequence[tf.Tensor]) -> Any:
        """Returns a batch as the model takes it, of what `dataset` gave, or of a part of it: whole groups of 8 where examples are mixed.

        A function of TensorFlow, each kernel a program of XLA; within one that XLA compiles, a part of that. It draws nothing.

        Raises:
            ValueError: Within `strategy.run`, for a part that is no whole number of groups whose examples are mixed.
        """
        self._check_part(features)
        given, done = list(params), dict(features)
        for kernel in self._kernels:
            done = kernel.apply(done, given[: kernel.count])
            given = given[kernel.count :]
        return batch_of(self._send, done)

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of `(features, params)`."""
        return self._pipe._engine.fixed(self._split, FIRST, None, None, sends=True).element_spec

    def bytes_per_example(self) -> int:
        """Counts the bytes of one example that cross to the device, parameters included; texts and what has no fixed size are left out."""
        leaves = tf.nest.flatten(self.element_spec)
        sizes = [t.shape[1:].num_elements() for t in leaves if t.dtype != tf.string]
        return sum((size or 0) * t.dtype.size for size, t in zip(sizes, (t for t in leaves if t.dtype != tf.string), strict=True))

    def __len__(self) -> int:
        return self._pipe.steps(self._split)

    def __repr__(self) -> str:
        kernels = f"{len(self._kernels)} kernel{'s' if len(self._kernels) > 1 else ''}"
        return f"<DeviceStage of {self._split}: {kernels}, {self.bytes_per_example():,} bytes an example>"

    def _check_part(self, features: Features) -> None:
        context = tf.distribute.get_replica_context()
        if not self._mixes or context is None or context.num_replicas_in_sync == 1:
            return
        rows = next(iter(features.values())).shape[0]
        if rows is not None and rows % GROUP:
            raise ValueError(f"{rows} examples on a replica are no whole groups of {GROUP}, within which examples are mixed")
