"""Several examples of a batch in one call of the element stage: taken apart there, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import tensorflow as tf

from pipegen.backend.lower import Features, survey, surveyed
from pipegen.plan.nodes import Element, Read

Run: TypeAlias = Callable[[Read | Element, Features, Mapping[str, tf.Tensor]], None]

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


def each(features: Features, nodes: Sequence[Read | Element], run: Run, chunk: int) -> Features:
    """A chunk `(chunk, ...)` after the nodes, which work on single examples.

    Files are read and surveyed side by side. What follows is traced once, and TensorFlow writes it into the graph for each example.

    Args:
        features: What the index says of the examples.
        nodes: The nodes to run: Read, then Element.
        run: Runs a node on one example, in place, with its rows of the surveys by feature.
        chunk: Examples in a chunk.
    """
    given = {name: tf.unstack(features[name], num=chunk) for name in ("@record", "@draws")}
    examples = [{name: values[i] for name, values in given.items()} for i in range(chunk)]
    reads = [node for node in nodes if isinstance(node, Read)]
    elements = [node for node in nodes if isinstance(node, Element)]
    for node in reads:
        for example in examples:
            run(node, example, {})
    surveys = {stage.feature: survey(stage, examples) for node in elements for stage in node.stages if surveyed(stage)}
    found = [{name: rows[i] for name, rows in surveys.items()} for i in range(chunk)]
    out = nodes[-1].out

    def rest(example: Features, own: Mapping[str, tf.Tensor]) -> Features:
        done = dict(example)
        for node in elements:
            run(node, done, own)
        return {name: done[name] for name, _ in out.items()}

    one = tf.function(rest, autograph=False)
    results = [one(example, own) for example, own in zip(examples, found, strict=True)]
    return features | {name: tf.stack([result[name] for result in results]) for name, _ in out.items()}


def joined(features: Features, batch: int, *, full: bool) -> Features:
    """Chunks `(k, chunk, ...)` as the batch that they were cut from."""
    rows = {name: tf.reshape(value, [batch if full else -1, *value.shape[2:]]) for name, value in features.items()}
    if full:
        return rows
    n = tf.reduce_sum(tf.cast(rows.pop(_REAL), tf.int32))
    return {name: value[:n] for name, value in rows.items()}
