"""Columns of records, read once from all files and kept beside the index: features of items, texts of a key as in a table, and labels.

A label is read with its record; all at once only if something needs it earlier, or `map` and `ignore` choose classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import cached_property, partial
from typing import Any, TypeVar

from pipegen.diagnostics.diagnostic import write
from pipegen.diagnostics.suggest import suggested
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.columns import Column, Ragged
from pipegen.ops.fields.labels import BOOLEANS, Values, as_values, label_texts, lists_numbers, meaning_of, named_classes, plain, text_of
from pipegen.ops.fields.notes import Note
from pipegen.ops.fields.strings import Ints
from pipegen.ops.kinds.base import ExampleClass
from pipegen.ops.sources.features.feature import AnyKind
from pipegen.ops.sources.features.items import hop_of, read_items, side_by_side
from pipegen.ops.sources.records.index import Indexed, InShard, keep_arrays, kept_arrays
from pipegen.ops.sources.tables.selecting import RecordColumns

Kept = TypeVar("Kept", Values, Ragged)


def kept(found: Indexed, file: str, what: str, kind: Callable[..., Kept], read: Callable[[], Kept]) -> Kept:
    """Maps a column that is kept beside the index; if it is missing or damaged, reads and keeps it. `what` describes it in a warning."""
    value = _kept(found, file, kind)
    if value is not None:
        return value
    value = read()
    if _kept(found, file, kind) is not None:  # another process has kept it meanwhile, and mapped it
        return value
    parts = {one.name: getattr(value, one.name) for one in fields(value)}
    arrays = {name: part for name, part in parts.items() if isinstance(part, np.ndarray)}
    about = {name: part for name, part in parts.items() if name not in arrays}
    keep_arrays(found.folder, file, what, about, {name: [array] for name, array in arrays.items()})
    return value


def _kept(found: Indexed, file: str, kind: Callable[..., Kept]) -> Kept | None:
    """Maps a kept column; `None` if it is missing or damaged."""
    with suppress(ValueError, TypeError):
        about, arrays = kept_arrays(found.folder, file)
        value = kind(**{name: tuple(own) if isinstance(own, list) else own for name, own in about.items()}, **arrays)
        return value if len(value) == found.total else None
    return None


def items_of_records(source: Any, found: Indexed) -> dict[str, Column]:
    """Reads features of a source with any number of items or of classes of all records; see `read_items`."""
    features: Mapping[str, Any] = source.features

    def values(name: str) -> Sequence[Any]:
        keys = features[name].keys_of(name)

        def of(records: InShard) -> Sequence[Any]:
            parts = [source.stored("list", name, key, records) for key in keys]
            return parts[0] if len(parts) == 1 else list(map(side_by_side, zip(*parts, strict=True)))

        return found.read(of, f"`{name}`")

    def kept_items(name: str, items: Callable[[], Ragged]) -> Ragged:
        feature = features[name]
        of = feature.home and features[feature.home].keys_of(feature.home)
        about = (feature.keys_of(name), feature.kind, of, feature.names, feature.shape, feature.separator)
        hop = hop_of(name, features)
        file = found.kept_as("items", *about, *(() if hop is None else (hop,)))
        return kept(found, file, f"`{name}` of the records", Ragged, items)

    wanted = {name: f for name, f in features.items() if f.several or not f.own_kind.has(ExampleClass)}
    return read_items(wanted, values, lambda _: found.place, kept_items, found.used)


class RecordCells(RecordColumns):
    """The columns of all records of a source: the short values under their keys.

    Args:
        source: The source.
        found: Its shards.
        progress: Called with the number of records read so far, now and then.
    """

    def __init__(self, source: Any, found: Indexed, progress: Callable[[int], None] | None) -> None:
        super().__init__(repr(found.root), found.total, found.place)
        self._source, self._found, self._progress = source, found, progress
        self._read: dict[str, tuple[str, ...]] = {}

    def own(self, name: str, field: str) -> tuple[str, ...]:
        if name not in self._read:
            self._read[name] = self._texts(name, field)
        return self._read[name]

    def known(self) -> Sequence[str]:
        return self._source.known_keys(self._found)

    def _texts(self, key: str, field: str) -> tuple[str, ...]:
        file = self._found.kept_as("cells", key)
        try:
            texts = kept(self._found, file, f"`{key}` of the records", Values, lambda: self._read_all(key))
        except OpError as error:  # its own field is that of a feature
            raise error.at(field or None) from None
        if texts.texts in ((), ("",)):
            source, found, _ = self._source.with_key(self._found, key)
            known = source.known_keys(found)  # which are all keys if it lacks one
            help_ = suggested(key, known) if known else None
            raise OpError("PG421", f"no record of {self.called} has the key {key!r}", field=field or None, help=help_)
        return tuple(texts.texts[code] for code in texts.codes.tolist())

    def _read_all(self, key: str) -> Values:
        source, found, name = self._source.with_key(self._found, key)
        known: dict[str, str] = {}  # one text for all records that hold it

        def read(records: InShard) -> list[str]:
            values = source.stored("cell", name, source.key_of_column(key), records)
            odd = next((value for value in values if isinstance(value, bytes) and b"\0" in value), None)
            if odd is not None:
                said = f"{len(odd):,} bytes such as {odd[:8]!r}, which is not text"
                message = f"{key!r} of the records in {records.file.path!r} holds {said}"
                raise OpError("PG421", message, help="name a key with a short text or a number")
            return [known.setdefault(text, text) for text in map(text_of, values)]

        return Values.of_texts(found.read(read, repr(key), self._progress))


_WIDEST = 1_000_000  # largest table from stored to meant class indices


@dataclass(frozen=True)
class Lookup:
    """A table from stored labels to class indices."""

    size: int  # the number of stored numbers from `offset` on that are labels
    offset: int = 0  # number subtracted from stored numbers
    by_text: Mapping[str, int] | None = None  # class indices by text, for names and truth values; `None` if stored numbers are indices
    table: Ints | None = None  # the class index of each number from `offset` on, if it differs from that number: int64

    def find(self, text: str) -> int | None:
        """Returns the class index of a text, or `None` if it is not a class."""
        if self.by_text is not None:
            return self.by_text.get(text, self.by_text.get(plain(text)))
        meaning = meaning_of([text], None, 0)
        number = (meaning.indices or {}).get(text, self.offset - 1) - self.offset
        if not 0 <= number < self.size or meaning.boolean or meaning.fractions:
            return None
        return number if self.table is None else int(self.table[number])


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """The label of every record of a source, in source order, read on first use."""

    source: Any  # the source
    name: str  # the feature
    records: Indexed  # the records

    @property
    def feature(self) -> AnyKind:
        """The arguments of the feature."""
        return self.source.features[self.name]

    @property
    def is_known(self) -> bool:
        """Whether the spec gives the classes, so that not every label need be read to find them."""
        return not self.feature.chosen and self.feature.classes is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The classes; if the spec does not give them, reads every label (`PG420` if one is invalid)."""
        return named_classes(self.feature.classes or 0, self.feature.offset) if self.is_known else self.column.classes

    @cached_property
    def column(self) -> Column:
        """The class of every record, int32, -1 for one that is left out; which records stay when classes are left out; findings."""
        feature, used, total, values = self.feature, self.records.used, self.records.total, self._stored
        try:
            found = feature.own_kind.read_array(self.name, feature, values, self._place)
        except OpError as error:  # about an argument of the feature
            raise error.below(f"features.{self.name}") from None
        rows = slice(None) if used is None else used
        classes: Ints = np.full(total, -1, np.int32)
        classes[rows] = found.values
        stays: Ints | None = None
        if feature.chosen:
            stays = np.zeros(total, bool)
            stays[rows] = found.stays
        return replace(found, values=classes, stays=stays, notes=(*found.notes, *self._told(found.classes, stays)))

    def _told(self, names: tuple[str, ...], stays: Ints | None) -> Iterator[Note]:
        """Reports that every label was read, if that was needed to find the classes."""
        if self.is_known:
            return
        total = f"all {self.records.total:,} labels were read once"
        if stays is not None:
            message = f"`{self.name}` selects classes, so {total}"
            help_ = "they are read again if records change" if stays.all() else "records of other classes are left out of every split"
        else:
            message = f"`{self.name}` has no `classes`, so {total} to find them"
            help_ = write(f"classes: {len(names)}", "arguments", "{} gives their number, a list their names")
        yield Note("PG432", message, help_, f"features.{self.name}")

    @cached_property
    def lookup(self) -> Lookup:
        """The table from stored labels to class indices.

        If the spec gives the classes, the first record shows whether numbers are indices; a label of another form is an error when read.
        """
        feature, names = self.feature, self.names
        if feature.chosen:
            return _chosen_lookup(self.name, self._classes_by_text())
        scanned = feature.classes is None
        stored = self._classes_by_text() if scanned else label_texts([self.source.first_label(self.name, self.records)])
        texts = tuple(text for text in stored if text)
        meaning = meaning_of(texts, feature.classes, feature.offset) if texts else None
        if meaning is not None and meaning.boolean:
            indices = {text: BOOLEANS.index(text) - feature.offset for text in BOOLEANS}
            return Lookup(len(names), feature.offset, {text: i for text, i in indices.items() if 0 <= i < len(names)})
        named = isinstance(feature.classes, tuple) if meaning is None else meaning.indices is None
        if named or lists_numbers(feature.classes, feature.offset):
            by_text = self._classes_by_text() if scanned else {name: i for i, name in enumerate(names)}
            return Lookup(len(names), feature.offset, by_text)
        return Lookup(len(names), feature.offset)

    def _classes_by_text(self) -> dict[str, int]:
        """Returns the class of each stored text."""
        values, used, classes = self._stored, self.records.used, self.column.values
        first = np.unique(values.codes, return_index=True)[1]
        return dict(zip(values.texts, classes[first if used is None else used[first]].tolist(), strict=True))

    def _place(self, row: int) -> str:
        """Names the label of one of the records that `where` keeps, in messages."""
        used = self.records.used
        return f"the label of {self.records.place(row if used is None else int(used[row]))}"

    @cached_property
    def _stored(self) -> Values:
        """The labels of all records that `where` keeps. Raises `OpError`: `PG420` for values that cannot be labels, `PG431` if numbers and
        text are mixed but the reader needs one type."""

        def read() -> Values:
            every = self.records.read(partial(self.source.stored, "label", self.name, self.source.key_of(self.name)), "the labels")
            if self.source.labels_of_one_type:
                self._check_types(every)
            return as_values(self.name, every)

        file, used = self.records.kept_as("labels", self.source.key_of(self.name)), self.records.used
        values = kept(self.records, file, "the labels of the records", Values, read)
        return values if used is None else values.take(used)

    def _check_types(self, every: Sequence[Any]) -> None:
        odd = next((row for row, value in enumerate(every) if type(value) is not type(every[0])), None)
        if odd is not None:
            there = f"the label of {self.records.place(odd)} is {every[odd]!r}, but the first one is {every[0]!r}"
            message = f"{there}: text and numbers are mixed"
            help_ = "write all labels as numbers, or all as text"
            if {type(every[odd]), type(every[0])} == {int, float}:
                message = f"{there}: floats and integers are mixed"
                help_ = "write all labels as integers"
            raise OpError("PG431", message, field=f"features.{self.name}", help=help_)


def _chosen_lookup(name: str, by_text: Mapping[str, int]) -> Lookup:
    """Makes the table for `map` and `ignore`: by number if all labels are integers, else by text. `PG420` for numbers too far apart."""
    meaning = meaning_of(tuple(by_text), None, 0)
    if meaning.indices is None or meaning.boolean or meaning.fractions or meaning.missing:
        return Lookup(0, by_text=by_text)
    low, high = min(meaning.indices.values()), max(meaning.indices.values())
    if high - low >= _WIDEST:
        message = f"the labels of `{name}` range from {low:,} to {high:,}, which is too wide for class indices"
        raise OpError("PG420", message, field=f"features.{name}", help="store class indices or names")
    table: Ints = np.full(high - low + 1, -1, np.int64)
    for text, number in meaning.indices.items():
        table[number - low] = by_text[text]
    return Lookup(len(table), low, table=table)
