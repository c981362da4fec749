"""Checks database addresses in specs, which may name the database, and arguments that load nothing.

Drivers accept more: libraries and plug-ins to load, files of options and keys, statements to run first. A spec may come from a stranger,
so each driver has a list of allowed arguments. An address that the caller passes as a whole is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, unquote

_ADDRESS = re.compile(
    r"""(?P<name>[\w+]+)://
    (?:(?P<user>[^:/]*)(?::(?P<password>[^@]*))?@)?
    (?:(?:\[(?P<ipv6>[^/?]+)\]|(?P<host>[^/:?]+))?(?::(?P<port>[^/?]*))?)?
    (?:/(?P<database>[^?]*))?
    (?:\?(?P<query>.*))?""",
    re.VERBOSE,
)
"""SQLAlchemy's grammar, which a test compares it with."""
_LIBPQ = frozenset({
    "application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname", "fallback_application_name", "gssencmode",
    "host", "hostaddr", "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "password", "port", "sslmode",
    "ssl_max_protocol_version", "ssl_min_protocol_version", "target_session_attrs", "tcp_user_timeout", "user",
})  # fmt: skip
_MYSQL = frozenset({"autocommit", "charset", "collation", "compress", "connect_timeout", "connection_timeout", "read_timeout",
                    "use_unicode",
                    "write_timeout"})  # fmt: skip
_ODBC = frozenset({"ansi", "app", "applicationintent", "driver", "encrypt", "lang", "multisubnetfailover", "timeout",
                   "trustservercertificate", "unicode_results"})  # fmt: skip
_ORACLE = frozenset({"encoding", "nencoding", "service_name", "tcp_connect_timeout"})
_SQLITE = frozenset({"cache", "check_same_thread", "immutable", "mode", "nolock", "timeout"})
_DUCKDB = frozenset({"access_mode", "memory_limit", "threads"})
ARGUMENTS: dict[str, dict[str, frozenset[str]]] = {
    "sqlite": dict.fromkeys(("", "pysqlite"), _SQLITE),
    "duckdb": dict.fromkeys(("", "duckdb_engine"), _DUCKDB),
    "postgresql": {
        **dict.fromkeys(("", "psycopg", "psycopg2"), _LIBPQ),
        "pg8000": frozenset({"application_name", "client_encoding", "tcp_keepalive", "timeout"}),
    },
    "mysql": dict.fromkeys(("", "mysqldb", "pymysql", "mysqlconnector"), _MYSQL),
    "mariadb": dict.fromkeys(("", "mysqldb", "pymysql", "mysqlconnector", "mariadbconnector"), _MYSQL),
    "mssql": {
        **dict.fromkeys(("", "pyodbc"), _ODBC),
        "pymssql": frozenset({"appname", "charset", "login_timeout", "tds_version", "timeout"}),
    },
    "oracle": dict.fromkeys(("", "oracledb", "cx_oracle"), _ORACLE),
}
"""Arguments allowed in a spec, by dialect and driver; "" is SQLAlchemy's default driver."""
_PASSWORD_VARIABLES = {"postgresql": "PGPASSWORD", "mysql": "MYSQL_PWD", "mariadb": "MYSQL_PWD"}
_HOST = re.compile(r"[\w.,\\%:-]*")
_DATABASE = re.compile(r"[^;{}=\0]*")
_DRIVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()+-]*")
_LIBRARY = re.compile(r"\.(?:so|dll|dylib)\b", re.IGNORECASE)
_VALUE = re.compile(r"[^;{}=\0\r\n]*")


def unsafe(address: str) -> Iterator[str]:
    """Yields the problems of an address in a spec, each as the end of a sentence."""
    found = _ADDRESS.match(address)
    if found is None:  # reported when it is read
        return
    dialect, _, driver = found["name"].partition("+")
    drivers = ARGUMENTS.get(dialect)
    if drivers is None or driver not in drivers:
        yield f"names the unsupported driver `{found['name']}`"
        return
    host, database = (unquote(part or "") for part in (found["ipv6"] or found["host"], found["database"]))
    if _HOST.fullmatch(host) is None:
        yield f"has the host {host!r}, which is more than a name"
    if dialect not in ("sqlite", "duckdb") and _DATABASE.fullmatch(database) is None:
        yield f"has the database {database!r}, which is more than a name"
    if dialect == "duckdb" and ("://" in database or re.match(r"(?:md|motherduck):", database, re.IGNORECASE)):
        yield f"has the database {database!r}, which is not a local file"
    for key, value in parse_qsl(found["query"] or "", keep_blank_values=True):
        if (key.lower() if dialect == "mssql" else key) not in drivers[driver]:
            yield f"has the argument `{key}`"
        elif key.lower() == "driver" and (_DRIVER_NAME.fullmatch(value) is None or _LIBRARY.search(value)):
            yield f"has the driver {value!r}, which is not the name of an installed driver"
        elif key.lower() not in ("password", "host") and _VALUE.fullmatch(value) is None:
            yield f"has {value!r} as `{key}`, which is more than one value"


def password_variable(address: str) -> str:
    """Returns the environment variable with a driver's default password, if the address has none; else ""."""
    found = _ADDRESS.match(address)
    if found is None or found["password"] is not None:
        return ""
    return _PASSWORD_VARIABLES.get(found["name"].partition("+")[0], "")


def allowed_arguments(address: str) -> tuple[str, ...]:
    """Returns the arguments allowed in the address in a spec; none for an unknown driver."""
    dialect, _, driver = address.partition("://")[0].partition("+")
    return tuple(sorted(ARGUMENTS.get(dialect, {}).get(driver, ())))
