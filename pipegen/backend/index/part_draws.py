"""The random numbers of a mix: as those of any spec, but which steps an example goes through, its part says."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
import tensorflow as tf

from pipegen.backend.index.draws import Draws, numbers_of
from pipegen.backend.process.xla import compiled
from pipegen.spec.steps import step_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.plan.nodes import Index


class Parted(Protocol):
    """Knows the ids of records, and the part that each is of."""

    def words(self, record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]: ...

    def part_of(self, record: tf.Tensor) -> tf.Tensor: ...


class MixedDraws(Draws):
    """The draws of a plan of a mix: each part has its own ids of steps, and its own places in the vector."""

    def __init__(self, seed: int, index: Index) -> None:
        super().__init__(seed, (), scheduled=index.scheduled)
        self.num_draws = index.width
        self._steps: np.ndarray = np.zeros((len(index.parts), index.width), np.uint32)
        self._numbers = self._steps.copy()
        for i, part in enumerate(index.parts):
            for ref in part.draws:
                for number in range(ref.num_draws):
                    self._steps[i, ref.start + number] = step_hash(ref.id)
                    self._numbers[i, ref.start + number] = number

    def _draw(self, records: Parted, record: tf.Tensor, epoch: tf.Tensor, occurrence: tf.Tensor, *, jit: bool) -> tf.Tensor:  # type: ignore[override]
        part = records.part_of(record)
        step, number = (tf.gather(tf.constant(table), part) for table in (self._steps, self._numbers))
        return _cipher(jit)(tf.constant(self._seed, tf.uint32), step, number, epoch, *records.words(record), occurrence)


@cache
def _cipher(jit: bool) -> Callable[..., tf.Tensor]:
    table, vector = [None, None], [None]
    shapes = [(vector, tf.uint32), (table, tf.uint32), (table, tf.uint32), (vector, tf.int64), *[(vector, tf.uint32)] * 3]
    signature = [tf.TensorSpec(shape, dtype) for shape, dtype in shapes]
    return compiled(numbers_of, signature, jit=jit)
