"""`csv`, `jsonl`, `parquet`, `excel`, `sql` and `dataframe`: tables whose rows name image files, their labels and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import model_validator

from pipegen.errors import OpError
from pipegen.ops.sources.listing.base import Listing, always
from pipegen.ops.sources.tables.readings import CsvTable, ExcelTable, JsonLinesTable, ParquetTable, SqlTable
from pipegen.ops.sources.tables.source import TableSource
from pipegen.ops.sources.tables.table import Table


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


class JsonLines(JsonLinesTable, TableSource):
    """JSON lines: each line is an object and an example, as with `csv`.

    The columns are the keys of all lines. A dot names a nested key: `meta.site` is the key `site` of the object `meta`. A key that a line
    lacks is an empty cell. A list holds several labels if the feature has a `separator`.
    """

    op: ClassVar[str] = "jsonl"


class Parquet(ParquetTable, TableSource):
    """Parquet files; each row is an example, as with `csv`. Needs PyArrow: `pip install 'pipegen[parquet]'`.

    Only the columns that the spec names are read. A dot names a field of a struct: `meta.age`. A list holds several labels if the feature
    has a `separator`. An image is the path of a file, or its bytes: a binary column, or the field `bytes` of a struct. Bytes are read one
    row group at a time.
    """

    op: ClassVar[str] = "parquet"


class Excel(ExcelTable, TableSource):
    """A sheet of an Excel file or of another spreadsheet that pandas reads (`.xlsx`, `.ods`, …). Each row is an example, as with `csv`.

    Needs pandas and openpyxl: `pip install 'pipegen[excel]'`. A formula has the value that was computed last.
    """

    op: ClassVar[str] = "excel"


class Sql(SqlTable, TableSource):
    """The rows of one query on any database that SQLAlchemy supports. Each row is an example, as with `csv`. Needs `pip install
    'pipegen[sql]'` and the database's driver.

    The rows are read once and kept in a file, the snapshot. Every run, every resume and every host that sees the file has the same rows and
    needs no database. Delete the file to query again. Image paths are relative to the spec's folder, unless a feature has a `root`. A row
    without a file is identified by its number in the snapshot.

    The query is one statement that only reads. On PostgreSQL, MySQL, MariaDB, Oracle, SQLite and DuckDB it runs read-only. With other
    databases, connect as a user without write access.
    """

    op: ClassVar[str] = "sql"


class DataFrame(TableSource):
    """A table passed to `pipegen.build(spec, data=df)`: a DataFrame of pandas or Polars, an Arrow table, or a map from column names to
    lists. Each row is an example, as with `csv`.

    Image paths are relative to the spec's folder, unless a feature has a `root`. A list holds several labels if the feature has a
    `separator`.
    """

    op: ClassVar[str] = "dataframe"

    needs_data = always(True)

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Read the columns and look for the images; see `Source.list`. `PG418` without a table; else as `from_memory` and
        `TableSource.listing`."""
        if data is None:
            message = "`dataframe` needs the table from `pipegen.build(data=)`, and none was passed"
            raise OpError("PG418", message, help="pass it: `pipegen.build(spec, data=df)`")
        return self.listing(from_memory(data, str(base)), base, progress)


def from_memory(data: Any, base: str) -> Table:
    """Wraps a DataFrame of pandas or Polars, an Arrow table, or a map from names to columns.

    Args:
        data: The argument of `build(data=)`.
        base: The folder of the spec, which paths are relative to.

    Raises:
        OpError: `PG418` for anything else, and for columns of different lengths.
    """
    names: list[Any]
    of: Callable[[int], Iterable[Any]]
    if isinstance(data, Mapping):
        names, of = list(data), lambda i: iter(data[names[i]])
        bare = next((name for name in names if not hasattr(data[name], "__len__") or isinstance(data[name], (str, bytes))), None)
        if bare is not None:
            kind = type(data[bare]).__name__
            raise OpError("PG418", f"the column {bare!r} of `data` is of type {kind}", help="pass a list or an array")
        number = {len(column) for column in data.values()}
    elif hasattr(data, "column_names") and hasattr(data, "column"):
        names, of, number = list(data.column_names), lambda i: data.column(i).to_pylist(), {len(data)}
    elif hasattr(data, "iloc"):
        names, of, number = list(data.columns), lambda i: data.iloc[:, i].tolist(), {len(data)}
    elif hasattr(data, "columns") and hasattr(data, "__getitem__"):
        names, of, number = list(data.columns), lambda i: data[names[i]].to_list(), {len(data)}
    else:
        help_ = "pass a DataFrame, or a map from column names to lists"
        raise OpError("PG418", f"`data` is not a table but a {type(data).__name__}", help=help_)
    if len(number) > 1:
        raise OpError("PG418", f"the columns of `data` differ in length: {', '.join(map(str, sorted(number)))} rows")
    called = "`data`" if isinstance(data, Mapping) else f"the {type(data).__name__}"
    rows = next(iter(number), 0)
    return Table.of(called, "", base, tuple(map(str, names)), len(names), rows, of)
