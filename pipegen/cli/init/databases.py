"""Reads the tables of an SQLite file, to see whether one names image files."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING
from urllib.parse import quote

from pipegen.ops.sources.tables.table import TextTable, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator


def database_tables(file: str) -> Iterator[tuple[str, TextTable]]:
    """Yields what reads each table, as a query, and its rows. Tables of bytes, and what cannot be read, are passed over."""
    whole = os.path.abspath(file)
    opened = sqlite3.connect(f"file:{quote(whole)}?mode=ro", uri=True)
    try:
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        for (name,) in opened.execute(query).fetchall():
            quoted = '"' + name.replace('"', '""') + '"'
            reads = f"select * from {quoted} order by rowid"  # noqa: S608 - the name is the file's own, and quoted
            table = _table(opened, reads, name, whole)
            if table is not None:
                yield reads, table
    except sqlite3.Error:
        return  # what reads the file as records says what is wrong with it
    finally:
        opened.close()


def _table(opened: sqlite3.Connection, query: str, name: str, file: str) -> TextTable | None:
    try:
        found = opened.execute(query)
    except sqlite3.OperationalError:
        return None  # without row numbers there is no order to ask for
    names = tuple(column[0] for column in found.description)
    first = found.fetchone()
    if first is None or any(isinstance(value, bytes) for value in first):
        return None
    rows = tuple(tuple(map(text_of, row)) for row in (first, *found))
    columns = tuple(zip(*rows, strict=True))
    called, folder = f"the table {name!r}", os.path.dirname(file)
    return TextTable(
        called, file, folder, names, len(names), len(rows), columns.__getitem__, rows=rows, lines=tuple(range(1, len(rows) + 1))
    )
