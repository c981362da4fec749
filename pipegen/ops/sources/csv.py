"""`csv`: text tables whose rows name image files, their labels and numbers."""

from __future__ import annotations

from typing import ClassVar

from pydantic import model_validator

from pipegen.ops.sources.tables.readings import CsvTable
from pipegen.ops.sources.tables.source import TableSource


class Csv(CsvTable, TableSource):
    """A text table: CSV, TSV or any other separator, with or without a header. Each row is an example.

    One column can hold paths of image files; others hold labels, numbers or weights. A record is identified by its path as written in the
    table: rows can be added or moved without a change to the draws of the others. A row without a file is identified by its number. A file
    in several rows is several examples.
    """

    op: ClassVar[str] = "csv"

    @model_validator(mode="after")
    def _numbers_without_header(self) -> Csv:
        for name, feature in self.features.items():
            for key, columns in (("columns", feature.columns or ()), ("column", (feature.column,) if feature.columns is None else ())):
                if not self.header and self.join is None and not all(isinstance(c, int) for c in columns):
                    raise ValueError(f"without a header, columns have numbers: give `features.{name}` a `{key}` with numbers from 0")
        return self
