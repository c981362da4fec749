"""The labels of records: read with the records, or all at once if something needs them earlier."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.kept import keep_or_warn, open_kept
from pipegen.lazy import np
from pipegen.memory import available_cores
from pipegen.ops.sources.features.classes import as_values, read_labels
from pipegen.ops.sources.features.label_values import BOOLEANS, Values, label_texts, lists_numbers, meaning_of, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipegen.ops.sources.listing.base import Note
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.records.features import RecordFeature
    from pipegen.ops.sources.records.index import Indexed

_MAGIC = b"pipegen labels 1\n"  # first bytes of kept labels, with the version of the format
_THREADS = 16


def named_classes(classes: int | tuple[str, ...], offset: int) -> tuple[str, ...]:
    """Returns class names; for a number of classes, their stored indices."""
    return classes if isinstance(classes, tuple) else tuple(map(str, range(offset, classes + offset)))


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


class LabelColumn:
    """The label of every record of a source, in source order, read on first use.

    Args:
        name: The feature.
        feature: Its arguments.
        found: The shards.
        read: Returns the stored labels of a shard, given its number: numbers, texts or bytes.
        first: Returns the stored label of the first record.
        folder: Folder to keep them in, if any.
        one_type: Whether labels must be all numbers or all text.
    """

    def __init__(
        self,
        name: str,
        feature: RecordFeature,
        found: Indexed,
        read: Callable[[int], Sequence[Any]],
        first: Callable[[], Any],
        folder: Path | None,
        *,
        one_type: bool,
    ) -> None:
        self._name, self._feature, self._read, self._first, self._folder = name, feature, read, first, folder
        self._indexed, self._one_type = found, one_type

    @property
    def total(self) -> int:
        """The number of records."""
        return int(self._indexed.index.first[-1])

    @property
    def used(self) -> Ints | None:
        """The numbers of the records that `where` keeps; `None` for all."""
        kept = self._indexed.kept
        return None if kept is None else kept.nonzero()[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The classes; if the spec does not give them, reads every label (`PG420` if one is invalid)."""
        given = self._feature.classes
        return named_classes(given, self._feature.offset) if given is not None else self._found[1]

    @property
    def notes(self) -> tuple[Note, ...]:
        """Findings about classes found in the labels."""
        return () if self._feature.classes is not None else self._found[2]

    @cached_property
    def lookup(self) -> Lookup:
        """The table from stored labels to class indices.

        If the spec gives the classes, the first record shows whether numbers are indices; a label of another form is an error when read.
        """
        feature, names = self._feature, self.names
        scanned = feature.classes is None
        texts = tuple(text for text in (self._found[3] if scanned else label_texts([self._first()])) if text)
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
        return self._indexed.of(self._found[0], files)

    @cached_property
    def _found(self) -> tuple[Ints, tuple[str, ...], tuple[Note, ...], Mapping[str, int]]:
        """The class of each record (-1 without it in `where`), the classes, findings about them, and the class of each stored text."""
        feature = self._feature
        notes: list[Note] = []
        values = self.stored()
        try:
            indices, names = read_labels(self._name, feature.classes, feature.offset, values, self.place, notes)
        except OpError as error:
            raise error.below(f"features.{self._name}") from None
        first = np.unique(values.codes, return_index=True)[1]
        by_text = dict(zip(values.texts, indices[first].tolist(), strict=True))
        every: Ints = np.full(self.total, -1, np.int32)
        every[slice(None) if self.used is None else self.used] = indices
        return every, names, tuple(notes), by_text

    def place(self, row: int) -> str:
        """Names the label of one of the records that `where` keeps, in messages."""
        return f"the label of {self._indexed.place(row if self.used is None else int(self.used[row]))}"

    def stored(self) -> Values:
        """Reads the labels of all records that `where` keeps, as they are stored. Raises `OpError`: `PG420` for values that cannot be
        labels, `PG431` if numbers and text are mixed but the reader needs one type."""
        file = self._indexed.kept_as("labels", self._feature.key or self._name)
        values = kept_values(self._folder, file, self.total)
        if values is None:
            with ThreadPoolExecutor(min(_THREADS, max(1, 4 * available_cores()))) as pool:
                each = list(pool.map(self._read, range(len(self._indexed.shards))))
            every = [label for labels in each for label in labels]
            if self._one_type:
                self._check_types(every)
            values = as_values(self._name, every)
            keep_values(self._folder, file, values, "the labels of the records")
        return values if self.used is None else values.take(self.used)

    def _check_types(self, every: Sequence[Any]) -> None:
        odd = next((row for row, value in enumerate(every) if type(value) is not type(every[0])), None)
        if odd is not None:
            message = f"{self.place(odd)} is {every[odd]!r}, but the first one is {every[0]!r}: text and numbers are mixed"
            help_ = "write all labels as numbers, or all as text"
            if {type(every[odd]), type(every[0])} == {int, float}:
                message = f"{self.place(odd)} is {every[odd]!r}, but the first one is {every[0]!r}: floats and integers are mixed"
                help_ = "write all labels as integers"
            raise OpError("PG431", message, field=f"features.{self._name}", help=help_)


def kept_values(folder: Path | None, file: str, total: int) -> Values | None:
    """Returns the values of `total` records in a folder for indexes, unless they are missing or damaged."""
    if folder is None:
        return None
    try:
        with open_kept(folder, file) as stream:
            content = stream.read()
        head = content.index(b"\n", len(_MAGIC))
        texts = json.loads(content[len(_MAGIC) : head])
        found = np.frombuffer(content, "<i8", offset=head + 1)
    except (OSError, ValueError):
        return None
    if not content.startswith(_MAGIC) or len(found) != total:
        return None
    if texts is None:
        return Values(found, (), np.zeros(0, np.int64))
    return Values(None, tuple(texts), found) if len(texts) and found.min() >= 0 and found.max() < len(texts) else None


def keep_values(folder: Path | None, file: str, values: Values, what: str) -> None:
    """Keeps values in a folder for indexes, if any; `what` describes them in a warning."""
    if folder is not None:
        texts, numbers = (values.texts, values.codes) if values.numbers is None else (None, values.numbers)
        content = [_MAGIC, json.dumps(texts).encode(), b"\n", numbers.astype("<i8").tobytes()]
        keep_or_warn(folder, file, content, what)
