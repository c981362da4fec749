"""Batches as a dataset of Grain, whose iterators save and restore their position."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import grain
import numpy as np
import tensorflow as tf

from pipegen.backend.datasets.numpy_batches import owned_arrays
from pipegen.backend.datasets.owner import Owner
from pipegen.errors import StateError
from pipegen.physical.extent import Position
from pipegen.private.functions import untraced

_NO_PROCESSES = (
    "pipegen makes batches in its own threads: leave `mp_prefetch` out; each worker process would make every batch, and TensorFlow does "
    "not work after `fork`"
)


@untraced
class GrainBatches(grain.IterDataset[Any]):
    """The batches of a split as NumPy arrays: a `grain.IterDataset`, iterable any number of times, each time `len(self)` batches.

    An iteration of the training split is an epoch, as with `pipe.train`. Its iterators have `get_state` and `set_state`, so that
    `grain.checkpoint.CheckpointHandler` and Orbax save and restore them.

    Args:
        pipe: The pipeline.
        split: The split.
        convert: What is done to the tensors of each batch, if anything.
    """

    def __init__(self, pipe: Owner, split: str, convert: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self._pipe, self._split, self._convert = pipe, split, convert

    def __len__(self) -> int:
        return self._pipe.steps(self._split)

    def __iter__(self) -> GrainIterator:
        return GrainIterator(self._pipe, self._split, self._convert)

    @property
    def _element_spec(self) -> Any:  # what `grain.experimental.get_element_spec` reads
        """Shapes and dtypes of a batch; the number of examples is that of a whole batch."""
        rows = self._pipe.spec.model.batch.size

        def one(spec: tf.TensorSpec) -> Any:
            shape = tuple(rows if size is None and not place else size for place, size in enumerate(spec.shape))
            return grain.experimental.ShapeDtypeStruct(shape=shape, dtype=np.dtype(spec.dtype.as_numpy_dtype))

        data = self._pipe[self._split]
        return tf.nest.map_structure(one, (data if self._convert is None else data.map(self._convert)).element_spec)

    def mp_prefetch(self, *_: Any, **__: Any) -> NoReturn:
        """Raises `ValueError`: a pipeline makes batches in threads of its own."""
        raise ValueError(_NO_PROCESSES)

    def __reduce__(self) -> NoReturn:  # `mp_prefetch` of a dataset that is made from this one
        raise TypeError(_NO_PROCESSES)


class GrainIterator(grain.DatasetIterator[Any]):
    """The rest of an epoch."""

    def __init__(self, pipe: Owner, split: str, convert: Callable[..., Any] | None) -> None:
        super().__init__()
        self._pipe, self._split, self._convert = pipe, split, convert
        self._at = Position(0)
        if split == "train":
            self._at = pipe._at(split)._engine.train_progress().next_start()
        self._batches: Iterator[Any] | None = None
        self._ended = False

    def __next__(self) -> Any:
        if self._ended:
            raise ValueError("this iterator is closed")
        if self._batches is None:
            if self._split == "train":
                self._pipe._at(self._split, self._at.epoch)._engine.train_progress().check()
            self._batches = iter(self._pipe._from(self._split, self._at))
        batch = next(self._batches)
        if self._split == "train":
            self._pipe._at(self._split, self._at.epoch)._engine.train_progress().note(self._at)
        self._at = self._at._replace(step=self._at.step + 1)
        if self._convert is not None:
            batch = self._convert(*batch) if isinstance(batch, tuple) else self._convert(batch)
        return owned_arrays(batch)

    def close(self) -> None:
        """Ends the iteration and frees its buffers."""
        super().close()
        self._batches, self._ended = None, True

    def get_state(self) -> dict[str, Any]:
        """Returns the position as plain JSON: the epoch and step of the next batch, and a hash of the spec and the data."""
        return {**self._at._asdict(), "hash": self._hash()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Moves to a position, and the pipeline with it. Raises `StateError` if it is of another spec or other data."""
        if not isinstance(state, dict) or {*state} != {*Position._fields, "hash"}:
            raise StateError(f"this is not a state of a Grain iterator of pipegen: {state!r:.200}")
        if state["hash"] != self._hash():
            raise StateError(
                f"the state is of another spec, or of other data, than split `{self._split}` has now: `pipe.state()` and `pipe.restore()` "
                "say what differs, and allow another batch size"
            )
        try:
            at = self._pipe._position(self._split, *(state[name] for name in Position._fields))
        except (TypeError, ValueError) as error:
            raise StateError(f"the state is of no place in split `{self._split}`: {error}") from None
        self._at, self._batches = at, None
        if self._split == "train":
            self._pipe._seek(at)

    def _hash(self) -> str:
        return f"{self._pipe.spec_hash}/{self._pipe._manifest.split_fingerprint}/{self._split}"
