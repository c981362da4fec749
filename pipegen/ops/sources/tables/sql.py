"""The rows of a database query, read once and then from a snapshot, so that every run and every host sees the same ones.

The first line of a snapshot has the query, the address and the time; then each line is a row, a list of texts; the last one has their
number and the SHA-256 of all lines before it.
"""

from __future__ import annotations

import contextvars
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from pipegen.errors import OpError
from pipegen.files import inert, whole_file
from pipegen.ops.fields.labels import text_of
from pipegen.ops.fields.notes import Note
from pipegen.ops.sources.listing.paths import find_file
from pipegen.ops.sources.tables.table import Table, needed
from pipegen.terminal import Secretive, without_secrets

_FOLDER = ".pipegen"
_DRIVER = "install the driver of the database, such as psycopg or pymysql"
_READ_ONLY: dict[str, str] = {
    "mysql": "SET SESSION TRANSACTION READ ONLY",
    "mariadb": "SET SESSION TRANSACTION READ ONLY",
    "oracle": "SET TRANSACTION READ ONLY",
}
"""Statements that make a session read-only, by dialect."""
_NO_LOCAL_FILES: dict[str, dict[str, Any]] = {
    "mysqldb": {"local_infile": 0},
    "pymysql": {"local_infile": False},
    "mysqlconnector": {"allow_local_infile": False},
    "mariadbconnector": {"local_infile": False},
}
"""Arguments that keep a driver from sending local files that a server asks for."""


def read_query(url: str, query: str, snapshot: str | None, time_limit: float, base: Path) -> Table:
    """Reads the snapshot of a query, else the database; for the arguments see `SqlTable`. Raises `OpError`: `PG401` for a missing SQLite
    file, `PG421` without SQLAlchemy, `PG453` if the database refuses, `PG454` for an unusable snapshot."""
    about = _address(str(url), base), query
    called = f"sql-{hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]}.jsonl"
    name = snapshot or os.path.join(_FOLDER, called)
    file = os.path.abspath(os.path.join(str(base), os.path.expanduser(name)))
    if snapshot is None and os.path.islink(os.path.join(str(base), _FOLDER)):
        message = f"the rows of the query are kept in {_FOLDER!r}, which is a link to another place"
        raise OpError("PG671", message, help="remove the link, or name a file: `snapshot: rows.jsonl`")
    field = "snapshot" if snapshot is not None else None
    try:
        kept = read_snapshot(file, *about)
        if kept is None:
            _query(url, query, str(base), time_limit, partial(keep_snapshot, file, *about))
            kept = read_snapshot(file, *about)
    except (OSError, RecursionError) as error:  # RecursionError: too many parent folders
        reason = getattr(error, "strerror", None) or str(error)
        message = f"the rows of the query cannot be kept in {file!r}: {reason.lower()}"
        raise OpError("PG454", message, field=field, help="name another place by `snapshot: FILE`") from None
    except (ValueError, KeyError, TypeError) as error:
        message = f"the snapshot {file!r} cannot be used: {error}"
        raise OpError("PG454", message, field=field, help="restore it, or delete it to query the database again") from None
    if kept is None:
        raise OpError("PG454", f"the snapshot {file!r} was removed while it was read", field=field)
    names, rows, taken = kept
    note = Note("PG455", f"the rows of the query are from {taken}, kept in {file!r}", "delete the file to query the database again")
    return Table.of("the query", "", str(base), names, len(names), len(rows), lambda i: (row[i] for row in rows), notes=(note,))


def _address(url: str, base: Path) -> str:
    """Returns an address without its password; an SQLite file is relative to the spec's folder."""
    dialect, mark, file = url.partition(":///")
    return f"{dialect}{mark}{os.path.relpath(file, base)}" if dialect.startswith("sqlite") and os.path.isabs(file) else url


