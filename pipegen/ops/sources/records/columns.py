"""Columns of records, read once from all files and kept beside the index: texts of a key as in a table, and features of items."""

from __future__ import annotations

import io
import json
import zlib
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import BadZipFile

from pipegen.diagnostics.suggest import suggested
from pipegen.errors import OpError
from pipegen.kept import keep_or_warn, open_kept
from pipegen.lazy import np
from pipegen.ops.fields.columns import Ragged
from pipegen.ops.fields.label_values import Values, text_of
from pipegen.ops.fields.notes import Note
from pipegen.ops.kinds.base import ExampleClass
from pipegen.ops.sources.features.items import read_items, side_by_side
from pipegen.ops.sources.tables.join import RecordColumns, kept_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from pipegen.ops.fields.columns import Column
    from pipegen.ops.fields.strings import Ints
    from pipegen.ops.sources.records.described import RecordFeature
    from pipegen.ops.sources.records.index import Indexed, InShard
    from pipegen.ops.sources.tables.features import InTable

    T = TypeVar("T")


_DAMAGED = (OSError, ValueError, KeyError, EOFError, TypeError, RuntimeError, BadZipFile, zlib.error)  # of a file that `np.load` reads


def _kept(
    found: Indexed,
    file: str,
    what: str,
    read: Callable[[], T],
    to_arrays: Callable[[T], Mapping[str, Ints]],
    of_arrays: Callable[[Mapping[str, Ints], int], T | None],
) -> T:
    """Loads a column from a file beside the index; if that is missing or damaged, reads and keeps it. `what` describes it in a warning."""
    if found.folder is not None:
        with suppress(*_DAMAGED), open_kept(found.folder, file) as stream:
            with np.load(io.BytesIO(stream.read()), allow_pickle=False) as arrays:
                kept = of_arrays(arrays, found.total)
            if kept is not None:
                return kept
    value = read()
    if found.folder is not None:
        content = io.BytesIO()
        np.savez(content, **to_arrays(value))  # type: ignore[arg-type]  # which takes `allow_pickle` for one of them
        keep_or_warn(found.folder, file, [content.getbuffer()], what)
    return value


def kept_values(found: Indexed, file: str, what: str, read: Callable[[], Values]) -> Values:
    """Returns a label or text of all records that is kept beside the index, else reads and keeps it; `what` describes it in a warning."""
    return _kept(found, file, what, read, _arrays_of_values, _values_of_arrays)


def _arrays_of_values(values: Values) -> dict[str, Ints]:
    if values.numbers is not None:
        return {"numbers": values.numbers}
    return {"codes": values.codes, "texts": np.frombuffer(json.dumps(values.texts).encode(), np.uint8)}


def _values_of_arrays(arrays: Mapping[str, Ints], total: int) -> Values | None:
    if "numbers" in arrays:
        values = Values(arrays["numbers"], (), np.zeros(0, np.int64))
        return values if len(values) == total else None
    values = Values(None, tuple(json.loads(arrays["texts"].tobytes())), arrays["codes"])
    known = 0 <= values.codes.min(initial=0) <= values.codes.max(initial=0) < len(values.texts)
    return values if len(values) == total and known else None


def items_of_records(source: Any, found: Indexed) -> dict[str, Column]:
    """Reads features of a source with any number of items or of classes of all records; see `read_items`."""
    features: Mapping[str, RecordFeature] = source.features

    def values(name: str) -> Sequence[Any]:
        keys = features[name].keys_of(name)

        def of(records: InShard) -> Sequence[Any]:
            parts = [source.stored("list", name, key, records) for key in keys]
            return parts[0] if len(parts) == 1 else list(map(side_by_side, zip(*parts, strict=True)))

        return found.read(of, f"`{name}`")

    def kept(name: str, items: Callable[[], Ragged]) -> Ragged:
        feature = features[name]
        of = feature.home and features[feature.home].keys_of(feature.home)
        file = found.kept_as("items", feature.keys_of(name), feature.kind, of, feature.names, feature.shape, feature.separator)
        return _kept(
            found, file, f"`{name}` of the records", items, lambda own: {"values": own.values, "lengths": own.lengths}, _items_of_arrays
        )

    wanted = {name: f for name, f in features.items() if f.several or not f.own_kind.has(ExampleClass)}
    return read_items(wanted, values, lambda _: found.place, kept, found.used)


