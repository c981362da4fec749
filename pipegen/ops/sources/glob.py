"""Glob patterns on relative POSIX paths, the same on every Python version and system."""

from __future__ import annotations

import re


def compile_glob(pattern: str) -> re.Pattern[str]:
    """A regular expression that matches whole relative paths.

    `*` and `?` stay within one folder, `**/` stands for any number of folders, also none, `[abc]` and `[!abc]` for one
    character. A pattern without a slash is about the file's name, wherever it lies. Upper and lower case differ.

    Raises:
        ValueError: If a bracket is not closed.
    """
    text = pattern if "/" in pattern else f"**/{pattern}"
    out: list[str] = []
    i = 0
    while i < len(text):
        if text.startswith("**/", i) and (i == 0 or text[i - 1] == "/"):
            out.append("(?:.+/)?")
            i += 3
        elif text.startswith("**", i):
            out.append(".*")
            i += 2
        elif text[i] == "[":
            group, i = _bracket(text, i)
            out.append(group)
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(text[i]) or re.escape(text[i]))
            i += 1
    return re.compile("(?s:" + "".join(out) + r")\Z")


def _bracket(text: str, start: int) -> tuple[str, int]:
    """The regular expression of the bracket at `start`, and where the text goes on after it."""
    first = start + 2 if text[start + 1 : start + 2] == "!" else start + 1
    end = text.find("]", first + 1)
    if end < 0:
        raise ValueError(f"`[` is not closed in the pattern {text!r}")
    inside = text[first:end].replace("\\", r"\\").replace("[", r"\[").replace("^", r"\^").replace("&&", r"&\&")
    return f"(?!/)[{'^' if first == start + 2 else ''}{inside}]", end + 1
