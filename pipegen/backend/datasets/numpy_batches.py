"""Batches as NumPy arrays, and loops over a split that track its position."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from pipegen.backend.datasets.owner import Owner
from pipegen.backend.datasets.pipeline_dataset import DerivedDataset, PipelineDataset
from pipegen.backend.process.devices import InTurn
from pipegen.physical.extent import Position
from pipegen.plan.cost import LARGE
from pipegen.private.functions import untraced

Array = np.ndarray[Any, Any]


class _Memory:
    """The memory of an eager tensor on the CPU, `size` bytes, for NumPy. Arrays of it, and their views, keep the tensor alive."""

    def __init__(self, tensor: tf.Tensor, address: int, size: int) -> None:
        self._tensor = tensor
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (address, False)}


def owned_arrays(batch: Any, widen: bool = False) -> Any:
    """Converts the tensors of a batch to writable arrays; with `widen`, floats become float64.

    Large arrays share the tensor's memory. TensorFlow counts its references, and the pipeline writes the next batch there only when none
    is left (`reuse`), so an array never changes on its own. Use it only for batches of a pipeline: writing to the array of a tensor that
    has other readers would change their data.
    """
    taken: set[int] = set()

    def one(tensor: tf.Tensor) -> Array:
        view = np.asarray(tensor)
        dtype = np.dtype(np.float64) if widen and tensor.dtype.is_floating else view.dtype
        where = view.ctypes.data
        if dtype != view.dtype or dtype.hasobject or view.nbytes < LARGE or where in taken:
            return view.astype(dtype)
        taken.add(where)
        return np.asarray(_Memory(tensor, where, view.nbytes)).view(dtype).reshape(view.shape)

    return tf.nest.map_structure(one, batch)


@untraced
class NumpyBatches(DerivedDataset):
    """The batches of a split as NumPy arrays: iterable any number of times, each time `len(self)` batches.

    An iteration of the training split is an epoch, as with `.train`. It is a dataset by type: Keras' `fit` accepts no other
    iterable that has a length and can be iterated again.
    """

    def __init__(self, dataset: PipelineDataset) -> None:
        self._pipegen_batches = dataset
        super().__init__(dataset._pipegen.unmarked, dataset, dataset.cardinality())

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._pipegen_batches._pipegen_source()

    def __iter__(self) -> Iterator[Any]:
        if not tf.executing_eagerly():
            return super().__iter__()
        return InTurn(map(owned_arrays, iter(self._pipegen_batches)))


NotedBatch = tuple[Any, Callable[[], None]]
"""A batch, and the function that notes that it was handed over."""


@untraced
class OwnLoop:
    """One split, epoch by epoch. The pipeline tracks the position of the training split, this object that of other splits.

    `share` replaces the spec's share of each batch; with `sends`, the last kernels are left to a device.
    """

    def __init__(self, pipe: Owner, split: str, share: tuple[int, int] | None = None, *, sends: bool = False) -> None:
        self._pipe, self._split, self._share, self._sends = pipe, split, share, sends
        self._begin = self._step = 0  # of a split other than `train`: where its next epoch begins, and the step of the next batch

    def __len__(self) -> int:
        return self._pipe.steps(self._split)

    def _batches(self) -> Iterator[NotedBatch]:
        """Yields the batches of the rest of the next epoch, each with a function to call when it is handed over."""
        pipe = self._pipe._at(self._split)
        if self._split == "train":
            progress = pipe._engine.train_progress()
            progress.check()
            at, note = progress.next_start(), progress.note
        else:
            at, note = Position(0, self._begin), self._note
            self._begin = 0  # an abandoned epoch starts again
        for step, batch in enumerate(pipe._from(self._split, at, self._share, sends=self._sends), at.step):
            yield batch, partial(note, at._replace(step=step))

    def _note(self, at: Position) -> None:
        self._step = at.step + 1 if at.step + 1 < len(self) else 0


def ahead(batches: Iterator[NotedBatch], send: Callable[[Any], Any]) -> Iterator[NotedBatch]:
    """Yields batches sent to devices, each after the next one has been sent, too."""
    sent: deque[NotedBatch] = deque()
    for batch, note in batches:
        sent.append((send(batch), note))
        if len(sent) > 1:
            yield sent.popleft()
    yield from sent


class NotingIterator(InTurn):
    """A thread-safe iterator over batches, each given with a function, which it calls."""

    def _take(self) -> Any:
        batch, note = super()._take()
        note()
        return batch
