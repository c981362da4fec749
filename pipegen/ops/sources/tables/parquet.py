"""Reads a Parquet file as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pipegen.ops.sources.tables.columnar import read_parquet
from pipegen.ops.sources.tables.reading import TableReading
from pipegen.ops.sources.tables.table import find_table

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.ops.sources.tables.table import Table


class ParquetTable(TableReading):
    """A Parquet file."""

    path: Annotated[str, Field(min_length=1)]
    """The file, relative to the spec's file."""

    def read(self, base: Path) -> Table:
        """Opens the file; each column is read when it is asked for."""
        return read_parquet(find_table(str(base), self.path))
