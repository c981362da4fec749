"""Batches as NumPy arrays, and loops of one's own over a split, which note where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from pipegen.backend.datasets.pipeline_dataset import DerivedDataset
from pipegen.backend.process.devices import InTurn
from pipegen.errors import StateError
from pipegen.lazy import untraced
from pipegen.physical.extent import Position
from pipegen.plan.cost import LARGE

if TYPE_CHECKING:
    from pipegen.backend.datasets.owner import Owner
    from pipegen.backend.datasets.pipeline_dataset import PipelineDataset


Array = np.ndarray[Any, Any]


class _Memory:
    """A tensor's memory as bytes that NumPy takes over. An array of them holds the tensor, as do the views of that array.

    Args:
        tensor: Eager, on the CPU.
        address: Where its memory begins.
        size: In bytes.
    """

    def __init__(self, tensor: tf.Tensor, address: int, size: int) -> None:
        self._tensor = tensor
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (address, False)}


def owned_arrays(batch: Any, widen: bool = False) -> Any:
    """The tensors of a batch as arrays that may be written to.

    Large ones keep their memory. TensorFlow counts who holds it, and the pipeline writes the next batch there only once nobody does
    (`reuse`), so that an array never changes on its own; and what its user leaves in it is never read. This is only for the batches of
    a pipeline, which computes each anew and lets go of it: an array of a tensor that somebody else reads would change under them.

    Args:
        batch: Tensors, nested.
        widen: Give floats as float64.
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


if TYPE_CHECKING:
    Handed = tuple[Any, Callable[[], None]]


@untraced
class OwnLoop:
    """One split, epoch by epoch. Of the training split the pipeline knows where it stands; of another one this object.

    Args:
        pipe: The pipeline.
        split: The split.
        share: Which share of each batch, in place of the spec's.
        sends: Whether the last kernels are left to a device.
    """

    def __init__(self, pipe: Owner, split: str, share: tuple[int, int] | None = None, *, sends: bool = False) -> None:
        pipe._require(split)
        self.pipe, self.split, self.share, self._sends = pipe, split, share, sends
        self._begin = self._step = 0

    def __len__(self) -> int:
        return self.pipe.steps(self.split)

    def batches(self) -> Iterator[Handed]:
        """Yields the batches of the epoch that comes next, or of what is left of it, and with each what notes that it is handed over."""
        pipe = self.pipe._at(self.split)
        if self.split == "train":
            progress = pipe._engine.train_progress()
            progress.check()
            at, note = progress.next_start(), progress.note
        else:
            at, note = Position(0, self._begin), self._note
            self._begin = 0  # an epoch that is left is begun anew
        for step, batch in enumerate(pipe._from(self.split, at, self.share, sends=self._sends), at.step):
            yield batch, partial(note, at._replace(step=step))

    def _note(self, at: Position) -> None:
        self._step = at.step + 1 if at.step + 1 < len(self) else 0

    def state(self) -> dict[str, Any]:
        """Returns where the split stands: of the training split what `pipe.state()` gives."""
        return self.pipe.state() if self.split == "train" else {"split": self.split, "step": self._step}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Lets the next epoch begin where a state was taken.

        Raises:
            StateError: When the state is of another spec, other data or another split.
        """
        if self.split == "train":
            self.pipe.restore(state)
            return
        step = state.get("step")
        if state.get("split") != self.split or not isinstance(step, int) or not 0 <= step < max(len(self), 1):
            raise StateError(f"this is no state of split `{self.split}`, which has {len(self)} batches: {dict(state)}")
        self._begin = self._step = step


def ahead(batches: Iterator[Handed], send: Callable[[Any], Any]) -> Iterator[Handed]:
    """Yields batches that were sent to devices, each when the next one is on its way, too."""
    sent = None
    for batch, note in batches:
        following = send(batch), note
        if sent is not None:
            yield sent
        sent = following
    if sent is not None:
        yield sent


class HandedOver(InTurn):
    """Hands over batches one at a time, whichever threads ask, and notes each.

    Args:
        batches: The batches, with what notes each.
    """

    def __init__(self, batches: Iterator[Handed]) -> None:
        super().__init__()
        self._batches = batches

    def _take(self) -> Any:
        batch, note = next(self._batches)
        note()
        return batch
