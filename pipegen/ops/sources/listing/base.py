"""`Source` and `Listing`: which records there are, in which order, and of which type. Listing reads names, never pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

from pipegen.diagnostics.suggest import suggested
from pipegen.errors import InternalError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.columns import Column, Ragged
from pipegen.ops.fields.notes import Note
from pipegen.ops.fields.strings import Ints, Strings, as_sizes, shareable
from pipegen.ops.kinds.base import ExampleClass, having, single_values
from pipegen.ops.model import Model
from pipegen.ops.sources.listing.reader import FileReader, Reader
from pipegen.ops.transform import Transform
from pipegen.types import ElementType

Cells: TypeAlias = Callable[[str | int, str], tuple[str, ...]]
"""Returns the text of a column for each record, given its name or number and the argument that names it."""

T = TypeVar("T")

PREDICTED = "predict"  # the split whose records may be without labels


@dataclass(frozen=True, slots=True)
class SeriesRules:
    """What is known of windows of time series before the data is."""

    horizon: int  # rows after a window that belong to it
    overlap: bool  # whether windows share rows with their neighbours
    group: str | int | None  # the column that tells series apart


@dataclass(frozen=True, eq=False)
class Shards:
    """The records of each file of a listing, in its order."""

    rows: Ints  # number of records: int64 `(files,)`
    numbers: Ints  # the reader's number of each file, stable when files are left out: int64 `(files,)`
    digests: Strings  # identifies the content of each file: a hash, or its modification time
    block_rows: Ints | None = None
    """For files read by blocks: records per block, of which the last may have fewer, int64 `(files,)`. By default a file is one block."""
    offsets: Ints | None = None
    """The first record used, if only a part of a file is: int64 `(files,)`. Records keep their number in the file, and a file may be listed
    several times with different parts."""
    kept: Ints | None = None  # whether each record is used, bool, file after file; by default all are

    def __post_init__(self) -> None:
        object.__setattr__(self, "digests", Strings.hold(self.digests))

    @property
    def total(self) -> int:
        """Number of records, including ignored ones."""
        return int(self.rows.sum())

    @property
    def ignored(self) -> int:
        """Number of ignored records."""
        return 0 if self.kept is None else int((~self.kept).sum())

    def take(self, files: Ints) -> Shards:
        blocks, offsets = (None if column is None else column[files] for column in (self.block_rows, self.offsets))
        kept = self.kept_rows(files, self.rows[files])
        return Shards(self.rows[files], self.numbers[files], self.digests.take(files), blocks, offsets, kept)

    def kept_rows(self, files: Ints, rows: Ints, offsets: Ints | None = None) -> Ints | None:
        """Returns which records of some files are used, `rows` of each from `offsets` on."""
        return None if self.kept is None else self.kept[self.records(files, rows, offsets)]

    def records(self, files: Ints, rows: Ints, offsets: Ints | None = None) -> Ints:
        """Returns the numbers among all records of those of some files, `rows` of each from `offsets` on: int64 `(n,)`."""
        ends = np.cumsum(rows)
        firsts = (np.cumsum(self.rows) - self.rows)[files] + (0 if offsets is None else offsets)
        return np.arange(ends[-1] if len(ends) else 0) + np.repeat(firsts - (ends - rows), rows)


@dataclass(frozen=True, slots=True, eq=False)
class Missing:
    """Records that lack a file, found in one place of a source."""

    code: str  # the code of the finding
    keys: Strings  # the name of each in `errors.exclude`: its key, or, for a file without a record, its path relative to the listing's root
    example: Callable[[int], str]  # describes one of them, by its index in `keys`: which file is missing, and where it is named
    records: Ints | None  # the index of each in the listing, rising; `None` for files without a record
    what: tuple[str, str]  # the words for one of them and for several
    lack: str  # what they lack
    help: tuple[str, ...] = ()  # what to do instead of leaving them out
    field: str | None = None  # the argument of the source that they concern; see `Note`

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", Strings.hold(self.keys))

    def only(self, kept: Ints) -> Missing:
        """Keeps some of them, by their indices in `keys`."""
        numbers, example = kept.tolist(), self.example
        records = None if self.records is None else self.records[kept]
        return replace(self, keys=self.keys.take(kept), records=records, example=lambda i: example(numbers[i]))

    def renamed(self, named: Callable[[str], str]) -> Missing:
        """Rewrites the places named in its messages."""
        example = self.example
        return replace(self, example=lambda i: named(example(i)), help=tuple(map(named, self.help)))

    def taken(self, place: Ints) -> Missing:
        """Adapts to a listing of some records: `place` has the new index of each record, or -1."""
        if self.records is None:
            return self
        kept = (place[self.records] >= 0).nonzero()[0]
        own = self.only(kept)
        return replace(own, records=place[own.records])

    def within(self, part: str, start: int, *, rooted: bool) -> Missing:
        """Adapts to a listing that becomes a part of a larger one.

        Args:
            part: The name of the part, put in front of sentences.
            start: The index of its first record in the larger listing.
            rooted: Whether keys are those of the larger listing already.
        """
        example = self.example
        return replace(
            self,
            keys=self.keys if rooted else self.keys.below(f"{part}/"),
            records=None if self.records is None else self.records + start,
            example=lambda i: f"`{part}`: {example(i)}",
        )


def taken(groups: Sequence[Missing], records: Ints, total: int) -> tuple[Missing, ...]:
    """Adapts groups to a listing of some records, out of `total`."""
    if not groups:
        return ()
    place: Ints = np.full(total, -1, np.int64)
    place[records] = np.arange(len(records))
    return tuple(left for group in groups if len((left := group.taken(place)).keys))


@dataclass(frozen=True, slots=True, eq=False)
class Location:
    """Where records are, in source order; or files of many records, or one more file of each record."""

    keys: Strings  # names that do not depend on where the data is mounted, such as relative POSIX paths; unique for records
    paths: Strings  # absolute paths, of members of archives as if unpacked; what messages call anything else
    sizes: Ints  # bytes of each, uint32 or int64
    rows: Ints | None = None  # the number of each record for its reader, int64, -1 for a file; `None` if all are files, or in memory
    kind: Literal["file", "member", "row", "memory", "several"] = "file"
    """`member`: of an archive. `memory`: columns have all features. `several`: see `kinds`."""
    kinds: Ints | None = None  # the kind of each record, as a number in `_KINDS`, int8; `None` if all are of one

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", as_sizes(self.sizes))

    @classmethod
    def below(cls, root: str, keys: Iterable[str], sizes: Ints | Sequence[int]) -> Location:
        """Builds it from the paths of files relative to a folder, and their sizes."""
        held = Strings.hold(keys)
        return cls(held, held.below(f"{root}/"), as_sizes(sizes))

    @classmethod
    def join(cls, parts: Sequence[Location]) -> Location:
        """Concatenates several; keys must be unique."""
        keys = Strings.join([part.keys for part in parts])
        shared = keys if all(part.paths.blob is part.keys.blob for part in parts) else None
        rows, kinds = None, None
        if any(part.rows is not None for part in parts):
            rows = np.concatenate([np.full(len(part.keys), -1) if part.rows is None else part.rows for part in parts])
        kind = parts[0].kind if len({part.kind for part in parts}) == 1 else "several"
        if kind == "several":
            each = (np.full(len(part.keys), _KINDS.index(part.kind), np.int8) if part.kinds is None else part.kinds for part in parts)
            kinds = np.concatenate([*each])
        paths = Strings.join([part.paths for part in parts], shared)
        return cls(keys, paths, np.concatenate([part.sizes for part in parts]), rows, kind, kinds)

    def take(self, records: Ints) -> Location:
        """Returns some, in the given order."""
        keys = self.keys.take(records).packed()
        paths = self.paths.take(records).packed(keys if self.paths.blob is self.keys.blob else None)
        rows, kinds = (None if column is None else column[records] for column in (self.rows, self.kinds))
        return Location(keys, paths, self.sizes[records], rows, self.kind, kinds)

    def kind_of(self, records: Ints | Sequence[int]) -> str:
        """Returns the kind of records of one split, whose first tells; `file` for none."""
        if self.kinds is None:
            return self.kind
        return _KINDS[self.kinds[records[0]]] if len(records) else "file"


_KINDS = ("file", "member", "row", "memory")


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The split that the source assigns to each record."""

    names: tuple[str, ...]  # the splits
    codes: Ints  # the index of each record's split in `names`, int16 `(n,)`

    @classmethod
    def hold(cls, splits: Sequence[str]) -> Parts:
        """Builds it from the split of each record."""
        names = tuple(dict.fromkeys(splits))
        place = {name: i for i, name in enumerate(names)}
        return cls(names, np.array([place[split] for split in splits], np.int16))

    def __iter__(self) -> Iterator[str]:
        return (self.names[code] for code in self.codes.tolist())

    def count(self, split: str) -> int:
        """Counts the records of a split."""
        return len(self.records(split))

    def records(self, split: str) -> Ints:
        """Returns the indices of a split's records, rising."""
        return (self.codes == (self.names.index(split) if split in self.names else -1)).nonzero()[0]


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """The rows that records are windows of, for splits by time. A shard is a series, or a stretch of a long one; rows are counted through
    all series. Arrays have an entry for each number of the reader, see `Shards.numbers`, in the order of the series."""

    firsts: Ints  # the first row of each shard's first window: int64 `(shards,)`
    begins: Ints  # the first row of its series: int64 `(shards,)`
    ends: Ints  # the end of its series: int64 `(shards,)`
    stride: int  # rows from a window to the next
    span: int  # rows from the first of a window to the last, with its horizon
    lead: int  # rows before the horizon; 0 without one
    times: Any = None  # the time of each row, rising in each series; `None` if rows have only their order
    parse: Callable[[str], Any] | None = None  # reads a time; `ValueError` for text that is none
    overlap: bool = True  # whether windows share rows with their neighbours


