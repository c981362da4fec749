"""Lines and columns of a text as the YAML reader counts them, so that spans and text agree.

A line ends at LF, CR, CRLF, NEL and the two Unicode separators, and nowhere else; a byte order mark has no column.
"""

from __future__ import annotations

import re

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_BOM = "\ufeff"
_SAYS_SO = re.compile(rb"^(?:\xef\xbb\xbf)?pipegen[ \t]*:", re.MULTILINE)
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""What no text holds, and YAML refuses."""


def says_so(data: bytes) -> bool:
    """Returns whether a line says that this is a spec, be it valid YAML or not."""
    return _SAYS_SO.search(data) is not None


def is_binary(data: bytes) -> bool:
    """Returns whether bytes are no text in any encoding: they hold a NUL, or control characters among bytes that are no UTF-8."""
    return b"\0" in data or (not _is_utf8(data) and _CONTROL.search(data) is not None and not says_so(data))


def may_be_shown(data: bytes) -> bool:
    """Returns whether a finding may print lines of a file: of text, or of a spec with a wrong character in it, never of a picture."""
    return b"\0" not in data and (says_so(data) or (_is_utf8(data) and _CONTROL.search(data) is None))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


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
