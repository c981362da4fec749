"""Batches as PyTorch tensors, without a copy of what is large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
import torch
from torch.utils.data import IterableDataset, get_worker_info

from pipegen.backend.datasets.arrays import HandedOver, OwnLoop, owned_arrays
from pipegen.lazy import untraced

if TYPE_CHECKING:
    from pipegen.backend.datasets.owner import Owner


@untraced
class TorchBatches(IterableDataset[Any]):
    """Gives a split as batches of PyTorch tensors on the CPU: iterable any number of times, each time `len(self)` batches.

    `torch.utils.data.DataLoader(batches, batch_size=None, num_workers=0)` takes it; so does torchdata's `StatefulDataLoader`,
    which asks for its state. To go through the training split is an epoch, under the same rule as `pipe.train`.

    Args:
        pipe: The pipeline.
        split: The split.
    """

    def __init__(self, pipe: Owner, split: str) -> None:
        self._loop = OwnLoop(pipe, split)

    def __len__(self) -> int:
        return len(self._loop)

    def __iter__(self) -> Iterator[Any]:
        """Begins an epoch.

        Raises:
            RuntimeError: In a worker process of a `DataLoader`.
        """
        if get_worker_info() is not None:
            raise RuntimeError(
                "pipegen makes batches in threads of its own: use `DataLoader(…, batch_size=None, num_workers=0)`; "
                "worker processes would each make every batch, and TensorFlow does not survive `fork`"
            )
        return HandedOver((tensors(batch), note) for batch, note in self._loop.batches())

    def state_dict(self) -> dict[str, Any]:
        """Returns where the split stands, as plain JSON; of the training split it is `pipe.state()`."""
        return self._loop.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Lets the next epoch begin where a state was taken.

        Raises:
            StateError: When the state is of another spec, other data or another split.
        """
        self._loop.restore(state)


def tensors(batch: Any) -> Any:
    """Returns a batch of TensorFlow's tensors as PyTorch's, which may be written to.

    Raises:
        TypeError: For text, of which PyTorch has no tensors.
    """
    return tf.nest.map_structure(_tensor, owned_arrays(batch))


def _tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    if array.dtype.hasobject:
        raise TypeError("PyTorch has no tensors of text: leave the feature out of `output`, or give its number")
    if array.dtype == tf.bfloat16.as_numpy_dtype:  # which NumPy does not know by itself, and so PyTorch not by NumPy
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
