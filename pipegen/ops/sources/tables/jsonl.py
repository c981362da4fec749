"""Reads lines of JSON as a table: a column for each key, with a dot between nested ones."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from pipegen.errors import OpError
from pipegen.ops.sources.tables.reading import TableReading
from pipegen.ops.sources.tables.table import Table, find_table, not_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class JsonLinesTable(TableReading):
    """Lines of JSON."""

    path: Annotated[str, Field(min_length=1)]
    """The file, relative to the spec's file: text in UTF-8, an object a line."""

    def read(self, base: Path) -> LineTable:
        """Reads all lines; blank ones are passed over.

        Raises:
            OpError: `PG401` when there is no such file, `PG421` for a line that holds no object of JSON.
        """
        file = find_table(str(base), self.path)
        rows: list[dict[str, Any]] = []
        lines: list[int] = []
        names: dict[str, None] = {}
        try:
            with open(file, encoding="utf-8-sig") as stream:
                for number, text in enumerate(stream, 1):
                    if not text.isspace():
                        row = _row(text, f"{file}:{number}")
                        names.update(dict.fromkeys(row))
                        rows.append(row)
                        lines.append(number)
        except UnicodeDecodeError as error:
            raise not_text(file, error) from None
        except OSError as error:
            raise OpError("PG421", f"{file!r} cannot be read: {error}", field="path") from None
        columns = tuple(names)
        return LineTable(
            repr(file),
            file,
            os.path.dirname(file),
            columns,
            len(columns),
            len(rows),
            lambda i: (row.get(columns[i]) for row in rows),
            tuple(lines),
        )


@dataclass(frozen=True)
class LineTable(Table):
    """A table of which each row is a line.

    Attributes:
        lines: The line of each row, from 1.
    """

    lines: tuple[int, ...]

    def place(self, row: int) -> str:
        """Says the file and the line."""
        return f"{self.file}:{self.lines[row]}"


class _TwiceError(ValueError):
    """A key that an object has twice, of which JSON in Python keeps the last."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError(next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i])))
    return found


def _row(text: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        message = f"{place}:{error.colno} is no JSON: {error.msg}"
        raise OpError("PG421", message, field="path", help="each line holds one whole object") from None
    except _TwiceError as error:
        raise OpError("PG421", f"{place} has two values for the key {error.args[0]!r}", field="path", help="keep one of them") from None
    except (ValueError, RecursionError) as error:  # a number of too many digits, or brackets without end
        raise OpError("PG421", f"{place} cannot be read as JSON: {error}", field="path") from None
    if not isinstance(value, dict):
        help_ = 'each line holds one object, such as `{"file": "a.jpg", "label": "cat"}`'
        raise OpError("PG421", f"{place} holds {type(value).__name__} and no object", field="path", help=help_)
    row: dict[str, Any] = {}
    for name, cell in _cells(value, ""):
        if name in row:
            raise OpError("PG421", f"{place} has two values for {name!r}: a key with a dot, and a nested one", field="path")
        row[name] = cell
    return row


def _cells(value: dict[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        name = f"{before}{key}"
        if isinstance(inner, dict):
            yield from _cells(inner, f"{name}.")
        elif isinstance(inner, list) and any(isinstance(item, (dict, list)) for item in inner):
            yield name, [json.dumps(item, sort_keys=True) for item in inner]
        else:
            yield name, inner
