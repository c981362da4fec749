"""`sql`: the rows of a query on a database, which name image files, their labels and numbers."""

from __future__ import annotations

from typing import ClassVar

from pipegen.ops.sources.tables.source import TableSource
from pipegen.ops.sources.tables.sql import SqlTable


class Sql(SqlTable, TableSource):
    """The rows of one query on any database that SQLAlchemy knows; each is an example, as with `csv`. It takes `pip install 'pipegen[sql]'`
    and the database's driver.

    The rows are read once and kept in a file, the snapshot: every run, every resume and every host that sees it has the same ones, and no
    database is needed any more. Remove the file to ask anew. Image paths are relative to the spec's folder, unless a feature has a
    `root`; a row without a file is known by its number in the snapshot.

    The query is one statement that reads. PostgreSQL, MySQL, MariaDB, Oracle, SQLite and DuckDB are told that nothing may be written; for
    others, connect as a user who may only read.
    """

    op: ClassVar[str] = "sql"
