"""Reads records by a call into Python: one for all that are wanted, however many features of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.lazy import tf
from pipegen.ops.lowering.python_calls import numpy_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipegen.ops.sources.listing.reader import Together
    from pipegen.types import Dim


def together(take: Callable[[Sequence[str], Any, Any], list[Any]], types: Mapping[str, tuple[str, tuple[Dim, ...]]]) -> Together:
    """Returns what reads several features of records; see `Reader.open_together`.

    Args:
        take: From the names of features and the shards and rows of records, NumPy arrays `(n,)`, to an array `(n, ...)` for each.
        types: The dtype and the shape of each feature of one record.
    """

    def read(names: Sequence[str], shard: tf.Tensor, row: tf.Tensor) -> dict[str, Any]:
        dtypes = [tf.as_dtype(types[name][0]) for name in names]
        found = numpy_function(lambda shards, rows: take(names, shards, rows), [shard, row], dtypes, stateful=False)
        found = [found] if tf.is_tensor(found) else found  # outside a graph, of one feature
        for name, value in zip(names, found, strict=True):
            value.set_shape([shard.shape[0], *types[name][1]])
        return dict(zip(names, found, strict=True))

    return read


def parsed(messages: Together, parse: Callable[[Sequence[str], Any], dict[str, Any]]) -> Together:
    """Returns what reads several features of records that are one message each.

    Args:
        messages: Reads the messages, under the name `""`.
        parse: From features and one message, a string scalar, to these.
    """

    def read(names: Sequence[str], shard: tf.Tensor, row: tf.Tensor) -> dict[str, Any]:
        found = messages(("",), shard, row)[""]
        count = shard.shape[0]
        if count is None:
            like = tf.nest.map_structure(lambda t: tf.TensorSpec(t.shape, t.dtype), _like(names))
            return tf.map_fn(lambda message: parse(names, message), found, fn_output_signature=like)
        each = [parse(names, message) for message in tf.unstack(found, num=count)]
        return {name: [record[name] for record in each] for name in names}

    def _like(names: Sequence[str]) -> dict[str, Any]:
        """The dtypes and shapes of features."""
        with tf.Graph().as_default():
            return parse(names, tf.constant(""))

    return read
