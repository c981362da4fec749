"""`sql`: the rows of a query on a database, which name image files, their labels and numbers."""

from __future__ import annotations

from typing import ClassVar

from pipegen.ops.sources.tables.readings import SqlTable
from pipegen.ops.sources.tables.source import TableSource


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
