"""Blocks of text, a blank line between them and `NAME: VALUE` on each line, as a source that the package does not know."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pipegen.ops.sources.listing.paths import find_file
from pipegen.ops.sources.tables.readings import TableReading
from pipegen.ops.sources.tables.source import TableSource
from pipegen.ops.sources.tables.table import Table


class NotesTable(TableReading):
    """A file of such blocks."""

    path: str
    """The file, relative to the spec's file."""

    def read(self, base: Path) -> Table:
        file = find_file(str(base), self.path)
        blocks = [block for block in Path(file).read_text().split("\n\n") if block.strip()]
        rows = [dict(line.split(": ", 1) for line in block.splitlines() if line) for block in blocks]
        names = tuple(rows[0])
        return Table.of(repr(file), file, str(Path(file).parent), names, len(names), len(rows), lambda i: (row[names[i]] for row in rows))


class Notes(NotesTable, TableSource):
    """A block for each example."""

    op: ClassVar[str] = "notes"
