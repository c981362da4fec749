"""Columns of records: the text of a key for every record, as in a table. Read once, on request, and kept beside the index."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pipegen.diagnostics.suggest import suggested
from pipegen.errors import OpError
from pipegen.memory import available_cores
from pipegen.ops.sources.features.label_values import Values, text_of
from pipegen.ops.sources.features.predicate_syntax import matching
from pipegen.ops.sources.listing.base import Note
from pipegen.ops.sources.records.labels import keep_values, kept_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.records.index import Indexed, RecordIndex
    from pipegen.ops.sources.records.paths import Found

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
                raise OpError(error.code, error.message, field=field or None, help=error.help) from None
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


class _NotText(Exception):
    """A value that is not a short text; the message says what it is."""


def _text(value: Any) -> str:
    if isinstance(value, bytes) and b"\0" in value:
        raise _NotText(f"{len(value):,} bytes such as {value[:8]!r}")
    return text_of(value)


def where_of_records(where: str, cells: RecordCells, found: Indexed) -> tuple[Indexed, tuple[Note, ...]]:
    """Leaves out the records that a predicate does not select.

    Returns:
        The shards with those that are kept, and a note.

    Raises:
        OpErrors: `PG402` if no record is left, `PG421` for a key that no record has, `PG452` for values that cannot be compared.
    """
    import numpy as np

    rows = matching(cells, where, range(cells.num_rows))
    kept: Ints = np.zeros(cells.num_rows, bool)
    kept[np.fromiter(rows, np.int64, len(rows))] = True
    message = f"`where` keeps {len(rows):,} of {cells.num_rows:,} records; the values that it compares were read once for all"
    return replace(found, kept=None if kept.all() else kept), (Note("PG432", message, field="where"),)
