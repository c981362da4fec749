"""Text tables: the file, and its separator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, field_validator

from pipegen.ops.sources.tables.reading import TableReading
from pipegen.ops.sources.tables.table import WHITESPACE, TextTable, read_table

if TYPE_CHECKING:
    from pathlib import Path


class CsvTable(TableReading):
    """A text table: CSV, TSV or any other separator, with or without a header."""

    path: Annotated[str, Field(min_length=1)]
    """File of the table, in UTF-8, relative to the spec's file."""
    separator: Annotated[str, Field(min_length=1)] | None = None
    """Separator of cells: one character, or `whitespace` for any number of blanks and tabs. By default the one in a first line such as
    `sep=;`, which Excel writes, else a tab in `.tsv` and `.tab` files, else a comma."""
    header: bool = True
    """Whether the first row names the columns; without it they are numbered from 0."""

    @field_validator("separator")
    @classmethod
    def _one_character(cls, separator: str | None) -> str | None:
        if separator is not None and separator != WHITESPACE and (len(separator) != 1 or separator in '"\r\n'):
            raise ValueError(f"invalid separator {separator!r}; use one character, or `{WHITESPACE}`")
        return separator

    def read(self, base: Path) -> TextTable:
        return read_table(str(base), self.path, separator=self.separator, header=self.header)
