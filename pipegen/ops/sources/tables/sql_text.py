"""Looks at the text of a query: whether it is one statement that reads, and nothing else."""

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
"""Words that a statement which reads has none of, outside quotes."""


def refuse_writing(query: str) -> None:
    """Checks that a query is one statement that reads. What it calls is for the database to hold back: it runs read-only.

    Raises:
        ValueError: What else it is.
    """
    if re.search(r"\\['\"]", query):
        raise ValueError("a query has no backslash before a quote; a quote in a text is written twice: ''")
    bare = _SKIPPED.sub(lambda match: " " if match["comment"] else " x ", query)
    if "/*" in bare or "'" in bare or '"' in bare:
        raise ValueError("a query closes its texts and its comments, and has none that only MySQL runs")
    statement, _, rest = bare.partition(";")
    if rest.strip():
        raise ValueError("a query is one statement, and this one goes on after `;`")
    words = re.findall(r"[A-Za-z_]\w*", statement.lower())
    if not words or words[0] not in _READS:
        raise ValueError(f"a query begins with `select`, `with` or `values`{f', and this one with `{words[0]}`' if words else ''}")
    writing = next((word for word in words if word in _WRITES), None)
    if writing is not None:
        raise ValueError(f"a query only reads, and this one has `{writing}`; a column of that name stands in double quotes")
