"""Checks that the text of a query is one statement that only reads."""

from __future__ import annotations

import re

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
    """Checks that a query is one statement that only reads. It also runs read-only, since it may call functions.

    Raises:
        ValueError: It is not.
    """
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
