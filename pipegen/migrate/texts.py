"""Lines of text files: a file is read with one kind of line end, and changed code gets its own back."""

from __future__ import annotations

import difflib
import re

_END = re.compile(r"\r\n|\r|\n")
"""What ends a line for Python; a form feed, U+2028 and the like are characters of a line."""


def plain_text(text: str) -> str:
    """Returns a text whose lines all end in a line feed, as Python reads a source file."""
    return _END.sub("\n", text)


def lines_of(text: str) -> list[str]:
    """Splits a text after each line feed, and nowhere else."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def restored(original: str, own: list[str], changed: list[str]) -> str:
    """Returns changed lines as a text with the line ends of the original.

    Args:
        original: The text as it is stored.
        own: Its lines as they were parsed; a line that is left as it is becomes the original's again.
        changed: The lines after the edits.
    """
    contents, ends = _END.split(original), [*_END.findall(original), ""]
    found: list[tuple[str, str]] = []
    for i, (new, here) in enumerate(_aligned(own, changed)):
        kept = [contents[i]] if here == [own[i]] else here
        found += [(line, ends[i]) for line in (*new, *kept)]
    usual = ends[0] or "\n"
    texts = [line for line, _ in found[-1:]]
    for line, end in reversed(found[:-1]):
        own_end = end or usual
        texts.append(line + ("\n" if own_end == "\r" and texts[-1].startswith("\n") else own_end))  # else both were one end
    return "".join(reversed(texts))


def unified(before: str, after: str, old: str, new: str) -> str:
    """Returns a unified diff, whatever line ends the texts have; empty where they are equal."""
    lines = list(difflib.unified_diff(lines_of(before), lines_of(after), old, new))
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def patch_name(name: str) -> str:
    """Returns a file's name as `patch` and `git apply` read it: quoted as in C where it needs to be, and ended by a tab after a space."""
    if re.search(r'["\\\x00-\x1f\x7f]', name):
        return '"' + re.sub(r'["\\\x00-\x1f\x7f]', lambda found: f"\\{ord(found[0]):03o}", name) + '"'
    return f"{name}\t" if " " in name else name


def _aligned(before: list[str], after: list[str]) -> list[tuple[list[str], list[str]]]:
    """For each old line the new lines that come before it, and those that stand in its place."""
    inserted: list[list[str]] = [[] for _ in range(len(before) + 1)]
    places: list[list[str]] = [[] for _ in before]
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            for i in range(b - a):
                places[a + i] = [after[c + i]]
        elif tag == "insert":
            inserted[a] = list(after[c:d])
        else:
            places[a] = list(after[c:d])
    places[-1] += inserted[-1]
    return list(zip(inserted[:-1], places, strict=True))
