"""Shows what is kept on disk: a table, a line for each verdict, JSON."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from pipegen.cache.folder import Held
from pipegen.spec.units import format_bytes
from pipegen.terminal import aligned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipegen.cache.folder import Kept, Verdict

_KEY = 8
"""Digits of a key that tell caches apart in practice."""
_SPANS = (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0))
_SHOWN = 10
_FILES = {
    "splits": "which record is in which split",
    "index": "where each record stands in its file, or the labels of all",
    "columns": "a column of all records, for datasets that run anywhere",
    "looks": "what `pipegen report` has seen of each picture",
    "statistics": "what a step has learned from the training split",
}


def table(folder: Path, found: list[Kept]) -> str:
    """Shows what is kept in a folder, one a line."""
    if not found:
        return f"{folder}: no caches"
    head = ("KEY", "SPEC", "RECORDS", "SIZE", "LAST WRITTEN", "STEPS")
    lines = aligned([head, *map(_row, found)])
    return "\n".join([f"{folder}: {format_bytes(sum(kept.bytes for kept in found))}", *(f"  {line}" for line in lines)])


def counted(found: Sequence[Kept]) -> str:
    """Says how much is kept: `2 caches and 1 split assignment`."""
    counts = Counter(kept.kind for kept in found)
    nouns = {"cache": "cache", "splits": "split assignment", "index": "record index", "columns": "column", "looks": "picture survey"}
    nouns |= {"statistics": "fitted step"}
    parts = [f"{n} {noun}{('es' if noun.endswith('x') else 's') if n != 1 else ''}" for kind, noun in nouns.items() if (n := counts[kind])]
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def _row(held: Kept) -> tuple[str, ...]:
    size, written = format_bytes(held.bytes), age(time.time() - held.used)
    if not isinstance(held, Held):
        return held.key[:_KEY], "", "", size, written, _FILES[held.kind]
    about = held.about
    filled = "a file is missing" if held.filled is None else f"{held.filled:,} of {about.records:,}"
    shapes = ", ".join(f"{c.name} {c.dtype}[{'×'.join(map(str, c.shape))}]" for c in about.columns)
    return held.key[:_KEY], about.spec or "unnamed", filled, size, written, f"{about.steps}: {shapes}"


def age(seconds: float) -> str:
    """Says how long ago something was, in the largest unit that fits."""
    for unit, length in _SPANS:
        n = int(seconds // length)
        if n >= 1:
            return f"{n} {unit}{'s' if n > 1 else ''} ago"
    return "just now"


def verdict_line(held: Held, verdict: Verdict) -> str:
    """Says in a line what checking one cache gave."""
    name = f"{held.key[:_KEY]}  {held.about.spec or 'unnamed'}"
    if verdict.problem:
        return f"{name}: cannot be checked: {verdict.problem}"
    if not verdict.damaged:
        return f"{name}: {verdict.checked:,} records are whole"
    more = ", …" if len(verdict.damaged) > _SHOWN else ""
    which = ", ".join(str(row) for row in verdict.damaged[:_SHOWN])
    return f"{name}: {len(verdict.damaged):,} of {verdict.checked:,} records are damaged and will be computed again: rows {which}{more}"


def as_json(found: Mapping[Path, list[Kept]], verdicts: Mapping[str, Verdict] | None = None) -> dict[str, Any]:
    """The caches and split assignments as plain values, with what checking gave."""
    folders = []
    for folder, several in found.items():
        shown: list[dict[str, Any]] = []
        files: dict[str, list[dict[str, Any]]] = {kind: [] for kind in _FILES}
        for held in several:
            if not isinstance(held, Held):
                files[held.kind].append({"key": held.key, "bytes": held.bytes, "last_written": held.used})
                continue
            about = held.about
            entry: dict[str, Any] = {
                "key": about.key,
                "spec": about.spec,
                "steps": about.steps,
                "records": about.records,
                "filled": held.filled,
                "bytes": held.bytes,
                "created": about.created,
                "last_written": held.used,
                "features": [{"name": c.name, "dtype": c.dtype, "shape": list(c.shape)} for c in about.columns],
            }
            if verdicts is not None:
                verdict = verdicts[about.key]
                entry |= {"checked": verdict.checked, "damaged": list(verdict.damaged), "problem": verdict.problem or None}
            shown.append(entry)
        folders.append({"folder": str(folder), "caches": shown, **files})
    return {"version": 1, "folders": folders}
