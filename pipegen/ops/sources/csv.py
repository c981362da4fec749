"""`csv`: a table of text whose rows name image files, their labels and numbers."""

from __future__ import annotations

from typing import ClassVar

from pydantic import model_validator

from pipegen.ops.sources.tables.csv import CsvTable
from pipegen.ops.sources.tables.source import TableSource


class Csv(CsvTable, TableSource):
    """A table of text: CSV, TSV or any other separator, with or without a header; each row is an example.

    A column can hold the paths of image files; others hold labels, numbers or weights. A record is known by its path as the table
    has it, so that rows can be added and moved and the others keep their draws; a row without a file is known by its number. A file
    that stands in several rows is as many examples.
    """

    op: ClassVar[str] = "csv"

    @model_validator(mode="after")
    def _numbers_without_header(self) -> Csv:
        for name, feature in self.features.items():
            for key, columns in (("columns", feature.columns or ()), ("column", (feature.column,) if feature.columns is None else ())):
                if not self.header and self.join is None and not all(isinstance(c, int) for c in columns):
                    raise ValueError(f"without a header columns have numbers: give `features.{name}` a `{key}`, from 0")
        return self
