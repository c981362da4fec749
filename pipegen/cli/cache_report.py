"""Shows caches on disk: a table, a line for each verdict, JSON."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pipegen.spec.units import format_bytes
from pipegen.terminal import aligned

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipegen.cache.folder import Held, Verdict

_KEY = 8
"""Digits of a key that tell caches apart in practice."""
_SPANS = (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0))
_SHOWN = 10


def table(folder: Path, caches: list[Held]) -> str:
    """The caches of a folder, one a line."""
    if not caches:
        return f"{folder}: no caches"
    head = ("KEY", "SPEC", "RECORDS", "SIZE", "LAST WRITTEN", "STEPS")
    lines = aligned([head, *(_row(held) for held in caches)])
    return "\n".join([f"{folder}: {format_bytes(sum(h.bytes for h in caches))}", *(f"  {line}" for line in lines)])


def _row(held: Held) -> tuple[str, ...]:
    about = held.about
    filled = "a file is missing" if held.filled is None else f"{held.filled:,} of {about.records:,}"
    shapes = ", ".join(f"{c.name} {c.dtype}[{'×'.join(map(str, c.shape))}]" for c in about.columns)
    return (
        about.key[:_KEY],
        about.spec or "unnamed",
        filled,
        format_bytes(held.bytes),
        age(time.time() - held.used),
        f"{about.steps}: {shapes}",
    )


def age(seconds: float) -> str:
    """Says how long ago something was, in the largest unit that fits."""
    for unit, length in _SPANS:
        n = int(seconds // length)
        if n >= 1:
            return f"{n} {unit}{'s' if n > 1 else ''} ago"
    return "just now"


def verdict_line(held: Held, verdict: Verdict) -> str:
    """Says in a line what checking one cache gave."""
    name = f"{held.about.key[:_KEY]}  {held.about.spec or 'unnamed'}"
    if verdict.problem:
        return f"{name}: cannot be checked: {verdict.problem}"
    if not verdict.damaged:
        return f"{name}: {verdict.checked:,} records are whole"
    more = ", …" if len(verdict.damaged) > _SHOWN else ""
    which = ", ".join(str(row) for row in verdict.damaged[:_SHOWN])
    return f"{name}: {len(verdict.damaged):,} of {verdict.checked:,} records are damaged and will be computed again: rows {which}{more}"


def as_json(found: Mapping[Path, list[Held]], verdicts: Mapping[str, Verdict] | None = None) -> dict[str, Any]:
    """The caches as plain values, with what checking them gave."""
    folders = []
    for folder, caches in found.items():
        shown = []
        for held in caches:
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
        folders.append({"folder": str(folder), "caches": shown})
    return {"version": 1, "folders": folders}
