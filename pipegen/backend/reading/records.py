"""The records of one split as tensors: where they are or what they hold, what they are called, and their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.index.order import Blocks
from pipegen.backend.index.shards import ShardTensors
from pipegen.backend.process.budget import ram_budget
from pipegen.backend.reading.rows import readers
from pipegen.errors import InternalError

if TYPE_CHECKING:
    import numpy as np

    from pipegen.backend.reading.rows import Reader
    from pipegen.data.manifest import Manifest
    from pipegen.data.shards.selected import InShards
    from pipegen.spec.models import Runtime
    from pipegen.types import ElementType

_WINDOW = 2**30
"""Bytes of a window where a spec shuffles globally and a record cannot be read by itself: 1 GiB."""


@dataclass(frozen=True)
class Records:
    """The records of a split, in source order.

    Attributes:
        paths: Absolute paths; with `contents`, names for messages.
        ids: 64-bit example ids, which key the draws.
        labels: Class indices, or `None`.
        mean_bytes: The mean size of a stored record.
        contents: Encoded images held in memory, in place of files.
        arrays: For records that are rows of arrays: what reads rows of each feature, in place of files.
        rows: The row of each record in those arrays.
        columns: Features of which each record holds a few numbers: an array `(n, ...)` each, in the order of the records.
        beside: Where a record has several files: the absolute paths of the others, by feature.
        in_shards: For records that lie many in a file, in place of files, `ids` and `labels`: where they lie and what reads them.
    """

    paths: Sequence[str]
    ids: Sequence[int]
    labels: Sequence[int] | None
    mean_bytes: float = 0.0
    contents: Sequence[bytes] | None = None
    arrays: Mapping[str, Reader] = field(default_factory=dict)
    rows: Sequence[int] | None = None
    columns: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    beside: Mapping[str, Sequence[str]] = field(default_factory=dict)
    in_shards: InShards | None = None

    def path(self, record: int, feature: str | None = None) -> str:
        """The file of a feature of one record."""
        return self.beside.get(feature or "", self.paths)[record]

    def files(self, read: ElementType) -> list[Sequence[str]]:
        """The files of the records that are read, one column after another; none where records are held in memory."""
        if self.contents is not None or self.rows is not None or self.in_shards is not None:
            return []
        return [self.beside.get(name, self.paths) for name in files_of(read)]

    def __len__(self) -> int:
        return len(self.paths)

    def blocks(self) -> Blocks | None:
        """How they lie in files that hold many, which their order heeds."""
        held = self.in_shards
        if held is None:
            return None
        window = max(1, int(_WINDOW / max(self.mean_bytes, 1.0))) if held.shards.by_block else None
        return Blocks(tf.constant(held.selected.starts), window)

    def tensors(self) -> RecordTensors | ShardedTensors:
        """The records as constants, made once and captured by every function that reads them."""
        with tf.device("CPU:0"):
            if self.in_shards is not None:
                return ShardedTensors(self.in_shards)
            words = tf.constant([(i >> 32, i & 0xFFFFFFFF) for i in self.ids] or [(0, 0)], tf.uint32)
            return RecordTensors(
                stored=tf.constant(list(self.contents if self.contents is not None else self.paths), tf.string),
                in_memory=self.contents is not None,
                id_high=words[:, 0],
                id_low=words[:, 1],
                labels=None if self.labels is None else tf.constant(list(self.labels), tf.int64),
                arrays=self.arrays,
                rows=None if self.rows is None else tf.constant(list(self.rows), tf.int64),
                columns={name: tf.constant(values) for name, values in self.columns.items()},
                beside={name: tf.constant(list(paths), tf.string) for name, paths in self.beside.items()},
            )


def files_of(read: ElementType) -> tuple[str, ...]:
    """The features of a record that are files of their own."""
    return tuple(name for name, t in read.items() if t.kind == "encoded")


@dataclass(frozen=True)
class RecordTensors:
    """The same, as tensors of one row a record."""

    stored: tf.Tensor
    in_memory: bool
    id_high: tf.Tensor
    id_low: tf.Tensor
    labels: tf.Tensor | None
    arrays: Mapping[str, Reader] = field(default_factory=dict)
    rows: tf.Tensor | None = None
    columns: Mapping[str, tf.Tensor] = field(default_factory=dict)
    beside: Mapping[str, tf.Tensor] = field(default_factory=dict)

    def id_words(self, record: tf.Tensor, *, jit: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        """The low and the high words of the ids of records `(n,)`: uint32 `(n,)` each; there is nothing here for XLA to compile."""
        return tf.gather(self.id_low, record), tf.gather(self.id_high, record)

    def indexed(self, feature: str, record: tf.Tensor) -> tf.Tensor:
        """Returns what is held in memory of a feature for every record: of one, or stacked for records `(n,)`."""
        values = self.columns.get(feature, self.labels)
        if values is None:
            raise InternalError(f"`{feature}` was asked of records that have no label")
        return tf.gather(values, record)

    def take(self, feature: str, record: tf.Tensor) -> tf.Tensor:
        """Returns what the arrays hold of a feature: of one record, or stacked for records `(n,)`."""
        return self.arrays[feature](record if self.rows is None else tf.gather(self.rows, record))

    def read(self, feature: str, record: tf.Tensor) -> tf.Tensor:
        """The stored bytes of one record's feature: a string scalar."""
        stored, is_path = self._stored(feature)
        found = tf.gather(stored, record)
        return tf.io.read_file(found) if is_path else found

    def read_each(self, feature: str, records: tf.Tensor, count: int) -> list[tf.Tensor]:
        """The same of `count` records, a scalar each."""
        stored, is_path = self._stored(feature)
        if not is_path:  # bytes, which taking apart would copy once more
            return [tf.gather(stored, record) for record in tf.unstack(records, num=count)]
        return [tf.io.read_file(path) for path in tf.unstack(tf.gather(stored, records), num=count)]

    def _stored(self, feature: str) -> tuple[tf.Tensor, bool]:
        """Returns what is stored of a feature of every record, and whether that is where its file is."""
        if feature in self.beside:
            return self.beside[feature], True
        return self.stored, not self.in_memory


