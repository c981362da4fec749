"""Keeps the rows of a query in a file, so that every run and every host sees the same ones.

The first line has the query, the address and the time; then each line is a row, a list of texts; the last one has their number and the
SHA-256 of all lines before it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from pipegen.files import inert, whole_file
from pipegen.frozen import dataclass

_FORMAT = 1


@dataclass(frozen=True)
class Snapshot:
    """Kept rows."""

    columns: tuple[str, ...]  # their names
    rows: tuple[tuple[str, ...], ...]  # a text for each column
    taken: str  # the time of the query, in ISO form


def snapshot_name(url: str, query: str) -> str:
    """Returns the file name for a query and an address without its password."""
    digest = hashlib.sha256(json.dumps([url, query]).encode()).hexdigest()
    return f"sql-{digest[:16]}.jsonl"


def read_snapshot(file: str, url: str, query: str) -> Snapshot | None:
    """Reads a snapshot; `None` without one. Raises `ValueError` if the file is damaged, or belongs to another query; `OSError` if it cannot
    be read."""
    if not os.path.lexists(file):
        return None
    digest = hashlib.sha256()
    with open(file, "rb") as stream:
        lines = stream.readlines()
    if len(lines) < 2:
        raise ValueError("it is cut short")
    for line in lines[:-1]:
        digest.update(line)
    about, end = (_record(line) for line in (lines[0], lines[-1]))
    if about.get("pipegen_sql") != _FORMAT:
        raise ValueError("it is not a snapshot of a query")
    if end.get("rows") != len(lines) - 2 or end.get("sha256") != digest.hexdigest():
        raise ValueError("it is damaged, or was changed by hand")
    if (about["url"], about["query"]) != (url, query):
        raise ValueError("it holds the rows of another query")
    rows = tuple(tuple(json.loads(line)) for line in lines[1:-1])
    return Snapshot(tuple(about["columns"]), rows, str(about["taken"]))


def _record(line: bytes) -> dict[str, Any]:
    value = json.loads(line)
    return value if isinstance(value, dict) else {}


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
