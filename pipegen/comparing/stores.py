"""Compares a spec with the one that reads what `pipegen prepare` has stored of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.comparing.changes import Change, Draws
from pipegen.comparing.locks import meaning_changes
from pipegen.ops.sources.prepared import Prepared

if TYPE_CHECKING:
    from pipegen.comparing.sides import Side

_DONE = ("source", "splits", "errors")
"""What of a spec is done in its store: which examples there are, and in which splits."""


def store_changes(a: Side, b: Side) -> tuple[list[Change], Draws] | None:
    """Returns what differs where the second spec reads a store of the first: what the store changes, and what was edited since. `None`
    where it reads no such store."""
    source = b.spec.model.source
    if not isinstance(source, Prepared) or source.of not in a.known:
        return None
    encoded = any(feature.dtype == "string" for feature in source.features.values())
    first = sum(step.op == "decode" for step in b.spec.model.transforms[:1]) if encoded else 0
    done = len(a.meaning["transforms"]) - (len(b.meaning["transforms"]) - first)
    expected = {**a.meaning, **{name: b.meaning[name] for name in _DONE if name in b.meaning}}
    for name in ("transforms", "effects"):
        if done >= 0 and name in a.meaning and name in b.meaning:
            expected[name] = [*b.meaning[name][:first], *a.meaning[name][done:]]
    found, draws = meaning_changes(expected, b.meaning)
    steps = ", ".join(str(step[0]) for step in a.meaning["transforms"][: max(done, 0)])
    what = f"reads what `pipegen prepare` has stored of {a.name}" + (f", behind {steps}" if steps else "")
    changed = source.remarks()
    if not changed:
        return [Change("nothing", ("source",), what, "the same splits, ids, draws and pixels, bit for bit"), *found], draws
    stored = [Change("numbers", ("source", "prepared", "changes"), what, f"{said}; splits, ids and draws are the same") for said in changed]
    return [*stored, *found], draws