def _items_of_arrays(arrays: Mapping[str, Ints], total: int) -> Ragged | None:
    items = Ragged(arrays["values"], arrays["lengths"])
    return items if items.lengths.shape == (total,) and int(items.lengths.sum()) == len(items.values) else None


class KeyReader(NamedTuple):
    """Reads a key of records that may be none of their features."""

    found: Indexed  # the same records, indexed with that key
    read: Callable[[InShard], Sequence[Any]]  # reads the value of each record of a shard, `None` for a record without it
    known: Callable[[], Sequence[str]] = tuple  # returns the keys of the first record, for messages


class RecordCells(RecordColumns):
    """The columns of all records of a source: the short values under their keys.

    Args:
        source: The source.
        found: Its shards.
        progress: Called with the number of records read so far, now and then.
    """

    def __init__(self, source: Any, found: Indexed, progress: Callable[[int], None] | None) -> None:
        super().__init__(repr(found.root), found.total)
        self._source, self._found, self._progress = source, found, progress
        self._read: dict[str, tuple[str, ...]] = {}

    def own(self, name: str, field: str) -> tuple[str, ...]:
        if name not in self._read:
            self._read[name] = self._texts(name, field)
        return self._read[name]

    def known(self) -> Sequence[str]:
        return self._source.known_keys(self._found)

    def place(self, row: int) -> str:
        return self._found.place(row)

    def _texts(self, key: str, field: str) -> tuple[str, ...]:
        file = self._found.kept_as("cells", key, self._source.index_options())
        try:
            texts = kept_values(self._found, file, f"`{key}` of the records", lambda: self._read_all(key)).as_texts()
        except OpError as error:  # its own field is that of a feature
            raise error.at(field or None) from None
        if texts.texts in ((), ("",)):
            known = self._source.key_reader(self._found, key).known()  # which are all keys if it lacks one
            help_ = suggested(key, known) if known else None
            raise OpError("PG421", f"no record of {self.called} has the key {key!r}", field=field or None, help=help_)
        return tuple(texts.texts[code] for code in texts.codes.tolist())

    def _read_all(self, key: str) -> Values:
        reader: KeyReader = self._source.key_reader(self._found, key)
        known: dict[str, str] = {}  # one text for all records that hold it

        def read(records: InShard) -> list[str]:
            values = reader.read(records)
            odd = next((value for value in values if isinstance(value, bytes) and b"\0" in value), None)
            if odd is not None:
                said = f"{len(odd):,} bytes such as {odd[:8]!r}, which is not text"
                message = f"{key!r} of the records in {records.file.path!r} holds {said}"
                raise OpError("PG421", message, help="name a key with a short text or a number")
            return [known.setdefault(text, text) for text in map(text_of, values)]

        return Values.of_texts(reader.found.read(read, repr(key), self._progress))

    def kept(self, where: str | None, labels: Mapping[str, InTable]) -> tuple[Indexed, tuple[Note, ...]]:
        """Leaves out records as `kept_rows` says, with its errors. Returns the shards with those that are kept, and findings."""
        found, total = replace(self._found, cells=self.column), self.num_rows
        if where is None and self.partners is None:
            return found, ()
        rows, notes = kept_rows(self, where, labels)
        kept: Ints = np.zeros(total, bool)
        kept[np.fromiter(rows, np.int64, len(rows))] = True
        if where is not None:
            message = f"`where` keeps {len(rows):,} of {total:,} records; the values that it compares were read once for all"
            notes = (*notes, Note("PG432", message, field="where"))
        return replace(found, kept=None if kept.all() else kept), notes
