"""The records of one split as tensors: where they are or what they hold, what they are called, and their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from pipegen.backend.reading.columns import Column, Paths
from pipegen.backend.reading.rows import readers
from pipegen.backend.reading.shards import ShardedTensors
from pipegen.errors import InternalError
from pipegen.memory import ram_budget
from pipegen.ops.kinds.ragged import Ragged

if TYPE_CHECKING:
    from pipegen.backend.reading.rows import Reader
    from pipegen.data.manifest import Manifest
    from pipegen.data.shards.selected import InShards
    from pipegen.ops.sources.strings import Ints
    from pipegen.spec.models import Runtime
    from pipegen.types import ElementType


@dataclass(frozen=True)
class Records:
    """The records of a split, in source order.

    Attributes:
        paths: Absolute paths; with `contents`, names for messages.
        ids: 64-bit example ids, which key the draws; with `members`, of more records than these.
        labels: Class indices, or `None`; likewise.
        mean_bytes: The mean size of a stored record.
        contents: Encoded images held in memory, in place of files.
        arrays: For records that are rows of arrays: what reads rows of each feature, in place of files.
        rows: The row of each record in those arrays.
        columns: Features of which each record holds a few numbers: an array `(n, ...)` each, in the order of the records.
        beside: Where a record has several files: the absolute paths of the others, by feature.
        members: Which of the records that have `ids` and `labels` these are; `None` for all.
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
    members: Ints | None = None
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

    def tensors(self) -> RecordTensors | ShardedTensors:
        """The records as functions read them, made once for all."""
        with tf.device("CPU:0"):
            if self.in_shards is not None:
                return ShardedTensors(self.in_shards)
            contents = None if self.contents is None else tf.constant(list(self.contents), tf.string)
            ragged = {name: _ragged(values) for name, values in self.columns.items() if isinstance(values, Ragged)}
        members = None if self.members is None else Column(self.members)
        return RecordTensors(
            paths={"": Paths(self.paths)} | {name: Paths(paths) for name, paths in self.beside.items()},
            contents=contents,
            ids=Column(np.asarray(self.ids, "<u8").view("<u4").reshape(-1, 2), members),
            labels=None if self.labels is None else Column(np.asarray(self.labels, np.int32), members),
            arrays=self.arrays,
            rows=None if self.rows is None else Column(self.rows),
            columns={name: Column(values) for name, values in self.columns.items() if name not in ragged},
            ragged=ragged,
        )


def files_of(read: ElementType) -> tuple[str, ...]:
    """The features of a record that are files of their own."""
    return tuple(name for name, t in read.items() if t.encoded)


@dataclass(frozen=True)
class RecordTensors:
    """The same, as functions read them.

    Attributes:
        paths: The files of every record by feature; those of features without files of their own under the empty name.
        contents: Encoded images held in memory, in place of files.
        ids: The lower and the upper half of each id, uint32 `(n, 2)`.
        labels: Class indices, int32.
    """

    paths: Mapping[str, Paths]
    contents: tf.Tensor | None
    ids: Column
    labels: Column | None
    arrays: Mapping[str, Reader] = field(default_factory=dict)
    rows: Column | None = None
    columns: Mapping[str, Column] = field(default_factory=dict)
    ragged: Mapping[str, tf.RaggedTensor] = field(default_factory=dict)

    def words(self, record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the lower and the upper half of the ids of records `(n,)`, uint32."""
        low, high = tf.unstack(self.ids(record), axis=-1)
        return low, high

    def path(self, record: tf.Tensor, features: Iterable[str] = ("",)) -> tf.Tensor:
        """Returns the file of one record, a string scalar; of several features, one or the other."""
        return tf.strings.join([self._paths(name).one(record) for name in features], " or ")

    def indexed(self, feature: str, record: tf.Tensor) -> tf.Tensor:
        """Returns what is held in memory of a feature for every record: of one, or stacked for records `(n,)`."""
        if feature in self.columns:
            return self.columns[feature](record)
        if self.labels is None:
            raise InternalError(f"`{feature}` was asked of records that have no label")
        return tf.cast(self.labels(record), tf.int64)

    def padded(self, feature: str, record: tf.Tensor, shape: tuple[int | None, ...]) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the items of one record and which places hold one, padded to `shape` with zeros; or of records `(n,)`, stacked."""
        items = self.ragged[feature]
        values, ends = items.flat_values, tf.gather(items.row_splits, tf.stack([record, record + 1], -1))
        place = ends[..., :1] + tf.range(shape[0] or 0, dtype=tf.int64)
        there = place < ends[..., 1:]
        return tf.gather(values, tf.where(there, place, tf.shape(values, tf.int64)[0] - 1)), there

    def take(self, feature: str, record: tf.Tensor) -> tf.Tensor:
        """Returns what the arrays hold of a feature: of one record, or stacked for records `(n,)`."""
        return self.arrays[feature](record if self.rows is None else self.rows(record))

    def read(self, feature: str, record: tf.Tensor) -> tf.Tensor:
        """The stored bytes of one record's feature: a string scalar."""
        return self.read_each(feature, record[None], 1)[0]

    def read_each(self, feature: str, records: tf.Tensor, count: int) -> list[tf.Tensor]:
        """The same of `count` records, a scalar each."""
        if self.contents is not None and feature not in self.paths:  # bytes, which taking apart would copy once more
            return [tf.gather(self.contents, record) for record in tf.unstack(records, num=count)]
        return [tf.io.read_file(path) for path in tf.unstack(self._paths(feature).each(records), num=count)]

    def _paths(self, feature: str) -> Paths:
        return self.paths.get(feature) or self.paths[""]


def _ragged(values: Ragged) -> tf.RaggedTensor:
    """A ragged column as a tensor; behind its items stands an item of zeros."""
    items = tf.concat([values.values, tf.zeros([1, *values.values.shape[1:]], values.dtype)], 0)
    splits = tf.concat([[0], tf.cumsum(tf.constant(values.lengths, tf.int64))], 0)
    return tf.RaggedTensor.from_row_splits(items, splits, validate=False)


def records_from(manifest: Manifest, split: str, read: ElementType, runtime: Runtime) -> Records:
    """The records of a split, as far as a plan reads them: `read` is the type of what it does."""
    held = manifest.in_shards(split)
    if held is not None:
        return Records(manifest.files(split), (), None, manifest.mean_bytes(split), in_shards=held)
    # Tensors share the memory of these columns, so that no split holds one of its own.
    common = (manifest.files(split), manifest.all_ids, manifest.listing.labels, manifest.mean_bytes(split))
    columns = manifest.columns(split)
    for name, values in columns.items():
        if isinstance(values, Ragged) and name in read and max(values.lengths, default=0) > (read[name].shape[0] or 0):
            raise InternalError(f"an example has more of `{name}` than its type has room for")
    members, found = manifest.members[split], manifest.rows(split)
    if found is None:
        return Records(*common, columns=columns, beside=manifest.beside(split), members=members)
    rows, numbers = found
    return Records(*common, arrays=readers(rows, tuple(read), ram_budget(runtime)), rows=numbers, columns=columns, members=members)
