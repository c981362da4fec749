"""Changes what readers return: class indices counted anew, and features that are the same for every record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.lazy import tf

if TYPE_CHECKING:
    from pipegen.ops.sources.listing.reader import Read
    from pipegen.ops.sources.listing.strings import Ints


def renumbered(values: Any, table: Ints) -> Any:
    """Returns the entries of an int64 table at class indices: a tensor, or a list of them."""
    if isinstance(values, list):
        return [tf.gather(tf.constant(table), value) for value in values]
    return tf.gather(tf.constant(table), values)


def same_for_all(value: Any) -> Read:
    """Returns what reads one value, an array, for every record: `shape` from scalar places, `(n, *shape)` from `(n,)`."""

    def read(*place: tf.Tensor) -> tf.Tensor:
        held = tf.constant(value)
        found = tf.broadcast_to(held, tf.concat([tf.shape(place[0]), tf.shape(held)], 0))
        found.set_shape([*place[0].shape, *value.shape])
        return found

    return read
