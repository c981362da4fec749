"""Batches as arrays of NumPy, JAX and PyTorch, and loops of one's own over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import tensorflow as tf
import torch
from torch.utils.data import IterableDataset, get_worker_info

from pipegen.backend.datasets.pipeline_dataset import DerivedDataset
from pipegen.backend.process.devices import InTurn
from pipegen.data.sampling import examples_of_epoch
from pipegen.errors import StateError
from pipegen.lazy import untraced
from pipegen.physical.extent import Position
from pipegen.plan.cost import LARGE

if TYPE_CHECKING:
    from pipegen.api.pipeline import Pipeline
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

    def __init__(self, pipe: Pipeline, split: str, share: tuple[int, int] | None = None, *, sends: bool = False) -> None:
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


_INT32 = 2**31 - 1


@untraced
class JaxBatches:
    """Gives a split as batches of JAX arrays: iterable any number of times, each time `len(self)` batches.

    The next batch is on its way to the devices while one is used. To go through the training split is an epoch, under the same
    rule as `pipe.train`.

    Args:
        pipe: The pipeline.
        split: The split.
        sharding: How the first dimension of every array lies on the devices of all processes; `None` puts this process' share on its
            first device.

    Raises:
        ValueError: Where a process would need rows that are no equal share, or a last batch does not divide among the devices.
    """

    def __init__(self, pipe: Pipeline, split: str, sharding: jax.sharding.Sharding | None = None) -> None:
        self._sharding = sharding
        self._batch = pipe.spec.model.batch.size
        self._loop = OwnLoop(pipe, split, None if sharding is None else self._share(sharding))
        if sharding is not None:
            self._check_last(pipe, sharding)

    def __len__(self) -> int:
        return len(self._loop)

    def __iter__(self) -> Iterator[Any]:
        return HandedOver(ahead(self._loop.batches(), lambda batch: jax.tree.map(self._sent, owned_arrays(batch))))

    def _sent(self, array: Any) -> jax.Array:
        if array.dtype.hasobject:
            raise TypeError("JAX has no arrays of text: leave the feature out of `output`, or give its number")
        if array.dtype.itemsize == 8 and array.dtype.kind == "i" and jax.dtypes.canonicalize_dtype(array.dtype) != array.dtype:
            _check_fits(array)
        if self._sharding is None:
            return jax.device_put(array)
        count = 1 if self._loop.share is None else self._loop.share[1]
        gathered: Any = jax.make_array_from_process_local_data  # which has no types
        return gathered(self._sharding, array, (len(array) * count, *array.shape[1:]))

    def _share(self, sharding: jax.sharding.Sharding) -> tuple[int, int]:
        """Finds the share of each batch that the devices of this process hold together."""
        spans = sorted(set(_spans(sharding.addressable_devices_indices_map((self._batch,)), self._batch)))
        first, end = spans[0][0], max(last for _, last in spans)
        rows = end - first
        joined = all(begin <= earlier for (_, earlier), (begin, _) in pairwise(spans))
        if not joined or self._batch % rows or first % rows:
            held = ", ".join(f"{begin} to {last - 1}" for begin, last in spans)
            raise ValueError(
                f"the sharding gives this process the rows {held} of a batch of {self._batch}, which are no equal share in one piece: "
                "make the mesh of `jax.devices()` in their order, with the dimension that batches are shared along first"
            )
        return first // rows, self._batch // rows

    def _check_last(self, pipe: Pipeline, sharding: jax.sharding.Sharding) -> None:
        model, split = pipe.spec.model, self._loop.split
        parts = len(set(_spans(sharding.devices_indices_map((self._batch,)), self._batch)))
        rest = examples_of_epoch(model, pipe._manifest, split) % self._batch
        if (split != "train" or model.epoch == "pass") and model.batch.remainder_for(split) == "keep" and rest % parts:
            raise ValueError(
                f"the last batch of split `{split}` has {rest} examples, which do not divide among {parts} devices: use "
                f"`batch: {{remainder: {{{split}: pad}}}}`, whose weights leave out what is added"
            )


def _spans(held: Mapping[Any, Any], rows: int) -> Iterator[tuple[int, int]]:
    """Yields the first of the rows that each device holds, and one past the last."""
    for index in held.values():
        first, end, _ = index[0].indices(rows)
        yield first, end


def _check_fits(array: Any) -> None:
    """Checks that JAX does not cut whole numbers: without its 64 bits it makes int32 of int64, whatever they hold."""
    if array.size and (array.max() > _INT32 or array.min() < -_INT32 - 1):
        number = int(array.max() if array.max() > _INT32 else array.min())
        raise ValueError(f"a batch holds {number}, which JAX would cut to 32 bits: `jax.config.update('jax_enable_x64', True)` keeps 64")


@untraced
class TorchBatches(IterableDataset[Any]):
    """Gives a split as batches of PyTorch tensors on the CPU: iterable any number of times, each time `len(self)` batches.

    `torch.utils.data.DataLoader(batches, batch_size=None, num_workers=0)` takes it; so does torchdata's `StatefulDataLoader`,
    which asks for its state. To go through the training split is an epoch, under the same rule as `pipe.train`.

    Args:
        pipe: The pipeline.
        split: The split.
    """

    def __init__(self, pipe: Pipeline, split: str) -> None:
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
