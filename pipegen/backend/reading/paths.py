"""The paths of records as tensors: the bytes of all of them as one string, and where each begins.

A tensor of strings takes 24 bytes a string beside its text, and a constant of them in a traced function is part of its graph.
"""

from __future__ import annotations

import os
import re
from functools import cached_property
from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.ops.sources.strings import Collector, Strings

if TYPE_CHECKING:
    from collections.abc import Sequence

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")
"""What stands in a text for a byte of a file's name that is not valid UTF-8."""


class Paths:
    """Paths that functions capture. They are made eagerly, once one is asked for, and part of no function's graph."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    @cached_property
    def _tensors(self) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor | None]:
        """The bytes of all, where each begins and the last one ends, what stands before them, and which of these before each."""
        texts = Strings.hold(self._paths).packed()
        stored = texts.blob[: int(texts.bounds[-1])].tobytes()
        if _SURROGATE.search(stored) is not None:
            collected = Collector()
            collected.add_bytes([os.fsencode(path) for path in texts])
            texts = collected.strings()
            stored = texts.blob[: int(texts.bounds[-1])].tobytes()
        with tf.init_scope(), tf.device("CPU:0"):
            of = None if texts.of is None else tf.constant(texts.of)
            return tf.constant(stored), tf.constant(texts.bounds), tf.constant([*texts.prefixes]), of

    def each(self, records: tf.Tensor, count: int) -> list[tf.Tensor]:
        """The paths of `count` records `(count,)`: a string scalar each."""
        stored, bounds, every, of = self._tensors
        starts = tf.cast(tf.gather(bounds, records), tf.int64)
        spans = zip(
            tf.unstack(starts, num=count), tf.unstack(tf.cast(tf.gather(bounds, records + 1), tf.int64) - starts, num=count), strict=True
        )
        # Of a scalar a part is copied; taken at several places at once, the whole would be copied for each.
        parts = [tf.strings.substr(stored, start, length) for start, length in spans]
        prefixes = [every[0]] * count if of is None else tf.unstack(tf.gather(every, tf.gather(of, records)), num=count)
        return [tf.strings.join(text) for text in zip(prefixes, parts, strict=True)]

    def one(self, record: tf.Tensor) -> tf.Tensor:
        """The path of one record."""
        return self.each(record[None], 1)[0]
