"""Defines what a source is: which records there are, in which order, and of which type. Listing reads names, never pixels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from pipegen.errors import InternalError
from pipegen.ops.model import Model
from pipegen.ops.sources.listing.missing import taken
from pipegen.ops.sources.listing.reader import FileReader
from pipegen.ops.sources.listing.strings import Strings, as_sizes, shareable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import TypeAlias

    import numpy as np

    from pipegen.ops.sources.listing.missing import Missing
    from pipegen.ops.sources.listing.reader import Reader
    from pipegen.ops.sources.listing.shards import Shards
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.transform import Transform
    from pipegen.types import ElementType

    Cells: TypeAlias = Callable[[str | int, str], tuple[str, ...]]
    """From the name or the number of a column, and the argument that names it, to its text for each record."""


class LeftOut(NamedTuple):
    """A number of things that a listing leaves out.

    Attributes:
        number: How many.
        one: The words for one of them, such as `box without an area`.
        several: The words for several.
    """

    number: int
    one: str
    several: str

    def __str__(self) -> str:
        """Counts them: `3 boxes without an area`."""
        return f"{self.number:,} {self.one if self.number == 1 else self.several}"


@dataclass(frozen=True, slots=True)
class Note:
    """Something seen while listing, such as an empty class.

    Attributes:
        code: A diagnostic code.
        message: One sentence.
        help: What to do.
        field: The argument of the source that it concerns (dotted where it is nested, such as
            `train.image_folder.path`), or `None` for the source as a whole.
        severity: How bad it is, where that differs from what the code usually means.
        left_out: What is left out for this reason.
    """

    code: str
    message: str
    help: str | tuple[str, ...] | None = None
    field: str | None = None
    severity: Literal["error", "warning", "info"] | None = None
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Files:
    """One more file of each record, in source order.

    Attributes:
        keys: What identifies each wherever the data is mounted, such as its relative path.
        paths: Absolute paths.
        sizes: Bytes of each, uint32 or int64.
    """

    keys: Strings
    paths: Strings
    sizes: Ints

    def take(self, records: Ints) -> Files:
        """Those of some records."""
        return Files(self.keys.take(records), self.paths.take(records), self.sizes[records])


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The split that each record belongs to, as the source says.

    Attributes:
        names: The splits.
        codes: The place of each record's split among them, int16 `(n,)`.
    """

    names: tuple[str, ...]
    codes: Ints

    @classmethod
    def hold(cls, splits: Sequence[str]) -> Parts:
        """Holds the split of each record."""
        import numpy as np

        names = tuple(dict.fromkeys(splits))
        place = {name: i for i, name in enumerate(names)}
        return cls(names, np.array([place[split] for split in splits], np.int16))

    def __iter__(self) -> Iterator[str]:
        return (self.names[code] for code in self.codes.tolist())

    def count(self, split: str) -> int:
        """Counts the records of a split."""
        return len(self.records(split))

    def records(self, split: str) -> Ints:
        """The records of a split, rising."""
        return (self.codes == (self.names.index(split) if split in self.names else -1)).nonzero()[0]


