"""The records of one split as tensors: their places, readers, names and labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import tensorflow as tf

from pipegen.backend.features import Features
from pipegen.backend.reading.manifest_columns import Column, Paths
from pipegen.backend.reading.sharded_records import MappedShards, ShardTensors
from pipegen.data.manifest import Manifest
from pipegen.data.shards import InShards
from pipegen.errors import InternalError
from pipegen.frozen import dataclass
from pipegen.memory import ram_budget
from pipegen.ops.families.crops import place_name, size_name, store_name
from pipegen.ops.fields.columns import Packed, Ragged
from pipegen.ops.fields.strings import Ints
from pipegen.ops.kinds.base import kind_of
from pipegen.ops.lowering.decoding import START, are_plain_jpegs
from pipegen.ops.lowering.fetched import FetchedFiles
from pipegen.ops.lowering.stored_readers import StoredPixels, string_of
from pipegen.ops.sources.listing.reader import FileReader, Read, Reader
from pipegen.ops.sources.prepared import StoredShards
from pipegen.spec.models import Runtime
from pipegen.types import ElementType, valid_name


@dataclass(frozen=True)
class Records:
    """The records of a split, in source order."""

    paths: Sequence[str]  # the name of each record in errors: its file, its row, or a file and the row in it
    ids: Ints | Sequence[int]  # 64-bit example ids, which key the draws; with `members`, those of all records; empty for records in shards
    labels: Ints | Sequence[int] | None = None  # class indices, or `None`; with `members`, those of all records
    mean_bytes: float = 0.0  # the mean size of a stored record
    reader: Reader = field(default_factory=FileReader)  # the reader of features that are not in a column
    features: tuple[str, ...] = ()  # the features that it reads
    ram_budget: int = 0  # bytes of memory that the reader may use
    rows: Ints | None = None  # the row of each record, if it is read by row and not from a file
    columns: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    """Features with a few numbers a record: an array `(n, ...)` each, in the order of the records."""
    beside: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the absolute paths of further files of each record, by feature
    members: Ints | None = None  # indices of these records in `ids` and `labels`; `None` for all
    blocks: Ints | None = None
    """The first record of each block of records stored or read together, int64 with the end; `None` for single records."""
    in_shards: InShards | None = None  # the places of records stored many in a file, in place of files, `ids` and `labels`
    in_paths: bool = True  # whether `paths` are those of files or members of archives, not names of rows, if not `in_shards`

    def locate(self, record: int, features: Iterable[str] = ()) -> str:
        """Names the place of a record: for several features in their own files, `A or B`."""
        files = {name if name in self.beside else "": None for name in features} or {"": None}
        return " or ".join(self.beside.get(name, self.paths)[record] for name in files)

    def files(self, read: ElementType) -> list[Sequence[str]]:
        """Returns the files of the records that are read, one sequence for each feature; none if records are not files or in archives."""
        if not self.in_paths or self.in_shards is not None:
            return []
        return [self.beside.get(name, self.paths) for name in files_of(read)]

    def plain_files(self, read: ElementType) -> frozenset[str]:
        """Returns the features whose files are local and almost all plain JPEGs: all of `_SAMPLE` are."""
        if type(self.reader) is not FileReader or self.in_shards is not None:
            return frozenset()
        found = {name: self.beside.get(name, self.paths) for name in files_of(read)}
        return frozenset(name for name, paths in found.items() if are_plain_jpegs(_starts(paths)))

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def epoch_examples(self) -> int:
        """Number of examples of an epoch: all records, once."""
        return len(self)


_SAMPLE = 64  # files of a split that are looked at


def _starts(paths: Sequence[str]) -> list[bytes]:
    """Reads the first bytes of some files; none if one is remote or cannot be read, which is an error where it is decoded."""
    count = min(len(paths), _SAMPLE)
    chosen = [paths[i * len(paths) // count] for i in range(count)]
    if any("://" in path for path in chosen):
        return []
    starts = []
    for path in chosen:
        try:
            with open(path, "rb", buffering=0) as file:
                starts.append(file.read(START))
        except OSError:
            return []
    return starts


def files_of(read: ElementType) -> tuple[str, ...]:
    """Lists the features that are files."""
    return tuple(name for name, t in read.items() if t.encoded)


class RecordTensors:
    """`Records` in the graph, for single records or for `(n,)` at once. Made once for all functions."""

    def __init__(self, records: Records) -> None:
        with tf.device("CPU:0"):
            self._ragged = {name: _ragged(values) for name, values in records.columns.items() if isinstance(values, Ragged)}
            members = None if records.members is None else Column(records.members)
            self._places = _Table(records, members) if records.in_shards is None else _Shards(records.in_shards)
        together = records.reader.open_together(records.features, records.ram_budget, _held) if records.features else None
        self._together, self._read_together = together, frozenset(records.features if together is not None else ())
        alone = [name for name in records.features if name not in self._read_together]
        self._reads = {name: records.reader.open(name, records.ram_budget, _held) for name in alone}
        self._packed = {name: _packed(values) for name, values in records.columns.items() if isinstance(values, Packed)}
        plain = records.columns.keys() - self._ragged.keys() - self._packed.keys()
        self._columns = {name: Column(values) for name, values in records.columns.items() if name in plain}
        self._labels = None if records.labels is None else Column(np.asarray(records.labels, np.int32), members)
        self.words = self._places.words  # a function from records `(n,)` to the lower and the upper half of their ids, uint32
        self.path = self._places.path  # a function from a record and features to the name of its place, a string scalar

    def locate(self, records: tf.Tensor, out: ElementType, in_place: Collection[str]) -> Features:
        """Like `read` for records `(n,)`, but images `in_place`, on canvases, are returned as a memory and their places in it.

        A function that runs in another process reads them.
        """
        found: Features = {}
        for name in in_place:
            read, (row,) = self._reads[name], self._places.at(name, records)
            assert isinstance(read, StoredPixels)  # noqa: S101 - the only reader with canvases
            memory = read.memory(row)
            if memory is not None:
                found |= {store_name(name): memory[0], place_name(name): memory[1], size_name(name): read.sizes(row)}
        return found | self.read(records, ElementType(tuple((name, t) for name, t in out.items() if store_name(name) not in found)))

    def read(self, record: tf.Tensor, out: ElementType) -> Features:
        """Reads the stored features of one record; if records are not files, also of records `(n,)`."""
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
        """Starts to fetch the remote data of a step's examples, `@record` `(n,)`; returns the features."""
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
        """Reads the stored features of `count` records as lists of tensors; their places are looked up at once."""

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
        """Reads those features of records `(n,)` that share one read: lists of n tensors or `(n, ...)`, with their shapes."""
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
        """Returns the features of records, from a column or by `read`; `part` is applied to values of columns."""
        found = {}
        for name, t in out.items():
            kind = kind_of(t)
            if kind.ragged:
                found[name], there = map(part, self._padded(name, records, t.shape))
                if t.beside is None:
                    found[valid_name(name)] = there
            elif name in self._packed:
                found[name] = part(self._packed[name](records))
            elif kind.storage == "dense" and name in self._columns:
                found[name] = part(tf.cast(self._columns[name](records), t.dtype))
            elif kind.storage == "dense" and kind.values is None and self._labels is not None:
                found[name] = part(tf.cast(self._labels(records), tf.int64))
            elif kind.storage != "made":  # set with its items
                found[name] = read(name)
        return found

    def _padded(self, feature: str, record: tf.Tensor, shape: tuple[int | None, ...]) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the items of records, padded to `shape` with zeros, and a mask of the items."""
        items = self._ragged[feature]
        values, ends = items.flat_values, tf.gather(items.row_splits, tf.stack([record, record + 1], -1))
        first, end = tf.split(ends, 2, -1)
        place = first + tf.range(shape[0] or 0, dtype=tf.int64)
        there = place < end
        return tf.gather(values, tf.where(there, place, tf.shape(values, tf.int64)[0] - 1)), there


def _ragged(values: Ragged) -> tf.RaggedTensor:
    """Converts a ragged column to a tensor with an item of zeros appended."""
    items = tf.concat([values.values, tf.zeros([1, *values.values.shape[1:]], values.dtype)], 0)
    splits = tf.concat([[0], tf.cumsum(tf.constant(values.lengths, tf.int64))], 0)
    return tf.RaggedTensor.from_row_splits(items, splits, validate=False)


def _packed(values: Packed) -> Callable[[tf.Tensor], tf.Tensor]:
    """Makes a function from one record, or records `(n,)`, to the bytes of a feature from the listing: strings of that shape."""
    content, starts, lengths = Column(values.values), Column(values.starts), Column(values.lengths)

    def one(record: tf.Tensor) -> tf.Tensor:
        start = starts(record)
        return string_of(content(tf.range(start, start + lengths(record))))

    return lambda record: tf.map_fn(one, record, fn_output_signature=tf.string) if record.shape.rank else one(record)


class _Table:
    """The places of records that are rows of a table, or files."""

    def __init__(self, records: Records, members: Column | None) -> None:
        self._ids = Column(np.asarray(records.ids, "<u8").view("<u4").reshape(-1, 2), members)
        self._paths = {"": Paths(records.paths)} | {name: Paths(paths) for name, paths in records.beside.items()}
        self._rows = None if records.rows is None else Column(records.rows)

    def words(self, record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        low, high = tf.unstack(self._ids(record), axis=-1)
        return low, high

    def path(self, record: tf.Tensor, features: Iterable[str] = ()) -> tf.Tensor:
        names = dict.fromkeys(name if name in self._paths else "" for name in features) or {"": None}
        return tf.strings.join([self._paths[name].each(record) for name in names], " or ")

    def at(self, feature: str, record: tf.Tensor) -> tuple[tf.Tensor, ...]:
        if self._rows is not None:
            return (self._rows(record),)
        return ((self._paths.get(feature) or self._paths[""]).each(record),)


class _Shards(ShardTensors):
    """The places of records in shards: the number of the file and the row in it."""

    def __init__(self, held: InShards) -> None:
        super().__init__(held.selected, held.bases)
        self._numbers, self._files = tf.constant(held.numbers), Paths(held.files)

    def path(self, record: tf.Tensor, features: Iterable[str] = ()) -> tf.Tensor:
        shard, row = self.locate(record[None])
        return tf.strings.join([self._files.each(shard[0]), tf.strings.as_string(row[0])], "#")

    def at(self, feature: str, record: tf.Tensor) -> tuple[tf.Tensor, ...]:
        shard, row = (tf.reshape(part, tf.shape(record)) for part in self.locate(tf.reshape(record, [-1])))
        return tf.gather(self._numbers, shard), row


def _held(array: np.ndarray[Any, Any] | StoredShards) -> Read:
    """Reads rows of an array, whose memory is shared if possible, or of encoded images as objects. Shards stay in files."""
    if isinstance(array, StoredShards):
        return MappedShards(array)
    if array.dtype != object:
        return Column(array, mapped=False)
    with tf.device("CPU:0"):
        texts = tf.constant(array)
    return lambda row: tf.gather(texts, row)


def records_from(manifest: Manifest, split: str, read: ElementType, runtime: Runtime) -> Records:
    """Makes the records of a split for a plan that reads `read`."""
    columns = manifest.columns(split)
    features = tuple(name for name, t in read.items() if name not in columns and kind_of(t).storage != "made")
    about = manifest.mean_bytes(split), manifest.listing.reader(split), features, ram_budget(runtime)
    for name, values in columns.items():
        if isinstance(values, Ragged) and name in read and max(values.lengths, default=0) > (read[name].shape[0] or 0):
            raise InternalError(f"an example has more items of `{name}` than its type holds")
    held = manifest.in_shards(split)
    if held is not None:
        return Records(manifest.files(split), (), None, *about, columns=columns, blocks=manifest.blocks(split), in_shards=held)
    # Tensors share the memory of these columns, so splits hold no copies.
    labels = manifest.listing.labels
    columns = columns if labels is None else {name: values for name, values in columns.items() if name != manifest.listing.label}
    beside, members = {name: manifest.files(split, name) for name in manifest.listing.beside}, manifest.members[split]
    rows, blocks = manifest.rows(split), manifest.blocks(split)
    in_paths = manifest.kind(split) != "row"
    return Records(manifest.files(split), manifest.all_ids, labels, *about, rows, columns, beside, members, blocks, in_paths=in_paths)
