"""`jsonl`: lines of JSON that name image files, their labels and numbers."""

from __future__ import annotations

from typing import ClassVar

from pipegen.ops.sources.tables.jsonl import JsonLinesTable
from pipegen.ops.sources.tables.source import TableSource


class JsonLines(JsonLinesTable, TableSource):
    """JSON lines: each line holds an object and is an example, as with `csv`.

    Columns are the keys of all lines. A nested one is named with a dot, so `meta.site` is the key `site` of the object under `meta`;
    a key that a line lacks is an empty cell. A list holds several labels, where the feature has a `separator`.
    """

    op: ClassVar[str] = "jsonl"
