"""`tfrecord`: TFRecord files of `tf.Example` messages, with the keys that TensorFlow's own models read."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

import tensorflow as tf

from pipegen.ops.sources.prepared_store.layout import RECORDS
from pipegen.preparing.formats.base import ShardFormat
from pipegen.preparing.formats.messages import message_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pipegen.preparing.formats.base import Add, Record

_HEAD, _TAIL = 12, 4
"""Bytes before a message, its length and the checksum of that, and behind it, its own checksum."""


class Format(ShardFormat):
    """Writes messages by TensorFlow, with its checksums."""

    suffix: ClassVar[str] = ".tfrecord"

    @contextmanager
    def writer(self, files: Mapping[str, Path]) -> Iterator[Add]:
        """Open a file; where an encoded image lies in it follows from the lengths of what is written before."""
        at = 0
        try:
            with tf.io.TFRecordWriter(str(files[RECORDS])) as stream:

                def add(record: Record) -> dict[str, tuple[int, int]]:
                    nonlocal at
                    message = message_of(record, self.described)
                    stream.write(message)
                    places = {}
                    for name in self.described.pixels:
                        content = record.values[name]
                        places[f"@place.{name}"] = (at + _HEAD + message.index(content), len(content))
                    at += _HEAD + len(message) + _TAIL
                    return places

                yield add
        except tf.errors.OpError as error:  # whatever the system refuses
            raise OSError(error.message) from None

    def num_bytes(self, record: Record) -> int:
        return _HEAD + len(message_of(record, self.described)) + _TAIL

    def same(self, files: Mapping[str, Path], records: Iterable[Record]) -> bool:
        stored = tf.data.TFRecordDataset(str(files[RECORDS])).as_numpy_iterator()
        return all(next(stored, None) == message_of(record, self.described) for record in records)
