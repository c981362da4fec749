"""`sqlite`: the rows of a table in SQLite files, read by row number."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated, ClassVar

from pydantic import Field

from pipegen.ops.sources.records.by_library import StoreSource
from pipegen.ops.sources.stores.base import Store
from pipegen.ops.sources.stores.sqlite_rows import SqliteRows


class Sqlite(StoreSource):
    """SQLite files: each row of a table is an example, and the key of a feature is a column.

    A column of images is a `BLOB` of the bytes of image files; one of several numbers is a `BLOB` of `.npy` files. Rows are read in the
    order of their `rowid`, which views and tables made `WITHOUT ROWID` lack. Files are opened read-only, and no code stored in them runs.
    """

    op: ClassVar[str] = "sqlite"
    suffixes: ClassVar[tuple[str, ...]] = (".sqlite", ".sqlite3", ".db")
    called: ClassVar[str] = "SQLite"
    store: ClassVar[type[Store]] = SqliteRows

    table: Annotated[str, Field(min_length=1)] | None = None
    """Name of the table; by default the only one."""

    def store_arguments(self) -> tuple[Hashable, ...]:
        return (self.table,)
