"""Batches as arrays that their user may write to, without a copy of what is large.

A batch of 64 float images is 38 MB, and a copy of it costs as much as a tenth of computing it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from pipegen.plan.cost import LARGE

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
