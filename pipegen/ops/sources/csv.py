"""`csv`: a table of text whose rows name image files, their labels and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, field_validator, model_validator

from pipegen.ops.sources.base import Listing
from pipegen.ops.sources.table import WHITESPACE, read_table
from pipegen.ops.sources.table_source import TableSource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class Csv(TableSource):
    """A table of text: CSV, TSV or any other separator, with or without a header; each row is an example.

    A column can hold the paths of image files; others hold labels, numbers or weights. A record is known by its path as the table
    has it, so that rows can be added and moved and the others keep their draws; a row without a file is known by its number. A file
    that stands in several rows is as many examples.
    """

    op: ClassVar[str] = "csv"

    path: Annotated[str, Field(min_length=1)]
    """The table, relative to the spec's file: text in UTF-8."""
    separator: Annotated[str, Field(min_length=1)] | None = None
    """What stands between cells: one character, or `whitespace` for blanks and tabs in any number. By default a tab in `.tsv` and
    `.tab` files, else a comma."""
    header: bool = True
    """Whether the first row names the columns; without it they are numbered from 0."""

    @field_validator("separator")
    @classmethod
    def _one_character(cls, separator: str | None) -> str | None:
        if separator is not None and separator != WHITESPACE and (len(separator) != 1 or separator in '"\r\n'):
            raise ValueError(f"a separator is one character, or `{WHITESPACE}`; got {separator!r}")
        return separator

    @model_validator(mode="after")
    def _numbers_without_header(self) -> Csv:
        for name, feature in self.features.items():
            for key, columns in (("columns", feature.columns or ()), ("column", (feature.column,) if feature.columns is None else ())):
                if not self.header and not all(isinstance(c, int) for c in columns):
                    raise ValueError(f"without a header columns have numbers: give `features.{name}` a `{key}`, from 0")
        return self

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Read the table and look for its files; see `Source.list`, and for errors `read_table` and `TableSource.listing`."""
        return self.listing(read_table(str(base), self.path, separator=self.separator, header=self.header), base, progress)
