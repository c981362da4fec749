"""The records of one split as tensors: where they are or what they hold, what they are called, and their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from pipegen.backend.index.order import Blocks
from pipegen.backend.index.shards import ShardTensors
from pipegen.backend.process.budget import ram_budget
from pipegen.backend.reading.paths import Paths
from pipegen.backend.reading.rows import readers
from pipegen.errors import InternalError
from pipegen.ops.kinds.ragged import Ragged

if TYPE_CHECKING:
    from pipegen.backend.reading.rows import Reader
    from pipegen.data.manifest import Manifest
    from pipegen.data.shards.selected import InShards
    from pipegen.ops.sources.strings import Ints
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
    ids: Ints | Sequence[int]
    labels: Ints | Sequence[int] | None
    mean_bytes: float = 0.0
    contents: Sequence[bytes] | None = None
    arrays: Mapping[str, Reader] = field(default_factory=dict)
    rows: Ints | None = None
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
        """Returns how they lie in files that hold many, for their order."""
        held = self.in_shards
        if held is None:
            return None
        window = max(1, int(_WINDOW / max(self.mean_bytes, 1.0))) if held.shards.by_block else None
        return Blocks(tf.constant(held.selected.starts), window)

    def tensors(self) -> RecordTensors | ShardedTensors:
        """The records as constants, made once and captured by every function that reads them."""
        ids = np.asarray(self.ids, "<u8").view("<u4").reshape(-1, 2)
        with tf.device("CPU:0"):
            if self.in_shards is not None:
                return ShardedTensors(self.in_shards)
            return RecordTensors(
                paths={"": Paths(self.paths)} | {name: Paths(paths) for name, paths in self.beside.items()},
                contents=None if self.contents is None else tf.constant(list(self.contents), tf.string),
                id_high=tf.constant(ids[:, 1]),
                id_low=tf.constant(ids[:, 0]),
                labels=None if self.labels is None else tf.constant(np.asarray(self.labels, np.int32)),
                arrays=self.arrays,
                rows=None if self.rows is None else tf.constant(self.rows, tf.int64),
                columns={name: _held(values) for name, values in self.columns.items()},
            )


def files_of(read: ElementType) -> tuple[str, ...]:
    """The features of a record that are files of their own."""
    return tuple(name for name, t in read.items() if t.encoded)


@dataclass(frozen=True)
class RecordTensors:
    """The same, as tensors of one row a record.

    Attributes:
        paths: The files of every record by feature; those of features without files of their own under the empty name.
    """

    paths: Mapping[str, Paths]
    contents: tf.Tensor | None
    id_high: tf.Tensor
    id_low: tf.Tensor
    labels: tf.Tensor | None
    arrays: Mapping[str, Reader] = field(default_factory=dict)
    rows: tf.Tensor | None = None
    columns: Mapping[str, tf.Tensor] = field(default_factory=dict)

    def path(self, record: tf.Tensor, features: Iterable[str] = ("",)) -> tf.Tensor:
        """Returns the file of one record, a string scalar; of several features, one or the other."""
        return tf.strings.join([self._paths(name).one(record) for name in features], " or ")

    def words(self, record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the lower and the upper half of the ids of records `(n,)`, uint32."""
        return tf.gather(self.id_low, record), tf.gather(self.id_high, record)

    def indexed(self, feature: str, record: tf.Tensor) -> tf.Tensor:
        """Returns what is held in memory of a feature for every record: of one, or stacked for records `(n,)`."""
        if feature in self.columns:
            return tf.gather(self.columns[feature], record)
        if self.labels is None:
            raise InternalError(f"`{feature}` was asked of records that have no label")
        return tf.cast(tf.gather(self.labels, record), tf.int64)

    def padded(self, feature: str, record: tf.Tensor, shape: tuple[int | None, ...]) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the items of one record and which places hold one, padded to `shape` with zeros; or of records `(n,)`, stacked."""
        items = self.columns[feature]
        values, ends = items.flat_values, tf.gather(items.row_splits, tf.stack([record, record + 1], -1))
        place = ends[..., :1] + tf.range(shape[0] or 0, dtype=tf.int64)
        there = place < ends[..., 1:]
        return tf.gather(values, tf.where(there, place, tf.shape(values, tf.int64)[0] - 1)), there

    def take(self, feature: str, record: tf.Tensor) -> tf.Tensor:
        """Returns what the arrays hold of a feature: of one record, or stacked for records `(n,)`."""
        return self.arrays[feature](record if self.rows is None else tf.gather(self.rows, record))

    def read(self, feature: str, record: tf.Tensor) -> tf.Tensor:
        """The stored bytes of one record's feature: a string scalar."""
        return self.read_each(feature, record[None], 1)[0]

    def read_each(self, feature: str, records: tf.Tensor, count: int) -> list[tf.Tensor]:
        """The same of `count` records, a scalar each."""
        if self.contents is not None and feature not in self.paths:  # bytes, which taking apart would copy once more
            return [tf.gather(self.contents, record) for record in tf.unstack(records, num=count)]
        return [tf.io.read_file(path) for path in self._paths(feature).each(records, count)]

    def _paths(self, feature: str) -> Paths:
        return self.paths.get(feature) or self.paths[""]


