"""Edits of a notebook's file: the text of a cell is exchanged where it stands, and every other byte stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pipegen.migrate.texts import lines_of

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
Span = tuple[int, int]


def with_sources(raw: str, sources: dict[int, str]) -> str:
    """Returns a notebook's file with other texts for some of its cells.

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
    """Returns where the list of cells stands."""
    notebook = _members(raw, (1 if raw.startswith("\ufeff") else 0, len(raw)))
    if "cells" in notebook:
        return notebook["cells"]
    return _members(raw, _items(raw, notebook["worksheets"])[0])["cells"]


def _stored(raw: str, span: Span, text: str) -> str:
    """A cell's text as the file writes the one that it takes the place of: as a list of lines or one text, with its spaces and escapes."""
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
    """A text as JSON, with characters outside ASCII escaped where the file has none."""
    return json.dumps(text, ensure_ascii=raw.isascii() or any("\ud800" <= c <= "\udfff" for c in text))


def _items(raw: str, span: Span) -> list[Span]:
    """Returns where the values of a list stand."""
    return [value for _, value in _values(raw, span[0], keys=False)]


def _members(raw: str, span: Span) -> dict[str, Span]:
    """Returns where the values of an object stand; of a key that comes twice the last counts, as for `json`."""
    return dict(_values(raw, span[0], keys=True))


def _values(raw: str, at: int, *, keys: bool) -> Iterator[tuple[str, Span]]:
    """The keys and places of the values in the object or the list that stands at a place."""
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
