"""Translates the words of other libraries by the table `foreign.txt`, which says what each is in a spec.

The table is read when a spec has a mistake in it, and not before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, cast

LONGEST = 80
"""Letters of the longest word that is looked at: what is longer is no name, and a damaged file may hold any number of such."""

Kind = Literal["step", "source", "key", "value", "spec", "split", "member"]
_SEPARATOR = " | "
NOTHING = "-"
"""Stands for lines where there is nothing to write."""
VAGUE = frozenset({"true", "yes", "on", "false", "no", "off"})
"""Words that say no more than whether something is wanted: where several words could answer that, none is suggested."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table.

    Attributes:
        place: Where the words may stand.
        words: The words, as other libraries write them; `word=value` holds with that value alone.
        lines: What says the same in a spec, with examples for values; see the head of the table.
        remark: What else there is to say.
    """

    place: Kind
    words: tuple[str, ...]
    lines: str
    remark: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the language that the lines begin with: steps, keys or a word."""
        if self.lines == NOTHING or self.place == "member":
            return ()
        if self.place in ("value", "split"):
            return (self.lines,)
        if self.place in ("step", "source"):
            return tuple(re.match(r"\w*", step)[0] for step in reversed(self.lines.split(" ; ")))  # type: ignore[index]
        return tuple(re.findall(r"(?:^|,)\s*(\w+)(?:~[^:]*)?:", _outermost(self.lines)))

    def holds(self, word: str, value: Any) -> bool:
        """Tells whether the row is about a word with this value."""
        for own in self.words:
            name, equals, wanted = own.partition("=")
            if plain(name) == plain(word) and (not equals or _is(value, wanted)):
                return True
        return False

    def is_about_values(self, word: str) -> bool:
        """Tells whether the row names a word with some of its values, and not with any."""
        return not any("=" not in own and plain(own) == plain(word) for own in self.words)


def plain(word: str) -> str:
    """Returns the letters and digits of a word in lower case: spelling conventions do not count."""
    return _plain(word) if len(word) <= LONGEST else _plain.__wrapped__(word)


@lru_cache(4096)
def _plain(word: str) -> str:
    return re.sub(r"[^0-9a-z]", "", word.casefold())


def rows(word: str, *places: Kind) -> list[Row]:
    """Returns the rows of a word with any value, those that hold for one value alone among them."""
    return [row for row in _table().get(plain(word), ()) if row.place in places]


def member(word: str) -> str:
    """Returns what a pipeline has for a member of another library's dataset, as text that begins with a semicolon; or nothing."""
    found = rows(word, "member")
    return f"; `{found[0].lines}` is {found[0].remark}" if found else ""


def meanings(word: str) -> tuple[str, ...]:
    """Returns the names of the language that a word from elsewhere may stand for, the likeliest first."""
    return tuple(dict.fromkeys(name for row in _table().get(plain(word), ()) for name in row.names))


@cache
def _table() -> Mapping[str, tuple[Row, ...]]:
    """Returns the rows by their words, plainly written."""
    found: dict[str, dict[Row, None]] = {}
    for row in every_row():
        for word in row.words:
            found.setdefault(plain(word.partition("=")[0]), {})[row] = None
    return {word: tuple(known) for word, known in found.items()}


@cache
def every_row() -> tuple[Row, ...]:
    """Returns the whole table, in order."""
    import pkgutil  # a tenth of what `importlib.resources` takes to import

    text = (pkgutil.get_data("pipegen.diagnostics", "foreign.txt") or b"").decode()
    parts = (line.split(_SEPARATOR) for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return tuple(Row(cast("Kind", place.strip()), tuple(words.split()), *map(str.strip, rest)) for place, words, *rest in parts)


def _outermost(lines: str) -> str:
    """Returns the text less everything in braces and brackets."""
    while (shorter := re.sub(r"\{[^{}]*\}|\[[^\[\]]*\]", "", lines)) != lines:
        lines = shorter
    return lines


def _is(value: Any, wanted: str) -> bool:
    """Tells whether a value is the one that a row names; `#` is any number."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if wanted == "#" and number:
        return True
    return wanted.casefold() == ("null" if value is None else str(value).casefold())
