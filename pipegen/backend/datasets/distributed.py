"""Batches in the parts that the replicas of a distribution strategy take, with no step taken ahead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.datasets.derived import DerivedDataset
from pipegen.backend.datasets.own_loops import HandedOver, OwnLoop, ahead
from pipegen.data.sampling.choice import examples_of_epoch
from pipegen.log import log
from pipegen.untraced import untraced

if TYPE_CHECKING:
    from pipegen.api.pipeline import Pipeline


@untraced
class DistributedBatches(DerivedDataset, tf.distribute.DistributedDataset):
    """Gives a split as values per replica: iterable any number of times, each time `len(self)` batches.

    The parts of the replicas, joined in their order, are the global batch. Unlike what a strategy makes of a dataset by itself, an
    iterator notes each batch when it is handed over, so that epochs are counted without `pipe.callback()`. It is a dataset by type,
    since Keras' `fit` takes nothing else.

    Args:
        pipe: The pipeline.
        split: The split.
        strategy: The strategy.

    Raises:
        ValueError: For a strategy whose replicas take no steps together, and a batch that does not divide among its replicas.
    """

    def __init__(self, pipe: Pipeline, split: str, strategy: tf.distribute.Strategy) -> None:
        self._first, share = _workers(strategy)
        self._strategy, self._devices = strategy, strategy.extended.worker_devices
        self._replicas = strategy.num_replicas_in_sync
        size, where = pipe.spec.model.batch.size, f"among the {self._replicas} replicas of {type(strategy).__name__}"
        if size % self._replicas:
            raise ValueError(f"a batch of {size} does not divide {where}: use a multiple of {self._replicas}")
        self._loop = OwnLoop(pipe, split, share)
        whole = pipe.dataset(split, shard=share)
        rest = examples_of_epoch(pipe.spec.model, pipe._manifest, split) % size
        if split == "train" and rest % self._replicas and pipe.spec.model.batch.remainder_for(split) == "keep":
            log.warning(
                "the last batch of split `train` has %d examples, which do not divide %s, and Keras gives every replica the same weight: "
                "use `batch: {remainder: drop}`, or `pad` with a loss that divides by the weights",
                rest,
                where,
            )
        super().__init__(whole._pipegen_plain, whole, whole.cardinality())

    def __len__(self) -> int:
        return len(self._loop)

    def __iter__(self) -> Iterator[Any]:
        """Begins an epoch.

        Raises:
            RuntimeError: Inside of a `tf.function`.
        """
        if not tf.executing_eagerly():
            raise RuntimeError("iterate outside of `tf.function`, and hand each batch to one that calls `strategy.run`")
        return HandedOver(ahead(self._loop.batches(), self._parts))

    def _parts(self, batch: Any) -> Any:
        """Returns a batch of this worker as values per replica, each on the device of its replica."""
        rows = tf.nest.flatten(batch)[0].shape[0]
        part = -(-rows // len(self._devices))

        def of(context: tf.distribute.ValueContext) -> Any:
            local = context.replica_id_in_sync_group - self._first
            with tf.device(self._devices[local]):
                return tf.nest.map_structure(lambda t: tf.identity(t[local * part : (local + 1) * part]), batch)

        return self._strategy.experimental_distribute_values_from_function(of)


def _workers(strategy: tf.distribute.Strategy) -> tuple[int, tuple[int, int] | None]:
    """Returns the number of this worker's first replica, and which share of each batch is this worker's; `None` for the spec's."""
    if not isinstance(strategy, tf.distribute.Strategy):
        raise TypeError(f"`distribute` takes a strategy of `tf.distribute`, got {strategy!r}")
    servers = (tf.distribute.ParameterServerStrategy, tf.distribute.experimental.ParameterServerStrategy)
    if isinstance(strategy, servers):
        raise ValueError(
            "the workers of a ParameterServerStrategy each take whatever batch comes next, and no step together, so that no batch has a "
            "number: use MirroredStrategy or MultiWorkerMirroredStrategy"
        )
    local = len(strategy.extended.worker_devices)
    resolver = strategy.cluster_resolver
    if resolver is None or strategy.num_replicas_in_sync == local:
        return 0, None
    chiefs = len(resolver.cluster_spec().as_dict().get("chief", ()))
    index = resolver.task_id + (chiefs if resolver.task_type == "worker" else 0)
    return index * local, (index, strategy.num_replicas_in_sync // local)
