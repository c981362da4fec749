"""Several examples of a batch in one call of the element stage: taken apart there, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

if TYPE_CHECKING:
    from pipegen.backend.lower import Features
    from pipegen.plan.nodes import Element, Read

_REAL = "@real"
"""Whether a row is an example, or stands in for one to fill the last chunk."""


def size(batch: int, most: int) -> int:
    """The largest number up to `most` that `batch` is a multiple of."""
    return next(n for n in range(max(1, min(batch, most)), 0, -1) if batch % n == 0)


def cut(features: Features, chunk: int, *, full: bool) -> Features:
    """A batch's rows `(n, ...)` as chunks `(⌈n / chunk⌉, chunk, ...)`; where not every batch is full, the last row fills up."""
    if not full:
        n = tf.shape(features["@record"])[0]
        rows = tf.range(n + -n % chunk)
        features = {name: tf.gather(value, tf.minimum(rows, n - 1)) for name, value in features.items()} | {_REAL: rows < n}
    return {name: tf.reshape(value, tf.concat([[-1, chunk], tf.shape(value)[1:]], 0)) for name, value in features.items()}


def each(
    features: Features,
    nodes: Sequence[Read | Element],
    run: Callable[[Read | Element, list[Features]], None],
    chunk: int,
) -> Features:
    """A chunk `(chunk, ...)` after the nodes, which work on single examples.

    Args:
        features: What the index says of the examples.
        nodes: The nodes to run.
        run: Runs one of them on some examples, in place.
        chunk: Examples in a chunk.
    """
    given = {name: tf.unstack(features[name], num=chunk) for name in ("@record", "@draws")}
    examples = [{name: values[i] for name, values in given.items()} for i in range(chunk)]
    for node in nodes:
        run(node, examples)
    return features | {name: tf.stack([example[name] for example in examples]) for name, _ in nodes[-1].out.items()}


def joined(features: Features, batch: int, *, full: bool) -> Features:
    """Chunks `(k, chunk, ...)` as the batch that they were cut from."""
    rows = {name: tf.reshape(value, [batch if full else -1, *value.shape[2:]]) for name, value in features.items()}
    if full:
        return rows
    n = tf.reduce_sum(tf.cast(rows.pop(_REAL), tf.int32))
    return {name: value[:n] for name, value in rows.items()}
