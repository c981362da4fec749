"""Columns of records: the text of a key for every record, as in a table. Read once, on request, and kept beside the index."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pipegen.diagnostics.suggest import suggested
from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.memory import available_cores
from pipegen.ops.sources.features.label_values import Values, label_texts, text_of
from pipegen.ops.sources.listing.base import Note
from pipegen.ops.sources.records.labels import keep_values, kept_values
from pipegen.ops.sources.tables.join import kept_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.records.index import Indexed, RecordIndex
    from pipegen.ops.sources.shards.paths import Found
    from pipegen.ops.sources.tables.features import InTable
    from pipegen.ops.sources.tables.join import Partners

_THREADS = 16


class Celled(Protocol):
    """A source of records, as far as its columns are read; see `RecordSource`."""

    @property
    def kept_in(self) -> Path | None: ...
    def index_options(self) -> str: ...
    def with_key(self, key: str, found: Indexed) -> tuple[Celled, str, RecordIndex]: ...
    def known_keys(self, shards: Sequence[Found], index: RecordIndex) -> Sequence[str]: ...
    def stored_cells(self, name: str, shard: Found, offsets: Ints, lengths: Ints) -> Sequence[Any]: ...


class RecordCells:
    """The columns of all records of a source, in its order.

    Args:
        source: The source.
        found: Its shards.
        progress: Called with the number of records read so far, now and then.
    """

    unit: ClassVar[str] = "records"

    def __init__(self, source: Celled, found: Indexed, progress: Callable[[int], None] | None) -> None:
        self._source, self._found, self._progress = source, found, progress
        self._read: dict[str, tuple[str, ...]] = {}
        self.num_rows, self.called = int(found.index.first[-1]), repr(found.root)

    def column(self, wanted: str | int, field: str) -> tuple[str, ...]:
        """Returns the text of a key for every record, "" for records without it.

        Args:
            wanted: The key.
            field: The argument that names it, for errors.

        Raises:
            OpError: `PG421` for a key that no record has or that holds no text, `PG430` for a file that cannot be read.
        """
        key = str(wanted)
        if key not in self._read:
            self._read[key] = self._texts(key, field)
        return self._read[key]

    def cells(self, column: str, rows: Sequence[int]) -> tuple[Sequence[str], Callable[[int], str]]:
        """Returns the texts of a key in `where` for some records, and a function that names a record."""
        whole = self.column(column, "where")
        return [whole[row] for row in rows], self._found.place

    def _texts(self, key: str, field: str) -> tuple[str, ...]:
        file = self._found.kept_as("cells", key, self._source.index_options())
        values = kept_values(self._source.kept_in, file, self.num_rows)
        if values is None:
            try:
                values = self._read_all(key)
            except OpError as error:  # its own field is that of a feature
                raise error.at(field or None) from None
            keep_values(self._source.kept_in, file, values, f"`{key}` of the records")
        texts = values.as_texts()
        if texts.texts in ((), ("",)):
            source, _, index = self._source.with_key(key, self._found)  # which knows all keys if it lacks one
            known = source.known_keys(self._found.shards, index)
            help_ = suggested(key, known) if known else None
            raise OpError("PG421", f"no record of {self.called} has the key {key!r}", field=field or None, help=help_)
        return tuple(texts.texts[code] for code in texts.codes.tolist())

    def _read_all(self, key: str) -> Values:
        source, name, index = self._source.with_key(key, self._found)
        shards, done = self._found.shards, 0
        known: dict[str, str] = {}  # one text for all records that hold it

        def read(shard: int) -> list[str]:
            if not index.rows[shard]:
                return []
            try:
                texts = (_text(value) for value in source.stored_cells(name, shards[shard], *index.of(shard)))
                return [known.setdefault(text, text) for text in texts]
            except _NotText as error:
                message = f"{key!r} of the records in {shards[shard].path!r} holds {error}, which is not text"
                raise OpError("PG421", message, help="name a key with a short text or a number") from None
            except (OSError, ValueError) as error:  # a kept index hides damage of the file
                raise OpError("PG430", f"{key!r} of {shards[shard].path!r} cannot be read: {error}") from None

        every: list[str] = []
        with ThreadPoolExecutor(min(_THREADS, max(1, 4 * available_cores()))) as pool:
            for texts in pool.map(read, range(len(shards))):
                every += texts
                done += len(texts)
                if self._progress is not None:
                    self._progress(done)
        return Values.of_texts(every)

    def labels(self, wanted: str | int, field: str) -> Sequence[str]:
        return self.column(wanted, field)

    def notes(self) -> Iterable[Note]:
        return ()


class JoinedCells:
    """The columns of records, and those of a table that is joined to them.

    Args:
        records: The columns of the records.
        partners: The joined table.
        known: Returns the keys of the records, as far as they are known.
    """

    unit: ClassVar[str] = "records"

    def __init__(self, records: RecordCells, partners: Partners, known: Callable[[], Sequence[str]]) -> None:
        self._records, self._partners, self._known = records, partners, known
        self.num_rows, self.called = records.num_rows, records.called

    def column(self, wanted: str | int, field: str) -> tuple[str, ...]:
        """Returns the text of a column of the table, else of a key of the records; for errors see `RecordCells.column`."""
        number = self._number(wanted, field)
        return self._records.column(wanted, field) if number is None else tuple(map(text_of, self._partners.cells(number)))

    def cells(self, column: str, rows: Sequence[int]) -> tuple[Sequence[str], Callable[[int], str]]:
        """Returns the texts of a column in `where` for some records, and a function that names the place of one."""
        number = self._number(column, "where")
        if number is None:
            return self._records.cells(column, rows)
        self._partners.require(rows)
        whole = self.column(column, "where")
        return [whole[row] for row in rows], self._partners.place_in(number)

    def labels(self, wanted: str | int, field: str) -> Sequence[str]:
        """Returns the labels of a column of the table as text."""
        return label_texts(self._partners.cells(self._partners.right.number(wanted, field)))

    def notes(self) -> Iterable[Note]:
        return self._partners.notes()

    def _number(self, wanted: str | int, field: str) -> int | None:
        """Returns the number of a column of the table, `None` for a key of the records; `PG421` if both have one of that name."""
        right = self._partners.right
        column = right.json_place(wanted)[0]
        there = right.has(column) and right.number(column, field) in self._partners.shown
        if there and wanted in self._known():
            message = f"both the records and {right.called} have {wanted!r}"
            raise OpError("PG421", message, field=field or None, help="give the column another name")
        return right.number(wanted, field) if there else None


class _NotText(Exception):
    """A value that is not a short text; the message says what it is."""


def _text(value: Any) -> str:
    if isinstance(value, bytes) and b"\0" in value:
        raise _NotText(f"{len(value):,} bytes such as {value[:8]!r}")
    return text_of(value)


def records_kept(
    cells: RecordCells | JoinedCells, where: str | None, labels: Mapping[str, InTable], partners: Partners | None, found: Indexed
) -> tuple[Indexed, tuple[Note, ...]]:
    """Leaves out records as `kept_rows` says, with its errors. Returns the shards with those that are kept, and findings."""
    rows, notes = kept_rows(cells, where, labels, partners)
    kept: Ints = np.zeros(cells.num_rows, bool)
    kept[np.fromiter(rows, np.int64, len(rows))] = True
    if where is not None:
        message = f"`where` keeps {len(rows):,} of {cells.num_rows:,} records; the values that it compares were read once for all"
        notes = (*notes, Note("PG432", message, field="where"))
    return replace(found, kept=None if kept.all() else kept), notes