def _query(url: str, query: str, base: str, limit: float, keep: Callable[[tuple[str, ...], Iterator[list[str]]], None]) -> None:
    """Queries a database; `keep` gets the column names and the rows, as texts. For errors see `SqlTable.read`."""
    with needed("databases", "SQLAlchemy", "sql", f"; and {_DRIVER}", field="url"):
        import sqlalchemy
    revealed = url.revealed if isinstance(url, Secretive) else url
    hide = without_secrets(revealed)
    try:
        made = sqlalchemy.make_url(revealed)
        engine = _engine(sqlalchemy, made, base)
    except OpError:
        raise
    except ImportError as error:
        raise OpError("PG421", f"the driver of this database cannot be imported: {error}", field="url", help=_DRIVER) from None
    except Exception as error:  # the driver parses the address
        raise OpError("PG453", f"`url` is not a database address: {hide(error)}", field="url", help=_FORM) from None
    field = "url"

    def ask(connected: Callable[[Any], Callable[[], None]]) -> None:
        nonlocal field
        with engine.connect() as connection:
            check = connected(connection.connection.dbapi_connection)
            field = "query"
            if made.get_backend_name() in _READ_ONLY:
                connection.exec_driver_sql(_READ_ONLY[made.get_backend_name()])
            options: dict[str, Any] = {"no_parameters": True, "stream_results": True}
            if made.get_backend_name() == "postgresql":
                options["postgresql_readonly"] = True
            result = connection.execution_options(**options).exec_driver_sql(query)
            keep(tuple(map(str, result.keys())), _texts(result, check))
            connection.rollback()

    try:
        run_query(ask, limit)
    except LateError:
        longer = (f"query less, or raise the limit: `time_limit: {min(86400, limit * 6):g}`",)
        message = f"the database has not answered within {limit:g} seconds, its `time_limit`"
        raise OpError("PG453", message, field=field, help=longer) from None
    except sqlalchemy.exc.SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        what = "cannot be reached" if field == "url" else "refuses the query"
        raise OpError("PG453", f"the database {what}: {hide(cause)}", field=field) from None
    finally:
        engine.dispose()


def _texts(rows: Iterable[Any], check: Callable[[], None]) -> Iterator[list[str]]:
    """Yields rows as texts; calls `check` for each, and at the end."""
    for row in rows:
        check()
        yield [text_of(value) for value in row]
    check()


_FORM = "an address is `DIALECT://USER:PASSWORD@HOST/DATABASE`, such as `sqlite:///scans.db`"


def _engine(sqlalchemy: Any, url: Any, base: str) -> Any:
    """Makes an engine that can only read, if its database supports that."""
    options: dict[str, Any] = {"poolclass": sqlalchemy.pool.NullPool}
    name, driver = url.get_backend_name(), url.get_driver_name()
    if name == "duckdb":
        # A query reads one database, and no files or addresses that it or a view names.
        settings = {"enable_external_access": "false", "autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        options["connect_args"] = {"read_only": True, "config": settings}
    elif name in ("mysql", "mariadb") and driver in _NO_LOCAL_FILES:
        options["connect_args"] = dict(_NO_LOCAL_FILES[driver])
    if name == "sqlite":
        if not url.database or url.database == ":memory:":
            raise OpError("PG401", "a database in memory has no rows", field="url", help="give a file: `sqlite:///scans.db`")
        file = find_file(base, url.database, field="url", what="database")
        options["creator"] = lambda: _sqlite(file)
        url = sqlalchemy.make_url("sqlite://")  # opened by `creator`; arguments of the address are ignored
    return sqlalchemy.create_engine(url, **options)


def _sqlite(file: str) -> Any:
    import sqlite3
    from urllib.parse import quote

    from pipegen.ops.sources.stores.field_types import StoreError
    from pipegen.ops.sources.stores.sqlite_rows import check_pages

    connection = sqlite3.connect(f"file:{quote(file)}?mode=ro", uri=True)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        check_pages(file, connection)
    except (sqlite3.Error, StoreError) as error:
        connection.close()
        raise OpError(
            "PG430", f"{file!r} is damaged ({error})", field="url", help="copy the file again, or dump and load the database"
        ) from None
    connection.set_authorizer(_authorise)
    return connection


def _authorise(action: int, first: str | None, second: str | None, _database: str | None, _trigger: str | None) -> int:
    """Denies SQLite access to other files and to libraries."""
    import sqlite3

    is_library = action == sqlite3.SQLITE_FUNCTION and (second or first or "").lower() in ("load_extension", "fts3_tokenizer")
    return sqlite3.SQLITE_DENY if is_library or action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH) else sqlite3.SQLITE_OK


_SKIPPED = re.compile(
    r"""(?P<comment>--[^\n]*|/\*(?!!).*?\*/)
    | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[A-Za-z_][^\]\n]*\])
    | (?P<dollars>\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)""",
    re.VERBOSE | re.DOTALL,
)
_READS = ("select", "with", "values", "table", "from")
_WRITES = frozenset({
    "alter", "analyze", "attach", "begin", "call", "commit", "copy", "create", "declare", "delete", "detach", "do", "drop", "exec",
    "execute", "grant", "handler", "import", "insert", "install", "into", "load", "lock", "merge", "pragma", "reindex", "rename", "revoke",
    "set", "truncate", "update", "upsert", "vacuum",
})  # fmt: skip
"""Words that a reading statement cannot have outside of quotes."""


