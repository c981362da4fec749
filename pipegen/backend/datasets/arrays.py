"""Batches as NumPy arrays, for JAX, PyTorch and loops of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.datasets.derived import DerivedDataset
from pipegen.backend.datasets.owned_arrays import owned_arrays
from pipegen.backend.process.once import InTurn
from pipegen.untraced import untraced

if TYPE_CHECKING:
    from pipegen.backend.datasets.pipeline_dataset import PipelineDataset


@untraced
class NumpyBatches(DerivedDataset):
    """Gives a split as NumPy arrays: iterable any number of times, each time `len(self)` batches.

    To go through the training split is an epoch, under the same rule as `.train`. It is a dataset by type, since Keras' `fit`
    takes no other iterable that knows its length and starts anew.
    """

    def __init__(self, dataset: PipelineDataset) -> None:
        self._pipegen_batches = dataset
        super().__init__(dataset._pipegen_plain, dataset, dataset.cardinality())

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._pipegen_batches._pipegen_source()

    def __iter__(self) -> Iterator[Any]:
        if not tf.executing_eagerly():
            return super().__iter__()
        return _Arrays(iter(self._pipegen_batches))


class _Arrays(InTurn):
    """Hands over the batches of an iterator as arrays."""

    def __init__(self, batches: Iterator[Any]) -> None:
        super().__init__()
        self._batches = batches

    def _take(self) -> Any:
        return owned_arrays(next(self._batches))
