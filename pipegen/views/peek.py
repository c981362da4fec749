"""A look at the next examples that changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from pipegen.backend.datasets.pipeline_dataset import PipelineDataset
    from pipegen.backend.running.execute import Executor
    from pipegen.physical.position import Position


def peek(executor: Executor, dataset: Callable[[Position], PipelineDataset], at: Position, n: int) -> Any:
    """The next `n` examples as NumPy arrays, or fewer at the end of a split that is not trained on.

    `dataset` gives what is left of an epoch from a position on.
    """
    batches: list[Any] = []
    seen = 0
    while seen < n:
        before = seen
        for batch in dataset(at):
            batches.append(tf.nest.map_structure(lambda t: t.numpy(), batch))
            seen += len(tf.nest.flatten(batches[-1])[0])
            if seen >= n:
                break
        at = at.begin(at.epoch + 1)
        if seen == before or executor.plan.split != "train":
            break
    return tf.nest.map_structure(lambda *parts: np.concatenate(_padded(parts))[:n], *batches)


def _padded(parts: Sequence[Any]) -> Sequence[Any]:
    """Batches of one shape: where their lengths differ, or the sizes of their images, zeros pad the smaller ones at the end."""
    if len({part.shape[1:] for part in parts}) == 1:
        return parts
    most = [max(sides) for sides in zip(*(part.shape[1:] for part in parts), strict=True)]
    return [np.pad(part, [(0, 0), *((0, side - own) for side, own in zip(most, part.shape[1:], strict=True))]) for part in parts]
