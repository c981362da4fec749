"""Values in words, for messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_LONGEST = 40
_MOST = 30


def show(value: Any) -> str:
    """A value as a message names it: short, on one line, and as it is written in a spec."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if isinstance(value, (int, float)):
        return f"`{shorten(str(value))}`"
    if isinstance(value, str):
        return f"`{shorten(value)}`" if value else "empty text"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, dict):
        return f"a map with {one_of(list(value)[:4], 'and')}" if value else "an empty map"
    return f"a {type(value).__name__}"


def shorten(text: str) -> str:
    """The text without line breaks, cut where it is long."""
    text = text.replace("\n", "⏎")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def one_of(words: Iterable[object], last: str = "or") -> str:
    """`a`, `b` or `c`; of very many words, the first ones."""
    listed = [str(w) for w in words]
    more = [f"{len(listed) - _MOST:,} more"] if len(listed) > _MOST + 1 else []
    return join([f"`{shorten(w)}`" for w in (listed[:_MOST] if more else listed)] + more, "and" if more else last)


def join(parts: list[str], last: str = "or") -> str:
    """a, b or c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}" if parts else "nothing"
