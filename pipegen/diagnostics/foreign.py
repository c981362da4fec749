"""The table `foreign.txt` of words of other libraries and their form in a spec, which is read only for specs with errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Literal, cast

from pipegen.frozen import dataclass

LONGEST = 80  # the longest word that is looked up, as damaged files may have any number of longer ones

Kind = Literal["step", "source", "key", "value", "spec", "split", "member"]
_SEPARATOR = " | "
NOTHING = "-"  # the placeholder for no lines
VAGUE = frozenset({"true", "yes", "on", "false", "no", "off"})
"""Words of yes and no, for which nothing is suggested if several words could fit."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table."""

    place: Kind  # the place of the words
    words: tuple[str, ...]  # the words of other libraries; `word=value` is for that value alone
    lines: str  # the equivalent in a spec, with examples for values; see the head of the table
    remark: str = ""  # a further remark

    @property
    def names(self) -> tuple[str, ...]:
        """The first names in the lines: steps, keys or a word."""
        if self.lines == NOTHING or self.place == "member":
            return ()
        if self.place in ("value", "split"):
            return (self.lines,)
        if self.place in ("step", "source"):
            return tuple(re.match(r"\w*", step)[0] for step in reversed(self.lines.split(" ; ")))  # type: ignore[index]
        lines, outermost = "", self.lines
        while lines != outermost:  # without everything in braces and brackets
            lines, outermost = outermost, re.sub(r"\{[^{}]*\}|\[[^\[\]]*\]", "", outermost)
        return tuple(re.findall(r"(?:^|,)\s*(\w+)(?:~[^:]*)?:", outermost))

    def holds(self, word: str, value: Any) -> bool:
        """Tests if the row is about a word with this value; `#` in the table is any number."""
        said = "null" if value is None else str(value).casefold()
        said_as = {said, "#"} if isinstance(value, (int, float)) and not isinstance(value, bool) else {said}
        parts = (own.partition("=") for own in self.words)
        return any(plain(name) == plain(word) and (not equals or wanted.casefold() in said_as) for name, equals, wanted in parts)

    def is_about_values(self, word: str) -> bool:
        """Tests if the row is only about some values of a word."""
        return not any("=" not in own and plain(own) == plain(word) for own in self.words)


def plain(word: str) -> str:
    """The letters and digits of a word in lower case, without its spelling convention."""
    return _plain(word) if len(word) <= LONGEST else _plain.__wrapped__(word)


@lru_cache(4096)
def _plain(word: str) -> str:
    return re.sub(r"[^0-9a-z]", "", word.casefold())


def rows(word: str, *places: Kind) -> list[Row]:
    """The rows of a word, including those for single values."""
    return [row for row in _table().get(plain(word), ()) if row.place in places]


def member(word: str) -> str:
    """The equivalent of a member of another library's dataset, as text that begins with a semicolon; else ""."""
    found = rows(word, "member")
    return f"; `{found[0].lines}` is {found[0].remark}" if found else ""


def split_named(word: str) -> str | None:
    """Our name of a split with another name, if any."""
    return next((row.lines for row in rows(word, "split")), None)


def meanings(word: str) -> tuple[str, ...]:
    """The names that a word of another library may mean, the likeliest first."""
    return tuple(dict.fromkeys(name for row in _table().get(plain(word), ()) for name in row.names))


@cache
def _table() -> Mapping[str, tuple[Row, ...]]:
    """The rows by their words in plain form."""
    found: dict[str, dict[Row, None]] = {}
    for row in every_row():
        for word in row.words:
            found.setdefault(plain(word.partition("=")[0]), {})[row] = None
    return {word: tuple(known) for word, known in found.items()}


@cache
def every_row() -> tuple[Row, ...]:
    """The whole table, in order."""
    import pkgutil  # ten times faster to import than `importlib.resources`

    text = (pkgutil.get_data("pipegen.diagnostics", "foreign.txt") or b"").decode()
    parts = (line.split(_SEPARATOR) for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return tuple(Row(cast("Kind", place.strip()), tuple(words.split()), *map(str.strip, rest)) for place, words, *rest in parts)
