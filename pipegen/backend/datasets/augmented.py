"""Several views of each example as rows behind one another, for predictions that are merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pipegen.backend.datasets.derived import DerivedDataset
from pipegen.backend.datasets.pipeline_dataset import PipelineDataset


class Augmented(DerivedDataset):
    """Batches of rows for `model.predict`: the views of an example stand behind one another, and examples in the order of their split.

    Attributes:
        views: How many views of each example there are.
    """

    def __init__(self, inner: tf.data.Dataset, source: PipelineDataset, views: int) -> None:
        self.views = views
        super().__init__(inner, source, source.cardinality())

    def __repr__(self) -> str:
        return f"<{int(self.cardinality())} batches of {self.views} views of each example: {self.element_spec}>"


def together(views: Sequence[PipelineDataset]) -> Augmented:
    """Puts the views of each example behind one another.

    Raises:
        ValueError: Where views have other shapes than the first one.
    """
    first = views[0].element_spec
    for number, other in enumerate(views[1:], 1):
        if other.element_spec != first:
            raise ValueError(f"view {number} gives {other.element_spec}, and the first one {first}: rows of a batch have one shape")

    def rows(*parts: Any) -> Any:
        return tf.nest.map_structure(_behind_one_another, *parts)

    joined = tf.data.Dataset.zip(tuple(views)).map(rows, num_parallel_calls=1, deterministic=True).prefetch(1)
    return Augmented(joined, views[0], len(views))


def _behind_one_another(*parts: tf.Tensor) -> tf.Tensor:
    """Interleaves the rows of several tensors; ragged ones too."""
    if isinstance(parts[0], tf.RaggedTensor):
        n = parts[0].nrows()
        order = tf.reshape(tf.transpose(tf.reshape(tf.range(n * len(parts)), [len(parts), n])), [-1])
        return tf.gather(tf.concat(parts, 0), order)
    stacked = tf.stack(parts, 1)
    rows = None if parts[0].shape[0] is None else parts[0].shape[0] * len(parts)
    done = tf.reshape(stacked, tf.concat([[-1], tf.shape(stacked)[2:]], 0))
    done.set_shape([rows, *parts[0].shape[1:]])
    return done
