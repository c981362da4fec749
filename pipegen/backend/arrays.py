"""Batches as NumPy arrays, for JAX, PyTorch and loops of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from pipegen.backend.datasets import PipelineDataset


class NumpyBatches:
    """A split as NumPy arrays: iterable any number of times, each pass of `len(self)` batches.

    A pass over the training split is an epoch, under the same rule as `.train`.
    """

    def __init__(self, dataset: PipelineDataset) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of a batch."""
        return self._dataset.element_spec

    def __iter__(self) -> Iterator[Any]:
        for batch in self._dataset:
            yield tf.nest.map_structure(lambda t: t.numpy(), batch)
