"""Glob patterns on relative POSIX paths, the same on every Python version and system, matched in linear time."""

from __future__ import annotations

import re
from typing import TypeAlias

from pipegen.patterns import MOST, Pattern, compile_pattern

_QUICK = 2  # number of wildcards up to which Python's `re` is used, at most quadratic in a path's length; beyond, RE2, which is linear


Glob: TypeAlias = re.Pattern[str] | Pattern  # a pattern that `match` compares with whole relative paths


def compile_glob(pattern: str) -> Glob:
    """Compiles a glob that matches whole relative paths.

    `*` and `?` stay within one folder, `**/` matches any number of folders, also none, `[abc]` and `[!abc]` one character. A pattern
    without a slash matches the file's name in any folder. Case matters. Raises `ValueError` if a bracket is not closed, or the pattern is
    longer than any path."""
    if len(pattern) > MOST:
        raise ValueError(f"the pattern is longer than {MOST:,} characters")
    text = pattern if "/" in pattern else f"**/{pattern}"
    out: list[str] = []
    i = wild = 0
    while i < len(text):
        if text.startswith("**/", i) and (i == 0 or text[i - 1] == "/"):
            out.append("(?:.+/)?")
            i, wild = i + 3, wild + 1
        elif text.startswith("**", i):
            out.append(".*")
            i, wild = i + 2, wild + 1
        elif text[i] == "[":
            group, i = _bracket(text, i)
            out.append(group)
        else:
            wild += text[i] == "*"
            out.append({"*": "[^/]*", "?": "[^/]"}.get(text[i]) or _literal(text[i]))
            i += 1
    expression = f"(?s:{''.join(out)})"
    return re.compile(rf"{expression}\Z") if wild <= _QUICK else compile_pattern(rf"\A{expression}\z")


def _bracket(text: str, start: int) -> tuple[str, int]:
    """Returns the regular expression of the bracket at `start`, and the place after it. No set matches a slash."""
    negated = text[start + 1 : start + 2] == "!"
    first = start + 2 if negated else start + 1
    end = text.find("]", first + 1)
    if end < 0:
        raise ValueError(f"`[` is not closed in the pattern {text!r}")
    inside, members, i = text[first:end], list[tuple[str, str]](), 0
    while i < len(inside):
        low, high = inside[i], inside[i]
        if inside[i + 1 : i + 2] == "-" and i + 2 < len(inside):
            high = inside[i + 2]
            if high < low:
                raise ValueError(f"the range `{low}-{high}` in the pattern {text!r} runs backwards")
            i += 2
        around = [(low, "."), ("0", high)] if low <= "/" <= high and not negated else [(low, high)]
        members += [(a, b) for a, b in around if a <= b]
        i += 1
    if not members:
        return r"\b\B", end + 1  # nothing
    listed = "".join(f"{_literal(a)}-{_literal(b)}" for a, b in members)
    return f"[{'^/' if negated else ''}{listed}]", end + 1


def _literal(char: str) -> str:
    """Escapes one character, in and out of brackets, for `re` and RE2 alike."""
    return char if char.isalnum() or char in "_/ " or char > "\x7f" else "\\" + char
