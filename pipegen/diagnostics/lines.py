"""Lines and columns of a text as the YAML reader counts them, so that spans and text agree.

A line ends at LF, CR, CRLF, NEL and the two Unicode separators, and nowhere else; a byte order mark has no column.
"""

from __future__ import annotations

import re

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_BOM = "\ufeff"


def split_lines(text: str) -> list[str]:
    """The lines without their ends; a text that ends with a line break has an empty last line."""
    return _BREAK.split(text.removeprefix(_BOM))


class Offsets:
    """Turns positions of one text into character offsets."""

    def __init__(self, text: str) -> None:
        start = 1 if text.startswith(_BOM) else 0
        self._starts = [start]
        self._ends: list[int] = []
        for match in _BREAK.finditer(text):
            self._ends.append(match.start())
            self._starts.append(match.end())
        self._ends.append(len(text))

    def at(self, line: int, column: int) -> int | None:
        """The offset of a line and column, both from 1, or `None` when the text has no such place."""
        if not 1 <= line <= len(self._starts):
            return None
        offset = self._starts[line - 1] + column - 1
        return offset if self._starts[line - 1] <= offset <= self._ends[line - 1] else None
