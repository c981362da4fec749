"""Parquet files as a table: the arguments."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pipegen.ops.sources.records.paths import find_shards
from pipegen.ops.sources.tables.parquet_files import read_parquet
from pipegen.ops.sources.tables.reading import TableReading

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.ops.sources.listing.base import Note
    from pipegen.ops.sources.tables.table import Table

Path_ = Annotated[str, Field(min_length=1)]
SUFFIXES = (".parquet", ".pq")


class ParquetTable(TableReading):
    """Parquet files."""

    path: Path_ | Annotated[tuple[Path_, ...], Field(min_length=1)]
    """File, relative to the spec's file; or several with the same columns: a folder, a pattern such as `data/train-*.parquet`, a range such
    as `{000..099}.parquet`, or a list of these."""

    def read(self, base: Path) -> Table:
        """Opens the files; each column is read on first use."""
        beside: list[Note] = []
        root, found = find_shards(str(base), self.path, SUFFIXES, notes=beside)
        files = [one.path for one in found]
        single = isinstance(self.path, str) and os.path.isfile(os.path.join(base, os.path.expanduser(self.path)))
        return read_parquet(files, None if single else root, beside)
