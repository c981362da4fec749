"""JSON lines as a table: a column for each key, with a dot between nested keys."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from pipegen.errors import OpError
from pipegen.ops.sources.listing.paths import find_file
from pipegen.ops.sources.tables.table import Table, not_text


def read_json_lines(base: str, path: str) -> Table:
    """Reads all lines except blank ones. Raises `OpError`: `PG401` if the file is missing, `PG421` for a line that is not a JSON
    object."""
    file = find_file(base, path)
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
    cells = [tuple(map(row.get, names)) for row in rows]
    about = repr(file), file, os.path.dirname(file), tuple(names), len(names), len(rows)
    return Table.of(*about, lambda i: (row[i] for row in cells), lambda row: f"{file}:{lines[row]}")


class _TwiceError(ValueError):
    """A repeated key of an object, of which Python's JSON keeps the last."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError(next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i])))
    return found


def _row(text: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        message = f"{place}:{error.colno} is not JSON: {error.msg}"
        raise OpError("PG421", message, field="path", help="each line must hold one complete object") from None
    except _TwiceError as error:
        raise OpError("PG421", f"{place} has two values for the key {error.args[0]!r}", field="path", help="keep one of them") from None
    except (ValueError, RecursionError) as error:  # a number of too many digits, or too deep nesting
        raise OpError("PG421", f"{place} cannot be read as JSON: {error}", field="path") from None
    if not isinstance(value, dict):
        help_ = 'each line must hold one object, such as `{"file": "a.jpg", "label": "cat"}`'
        raise OpError("PG421", f"{place} holds a {type(value).__name__}, not an object", field="path", help=help_)
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
        else:
            yield name, inner
