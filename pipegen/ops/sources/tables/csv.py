"""Reads a table of text: which file, and how its cells are told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, field_validator

from pipegen.ops.sources.tables.reading import TableReading
from pipegen.ops.sources.tables.table import WHITESPACE, TextTable, read_table

if TYPE_CHECKING:
    from pathlib import Path


class CsvTable(TableReading):
    """A table of text: CSV, TSV or any other separator, with or without a header."""

    path: Annotated[str, Field(min_length=1)]
    """The table, relative to the spec's file: text in UTF-8."""
    separator: Annotated[str, Field(min_length=1)] | None = None
    """What stands between cells: one character, or `whitespace` for blanks and tabs in any number. By default what a first
    line such as `sep=;` says, which Excel writes, a tab in `.tsv` and `.tab` files, else a comma."""
    header: bool = True
    """Whether the first row names the columns; without it they are numbered from 0."""

    @field_validator("separator")
    @classmethod
    def _one_character(cls, separator: str | None) -> str | None:
        if separator is not None and separator != WHITESPACE and (len(separator) != 1 or separator in '"\r\n'):
            raise ValueError(f"a separator is one character, or `{WHITESPACE}`; got {separator!r}")
        return separator

    def read(self, base: Path) -> TextTable:
        """Reads the table; see `read_table`."""
        return read_table(str(base), self.path, separator=self.separator, header=self.header)