@dataclass(frozen=True, slots=True, eq=False)
class Listing:
    """The records of a source, in source order: a table of arrays. Sequences of Python objects are converted."""

    root: str  # the absolute folder that the keys are relative to
    location: Location  # where each record is; with `shards`, each file
    notes: tuple[Note, ...] = field(default=())  # findings about the data
    parts: Parts | None = None  # the split that each record belongs to, if the source assigns splits
    readers: Mapping[str, Reader] = field(default_factory=lambda: {"": FileReader()})
    """The reader of each split, or under the empty name the reader of all."""
    in_table: bool = False  # whether a table, rather than the keys, gives the records, their order and their labels
    columns: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    """Features of a few numbers per record: an array `(n, ...)` each, in source order, in shards file after file. For an encoded feature
    without files, the bytes of each record, `Packed`."""
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The classes of each label, in index order, also of those that are read with their record."""
    label: str | None = None  # the label whose classes are those of the data
    beside: Mapping[str, Location] = field(default_factory=dict)  # further files of each record, by feature
    cells: Cells | None = None
    """Reads any column of a table, or the short values under a key of records, those of all files one after another."""
    type: ElementType | None = None  # the type of a record, if the data determines it further than the arguments

    ids: Ints | None = None  # the 64-bit id of each record, uint64, if it does not follow from the source's name and the key

    shards: Shards | None = None  # for files of many records: their numbers of records. Keys, sizes and parts are then those of the files.
    timeline: Timeline | None = None  # the rows of time series, if records are windows of them
    missing: tuple[Missing, ...] = ()
    """Records without their files, kept until `errors.missing` decides on them, and files without a record."""
    excluded: frozenset[str] = frozenset()  # the keys that were left out
    sides: np.ndarray[Any, Any] | None = None
    """Height and width of each image in pixels according to annotations, float64 `(n, 2)`, else NaN."""
    by_split: Mapping[str, Listing] = field(default_factory=dict)
    """The listing of each split, split after split, if some have `shards` and others have not. Only these have columns and sides; in the
    `shards` of all, a file that is one record has the number -1."""

    def __post_init__(self) -> None:
        if (labels := self.labels) is not None:
            object.__setattr__(self, "columns", {**self.columns, self.label: shareable(np.asarray(labels, np.int32))})
        if self.parts is not None and not isinstance(self.parts, Parts):
            object.__setattr__(self, "parts", Parts.hold(self.parts))

    @classmethod
    def labelled(cls, root: str, location: Location, labels: Ints | Sequence[int] | None, names: Sequence[str], **more: Any) -> Listing:
        """Builds it with the feature `label`: the classes, none without labels, and the class index of each record, `None` if it is read
        with the record; `more` are other fields."""
        columns = {} if labels is None else {"label": np.asarray(labels)}
        classes = {"label": tuple(names)} if names else {}
        return cls(root, location, columns=columns, classes=classes, label="label" if classes else None, **more)

    @property
    def labels(self) -> Ints | None:
        """The class index of each record by `label`, int32; `None` without one, with `shards`, or if a record has several."""
        values: Any = self.columns.get(self.label or "") if self.shards is None else None
        return values if values is not None and not isinstance(values, Ragged) and np.ndim(values) == 1 else None

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes of `label` in index order; empty without labels."""
        return self.classes.get(self.label or "", ())

    def reader(self, split: str = "") -> Reader:
        """Returns the reader of a split."""
        return self.readers.get(split) or next(iter(self.readers.values()))

    @property
    def keys(self) -> Strings:
        """The names of the records: unique, and the same wherever the data is mounted."""
        return self.location.keys

    @property
    def sizes(self) -> Ints:
        """The bytes of each record's files: whole numbers `(n,)`."""
        return sum((files.sizes.astype("int64") for files in self.beside.values()), start=self.location.sizes)

    @property
    def in_files(self) -> bool:
        """Whether each record is a file, or several."""
        return self.location.kind == "file" and self.shards is None

    def location_of(self, feature: str) -> Location:
        """Returns where a feature of each record is."""
        return self.beside.get(feature, self.location)

    def place_of(self, record: int) -> tuple[Reader, tuple[Ints, ...], str]:
        """Returns the reader of a record; where that finds it, whole numbers `(1,)`, none for a file; and what messages call it."""
        held, at, rows = self.shards, record, self.location.rows
        place: tuple[Ints, ...] = () if rows is None or rows[record] < 0 else (rows[record : record + 1],)
        if held is not None:
            ends = np.cumsum(held.rows)
            at = int(np.searchsorted(ends, record, side="right"))
            row = record - ends[at : at + 1] + held.rows[at] + (0 if held.offsets is None else held.offsets[at])
            place = (held.numbers[at : at + 1], row)
        split = "" if self.parts is None else self.parts.names[int(self.parts.codes[at])]
        return self.reader(split), place, self.location.paths[at] + ("" if held is None else f"#{int(place[1][0])}")

    def with_columns(self, held: Mapping[str, Column], inferred: ElementType) -> Listing:
        """Adds columns of features, with their types, classes and notes; `inferred` has the images that they are aligned with."""
        types = {name: column.type.with_(of=inferred[name].of) for name, column in held.items()}
        return replace(
            self,
            columns={**self.columns, **{name: column.values for name, column in held.items()}},
            classes={**self.classes, **{name: column.classes for name, column in held.items() if column.classes}},
            type=(self.type or inferred).replace(**types),
            notes=(*self.notes, *(note for column in held.values() for note in column.notes)),
        )

    def take(self, records: Ints) -> Listing:
        """Returns the listing of some records, or files of many, in the given order."""
        held = self.shards
        rows = records if held is None or not self.columns else held.records(records, held.rows[records])
        return replace(
            self,
            location=self.location.take(records),
            parts=None if self.parts is None else Parts(self.parts.names, self.parts.codes[records]),
            columns={name: values[rows] for name, values in self.columns.items()},
            beside={name: files.take(records) for name, files in self.beside.items()},
            shards=None if self.shards is None else self.shards.take(records),
            ids=None if self.ids is None else self.ids[records],
            sides=None if self.sides is None else self.sides[records],
            missing=taken(self.missing, records, len(self.keys)),
            cells=self.cells_of(records),
            by_split={split: own.take(self._within(split, records)) for split, own in self.by_split.items()},
        )

    def _within(self, split: str, records: Ints) -> Ints:
        """Returns those of some records, which rise, that are of a split, as their indices there."""
        own = self.parts.records(split) if self.parts is not None else records[:0]
        return np.flatnonzero(np.isin(own, records))

    def changed(self, change: Callable[[Listing], Listing]) -> Listing:
        """Applies a change to the listing, and to that of each split if there are some."""
        return replace(change(self), by_split={split: change(own) for split, own in self.by_split.items()})

    def cells_of(self, records: Ints, rows: Ints | None = None, offsets: Ints | None = None) -> Cells | None:
        """Returns the reader of the columns of some records, or of `rows` records of some files from `offsets` on, by default all."""
        cells, held = self.cells, self.shards
        if cells is None:
            return None

        def read(column: str | int, field: str) -> tuple[str, ...]:
            values = cells(column, field)
            numbers = records if held is None else held.records(records, held.rows[records] if rows is None else rows, offsets)
            return tuple(values[i] for i in numbers.tolist())

        return read


