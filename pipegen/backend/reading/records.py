"""The records of one split as tensors: where they are, what reads them, what they are called, and their labels."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from pipegen.backend.reading.columns import Column, Paths
from pipegen.backend.reading.shards import MappedShards, ShardTensors
from pipegen.errors import InternalError
from pipegen.memory import ram_budget
from pipegen.ops.families.crops import place_name, size_name, store_name
from pipegen.ops.kinds.packed import Packed
from pipegen.ops.kinds.ragged import Ragged
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.lowering.fetched import FetchedFiles
from pipegen.ops.lowering.stored import StoredPixels
from pipegen.ops.sources.listing.reader import FileReader
from pipegen.ops.sources.listing.strings import aligned
from pipegen.ops.sources.prepared_store.rows import StoredShards
from pipegen.types import ElementType, valid_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.backend.features import Features
    from pipegen.data.manifest import Manifest
    from pipegen.data.shards import InShards
    from pipegen.ops.sources.listing.reader import Read, Reader
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.spec.models import Runtime


@dataclass(frozen=True)
class Records:
    """The records of a split, in source order.

    Attributes:
        paths: What each is called in errors: its file, or its row, or the file that holds it and its row there.
        ids: 64-bit example ids, which key the draws; with `members`, of more records than these; none for records in shards.
        labels: Class indices, or `None`; likewise.
        mean_bytes: The mean size of a stored record.
        reader: What reads the features that are in no column.
        features: Those that are read.
        ram_budget: Bytes of memory that the reader may use.
        rows: The row of each record, where it is read by that, in place of a file.
        columns: Features of which each record holds a few numbers: an array `(n, ...)` each, in the order of the records.
        beside: Where a record has several files: the absolute paths of the others, by feature.
        members: Which of the records that have `ids` and `labels` these are; `None` for all.
        blocks: The first record of each block that records lie in or are read by, int64 with the end; `None` where each is by itself.
        in_shards: For records that lie many in a file, in place of files, `ids` and `labels`: where they lie.
    """

    paths: Sequence[str]
    ids: Ints | Sequence[int]
    labels: Ints | Sequence[int] | None = None
    mean_bytes: float = 0.0
    reader: Reader = field(default_factory=FileReader)
    features: tuple[str, ...] = ()
    ram_budget: int = 0
    rows: Ints | None = None
    columns: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    beside: Mapping[str, Sequence[str]] = field(default_factory=dict)
    members: Ints | None = None
    blocks: Ints | None = None
    in_shards: InShards | None = None

    def locate(self, record: int, features: Iterable[str] = ()) -> str:
        """Says where a record is; of several features in files of their own, in one or the other."""
        files = {name if name in self.beside else "": None for name in features} or {"": None}
        return " or ".join(self.beside.get(name, self.paths)[record] for name in files)

    def files(self, read: ElementType) -> list[Sequence[str]]:
        """The files of the records that are read, one column after another, in archives too; none where a record is no file of its own."""
        if (self.rows is not None and not self.reader.archived) or self.in_shards is not None:
            return []
        return [self.beside.get(name, self.paths) for name in files_of(read)]

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def epoch_examples(self) -> int:
        """Returns the examples of an epoch: all of them, once."""
        return len(self)


def files_of(read: ElementType) -> tuple[str, ...]:
    """The features of a record that are files of their own."""
    return tuple(name for name, t in read.items() if t.encoded)


class RecordTensors:
    """The same, as functions read them, for single records or for `(n,)` at once. Made once for all functions."""

    def __init__(self, records: Records) -> None:
        with tf.device("CPU:0"):
            self._ragged = {name: _ragged(values) for name, values in records.columns.items() if isinstance(values, Ragged)}
            members = None if records.members is None else Column(records.members)
            self._places = _Table(records, members) if records.in_shards is None else _Shards(records.in_shards)
        together = records.reader.open_together(records.features, records.ram_budget, _held) if records.features else None
        self._together, self._read_together = together, frozenset(records.features if together is not None else ())
        alone = [name for name in records.features if name not in self._read_together]
        self._reads = {name: records.reader.open(name, records.ram_budget, _held) for name in alone}
        self._packed = {name: PackedBytes(values) for name, values in records.columns.items() if isinstance(values, Packed)}
        plain = records.columns.keys() - self._ragged.keys() - self._packed.keys()
        self._columns = {name: Column(values) for name, values in records.columns.items() if name in plain}
        self._labels = None if records.labels is None else Column(np.asarray(records.labels, np.int32), members)
        self.words = self._places.words
        """From records `(n,)` to the lower and the upper half of their ids, uint32."""
        self.path = self._places.path
        """From a record, and the features in question, to a string scalar that says where it is."""

    def locate(self, records: tf.Tensor, out: ElementType, in_place: Collection[str]) -> Features:
        """Returns what `read` does of records `(n,)`, but of images `in_place`, on canvases, which memory they lie in and where.

        A function that runs elsewhere has no such memory, and reads them.
        """
        found: Features = {}
        for name in in_place:
            read, (row,) = self._reads[name], self._places.at(name, records)
            assert isinstance(read, StoredPixels)  # noqa: S101 - nothing else has canvases
            memory = read.memory(row)
            if memory is not None:
                found |= {store_name(name): memory[0], place_name(name): memory[1], size_name(name): read.sizes(row)}
        return found | self.read(records, ElementType(tuple((name, t) for name, t in out.items() if store_name(name) not in found)))

    def read(self, record: tf.Tensor, out: ElementType) -> Features:
        """Returns the stored features of one record; where no record is a file, also of records `(n,)` at once."""
        together = self._of_records(out, tf.reshape(record, [-1]))
        sizes: Features = {}

        def one(name: str) -> tf.Tensor:
            if name not in together:
                read, place = self._reads[name], self._places.at(name, record)
                if not isinstance(read, StoredPixels) or out[name].shape != read.canvas:
                    return read(*place)
                sizes[size_name(name)] = read.sizes(*place)
                return read.canvases(*place)
            values = tf.stack(together[name]) if record.shape.rank and isinstance(together[name], list) else together[name]
            return values if record.shape.rank else values[0]

        return self._every(out, one, record, lambda values: values) | sizes

    def ahead(self, features: Features, out: ElementType) -> Features:
        """Begins to fetch what the examples of a step, `@record` `(n,)`, have on other machines; gives them back."""
        records = features["@record"]
        alone: list[Any] = [(read, self._places.at(name, records)) for name, read in self._reads.items() if name in out]
        begun = [read.ahead(*place) for read, place in alone]
        if self._together is not None:
            together: Any = self._together
            names = [name for name, _ in out.items() if name in self._read_together]
            begun.append(together.ahead(names, *self._places.at(names[0], records)))
        with tf.control_dependencies(begun):
            return features | {"@record": tf.identity(records)}

    def read_each(self, records: tf.Tensor, out: ElementType, count: int) -> dict[str, list[tf.Tensor]]:
        """Returns the same of `count` records, one by one: what each is looked up by is gathered for all at once."""

        def each(name: str) -> list[tf.Tensor]:
            if name in together:
                return together[name] if isinstance(together[name], list) else tf.unstack(together[name], num=count)
            if isinstance(self._reads[name], FetchedFiles):
                return tf.unstack(self._reads[name](*self._places.at(name, records)), num=count)
            places = zip(*(tf.unstack(part, num=count) for part in self._places.at(name, records)), strict=True)
            return [self._reads[name](*place) for place in places]

        with tf.name_scope("read"):
            together = self._of_records(out, tf.ensure_shape(records, [count]))
            return self._every(out, each, records, lambda values: tf.unstack(values, num=count))

    def _of_records(self, out: ElementType, records: tf.Tensor) -> dict[str, Any]:
        """Returns those features of records `(n,)` that are read in one go, lists of n tensors or `(n, ...)`, with their shapes."""
        names = [name for name, t in out.items() if name in self._read_together]
        if self._together is None or not names:
            return {}
        found = self._together(names, *self._places.at(names[0], records))
        for name in names:
            for value in found[name] if isinstance(found[name], list) else ():
                value.set_shape(out[name].shape)
            if not isinstance(found[name], list):
                found[name].set_shape([records.shape[0], *out[name].shape])
        return found

    def _every(self, out: ElementType, read: Callable[[str], Any], records: tf.Tensor, part: Callable[[tf.Tensor], Any]) -> dict[str, Any]:
        """The features of records: what is in a column is looked up and parted, what is not is read."""
        found = {}
        for name, t in out.items():
            kind = kind_of(t)
            if kind.ragged:
                found[name], there = map(part, self._padded(name, records, t.shape))
                if t.beside is None:
                    found[valid_name(name)] = there
            elif name in self._packed:
                found[name] = self._packed[name](records) if records.shape.rank == 0 else part(self._packed[name].each(records))
            elif not kind.valid:  # which comes with its items
                listed = self._indexed(name, records) if kind.indexed else None
                found[name] = read(name) if listed is None else part(listed)
        return found

    def _indexed(self, name: str, records: tf.Tensor) -> tf.Tensor | None:
        """Returns what a column lists; `None` where none does, and it is read with the record."""
        if name in self._columns:
            return self._columns[name](records)
        return None if self._labels is None else tf.cast(self._labels(records), tf.int64)

    def _padded(self, feature: str, record: tf.Tensor, shape: tuple[int | None, ...]) -> tuple[tf.Tensor, tf.Tensor]:
        """The items of records and which places hold one, padded to `shape` with zeros."""
        items = self._ragged[feature]
        values, ends = items.flat_values, tf.gather(items.row_splits, tf.stack([record, record + 1], -1))
        first, end = tf.split(ends, 2, -1)
        place = first + tf.range(shape[0] or 0, dtype=tf.int64)
        there = place < end
        return tf.gather(values, tf.where(there, place, tf.shape(values, tf.int64)[0] - 1)), there


def _ragged(values: Ragged) -> tf.RaggedTensor:
    """A ragged column as a tensor; behind its items stands an item of zeros."""
    items = tf.concat([values.values, tf.zeros([1, *values.values.shape[1:]], values.dtype)], 0)
    splits = tf.concat([[0], tf.cumsum(tf.constant(values.lengths, tf.int64))], 0)
    return tf.RaggedTensor.from_row_splits(items, splits, validate=False)


class PackedBytes:
    """Reads the bytes that the listing has of a feature of each record."""

    def __init__(self, values: Packed) -> None:
        self._bytes, self._starts, self._lengths = Column(values.values), Column(values.starts), Column(values.lengths)

    def __call__(self, record: tf.Tensor) -> tf.Tensor:
        """The bytes of one record: a string scalar."""
        start = self._starts(record)
        # TensorFlow makes a string of bytes in no other way: they are the end of a serialised tensor.
        length = self._lengths(record)
        text = tf.io.serialize_tensor(self._bytes(tf.range(start, start + length)))
        size = tf.cast(length, tf.int32)
        return tf.strings.substr(text, tf.strings.length(text) - size, size)

    def each(self, records: tf.Tensor) -> tf.Tensor:
        """The bytes of records `(n,)`, strings `(n,)`."""
        return tf.map_fn(self, records, fn_output_signature=tf.string)


class _Table:
    """Finds the records of a table: by their rows, or else by the paths of their files."""

    def __init__(self, records: Records, members: Column | None) -> None:
        self._ids = Column(np.asarray(records.ids, "<u8").view("<u4").reshape(-1, 2), members)
        self._paths = {"": Paths(records.paths)} | {name: Paths(paths) for name, paths in records.beside.items()}
        self._rows = None if records.rows is None else Column(records.rows)

    def words(self, record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        low, high = tf.unstack(self._ids(record), axis=-1)
        return low, high

    def path(self, record: tf.Tensor, features: Iterable[str] = ()) -> tf.Tensor:
        names = dict.fromkeys(name if name in self._paths else "" for name in features) or {"": None}
        return tf.strings.join([self._paths[name].one(record) for name in names], " or ")

    def at(self, feature: str, record: tf.Tensor) -> tuple[tf.Tensor, ...]:
        if self._rows is not None:
            return (self._rows(record),)
        paths = self._paths.get(feature) or self._paths[""]
        return (paths.each(record) if record.shape.rank else paths.one(record),)


class _Shards(ShardTensors):
    """Finds records by the numbers of the files that hold them and their rows there."""

    def __init__(self, held: InShards) -> None:
        super().__init__(held.selected, held.bases)
        self._numbers, self._files = tf.constant(held.numbers), Paths(held.files)

    def path(self, record: tf.Tensor, features: Iterable[str] = ()) -> tf.Tensor:
        shard, row = self.locate(record[None])
        return tf.strings.join([self._files.one(shard[0]), tf.strings.as_string(row[0])], "#")

    def at(self, feature: str, record: tf.Tensor) -> tuple[tf.Tensor, ...]:
        shard, row = (tf.reshape(part, tf.shape(record)) for part in self.locate(tf.reshape(record, [-1])))
        return tf.gather(self._numbers, shard), row


def _held(array: np.ndarray[Any, Any] | StoredShards) -> Read:
    """Reads rows of an array, or of encoded images as objects, from memory of ours: what becomes of the user's is the user's affair.

    Shards that are mapped stay in their files.
    """
    if isinstance(array, StoredShards):
        return MappedShards(array)
    if array.dtype != object:
        return Column(aligned([array]), mapped=False)
    with tf.device("CPU:0"):
        texts = tf.constant(array)
    return lambda row: tf.gather(texts, row)


def records_from(manifest: Manifest, split: str, read: ElementType, runtime: Runtime) -> Records:
    """The records of a split, as far as a plan reads them: `read` is the type of what it does."""
    labels, columns = manifest.listing.labels, manifest.columns(split)
    kinds = {name: kind_of(t) for name, t in read.items() if name not in columns}
    features = tuple(name for name, kind in kinds.items() if not kind.valid and (labels is None or not kind.indexed))
    about = manifest.mean_bytes(split), manifest.listing.reader(split), features, ram_budget(runtime)
    held = manifest.in_shards(split)
    if held is not None:
        return Records(manifest.files(split), (), None, *about, blocks=manifest.blocks(split), in_shards=held)
    for name, values in columns.items():
        if isinstance(values, Ragged) and name in read and max(values.lengths, default=0) > (read[name].shape[0] or 0):
            raise InternalError(f"an example has more of `{name}` than its type has room for")
    # Tensors share the memory of these columns, so that no split holds one of its own.
    beside, members = manifest.beside(split), manifest.members[split]
    rows, blocks = manifest.rows(split), manifest.blocks(split)
    return Records(manifest.files(split), manifest.all_ids, labels, *about, rows, columns, beside, members, blocks)
