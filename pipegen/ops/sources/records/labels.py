"""The labels of records: read with the records, or all at once if something needs them earlier; `map` and `ignore` of their classes."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.classes import as_values, read_labels
from pipegen.ops.fields.label_values import BOOLEANS, Values, label_texts, lists_numbers, meaning_of, plain
from pipegen.ops.fields.notes import Note
from pipegen.ops.sources.records.columns import kept_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipegen.ops.fields.strings import Ints
    from pipegen.ops.sources.records.described import RecordFeature
    from pipegen.ops.sources.records.index import Indexed

_WIDEST = 1_000_000  # largest table from stored to meant class indices


@dataclass(frozen=True)
class Lookup:
    """A table from stored labels to class indices."""

    names: tuple[str, ...]  # the classes
    offset: int = 0  # number subtracted from stored numbers
    by_text: Mapping[str, int] | None = None  # class indices by text, for names and truth values; `None` if stored numbers are indices
    table: Ints | None = None  # the class index of each number from `offset` on, if it differs from that number: int64

    @property
    def size(self) -> int:
        """The number of stored numbers from `offset` on that are labels."""
        return len(self.names) if self.table is None else len(self.table)

    def find(self, text: str) -> int | None:
        """Returns the class index of a text, or `None` if it is not a class."""
        if self.by_text is not None:
            return self.by_text.get(text, self.by_text.get(plain(text)))
        meaning = meaning_of([text], None, 0)
        number = (meaning.indices or {}).get(text, self.offset - 1) - self.offset
        if not 0 <= number < self.size or meaning.boolean or meaning.fractions:
            return None
        return number if self.table is None else int(self.table[number])


class _Read(NamedTuple):
    """The labels of all records."""

    classes: Ints  # the class of each record, -1 for one that is left out: int32
    names: tuple[str, ...]  # the classes
    notes: tuple[Note, ...]  # findings about them
    by_text: Mapping[str, int]  # the class of each stored text; empty if numbers are stored
    stays: Ints  # whether each record stays: bool
    chosen: Lookup | None  # the table for `map` and `ignore`, if there are any


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """The label of every record of a source, in source order, read on first use."""

    source: Any  # the source
    name: str  # the feature
    records: Indexed  # the records

    @property
    def feature(self) -> RecordFeature:
        """The arguments of the feature."""
        return self.source.features[self.name]

    @property
    def given(self) -> int | tuple[str, ...] | None:
        """The classes, if every label need not be read to find them."""
        return None if self.feature.chosen else self.feature.classes

    @property
    def names(self) -> tuple[str, ...]:
        """The classes; if the spec does not give them, reads every label (`PG420` if one is invalid)."""
        given, offset = self.given, self.feature.offset
        if given is None:
            return self._all.names
        return given if isinstance(given, tuple) else tuple(map(str, range(offset, given + offset)))

    @property
    def stays(self) -> Ints | None:
        """Whether each record stays when classes are left out, bool `(records,)`; `None` if none are."""
        return self._all.stays if self.feature.chosen else None

    @property
    def notes(self) -> tuple[Note, ...]:
        """Findings about classes found in the labels."""
        if self.given is not None:
            return ()
        total = f"all {self.records.total:,} labels were read once"
        if self.feature.chosen:
            message, kept = f"`{self.name}` selects classes, so {total}", self._all.stays.all()
            help_ = "they are read again if records change" if kept else "records of other classes are left out of every split"
        else:
            message = f"`{self.name}` has no `classes`, so {total} to find them"
            help_ = write(f"classes: {len(self.names)}", "arguments", "{} gives their number, a list their names")
        return (*self._all.notes, Note("PG432", message, help_, f"features.{self.name}"))

    @cached_property
    def lookup(self) -> Lookup:
        """The table from stored labels to class indices.

        If the spec gives the classes, the first record shows whether numbers are indices; a label of another form is an error when read.
        """
        feature, names = self.feature, self.names
        if feature.chosen and self._all.chosen is not None:
            return self._all.chosen
        scanned = feature.classes is None
        stored = self._all.by_text if scanned else label_texts([self.source.first_label(self.name, self.records)])
        texts = tuple(text for text in stored if text)
        meaning = meaning_of(texts, feature.classes, feature.offset) if texts else None
        if meaning is not None and meaning.boolean:
            indices = {text: BOOLEANS.index(text) - feature.offset for text in BOOLEANS}
            return Lookup(names, feature.offset, {text: i for text, i in indices.items() if 0 <= i < len(names)})
        named = isinstance(feature.classes, tuple) if meaning is None else meaning.indices is None
        if named or lists_numbers(feature.classes, feature.offset):
            by_text = dict(self._all.by_text) if scanned else {name: i for i, name in enumerate(names)}
            return Lookup(names, feature.offset, by_text)
        return Lookup(names, feature.offset)

    def of(self, files: Ints) -> Ints:
        """Returns the class of every record of some shards, shard after shard, int32."""
        return self.records.of(self._all.classes, files)

    @cached_property
    def _all(self) -> _Read:
        feature, used, total = self.feature, self.records.used, self.records.total
        values, notes = self._stored(), list[Note]()
        try:
            if feature.chosen:
                values = values.as_texts()
                notes += feature.chosen.notes(values.texts, None, f"features.{self.name}")
                indices, names, kept = feature.chosen_labels(self.name, values, self._place, notes)
            else:
                indices, names = read_labels(self.name, feature.classes, feature.offset, values, self._place, notes)
                kept = np.ones(len(indices), bool)
        except OpError as error:  # about an argument of the feature
            raise error.below(f"features.{self.name}") from None
        first = np.unique(values.codes, return_index=True)[1]
        by_text = dict(zip(values.texts, indices[first].tolist(), strict=True))
        classes: Ints = np.full(total, -1, np.int32)
        stays: Ints = np.zeros(total, bool)
        rows = slice(None) if used is None else used
        classes[rows], stays[rows] = indices, kept
        chosen = _chosen_lookup(self.name, names, by_text) if feature.chosen else None
        return _Read(classes, names, tuple(notes), by_text, stays, chosen)

    def _place(self, row: int) -> str:
        """Names the label of one of the records that `where` keeps, in messages."""
        used = self.records.used
        return f"the label of {self.records.place(row if used is None else int(used[row]))}"

    def _stored(self) -> Values:
        """Reads the labels of all records that `where` keeps, as they are stored. Raises `OpError`: `PG420` for values that cannot be
        labels, `PG431` if numbers and text are mixed but the reader needs one type."""

        def read() -> Values:
            every = self.records.read(partial(self.source.stored, "label", self.name, self.source.key_of(self.name)), "the labels")
            if self.source.labels_of_one_type:
                self._check_types(every)
            return as_values(self.name, every)

        file, used = self.records.kept_as("labels", self.feature.key or self.name), self.records.used
        values = kept_values(self.records, file, "the labels of the records", read)
        return values if used is None else values.take(used)

    def _check_types(self, every: Sequence[Any]) -> None:
        odd = next((row for row, value in enumerate(every) if type(value) is not type(every[0])), None)
        if odd is not None:
            message = f"{self._place(odd)} is {every[odd]!r}, but the first one is {every[0]!r}: text and numbers are mixed"
            help_ = "write all labels as numbers, or all as text"
            if {type(every[odd]), type(every[0])} == {int, float}:
                message = f"{self._place(odd)} is {every[odd]!r}, but the first one is {every[0]!r}: floats and integers are mixed"
                help_ = "write all labels as integers"
            raise OpError("PG431", message, field=f"features.{self.name}", help=help_)


def _chosen_lookup(name: str, names: tuple[str, ...], by_text: Mapping[str, int]) -> Lookup:
    """Makes the table for `map` and `ignore`: by number if all labels are integers, else by text. `PG420` for numbers too far apart."""
    meaning = meaning_of(tuple(by_text), None, 0)
    if meaning.indices is None or meaning.boolean or meaning.fractions or meaning.missing:
        return Lookup(names, by_text=by_text)
    low, high = min(meaning.indices.values()), max(meaning.indices.values())
    if high - low >= _WIDEST:
        message = f"the labels of `{name}` range from {low:,} to {high:,}, which is too wide for class indices"
        raise OpError("PG420", message, field=f"features.{name}", help="store class indices or names")
    table: Ints = np.full(high - low + 1, -1, np.int64)
    for text, number in meaning.indices.items():
        table[number - low] = by_text[text]
    return Lookup(names, low, table=table)