class ShardedTensors:
    """The same of records that lie many in a file: what is looked up elsewhere is worked out here, of a batch at a time."""

    def __init__(self, held: InShards) -> None:
        self._places = ShardTensors(held.selected, held.bases)
        self._numbers = tf.constant(held.shards.numbers)
        self._shards = held.shards
        self._files = Paths(held.files)

    def path(self, record: tf.Tensor, features: Iterable[str] = ()) -> tf.Tensor:
        """Returns the file of one record and its row there, a string scalar."""
        shard, row = self._places.locate(record[None])
        return tf.strings.join([self._files.one(shard[0]), tf.strings.as_string(row[0])], "#")

    def words(self, record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the lower and the upper half of the ids of records `(n,)`, uint32."""
        return self._places.words(record)

    def take(self, feature: str, record: tf.Tensor) -> tf.Tensor:
        """Reads a feature: of one record, or stacked for records `(n,)`."""
        file, row = self._located(tf.reshape(record, [-1]))
        return self._shards.read(feature, tf.reshape(file, tf.shape(record)), tf.reshape(row, tf.shape(record)))

    indexed = read = take

    def padded(self, feature: str, record: tf.Tensor, shape: tuple[int | None, ...]) -> tuple[tf.Tensor, tf.Tensor]:
        """Refuses: how many items each record has is known of columns alone."""
        raise InternalError(f"`{feature}` is ragged, and a source of shards lists no columns")

    def read_each(self, feature: str, records: tf.Tensor, count: int) -> list[tf.Tensor]:
        """The same of `count` records, a scalar each."""
        file, row = self._located(records)
        places = zip(tf.unstack(file, num=count), tf.unstack(row, num=count), strict=True)
        return [self._shards.read(feature, *place) for place in places]

    def _located(self, records: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The numbers of the files of records `(n,)` and their rows there."""
        shard, row = self._places.locate(records)
        return tf.gather(self._numbers, shard), row


def _held(values: Any) -> tf.Tensor | tf.RaggedTensor:
    """A column as a tensor; behind the items of a ragged one stands an item of zeros."""
    if not isinstance(values, Ragged):
        return tf.constant(values)
    items = tf.concat([values.values, tf.zeros([1, *values.values.shape[1:]], values.dtype)], 0)
    splits = tf.concat([[0], tf.cumsum(tf.constant(values.lengths, tf.int64))], 0)
    return tf.RaggedTensor.from_row_splits(items, splits, validate=False)


def records_from(manifest: Manifest, split: str, read: ElementType, runtime: Runtime) -> Records:
    """The records of a split, as far as a plan reads them: `read` is the type of what it does."""
    held = manifest.in_shards(split)
    if held is not None:
        return Records(manifest.files(split), (), None, manifest.mean_bytes(split), in_shards=held)
    common = (manifest.files(split), manifest.ids(split), manifest.labels(split), manifest.mean_bytes(split))
    columns = manifest.columns(split)
    for name, values in columns.items():
        if isinstance(values, Ragged) and name in read and max(values.lengths, default=0) > (read[name].shape[0] or 0):
            raise InternalError(f"an example has more of `{name}` than its type has room for")
    found = manifest.rows(split)
    if found is None:
        return Records(*common, columns=columns, beside=manifest.beside(split))
    rows, numbers = found
    return Records(*common, arrays=readers(rows, tuple(read), ram_budget(runtime)), rows=numbers, columns=columns)
