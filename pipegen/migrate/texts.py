"""Line ends of files: code is read with one kind, and changed code gets back its own; cells keep their place in a notebook."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator

_END = re.compile(r"\r\n|\r|\n")
"""Line ends in Python; a form feed, U+2028 and similar are ordinary characters."""


def plain_text(text: str) -> str:
    """Text with line feeds as its only line ends, as Python reads a source file."""
    return _END.sub("\n", text)


def lines_of(text: str) -> list[str]:
    """Splits a text only after line feeds."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def restored(original: str, own: list[str], changed: list[str]) -> str:
    """Joins changed lines with the line ends of the original.

    Args:
        original: The text as it is stored.
        own: Its lines as parsed; unchanged lines become the original's again.
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
        texts.append(line + ("\n" if own_end == "\r" and texts[-1].startswith("\n") else own_end))  # else both were one line end
    return "".join(reversed(texts))


def unified(before: str, after: str, old: str, new: str) -> str:
    """Unified diff, for any line ends; empty for equal texts."""
    lines = list(difflib.unified_diff(lines_of(before), lines_of(after), old, new))
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def patch_name(name: str) -> str:
    """A file's name for `patch` and `git apply`: quoted as in C if needed, and followed by a tab if it has a space."""
    if re.search(r'["\\\x00-\x1f\x7f]', name):
        return '"' + re.sub(r'["\\\x00-\x1f\x7f]', lambda found: f"\\{ord(found[0]):03o}", name) + '"'
    return f"{name}\t" if " " in name else name


def _aligned(before: list[str], after: list[str]) -> list[tuple[list[str], list[str]]]:
    """For each old line: new lines before it, and new lines in its place."""
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


_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
Span = tuple[int, int]


def with_sources(raw: str, sources: dict[int, str]) -> str:
    """Notebook file with other texts for some of its cells.

    Args:
        raw: The file, which is valid JSON with a list of cells.
        sources: The new texts by the number of the cell among all cells, from 1.
    """
    cells = _items(raw, _cells(raw))
    done, at = [], 0
    for number in sorted(sources):
        members = _members(raw, cells[number - 1])
        first, last = members["source"] if "source" in members else members["input"]
        done += [raw[at:first], _stored(raw, (first, last), sources[number])]
        at = last
    return "".join([*done, raw[at:]])


def _cells(raw: str) -> Span:
    notebook = _members(raw, (1 if raw.startswith("\ufeff") else 0, len(raw)))
    if "cells" in notebook:
        return notebook["cells"]
    return _members(raw, _items(raw, notebook["worksheets"])[0])["cells"]


def _stored(raw: str, span: Span, text: str) -> str:
    """A cell's text in the format of the one that it replaces: as a list of lines or one text, with its spaces and escapes."""
    old = raw[slice(*span)]
    if not old.startswith("["):
        return _written(raw, text)
    items = _items(raw, span)
    known = {json.loads(raw[a:b]): raw[a:b] for a, b in items}
    stored = [json.loads(raw[a:b]) for a, b in items]
    lines = text.splitlines(keepends=True) if stored == "".join(stored).splitlines(keepends=True) else lines_of(text)
    opening, closing = raw[span[0] : items[0][0]], raw[items[-1][1] : span[1]]
    between = raw[items[0][1] : items[1][0]] if len(items) > 1 else f",{opening[1:]}"
    return opening + between.join(known.get(line) or _written(raw, line) for line in lines) + closing if lines else "[]"


def _written(raw: str, text: str) -> str:
    """A text as JSON, with characters outside ASCII escaped if the file has none."""
    return json.dumps(text, ensure_ascii=raw.isascii() or any("\ud800" <= c <= "\udfff" for c in text))


def _items(raw: str, span: Span) -> list[Span]:
    return [value for _, value in _values(raw, span[0], keys=False)]


def _members(raw: str, span: Span) -> dict[str, Span]:
    """Places of the values of an object; of a repeated key the last counts, as in `json`."""
    return dict(_values(raw, span[0], keys=True))


def _values(raw: str, at: int, *, keys: bool) -> Iterator[tuple[str, Span]]:
    """Keys and places of the values in an object or list."""
    at = _after_space(raw, _after_space(raw, at) + 1)
    while raw[at] not in "]}":
        key = ""
        if keys:
            key, at = _DECODER.raw_decode(raw, at)
            at = _after_space(raw, _after_space(raw, at) + 1)
        _, end = _DECODER.raw_decode(raw, at)
        yield key, (at, end)
        at = _after_space(raw, end)
        at = _after_space(raw, at + 1) if raw[at] == "," else at


def _after_space(raw: str, at: int) -> int:
    found = _SPACE.match(raw, at)
    return found.end() if found is not None else at