@dataclass(frozen=True, slots=True, eq=False)
class Listing:
    """The records of a source, in source order: a table whose columns are arrays. Sequences of Python objects become such.

    Attributes:
        root: The absolute folder that the keys are relative to.
        keys: Relative POSIX paths, unique; they identify the records wherever the data is mounted.
        labels: A class index for each key, int32, or `None` without labels.
        class_names: The classes in index order; empty without labels.
        sizes: Bytes of each record's files, uint32 or int64.
        notes: What was odd.
        parts: For a source whose splits come from different places: the split each record belongs to, else `None`.
    """

    root: str
    keys: Strings
    labels: Ints | None
    class_names: tuple[str, ...]
    sizes: Ints
    notes: tuple[Note, ...] = field(default=())
    parts: Parts | None = None
    paths: Strings | None = None
    """Absolute paths where they are not `root/key` (several roots); else `None`."""
    readers: Mapping[str, Reader] = field(default_factory=lambda: {"": FileReader()})
    """What reads the records, by split, or under the empty name for every split. Where they are `numbered`, a key is the number of a
    row, behind the split where there are several."""

    in_table: bool = False
    """Whether a table says which records there are, in which order and with which labels, and not the keys."""

    columns: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    """Features of which each record holds a few numbers: an array `(n, ...)` each, in source order. Of an encoded feature that has no
    files, since the listing holds it, the bytes of each record, `Packed`."""
    column_classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For those of them that are labels, their classes."""
    beside: Mapping[str, Files] = field(default_factory=dict)
    """Where a record has several files: by feature, those beside the one that `keys` and `paths` are about."""
    cells: Cells | None = None
    """Reads any column of a table."""
    type: ElementType | None = None
    """The type of a record, where the data says more of it than the arguments."""

    rows: Ints | None = None
    """The row that each record is read by, int64, where records are `numbered`; otherwise their keys say it."""
    ids: Ints | None = None
    """The 64-bit id of each record, where it does not follow from the source's name and the key, uint64."""

    shards: Shards | None = None
    """For files that hold many records each: how many. Keys, sizes and parts are then those of the files, not of their records."""
    missing: tuple[Missing, ...] = ()
    """Records whose files do not exist, which are here until `errors.missing` has decided on them, and files that belong to no record."""
    excluded: frozenset[str] = frozenset()
    """The keys that were left out, and are not here."""
    sides: np.ndarray[Any, Any] | None = None
    """Where annotations say how large images are: height and width of each in pixels, float64 `(n, 2)`, NaN where they do not."""

    def __post_init__(self) -> None:
        """Makes columns of what is none yet."""
        import numpy as np

        columns: dict[str, Any] = {"keys": Strings.hold(self.keys), "sizes": as_sizes(self.sizes)}
        if self.labels is not None:
            columns["labels"] = shareable(np.asarray(self.labels, np.int32))
        if self.parts is not None and not isinstance(self.parts, Parts):
            columns["parts"] = Parts.hold(self.parts)
        if self.paths is not None:
            columns["paths"] = Strings.hold(self.paths)
        for name, column in columns.items():
            object.__setattr__(self, name, column)

    def reader(self, split: str = "") -> Reader:
        """Returns what reads the records of a split."""
        return self.readers.get(split) or next(iter(self.readers.values()))

    @property
    def numbered(self) -> bool:
        """Returns whether records are rows that have no files, and are known by their numbers."""
        return self.reader().numbered and not self.reader().archived

    @property
    def in_files(self) -> bool:
        """Returns whether the paths of all records are those of files, neither rows nor members of an archive."""
        return not any(reader.numbered for reader in self.readers.values())

    def row(self, i: int) -> int:
        """The row that record `i` is read by, where it has one."""
        return int(self.rows[i]) if self.rows is not None else int(self.keys[i].rpartition("/")[2])

    def files(self) -> Strings:
        """The absolute paths of the records; their keys where they are numbered rows."""
        if self.paths is not None:
            return self.paths
        return self.keys if self.numbered else self.keys.below(f"{self.root}/")

    def path(self, i: int) -> str:
        """The absolute path of record `i`; the number of the row where it is one."""
        return self.files()[i]

    def take(self, records: Ints) -> Listing:
        """The listing of some records, in their order."""
        return replace(
            self,
            keys=self.keys.take(records).packed(),
            sizes=self.sizes[records],
            labels=None if self.labels is None else self.labels[records],
            parts=None if self.parts is None else Parts(self.parts.names, self.parts.codes[records]),
            paths=None if self.paths is None else self.paths.take(records).packed(),
            columns={name: values[records] for name, values in self.columns.items()},
            beside={name: files.take(records) for name, files in self.beside.items()},
            shards=None if self.shards is None else self.shards.take(records),
            rows=None if self.rows is None else self.rows[records],
            ids=None if self.ids is None else self.ids[records],
            sides=None if self.sides is None else self.sides[records],
            missing=taken(self.missing, records, len(self.keys)),
            cells=None if self.cells is None else partial(_cells_of, self.cells, records.tolist()),
        )


def _cells_of(cells: Cells, kept: list[int], column: str | int, field: str) -> tuple[str, ...]:
    values = cells(column, field)
    return tuple(values[i] for i in kept)


