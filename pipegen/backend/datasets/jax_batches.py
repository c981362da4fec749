"""Batches as JAX arrays: on one device, or global arrays of which each process holds some rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import jax

from pipegen.backend.datasets.numpy_batches import NotingIterator, OwnLoop, ahead, owned_arrays
from pipegen.backend.datasets.owner import Owner
from pipegen.data.sampling import examples_of_epoch
from pipegen.private.functions import untraced

_INT32 = 2**31 - 1


@untraced
class JaxBatches(OwnLoop):
    """The batches of a split as JAX arrays: iterable any number of times, each time `len(self)` batches.

    One batch is sent to the devices ahead. An iteration of the training split is an epoch, as with `pipe.train`.

    Args:
        pipe: The pipeline.
        split: The split.
        sharding: Sharding of the first dimension of every array among the devices of all processes; `None` puts this process' share on
            its first device.

    Raises:
        ValueError: If the rows of a process are not an equal share, or the last batch does not divide among the devices.
    """

    def __init__(self, pipe: Owner, split: str, sharding: jax.sharding.Sharding | None = None) -> None:
        self._sharding = sharding
        self._batch = pipe.spec.model.batch.size
        super().__init__(pipe, split, None if sharding is None else self._share_of(sharding))
        if sharding is None:
            return
        model, parts = pipe.spec.model, len(set(_spans(sharding.devices_indices_map((self._batch,)), self._batch)))
        rest = examples_of_epoch(model, pipe._manifest, split) % self._batch
        if (split != "train" or model.epoch == "pass") and model.batch.remainder_for(split) == "keep" and rest % parts:
            raise ValueError(
                f"the last batch of split `{split}` has {rest} examples, which do not divide among {parts} devices: use "
                f"`batch: {{remainder: {{{split}: pad}}}}`, which gives the padding a weight of 0"
            )

    def __iter__(self) -> Iterator[Any]:
        return NotingIterator(ahead(self._batches(), lambda batch: jax.tree.map(self._sent, owned_arrays(batch))))

    def _sent(self, array: Any) -> jax.Array:
        if array.dtype.hasobject:
            raise TypeError("JAX has no string arrays: leave the feature out of `output`, or output its number")
        narrows = array.dtype.itemsize == 8 and array.dtype.kind == "i" and jax.dtypes.canonicalize_dtype(array.dtype) != array.dtype
        if narrows and array.size and (array.max() > _INT32 or array.min() < -_INT32 - 1):
            number = int(array.max() if array.max() > _INT32 else array.min())
            raise ValueError(
                f"a batch holds {number}, which JAX would truncate to 32 bits: use `jax.config.update('jax_enable_x64', True)`"
            )
        if self._sharding is None:
            return jax.device_put(array)
        count = 1 if self._share is None else self._share[1]
        gathered: Any = jax.make_array_from_process_local_data  # which has no types
        return gathered(self._sharding, array, (len(array) * count, *array.shape[1:]))

    def _share_of(self, sharding: jax.sharding.Sharding) -> tuple[int, int]:
        """Finds the share of each batch that all devices of this process hold."""
        spans = sorted(set(_spans(sharding.addressable_devices_indices_map((self._batch,)), self._batch)))
        first, end = spans[0][0], max(last for _, last in spans)
        rows = end - first
        joined = all(begin <= earlier for (_, earlier), (begin, _) in pairwise(spans))
        if not joined or self._batch % rows or first % rows:
            held = ", ".join(f"{begin} to {last - 1}" for begin, last in spans)
            raise ValueError(
                f"the sharding gives this process the rows {held} of a batch of {self._batch}, which are not one contiguous equal share: "
                "make the mesh of `jax.devices()` in their order, with the dimension that batches are sharded along first"
            )
        return first // rows, self._batch // rows


def _spans(held: Mapping[Any, Any], rows: int) -> Iterator[tuple[int, int]]:
    """Yields the first row of each device, and one past the last."""
    for index in held.values():
        first, end, _ = index[0].indices(rows)
        yield first, end
