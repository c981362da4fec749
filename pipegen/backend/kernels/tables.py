"""Tables on batches of images: 256 values for each example, folded exactly and read once a pixel."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.backend.index.uses import acts, own_draws, step_of
from pipegen.ops.lowering.tables import as_bytes

if TYPE_CHECKING:
    from pipegen.backend.features import Features, Params
    from pipegen.plan import stages as s


_waits = attrgetter("step.needs_histogram")
"""Whether the table of a use of a step has to wait for the image."""


def table_params(stage: s.LookupTable, features: Features) -> Params:
    """Returns what the draws say of a chain of tables, outside XLA.

    Neighbours that need no histogram are one table. A step that needs it leaves its draws, and behind them whether it
    acts, where that is drawn.
    """
    draws = features["@draws"]
    found: list[tf.Tensor] = []
    for waits, refs in groupby(stage.refs, _waits):
        if waits:
            for ref in refs:
                found += [own_draws(ref, draws), acts(ref, draws)] if ref.conditional else [own_draws(ref, draws)]
            continue
        table = None
        for ref in refs:
            own = step_of(ref, draws).table(own_draws(ref, draws), None)
            table = fold(table, _gated(own, acts(ref, draws) if ref.conditional else None))
        found.append(table)
    return tuple(found)


def histogram_table(stage: s.LookupTable, image: tf.Tensor, params: Params) -> Params:
    """Returns the one table of a chain that reads the histogram: int32 `(n, channels, 256)`. A pure function of `table_params`."""
    given = iter(params)
    counts = histogram(image)
    table: tf.Tensor | None = None
    for waits, refs in groupby(stage.refs, _waits):
        if not waits:
            list(refs)
            table = fold(table, next(given))
            continue
        for ref in refs:
            entering = counts if table is None else through(counts, table)
            own = ref.step.table(next(given), entering)
            table = fold(table, _gated(own, next(given) if ref.conditional else None))
    assert table is not None  # noqa: S101 - a stage has steps
    return (table,)


def _gated(table: tf.Tensor, when: tf.Tensor | None) -> tf.Tensor:
    """The table where the step acts, and the one that changes nothing elsewhere."""
    return table if when is None else tf.where(when[:, None, None], table, tf.range(256))


def fold(first: tf.Tensor | None, second: tf.Tensor) -> tf.Tensor:
    """`second` after `first`: int32 `(n, channels, 256)`, or `(n, 1, 256)` where both serve every channel."""
    if first is None:
        return second
    channels = max(first.shape[1], second.shape[1])
    first, second = (tf.broadcast_to(t, [tf.shape(t)[0], channels, 256]) for t in (first, second))
    return tf.gather(second, first, batch_dims=2)


def through(counts: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
    """The histogram of what leaves a table: int32 `(n, channels, 256)` from the one of what enters."""
    shape = tf.shape(counts)
    rows = tf.reshape(tf.range(shape[0] * shape[1]), [shape[0], shape[1], 1])
    places = tf.reshape(rows * 256 + table, [-1, 1])
    return tf.reshape(tf.tensor_scatter_nd_add(tf.zeros([tf.size(counts)], tf.int32), places, tf.reshape(counts, [-1])), shape)


def histogram(image: tf.Tensor) -> tf.Tensor:
    """Counts the pixels of each value: int32 `(n, channels, 256)` for images `(n, height, width, channels)`.

    One image after another, so that the places of its pixels stay in the processor's cache: in XLA that takes a quarter
    of what one scatter over the batch does. Counts are whole numbers, so the order of the sum does not show.
    """
    channels = int(image.shape[-1])

    def one(single: tf.Tensor) -> tf.Tensor:
        values = tf.reshape(tf.cast(as_bytes(single), tf.int32), [-1, channels])
        places = tf.reshape(values + tf.range(channels) * 256, [-1, 1])
        ones = tf.ones([tf.shape(places)[0]], tf.int32)
        return tf.reshape(tf.tensor_scatter_nd_add(tf.zeros([channels * 256], tf.int32), places, ones), [channels, 256])

    return tf.map_fn(one, image, fn_output_signature=tf.TensorSpec([channels, 256], tf.int32))


def look_up(image: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
    """uint8 of the shape of `image` `(n, height, width, channels)`: each value read through its example's table."""
    tables = int(table.shape[1])
    index = tf.cast(as_bytes(image), tf.int32)
    if tables > 1:
        index = index + tf.range(tables) * 256
    n = tf.shape(index)[0]
    flat = tf.reshape(tf.cast(table, tf.uint8), [n, tables * 256])
    values = tf.gather(flat, tf.reshape(index, [n, -1]), batch_dims=1)
    done = tf.reshape(values, tf.shape(index))
    done.set_shape(image.shape)
    return done
