r"""Regular expressions of users, matched by RE2 in time linear in the text.

They mean the same as in Python's `re`: `\d`, `\w` and `\s` match Unicode. RE2 is imported when the first pattern is compiled.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pipegen.frozen import dataclass

MOST = 2000  # maximal number of characters of a pattern, far above patterns written by hand

_UNICODE = {"d": r"\p{Nd}", "w": r"\p{L}\p{N}_", "s": r"\s\v\x1c-\x1f\x{85}\p{Z}"}  # Python's character classes, for use inside brackets
_SURROGATES = {0xDC80 + i: 0x10FF00 + i for i in range(128)}
"""Characters for private use that replace, for RE2, the bytes of file names that are not UTF-8."""
_BEYOND: tuple[tuple[str, str], ...] = (
    (r"\(\?<?[=!]", "look-ahead and look-behind `(?=…)`, `(?!…)`, `(?<=…)`, `(?<!…)`"),
    (r"\(\?P=|\\[1-9]", "back-references such as `\\1`"),
    (r"\(\?>|[*+?}]\+", "atomic groups and possessive quantifiers"),
    (r"\(\?\(", "conditions `(?(1)…)`"),
    (r"\(\?#", "comments `(?#…)`"),
    (r"\(\?[a-zA-Z]*[xuaL]", "the flags `x`, `a`, `u` and `L`"),
)
"""Features of Python's `re` that RE2 lacks, with their names."""


@dataclass(frozen=True, slots=True)
class Found:
    """The matched text, and that of the first group; `None` without a group, or if it did not take part."""

    whole: str
    first: str | None


class Pattern:
    """A compiled regular expression with a number of groups."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self.groups: int = compiled.groups

    def search(self, text: str) -> Found | None:
        """Finds the leftmost match anywhere in the text."""
        return self._found(self._compiled.search, text)

    def match(self, text: str) -> Found | None:
        """Finds a match at the start of the text."""
        return self._found(self._compiled.match, text)

    def first_groups(self, texts: Iterable[bytes]) -> Iterator[bytes | None]:
        """Yields the first group of the leftmost match in each text, else the whole match; `None` without a match.

        Texts are in UTF-8; single surrogates are allowed.
        """
        search, group = self._compiled.search, min(self.groups, 1)
        for text in texts:
            if not text.isascii():
                found = self.search(text.decode("utf-8", "surrogatepass"))
                name = None if found is None else found.whole if found.first is None else found.first
                yield None if name is None else name.encode("utf-8", "surrogatepass")
                continue
            match = search(text)
            if match is None:
                yield None
                continue
            start, end = match.span(group)
            if start < 0:
                start, end = match.span()
            yield text[start:end]

    def _found(self, by: Callable[[str | bytes], Any], text: str) -> Found | None:
        # In ASCII, offsets of bytes are those of characters; RE2 would convert them, which takes three times as long as matching.
        match = by(text.encode() if text.isascii() else text.translate(_SURROGATES))
        if match is None:
            return None
        start, end = match.span()
        first, last = match.span(1) if self.groups else (-1, -1)
        return Found(text[start:end], text[first:last] if first >= 0 else None)


def compile_pattern(pattern: str) -> Pattern:
    """Compiles a regular expression. Raises `ValueError` if it is invalid, or uses what RE2 does not support; the message says which."""
    if len(pattern) > MOST:
        raise ValueError(f"it is longer than {MOST:,} characters")
    try:
        import re2
    except ImportError:
        raise ValueError("regular expressions are matched by `google-re2`, which is not installed: `pip install google-re2`") from None
    options = re2.Options()
    options.log_errors = False
    try:
        return Pattern(re2.compile(_for_re2(pattern), options))
    except re2.error as error:
        raise ValueError(_why(pattern, error)) from None
    except UnicodeEncodeError:
        raise ValueError("it contains half of a surrogate pair, which is not a character") from None


def _for_re2(pattern: str) -> str:
    """Translates a pattern from Python's syntax to RE2's."""
    out: list[str] = []
    inside, i = False, 0
    while i < len(pattern):
        char = pattern[i]
        if char == "\\" and i + 1 < len(pattern):
            out.append(_escape(pattern[i + 1], inside))
            i += 2
            continue
        if char == "[" and not inside:
            first = i + 2 if pattern[i + 1 : i + 2] == "^" else i + 1
            # A bracket in the first place is a character of the set, for RE2 too.
            end = first + 1 if pattern[first : first + 1] == "]" else first
            out.append(pattern[i:first] + pattern[first:end].replace("]", r"\]"))
            inside, i = True, end
            continue
        if char == "[" and inside:
            char = r"\["  # RE2 would look for a class such as [:alpha:]
        elif char == "]":
            inside = False
        out.append(char)
        i += 1
    return "".join(out)


def _escape(char: str, inside: bool) -> str:
    if char in _UNICODE:
        return _UNICODE[char] if inside else f"[{_UNICODE[char]}]"
    if char.lower() in _UNICODE and not inside and char in "DWS":
        return f"[^{_UNICODE[char.lower()]}]"
    return r"\z" if char == "Z" else "\\" + char


def _why(pattern: str, error: Exception) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as wrong:
        return f"it is not a valid regular expression: {wrong}"
    beyond = next((what for there, what in _BEYOND if re.search(there, pattern)), None)
    if beyond is not None:
        return f"it uses {beyond}, which RE2 does not support: patterns are matched by RE2, in time linear in the text"
    said = error.args[0] if error.args else ""
    return f"RE2, which matches patterns, rejects it: {said.decode(errors='replace') if isinstance(said, bytes) else said}"
