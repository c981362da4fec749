"""The labels of records: read with the records, or all at once if something needs them earlier; `map` and `ignore` of their classes."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.classes import as_values, named_classes, read_labels
from pipegen.ops.fields.label_values import BOOLEANS, Values, label_texts, lists_numbers, meaning_of, plain
from pipegen.ops.fields.notes import Note
from pipegen.ops.sources.records.columns import kept_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pipegen.ops.fields.strings import Ints
    from pipegen.ops.sources.records.described import RecordFeature
    from pipegen.ops.sources.records.index import Indexed, InShard

_WIDEST = 1_000_000  # largest table from stored to meant class indices


@dataclass(frozen=True)
class Lookup:
    """A table from stored labels to class indices."""

    names: tuple[str, ...]  # the classes
    offset: int = 0  # number subtracted from stored numbers
    by_text: Mapping[str, int] | None = None  # class indices by text, for names and truth values; `None` if stored numbers are indices

    def find(self, text: str) -> int | None:
        """Returns the class index of a text, or `None` if it is not a class."""
        if self.by_text is not None:
            return self.by_text.get(text, self.by_text.get(plain(text)))
        meaning = meaning_of([text], None, 0)
        number = (meaning.indices or {}).get(text, self.offset - 1) - self.offset
        return number if 0 <= number < len(self.names) and not (meaning.boolean or meaning.fractions) else None


@contextmanager
def _of_feature(name: str) -> Iterator[None]:
    """Raises errors about the arguments of a feature as errors about the spec."""
    try:
        yield
    except OpError as error:
        raise error.below(f"features.{name}") from None


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """The label of every record of a source, in source order, read on first use."""

    name: str  # the feature
    feature: RecordFeature  # its arguments
    records: Indexed  # the records
    read: Callable[[InShard], Sequence[Any]]  # returns the stored labels of a shard's records: numbers, texts or bytes
    first: Callable[[], Any]  # returns the stored label of the first record
    one_type: bool  # whether labels must be all numbers or all text

    @property
    def names(self) -> tuple[str, ...]:
        """The classes; if the spec does not give them, reads every label (`PG420` if one is invalid)."""
        given = self.feature.classes
        return named_classes(given, self.feature.offset) if given is not None else self._found[1]

    @property
    def notes(self) -> tuple[Note, ...]:
        """Findings about classes found in the labels."""
        if self.feature.classes is not None:
            return ()
        message = f"`{self.name}` has no `classes`, so all {self.records.total:,} labels were read once to find them"
        help_ = write(f"classes: {len(self.names)}", "arguments", "{} gives their number, a list their names")
        return (*self._found[2], Note("PG432", message, help_, f"features.{self.name}"))

    @cached_property
    def lookup(self) -> Lookup:
        """The table from stored labels to class indices.

        If the spec gives the classes, the first record shows whether numbers are indices; a label of another form is an error when read.
        """
        feature, names = self.feature, self.names
        scanned = feature.classes is None
        texts = tuple(text for text in (self._found[3] if scanned else label_texts([self.first()])) if text)
        meaning = meaning_of(texts, feature.classes, feature.offset) if texts else None
        if meaning is not None and meaning.boolean:
            indices = {text: BOOLEANS.index(text) - feature.offset for text in BOOLEANS}
            return Lookup(names, feature.offset, {text: i for text, i in indices.items() if 0 <= i < len(names)})
        named = isinstance(feature.classes, tuple) if meaning is None else meaning.indices is None
        if named or lists_numbers(feature.classes, feature.offset):
            by_text = dict(self._found[3]) if scanned else {name: i for i, name in enumerate(names)}
            return Lookup(names, feature.offset, by_text)
        return Lookup(names, feature.offset)

    def of(self, files: Ints) -> Ints:
        """Returns the class of every record of some shards, shard after shard, int32."""
        return self.records.of(self._found[0], files)

    @cached_property
    def _found(self) -> tuple[Ints, tuple[str, ...], tuple[Note, ...], Mapping[str, int]]:
        """The class of each record (-1 without it in `where`), the classes, findings about them, and the class of each stored text."""
        feature = self.feature
        notes: list[Note] = []
        values = self.stored()
        with _of_feature(self.name):
            indices, names = read_labels(self.name, feature.classes, feature.offset, values, self.place, notes)
        first = np.unique(values.codes, return_index=True)[1]
        by_text = dict(zip(values.texts, indices[first].tolist(), strict=True))
        every: Ints = np.full(self.records.total, -1, np.int32)
        every[_all_or(self.records.used)] = indices
        return every, names, tuple(notes), by_text

    def place(self, row: int) -> str:
        """Names the label of one of the records that `where` keeps, in messages."""
        used = self.records.used
        return f"the label of {self.records.place(row if used is None else int(used[row]))}"

    def stored(self) -> Values:
        """Reads the labels of all records that `where` keeps, as they are stored. Raises `OpError`: `PG420` for values that cannot be
        labels, `PG431` if numbers and text are mixed but the reader needs one type."""

        def read() -> Values:
            every = self.records.read(self.read, "the labels")
            if self.one_type:
                self._check_types(every)
            return as_values(self.name, every)

        file, used = self.records.kept_as("labels", self.feature.key or self.name), self.records.used
        values = kept_values(self.records, file, "the labels of the records", read)
        return values if used is None else values.take(used)

    def _check_types(self, every: Sequence[Any]) -> None:
        odd = next((row for row, value in enumerate(every) if type(value) is not type(every[0])), None)
        if odd is not None:
            message = f"{self.place(odd)} is {every[odd]!r}, but the first one is {every[0]!r}: text and numbers are mixed"
            help_ = "write all labels as numbers, or all as text"
            if {type(every[odd]), type(every[0])} == {int, float}:
                message = f"{self.place(odd)} is {every[odd]!r}, but the first one is {every[0]!r}: floats and integers are mixed"
                help_ = "write all labels as integers"
            raise OpError("PG431", message, field=f"features.{self.name}", help=help_)


def _all_or(rows: Ints | None) -> Ints | slice:
    return slice(None) if rows is None else rows


@dataclass(frozen=True)
class StoredLabels:
    """Stored labels of every record, and their meaning."""

    feature: RecordFeature  # the arguments for reading the label as it is stored
    classes: tuple[str, ...]  # the classes that are meant
    table: Ints  # the meant index of each stored class index, or -1: int64
    stays: Ints  # whether each record is kept: bool `(records,)`
    notes: tuple[Note, ...]  # findings about the labels

    @classmethod
    def of(cls, column: LabelColumn) -> StoredLabels:
        """Reads every label; `PG402` if none is left, `PG420` for an invalid label."""
        name, feature, field = column.name, column.feature, f"features.{column.name}"
        stored = column.stored()
        odd: list[Note] = []
        with _of_feature(name):
            indices, classes, stays = feature.chosen_labels(name, stored, column.place, odd)
        as_stored: dict[str, Any] = {"map": None, "ignore": 0}
        if stored.numbers is None:
            meaning = meaning_of(stored.texts, None, 0)
            numbers = meaning.indices if not meaning.fractions and not meaning.missing else None
            values = None if numbers is None else np.array([numbers[text] for text in stored.texts], np.int64)[stored.codes]
        else:
            values = stored.numbers
        if values is None:
            as_stored["classes"], as_stored["offset"], places = stored.texts, 0, stored.codes
        else:
            low, high = int(values.min()), int(values.max())
            if high - low >= _WIDEST:
                message = f"the labels of `{name}` range from {low:,} to {high:,}, which is too wide for class indices"
                raise OpError("PG420", message, field=field, help="store class indices or names")
            as_stored["classes"], as_stored["offset"], places = high - low + 1, low, values - low
        table: Ints = np.full(len(as_stored["classes"]) if values is None else as_stored["classes"], -1, np.int64)
        table[places] = indices
        kept: Ints = np.zeros(column.records.total, bool)
        kept[_all_or(column.records.used)] = stays
        message = f"`{name}` selects classes, so all {column.records.total:,} labels were read once"
        help_ = "they are read again if records change" if stays.all() else "records of other classes are left out of every split"
        notes = (*feature.chosen.notes(stored.as_texts().texts, None, field), *odd, Note("PG432", message, help_, field))
        return cls(feature.model_copy(update=as_stored), classes, table, kept, notes)
