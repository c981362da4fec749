"""Arguments of tables of each format, and of joining one; the code that reads them is imported when it is needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, PlainSerializer, field_validator

from pipegen.ops.fields.labels import WHITESPACE
from pipegen.ops.model import Model, OneOf
from pipegen.terminal import Secretive, masked_address

if TYPE_CHECKING:
    from pipegen.ops.fields.notes import Note
    from pipegen.ops.sources.tables.table import Table

Path_ = Annotated[str, Field(min_length=1)]
Column = Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)]  # its number from 0, or its name


class TableReading(Model):
    """Arguments for reading a table of one format."""

    def read(self, base: Path) -> Table:
        """Reads the table.

        Args:
            base: What relative paths are relative to.

        Raises:
            OpError: `PG401` if it does not exist, `PG421` if it cannot be read.
        """
        raise NotImplementedError


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

    def read(self, base: Path) -> Table:
        from pipegen.ops.sources.tables.files import read_table

        return read_table(str(base), self.path, separator=self.separator, header=self.header)


class ParquetTable(TableReading):
    """Parquet files."""

    path: Path_ | Annotated[tuple[Path_, ...], Field(min_length=1)]
    """File, relative to the spec's file; or several with the same columns: a folder, a pattern such as `data/train-*.parquet`, a range such
    as `{000..099}.parquet`, or a list of these."""

    def read(self, base: Path) -> Table:
        """Opens the files; each column is read on first use."""
        from pipegen.ops.sources.shards.paths import find_shards
        from pipegen.ops.sources.tables.parquet import SUFFIXES, read_parquet

        beside: list[Note] = []
        root, found = find_shards(str(base), self.path, SUFFIXES, notes=beside)
        files = [one.path for one in found]
        single = isinstance(self.path, str) and os.path.isfile(os.path.join(base, os.path.expanduser(self.path)))
        return read_parquet(files, None if single else root, beside)


class JsonLinesTable(TableReading):
    """JSON lines."""

    path: Annotated[str, Field(min_length=1)]
    """File of JSON lines in UTF-8, one object per line, relative to the spec's file."""

    def read(self, base: Path) -> Table:
        from pipegen.ops.sources.tables.files import read_json_lines

        return read_json_lines(str(base), self.path)


class ExcelTable(TableReading):
    """A sheet of an Excel file."""

    path: Annotated[str, Field(min_length=1)]
    """File of the table, relative to the spec's file."""
    sheet: Annotated[str, Field(min_length=1)] | Annotated[int, Field(ge=0)] = 0
    """Name of the sheet, or its number from 0."""
    header: bool = True
    """Whether the first row names the columns; without it they are numbered from 0."""

    def read(self, base: Path) -> Table:
        from pipegen.ops.sources.tables.files import read_sheet

        return read_sheet(str(base), self.path, self.sheet if "sheet" in self.model_fields_set else None, header=self.header)


class SqlTable(TableReading):
    """The rows of one query."""

    url: Annotated[str, Field(min_length=3), AfterValidator(Secretive), PlainSerializer(masked_address, return_type=str)]
    """Database as an SQLAlchemy address: `postgresql+psycopg://user@host/db`, `sqlite:///scans.db` (relative to the spec's file). Pass one
    with a password by a param with `env`; no output shows it. In a spec it can only have arguments that load nothing, as listed on the page
    on security."""
    query: Annotated[str, Field(min_length=6)]
    """One statement that only reads; it runs read-only. Add `order by`, which fixes the order of the rows."""
    snapshot: Annotated[str, Field(min_length=1)] | None = None
    """File that keeps the rows, relative to the spec's file and below its folder or the working directory; by default one below
    `.pipegen/`, named by address and query. While it exists, the database is not queried."""
    time_limit: Annotated[float, Field(gt=0, le=86400)] = 600
    """Seconds that the database may take to return all rows."""

    @field_validator("query")
    @classmethod
    def _reads(cls, query: str) -> str:
        from pipegen.ops.sources.tables.sql import refuse_writing

        refuse_writing(query)
        return query.strip()

    def read(self, base: Path) -> Table:
        from pipegen.ops.sources.tables.sql import read_query

        return read_query(self.url, self.query, self.snapshot, self.time_limit, base)


class AnyTable(Model):
    """A table of any format."""

    csv: CsvTable | None = None
    """A text table: `{path: rows.csv}`, with `separator` and `header` as in the source `csv`."""
    parquet: ParquetTable | None = None
    """Parquet files: `{path: rows.parquet}`."""
    jsonl: JsonLinesTable | None = None
    """JSON lines: `{path: rows.jsonl}`."""
    excel: ExcelTable | None = None
    """A sheet of an Excel file: `{path: rows.xlsx, sheet: visits}`."""
    sql: SqlTable | None = None
    """The rows of a query: `{url: "sqlite:///rows.db", query: select * from visits}`."""


class JoinedTable(AnyTable, OneOf):
    """The second table: one source with its arguments, but without `features`."""

    called: ClassVar[str] = "a joined table"


class Join(Model):
    """A second table whose columns are added to the rows with the same key."""

    table: JoinedTable
    """The second table: a source with its arguments, but without `features`, such as `{csv: {path: patients.csv}}`."""
    on: Column | dict[Column, Column]
    """Column of the key in both tables, or `{OWN: OTHER}` if its names differ."""
    missing: Literal["error", "drop"] = "error"
    """What to do with a row whose key the second table lacks: `error`, or `drop`, which leaves it out and reports how many."""

    @field_validator("on")
    @classmethod
    def _one_key(cls, on: Column | dict[Column, Column]) -> Column | dict[Column, Column]:
        if isinstance(on, dict) and len(on) != 1:
            raise ValueError("`on` must be one column, or one pair `{OWN: OTHER}`")
        return on

    @property
    def own(self) -> Column:
        """The column of the key in the first table, or the key of the records that holds it."""
        return next(iter(self.on)) if isinstance(self.on, dict) else self.on
