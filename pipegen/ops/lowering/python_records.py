"""Readers of records that are one message each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.lazy import tf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipegen.ops.sources.listing.reader import Together


def parsed(messages: Together, parse: Callable[[Sequence[str], Any], dict[str, Any]]) -> Together:
    """Makes a reader of several features of records that are one message each.

    Args:
        messages: Reads the messages, under the name `""`.
        parse: From the names of features and one message, a string scalar, to these features.
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
        with tf.Graph().as_default():  # only for dtypes and shapes
            return parse(names, tf.constant(""))

    return read
