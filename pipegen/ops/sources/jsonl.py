"""`jsonl`: lines of JSON that name image files, their labels and numbers."""

from __future__ import annotations

from typing import ClassVar

from pipegen.ops.sources.tables.readings import JsonLinesTable
from pipegen.ops.sources.tables.source import TableSource


class JsonLines(JsonLinesTable, TableSource):
    """JSON lines: each line is an object and an example, as with `csv`.

    The columns are the keys of all lines. A dot names a nested key: `meta.site` is the key `site` of the object `meta`. A key that a line
    lacks is an empty cell. A list holds several labels if the feature has a `separator`.
    """

    op: ClassVar[str] = "jsonl"
