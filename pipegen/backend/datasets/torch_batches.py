"""Batches as PyTorch tensors, without copying large ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import torch
from torch.utils.data import IterableDataset, get_worker_info

from pipegen.backend.datasets.numpy_batches import NotingIterator, OwnLoop, owned_arrays
from pipegen.errors import StateError
from pipegen.private.functions import untraced


@untraced
class TorchBatches(OwnLoop, IterableDataset[Any]):
    """The batches of a split as PyTorch tensors on the CPU: iterable any number of times, each time `len(self)` batches.

    Use it with `torch.utils.data.DataLoader(batches, batch_size=None, num_workers=0)` or torchdata's `StatefulDataLoader`, which saves
    its state. An iteration of the training split is an epoch, as with `pipe.train`.

    Args:
        pipe: The pipeline.
        split: The split.
    """

    def __iter__(self) -> Iterator[Any]:
        """Begins an epoch. Raises `RuntimeError` in a worker process of a `DataLoader`."""
        if get_worker_info() is not None:
            raise RuntimeError(
                "pipegen makes batches in its own threads: use `DataLoader(…, batch_size=None, num_workers=0)`; each worker process would "
                "make every batch, and TensorFlow does not work after `fork`"
            )
        return NotingIterator((tensors(batch), note) for batch, note in self._batches())

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of the split as plain JSON; `pipe.state()` for the training split."""
        return self._pipe.state() if self._split == "train" else {"split": self._split, "step": self._step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Starts the next epoch at the position of a state. Raises `StateError` if the state is of another spec, other data or another
        split."""
        if self._split == "train":
            self._pipe.restore(state)
            return
        step = state.get("step")
        if state.get("split") != self._split or not isinstance(step, int) or not 0 <= step < max(len(self), 1):
            raise StateError(f"this is not a state of split `{self._split}`, which has {len(self)} batches: {dict(state)}")
        self._begin = self._step = step


def tensors(batch: Any) -> Any:
    """Converts a batch to writable PyTorch tensors. Raises `TypeError` for strings."""

    def one(array: np.ndarray[Any, Any]) -> torch.Tensor:
        if array.dtype.hasobject:
            raise TypeError("PyTorch has no string tensors: leave the feature out of `output`, or output its number")
        if array.dtype == tf.bfloat16.as_numpy_dtype:  # not a dtype of NumPy's own, so `from_numpy` rejects it
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)

    return tf.nest.map_structure(one, owned_arrays(batch))
