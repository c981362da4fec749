"""Batches split among the replicas of a distribution strategy, without reading ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from pipegen.backend.datasets.numpy_batches import NotedBatch, NotingIterator, OwnLoop, ahead
from pipegen.backend.datasets.owner import Owner
from pipegen.backend.datasets.pipeline_dataset import DerivedDataset
from pipegen.data.sampling import examples_of_epoch
from pipegen.data.shares import rows_of, unequal_parts
from pipegen.physical.extent import FIRST
from pipegen.private.functions import untraced
from pipegen.private.keras import builds_model, fits
from pipegen.terminal import log


@untraced
class DistributedBatches(DerivedDataset, tf.distribute.DistributedDataset):
    """The batches of a split as values per replica: iterable any number of times, each time `len(self)` batches.

    The parts of the replicas, concatenated in order, are the global batch. Unlike a dataset distributed by the strategy, it counts each
    batch when it is handed over, so epochs need no `pipe.callback()`. A batch that does not divide among the replicas is split as evenly
    as possible. It is a dataset by type: Keras' `fit` accepts nothing else.

    Args:
        pipe: The pipeline.
        split: The split.
        strategy: The strategy.
        sends: Whether the last kernels are left to the replicas.

    Raises:
        ValueError: For a strategy whose replicas do not step together, or for a batch that does not divide among the replicas of several
            workers.
    """

    def __init__(self, pipe: Owner, split: str, strategy: tf.distribute.Strategy, *, sends: bool = False) -> None:
        self._first, share = _workers(strategy)
        self._strategy, self._devices = strategy, strategy.extended.worker_devices
        size, replicas = pipe.spec.model.batch.size, strategy.num_replicas_in_sync
        if share is not None and size % replicas:
            raise ValueError(
                f"a batch of {size} does not divide among the {replicas} replicas of {share[1]} workers of {type(strategy).__name__}: "
                f"use a multiple of {replicas}"
            )
        self._loop = OwnLoop(pipe, split, share, sends=sends)
        self._whole = share is None
        whole = pipe._from(split, FIRST, share, sends=sends)
        examples = examples_of_epoch(pipe.spec.model, pipe._manifest, split)
        locate = pipe.spec.loaded.locate.label
        for finding in unequal_parts(pipe.spec.model, split, examples, replicas, f"replicas of {type(strategy).__name__}", locate):
            log.warning("%s %s: %s: %s", finding.code, finding.span or "the spec", finding.message, ", ".join(finding.help))
        super().__init__(whole._pipegen.unmarked, whole, whole.cardinality())

    def __len__(self) -> int:
        return len(self._loop)

    def __iter__(self) -> Iterator[Any]:
        """Begins an epoch. Raises `RuntimeError` inside a `tf.function`, and for Keras' `fit` on several workers."""
        if not tf.executing_eagerly():
            raise RuntimeError("iterate outside of `tf.function`, and pass each batch to a function that calls `strategy.run`")
        if not self._whole and fits():
            raise RuntimeError(
                f"Keras 3's `fit` does not run under {type(self._strategy).__name__} (keras-team/keras#20585): write a training loop, or "
                "train with Keras on JAX and `DataParallel`"
            )

        def parts(batch: Any) -> Any:
            """Splits a batch of this worker into values per replica, each on its replica's device."""
            rows = int(tf.nest.flatten(batch)[0].shape[0])
            return self._values(batch, lambda local: rows_of(rows, local, len(self._devices)))

        return _Parts(ahead(self._loop._batches(), parts), self._alike)

    def _alike(self, parts: Any) -> Any:
        """Returns the last part for every replica: to find the shapes of a batch, Keras averages the replicas' parts."""
        first = tf.nest.map_structure(lambda value: self._strategy.experimental_local_results(value)[-1], parts)
        return self._values(first, lambda _: (0, int(tf.nest.flatten(first)[0].shape[0])))

    def _values(self, batch: Any, rows: Callable[[int], tuple[int, int]]) -> Any:
        def of(context: tf.distribute.ValueContext) -> Any:
            local = context.replica_id_in_sync_group - self._first
            begin, end = rows(local)
            with tf.device(self._devices[local]):
                return tf.nest.map_structure(lambda t: tf.identity(t[begin:end]), batch)

        return self._strategy.experimental_distribute_values_from_function(of)


class _Parts(NotingIterator):
    """An iterator over the parts of batches. A batch that Keras takes only for its shapes is not counted, and its parts have one size."""

    def __init__(self, batches: Iterator[NotedBatch], alike: Callable[[Any], Any]) -> None:
        super().__init__(batches)
        self._alike = alike

    def _take(self) -> Any:
        return self._alike(next(self._elements)[0]) if builds_model() else super()._take()


def _workers(strategy: tf.distribute.Strategy) -> tuple[int, tuple[int, int] | None]:
    """Returns this worker's first replica, and its share of each batch; `None` for the spec's."""
    if not isinstance(strategy, tf.distribute.Strategy):
        raise TypeError(f"`distribute` takes a strategy of `tf.distribute`, got {strategy!r}")
    if isinstance(strategy, (tf.distribute.ParameterServerStrategy, tf.distribute.experimental.ParameterServerStrategy)):
        raise ValueError(
            "workers of a ParameterServerStrategy do not step together, so batches have no fixed order: use MirroredStrategy or "
            "MultiWorkerMirroredStrategy"
        )
    local = len(strategy.extended.worker_devices)
    resolver = strategy.cluster_resolver
    if resolver is None or strategy.num_replicas_in_sync == local:
        return 0, None
    chiefs = len(resolver.cluster_spec().as_dict().get("chief", ()))
    index = resolver.task_id + (chiefs if resolver.task_type == "worker" else 0)
    return index * local, (index, strategy.num_replicas_in_sync // local)