def refuse_writing(query: str) -> None:
    """Checks that a query is one statement that only reads. It also runs read-only, since it may call functions. Raises `ValueError` if it
    is not."""
    if re.search(r"\\['\"]", query):
        raise ValueError("a query cannot have a backslash before a quote; double quotes in a text: ''")
    bare = _SKIPPED.sub(lambda match: " " if match["comment"] else " x ", query)
    if "/*" in bare or "'" in bare or '"' in bare:
        raise ValueError("a query has an unterminated string or comment, or a MySQL-only comment `/*! */`")
    statement, _, rest = bare.partition(";")
    if rest.strip():
        raise ValueError("a query must be one statement; this one continues after `;`")
    words = re.findall(r"[A-Za-z_]\w*", statement.lower())
    if not words or words[0] not in _READS:
        raise ValueError(f"a query must begin with `select`, `with` or `values`{f', not `{words[0]}`' if words else ''}")
    writing = next((word for word in words if word in _WRITES), None)
    if writing is not None:
        raise ValueError(f"a query can only read, but this one has `{writing}`; put a column of that name in double quotes")


_LOOK = 0.05  # seconds between checks for an interrupt
_PATIENCE = 2.0  # seconds that a database may take to end a cancelled statement


class LateError(Exception):
    """The database exceeded its time limit."""


class _StoppedError(Exception):
    """The query was cancelled."""


def run_query(work: Callable[[Callable[[Any], Callable[[], None]]], None], limit: float) -> None:
    """Runs a query that can be interrupted: another thread waits for the database, this one for that thread. Drivers wait in C, where
    neither Ctrl-C nor a time limit reaches them.

    Args:
        work: Queries the database in the other thread, and keeps the rows. It calls its argument with the driver's connection, and what
            that returns for each row, which ends a cancelled query.
        limit: Seconds for everything.

    Raises:
        LateError: It takes too long.
        Exception: Whatever `work` raises.
    """
    until, stopped = time.monotonic() + limit, threading.Event()
    connections: list[Any] = []
    errors: list[BaseException] = []

    def check() -> None:
        if stopped.is_set():
            raise _StoppedError

    def connected(connection: Any) -> Callable[[], None]:
        connections.append(connection)
        check()
        return check

    def run() -> None:
        try:
            work(connected)
        except BaseException as error:  # raised again by the caller's thread
            errors.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), name="pipegen-query", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            if time.monotonic() > until:
                raise LateError
            thread.join(_LOOK)
    finally:
        stopped.set()
        until = time.monotonic() + _PATIENCE
        while thread.is_alive() and time.monotonic() < until:
            for connection in connections:
                _cancel(connection)
            thread.join(_LOOK)
    if errors:
        raise errors[0]


def _cancel(connection: Any) -> None:
    """Cancels what a driver's connection does, by the driver's own method."""
    for name in ("interrupt", "cancel", "_force_close", "close"):  # SQLite and DuckDB; PostgreSQL and Oracle; PyMySQL; others
        method = getattr(connection, name, None)
        if method is not None:
            with suppress(Exception):
                method()
            return


_FORMAT = 1


def read_snapshot(file: str, url: str, query: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], str] | None:
    """Reads a snapshot: the names of the columns, the rows, and the time of the query in ISO form; `None` without one. Raises `ValueError`
    if the file is damaged, or belongs to another query; `OSError` if it cannot be read."""
    if not os.path.lexists(file):
        return None
    digest = hashlib.sha256()
    with open(file, "rb") as stream:
        lines = stream.readlines()
    if len(lines) < 2:
        raise ValueError("it is cut short")
    for line in lines[:-1]:
        digest.update(line)
    about, end = (value if isinstance(value, dict) else {} for value in map(json.loads, (lines[0], lines[-1])))
    if about.get("pipegen_sql") != _FORMAT:
        raise ValueError("it is not a snapshot of a query")
    if end.get("rows") != len(lines) - 2 or end.get("sha256") != digest.hexdigest():
        raise ValueError("it is damaged, or was changed by hand")
    if (about["url"], about["query"]) != (url, query):
        raise ValueError("it holds the rows of another query")
    rows = tuple(tuple(json.loads(line)) for line in lines[1:-1])
    return tuple(about["columns"]), rows, str(about["taken"])


def keep_snapshot(file: str, url: str, query: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Writes the rows as they come, atomically. If another process was faster, its rows stay. Raises `OSError` if it cannot be written."""
    os.makedirs(os.path.dirname(file), exist_ok=True)
    digest, count = hashlib.sha256(), 0
    taken = datetime.now(timezone.utc).isoformat(timespec="seconds")
    about = {"pipegen_sql": _FORMAT, "url": url, "query": query, "taken": taken, "columns": list(columns)}
    with suppress(FileExistsError), whole_file(file, new=True) as stream:

        def append(value: object) -> None:
            line = inert(json.dumps(value)).encode() + b"\n"
            digest.update(line)
            stream.write(line)

        append(about)
        for row in rows:
            append(row)
            count += 1
        stream.write(json.dumps({"rows": count, "sha256": digest.hexdigest()}).encode() + b"\n")
