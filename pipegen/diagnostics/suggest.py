"""Did you mean: the candidate that a wrong word most likely stands for, or nothing.

A word is tried as the same word in another spelling (`randomFlip`), as a name from another library (`rotation_range`, by the table
`foreign.txt`, which is read only for specs with errors), as a part of one candidate's name (`flip`), and last as a slip of the fingers
(`probabilty`). A wrong guess is worse than none.
"""

from __future__ import annotations

import pkgutil  # ten times faster to import than `importlib.resources`
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Literal, cast

from pipegen.frozen import dataclass

_RANDOM = "random"
_MOST = 300  # candidates that are looked at: each takes time, and a damaged spec may declare thousands of names

_KEPT = 4096  # names whose parts are kept: those of the language are looked at for each word that is wrong


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `word` was probably meant to be, the more usual ones first, or `None` when none is near."""
    names = list(dict.fromkeys(candidates))[:_MOST]
    letters = plain(word)
    if not letters or len(word) > LONGEST:
        return None
    by_plain: dict[str, str] = {}
    for name in names:
        by_plain.setdefault(plain(name), name)
    by_plain.pop("", None)
    if letters in by_plain:
        return by_plain[letters]
    meant = [m for m in meanings(word) if m in names]
    if meant:
        return None if letters in VAGUE and len(meant) > 1 else meant[0]
    stem = _stem(letters)  # equal for `caching` and `cache`, `parts` and `part`
    inflected = next((name for other, name in by_plain.items() if len(stem) >= 4 and _stem(other) == stem), None)
    return inflected or _part(word, names) or _slip(letters, by_plain)


def hints(word: str, candidates: Iterable[str], *further: str) -> tuple[str, ...]:
    """Help for a wrong word: the candidate that was probably meant, if any, and further lines."""
    near = closest(word, candidates)
    return (f"did you mean `{near}`?", *further) if near else further


_LONG_ENOUGH = 5  # letters from which on a word with one typo is certain
_ALONE = 3  # the least distance of all other candidates, two typos more than that of the one that is meant


def is_certain(word: str, near: str, candidates: Iterable[str]) -> bool:
    """Tests if `word` can only mean `near`, one of the candidates: in another spelling, or with one typo and no similar candidate.

    Numbers in a name are never guessed: `resnet51` could be any of a family.
    """
    letters, meant = plain(word), plain(near)
    if letters == meant:
        return True
    if len(meant) < _LONG_ENOUGH or re.findall(r"\d", letters) != re.findall(r"\d", meant) or _distance(letters, meant) > 1:
        return False
    others = {plain(c) for c in candidates} - {meant}
    return all(abs(len(o) - len(letters)) >= _ALONE or _distance(letters, o) >= _ALONE for o in others)


@lru_cache(_KEPT)
def _stem(letters: str) -> str:
    return re.sub(r"(?:ings?|ers?|ed|es|s|e)$", "", letters)


@lru_cache(_KEPT)
def _tokens(word: str) -> tuple[str, ...]:
    """The parts of a name: `randomFlip`, `random-flip` and `random_flip` have the same."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word)
    return tuple(t for t in re.split(r"[^0-9a-z]+", spaced.casefold()) if t)


def _part(word: str, names: list[str]) -> str | None:
    """The one candidate that is the word with or without `random_`, contains all of its parts, or begins with it."""
    tokens = _tokens(word)
    essence = [t for t in tokens if t != _RANDOM]
    if not essence or max(map(len, essence)) < 3:
        return None
    parts = {name: _tokens(name) for name in names}
    same = [name for name, own in parts.items() if [t for t in own if t != _RANDOM] == essence]
    holding = [name for name, own in parts.items() if set(essence) <= set(own)]
    # An abbreviation: each part begins a part of the name, in order (`val`, `norm`, `rand_rot`).
    short = [name for name, own in parts.items() if _abbreviates(tokens, own) or _abbreviates(essence, [t for t in own if t != _RANDOM])]
    return next((found[0] for found in (same, holding, short) if len(found) == 1), None)


def _abbreviates(tokens: Sequence[str], own: Sequence[str]) -> bool:
    return len(tokens) == len(own) and all(o.startswith(t) and (len(t) >= 3 or t == o) for t, o in zip(tokens, own, strict=True))


def _slip(letters: str, by_plain: dict[str, str]) -> str | None:
    """The nearest candidate within the typos allowed for a word of this length."""
    best: tuple[float, int, str] | None = None
    for i, (other, name) in enumerate(by_plain.items()):
        for a, b, handicap, limit in _pairs(letters, other):
            # The letters that a word lacks are lower bounds of the distance, and fast.
            if abs(len(a) - len(b)) > limit or len(_letters(b) - _letters(a)) > limit:
                continue
            if max(len(a), len(b)) - sum(min(a.count(letter), b.count(letter)) for letter in _letters(a)) > limit:
                continue
            if (distance := _distance(a, b)) > limit:
                continue
            rank = (distance + handicap + (0.25 if a[0] != b[0] else 0.0), i, name)
            best = min(best, rank) if best else rank
    return best[2] if best else None


def _pairs(word: str, other: str) -> list[tuple[str, str, float, int]]:
    """The pairs to compare, with a handicap and the allowed typos: whole words, or those after `random_`."""
    stem = other.removeprefix(_RANDOM)
    if word.startswith(_RANDOM) and stem not in ("", other):
        rest = word.removeprefix(_RANDOM)
        return [(rest, stem, 0.0, max(_allowed(rest, stem), 1))] if rest else []
    pairs = [(word, other, 0.0, _allowed(word, other))]
    return [*pairs, (word, stem, 0.5, _allowed(word, stem))] if stem not in ("", other) else pairs


def _allowed(a: str, b: str) -> int:
    """The allowed typos between two words: none for two letters, one up to five, a third of the length beyond."""
    length = min(len(a), len(b))
    return 0 if length < 3 else 1 if length < 6 else 2 if length < 9 else 3


@lru_cache(_KEPT)
def _letters(word: str) -> frozenset[str]:
    return frozenset(word)


def _distance(a: str, b: str) -> int:
    """Damerau-Levenshtein: insertions, deletions, substitutions, and swaps of neighbours."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, above, row = row, before, [i, *[0] * len(b)]
        for j, y in enumerate(b, 1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], above[j - 2] + 1)
    return row[len(b)]


_SHOWN = 8  # known names in a message


def suggested(name: str, known: Iterable[str]) -> str:
    """Returns a question for the known name that is probably meant, else some known names."""
    names = list(known)
    near = closest(name, names)
    return f"did you mean {near!r}?" if near is not None else f"it has {', '.join(map(repr, names[:_SHOWN])) or 'none'}"


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
    text = (pkgutil.get_data("pipegen.diagnostics", "foreign.txt") or b"").decode()
    parts = (line.split(_SEPARATOR) for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return tuple(Row(cast("Kind", place.strip()), tuple(words.split()), *map(str.strip, rest)) for place, words, *rest in parts)