ADD_COLUMNS = "`join: {table: {csv: {path: FILE}}, on: COLUMN}` adds the columns of a table"


def always(value: T) -> Callable[..., T]:
    """Makes a method that returns a constant."""
    return lambda *_: value


def of_each(fold: Callable[[Iterable[Any]], T], name: str) -> Callable[..., T]:
    """Makes a method of a source that has others, `inner`: it combines what their methods `name` return, by `all`, `any` or `sum`."""
    return lambda source, *args: fold(getattr(inner, name)(*args) for inner in source.inner())


class Source(Model):
    """A source of records. The registry finds subclasses by their `op`."""

    op: ClassVar[str]
    places: ClassVar[frozenset[str]] = frozenset()
    """Arguments that are paths relative to the spec's file, besides `path` and `root`."""
    assumed: ClassVar[Mapping[str, Any]] = {}  # required arguments that the type of a record depends on, where invalid ones are left out

    @classmethod
    def written_out(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Replaces arguments that stand for others by those, before they are checked; see `MessageSource`."""
        return given

    def infer(self) -> ElementType:
        """Infers the type of a record before any step, from the arguments alone."""
        raise NotImplementedError

    def possible(self) -> tuple[ElementType, ...]:
        """Lists the types that the arguments allow, `infer()` first.

        An error for some of them only is reported once the data is known.
        """
        return (self.infer(),)

    def decoders(self) -> Mapping[str, Transform]:
        """Returns decoders for features whose files no step of the spec decodes."""
        return {}

    def described(self) -> Mapping[str, tuple[str, ...]]:
        """Returns the key path, below the source, of each feature that the arguments describe."""
        return {name: ("features", name) for name in getattr(self, "features", ())}

    def class_feature(self) -> str | None:
        """Returns the feature with the class of each record, even if no model learns it."""
        names = single_values(self.infer(), ExampleClass)
        return "label" if "label" in names else next(iter(names), None)

    def labelled_by(self) -> str | None:
        """Returns the label whose classes are those of the data: the class of each record, else the first label."""
        return self.class_feature() or next(iter(having(self.infer(), ExampleClass)), None)

    def has_rows(self) -> bool:
        """Tells whether records are rows without files; by default, whether no feature is encoded."""
        return not any(t.encoded for _, t in self.infer().items())

    def has_folders(self) -> bool:
        """Tells whether the folders of files carry meaning, such as the class."""
        return not self.has_rows()

    def by_class(self) -> bool:
        """Tells whether records are stored class by class, as in class folders."""
        return self.has_labels() and self.has_folders()

    def needs_data(self) -> bool:
        """Tells whether the records come from `build(data=)` only."""
        return False

    def read_by_python(self) -> str:
        """Describes what Python reads whatever the files are, or ""."""
        return ""

    def keep_index_in(self, folder: Path | None) -> None:
        """Sets the folder for indexes of files that hold many records."""

    def split_method(self) -> Literal["random", "hash", "time"]:
        """Returns the default method of splits."""
        return "random"

    def series(self) -> SeriesRules | None:
        """Describes the time series that its records are windows of; `None` if they are none."""
        return None

    def fetched_as_read(self) -> frozenset[str]:
        """Returns the arguments whose files are listed by name and size and read through `pipegen.mounts`. If remote, they are fetched
        record by record; files of other arguments are fetched beforehand."""
        return frozenset()

    def reads_addresses(self) -> bool:
        """Tells whether the graph can read remote files at their addresses, by TensorFlow."""
        return False

    def unpacked(self, base: Path) -> int:
        """Returns the bytes of memory that listing needs for unpacking, from the files' own headers."""
        return 0

    def remarks(self) -> tuple[str, ...]:
        """Describes, one line each, computations that a reader of the spec would not expect."""
        return ()

    def canvases(self) -> Mapping[str, tuple[int, int]]:
        """Returns height and width of the canvas that stores images of several sizes, by feature."""
        return {}

    def has_labels(self) -> bool:
        """Tells whether records carry one or several class labels."""
        return bool(having(self.infer(), ExampleClass))

    def mixed(self) -> Mapping[str, Any]:
        """Returns the parts of a mix by name; empty for other sources."""
        return {}

    def column_names(self) -> tuple[str, ...] | None:
        """Returns the columns that its records have: short values that are read once for all; `None` if only the data tells."""
        return ()

    def lacks_column(self, name: str) -> tuple[str, ...] | None:
        """Returns what to do instead if its records have no column of this name; `None` if they may have it."""
        known = self.column_names()
        if known is None or name in known:
            return None
        return (suggested(name, known), *((ADD_COLUMNS,) if "join" in type(self).model_fields else ())) if known else ()

    def columns_cost(self) -> str:
        """Describes what reading a column takes, if that is much."""
        return ""

    def has_classes(self) -> bool:
        """Tells whether each record has one class."""
        return self.class_feature() is not None

    def split_names(self) -> tuple[str, ...] | None:
        """Returns the splits, if the source assigns them."""
        return None

    def lacks(self, split: str) -> frozenset[str]:
        """Returns the features that the records of a split do not have, such as labels that are to be predicted."""
        return frozenset()

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """List the records.

        Args:
            base: What relative paths are relative to.
            progress: Called with the number of files seen so far, now and then.
            data: What `build(data=)` was given, for a source that `needs_data`.

        Raises:
            OpError: `PG401` if a path does not exist, `PG402` if nothing was found.
        """
        raise NotImplementedError

    def list_parts(self, base: Path, folders: Mapping[str, str], progress: Callable[[int], None] | None = None) -> Listing:
        """List the records of splits with one folder each; by default all records, each in one folder or none.

        Args:
            base: What relative paths are relative to.
            folders: The folder of each split, relative to the source's own.
            progress: Called with the number of files seen so far, now and then.
        """
        return self.list(base, progress)


class SplitSource(Source):
    """A source whose argument `split` names its records, or those of each split of the pipeline; each source declares it."""

    if TYPE_CHECKING:
        split: Any

    def split_names(self) -> tuple[str, ...] | None:
        return tuple(self.split) if isinstance(self.split, dict) else None

    def each_split(self) -> Iterator[tuple[str, str, str]]:
        """Yields the splits of the pipeline, or "", with what each takes, and the argument that says so."""
        for split, name in self.split.items() if isinstance(self.split, dict) else (("", self.split),):
            yield split, name, f"split.{split}" if split else "split"

    def parts_of(self, splits: Sequence[str]) -> Parts | None:
        """Makes the parts from the split of each record; `None` if the pipeline splits them."""
        return Parts.hold(splits) if isinstance(self.split, dict) else None


def shards_of(listing: Listing) -> Shards:
    """Returns the shards of a listing that must have some."""
    if listing.shards is None:
        raise InternalError("the listing has no shards: each record is a file")
    return listing.shards


def unlabelled_records(source: Source, listing: Listing) -> Ints | None:
    """Tells which records have no label, and so belong to `predict`: bool `(n,)`; `None` if all have one, or the source assigns splits."""
    names = source.lacks(PREDICTED) if source.split_names() is None else ()
    held = (listing.columns[name] if name in listing.columns else every_value(listing, name) for name in names)
    found: Ints | None = None
    for values in held:
        if values is not None:
            found = values < 0 if found is None else found | (values < 0)
    return found


def every_value(listing: Listing, name: str) -> Ints | None:
    """Reads a label or a single number of every record in shards; `None` without it."""
    shards, parts = shards_of(listing), listing.parts
    files = {"": slice(None)} if parts is None else {split: parts.records(split) for split in parts.names}  # in order
    each = [_values_of(listing.reader(split), shards, own, name) for split, own in files.items()]
    known = [values for values in each if values is not None]
    return np.concatenate(known) if len(known) == len(each) else None


def _values_of(reader: Reader, shards: Shards, own: Ints | slice, name: str) -> Ints | None:
    numbers, rows = shards.numbers[own], shards.rows[own]

    def values(files: Ints, first: int, count: int) -> Ints | None:
        found = reader.column(name, files)
        return found if found is None else found[first : first + count] if found.ndim else np.full(count, found)

    if shards.offsets is None:
        return values(numbers, 0, int(rows.sum()))
    places = zip(shards.offsets[own].tolist(), rows.tolist(), strict=True)
    found = [values(numbers[i : i + 1], *place) for i, place in enumerate(places)]
    known = [one for one in found if one is not None]
    return np.concatenate([np.zeros(0, np.int32), *known]) if len(known) == len(found) else None
