"""The records of one split as tensors: where they are, what they are called, and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tensorflow as tf


@dataclass(frozen=True)
class Records:
    """The records of a split, in source order.

    Attributes:
        paths: Absolute paths; with `contents`, names for messages.
        ids: 64-bit example ids, which key the draws.
        labels: Class indices, or `None`.
        mean_bytes: The mean size of a stored record.
        contents: Encoded images held in memory, in place of files.
    """

    paths: Sequence[str]
    ids: Sequence[int]
    labels: Sequence[int] | None
    mean_bytes: float = 0.0
    contents: Sequence[bytes] | None = None

    def __len__(self) -> int:
        return len(self.paths)

    def tensors(self) -> RecordTensors:
        """The records as constants, made once and captured by every function that reads them."""
        with tf.device("CPU:0"):
            words = tf.constant([(i >> 32, i & 0xFFFFFFFF) for i in self.ids] or [(0, 0)], tf.uint32)
            return RecordTensors(
                stored=tf.constant(list(self.contents if self.contents is not None else self.paths), tf.string),
                in_memory=self.contents is not None,
                id_high=words[:, 0],
                id_low=words[:, 1],
                labels=None if self.labels is None else tf.constant(list(self.labels), tf.int64),
            )


@dataclass(frozen=True)
class RecordTensors:
    """The same, as tensors of one row a record."""

    stored: tf.Tensor
    in_memory: bool
    id_high: tf.Tensor
    id_low: tf.Tensor
    labels: tf.Tensor | None

    def read(self, record: tf.Tensor) -> tf.Tensor:
        """The stored bytes of one record: a string scalar."""
        stored = tf.gather(self.stored, record)
        return stored if self.in_memory else tf.io.read_file(stored)