class ShardedTensors:
    """The same of records that lie many in a file: what is looked up elsewhere is worked out here, of a batch at a time."""

    def __init__(self, held: InShards) -> None:
        self._places = ShardTensors(held.selected, held.bases)
        self._read = held.shards.read

    def id_words(self, record: tf.Tensor, *, jit: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        """The low and the high words of the ids of records `(n,)`: uint32 `(n,)` each."""
        return self._places.id_words(record, jit=jit)

    def take(self, feature: str, record: tf.Tensor) -> tf.Tensor:
        """Reads a feature: of one record, or stacked for records `(n,)`."""
        shard, row = self._places.locate(tf.reshape(record, [-1]))
        return self._read(feature, tf.reshape(shard, tf.shape(record)), tf.reshape(row, tf.shape(record)))

    indexed = read = take

    def read_each(self, feature: str, records: tf.Tensor, count: int) -> list[tf.Tensor]:
        """The same of `count` records, a scalar each."""
        shard, row = self._places.locate(records)
        return [self._read(feature, *place) for place in zip(tf.unstack(shard, num=count), tf.unstack(row, num=count), strict=True)]


def records_from(manifest: Manifest, split: str, read: ElementType, runtime: Runtime) -> Records:
    """The records of a split, as far as a plan reads them: `read` is the type of what it does."""
    held = manifest.in_shards(split)
    if held is not None:
        return Records(manifest.files(split), (), None, manifest.mean_bytes(split), in_shards=held)
    common = (manifest.files(split), manifest.ids(split), manifest.labels(split), manifest.mean_bytes(split))
    columns = manifest.columns(split)
    found = manifest.rows(split)
    if found is None:
        return Records(*common, columns=columns, beside=manifest.beside(split))
    rows, numbers = found
    return Records(*common, arrays=readers(rows, tuple(read), ram_budget(runtime)), rows=numbers, columns=columns)