class Source(Model):
    """Lists records. The registry finds subclasses by their `op`."""

    op: ClassVar[str]
    places: ClassVar[frozenset[str]] = frozenset()
    """The arguments that say where data lies, relative to the spec's file, besides those that always do (`path`, `root`)."""

    def infer(self) -> ElementType:
        """The type of one record before any step, from the arguments alone."""
        raise NotImplementedError

    def possible(self) -> tuple[ElementType, ...]:
        """The types that records can turn out to have, as far as the arguments leave that open; `infer()` comes first.

        What is wrong for one of them and right for another is found out when the data is there.
        """
        return (self.infer(),)

    def decoders(self) -> Mapping[str, Transform]:
        """For features whose files no step of the spec decodes: what does."""
        return {}

    def described(self) -> Mapping[str, tuple[str, ...]]:
        """The features that the arguments describe, each with the key path of that below the source."""
        return {name: ("features", name) for name in getattr(self, "features", ())}

    def class_feature(self) -> str | None:
        """The feature that says of which class each record is, whether or not a model is to learn it."""
        from pipegen.ops.kinds.registry import kind_of, several_labels

        return main_label(name for name, t in self.infer().items() if kind_of(t).labels and not several_labels(t))

    def has_rows(self) -> bool:
        """Returns whether records are rows that have no files; by default, whether nothing of them is decoded."""
        return not any(t.encoded for _, t in self.infer().items())

    def has_folders(self) -> bool:
        """Returns whether the folders that files lie in say something, such as their class."""
        return not self.has_rows()

    def by_class(self) -> bool:
        """Returns whether records are stored one class after another, as class folders have them."""
        return self.has_labels() and self.has_folders()

    def needs_data(self) -> bool:
        """Returns whether the records come from `build(data=)` and from nowhere else."""
        return False

    def read_by_python(self) -> str:
        """Says which records are read by Python whatever the files are; empty where that depends on them, or is never so."""
        return ""

    def keep_index_in(self, folder: Path | None) -> None:
        """Lets the listing keep in a folder what takes long to find out about files that hold many records."""

    def split_method(self) -> Literal["random", "hash"]:
        """Returns the method of splits that say none."""
        return "random"

    def fetched_as_read(self) -> frozenset[str]:
        """Returns the arguments that name files which are listed by their names and sizes, and then read through `pipegen.mounts`: where
        these lie on another machine, what a record needs is fetched when it is read. Files of other arguments are fetched beforehand."""
        return frozenset()

    def reads_addresses(self) -> bool:
        """Returns whether what reads these files in the graph can do so where they lie, at addresses that TensorFlow knows."""
        return False

    def unpacked(self, base: Path) -> int:
        """Returns the bytes of memory that listing takes because files have to be unpacked, as far as the files themselves say.

        Args:
            base: What relative paths are relative to.
        """
        return 0

    def remarks(self) -> tuple[str, ...]:
        """Says, a line each, what is computed otherwise than a reader of the spec would think."""
        return ()

    def canvases(self) -> Mapping[str, tuple[int, int]]:
        """Returns height and width of the canvases that images of several sizes are stored on, by feature."""
        return {}

    def has_labels(self) -> bool:
        """Returns whether records carry a class label, or several."""
        from pipegen.ops.kinds.registry import kind_of

        return any(kind_of(t).labels for _, t in self.infer().items())

    def mixed(self) -> Mapping[str, Any]:
        """Returns the parts of a source that mixes several, by name; none for any other."""
        return {}

    def has_columns(self) -> bool:
        """Returns whether records are rows of a table, whose other columns can be asked for."""
        return False

    def has_classes(self) -> bool:
        """Returns whether each record is of one class."""
        return self.class_feature() is not None

    def split_names(self) -> tuple[str, ...] | None:
        """The splits, when the source itself says which record is in which; else `None`."""
        return None

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """List the records.

        Args:
            base: What relative paths are relative to.
            progress: Called with the number of files seen so far, now and then.
            data: What `build(data=)` was given, for a source that `needs_data`.

        Raises:
            OpError: `PG401` when a path does not exist, `PG402` when nothing was found.
        """
        raise NotImplementedError

    def list_parts(self, base: Path, folders: Mapping[str, str], progress: Callable[[int], None] | None = None) -> Listing:
        """List the records of splits that each have a folder of their own; by default all records, of which each lies in one or none.

        Args:
            base: What relative paths are relative to.
            folders: The folder of each split, relative to the source's own.
            progress: Called with the number of files seen so far, now and then.
        """
        return self.list(base, progress)


def main_label(names: Iterable[str]) -> str | None:
    """Returns the label that gives the data its classes, of several: `label`, else the first."""
    names = tuple(names)
    return "label" if "label" in names else next(iter(names), None)


def shards_of(listing: Listing) -> Shards:
    """Returns what the files of a listing hold, which are known to hold many records each."""
    if listing.shards is None:
        raise InternalError("records were looked for in shards, and each is a file of its own")
    return listing.shards


def listed_labels(listing: Listing) -> Ints | None:
    """Lists the class of every record in shards, int32; `None` without labels."""
    import numpy as np

    shards, parts = shards_of(listing), listing.parts
    files = {"": slice(None)} if parts is None else {name: parts.records(name) for name in parts.names}  # one behind the other
    each = [_labels_of(listing.reader(name), shards, own) for name, own in files.items()]
    known = [labels for labels in each if labels is not None]
    return np.concatenate(known) if len(known) == len(each) else None


def _labels_of(reader: Reader, shards: Shards, own: Ints | slice) -> Ints | None:
    """The classes of those records of some files that count."""
    import numpy as np

    numbers = shards.numbers[own]
    if shards.offsets is None:
        return reader.labels(numbers)
    found: list[Ints] = []
    for number, first, rows in zip(numbers.tolist(), shards.offsets[own].tolist(), shards.rows[own].tolist(), strict=True):
        labels = reader.labels(np.array([number]))
        if labels is None:
            return None
        found.append(labels[first : first + rows])
    return np.concatenate([np.zeros(0, np.int32), *found])
