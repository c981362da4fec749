"""Sums up what the listing of data left out and warned of, for those who build a pipeline."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipegen.diagnostics.diagnostic import Severity
from pipegen.ops.sources.listing.base import LeftOut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic

_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\d+")
"""What differs between two findings of one kind: names and numbers."""
_SHOWN = 3
"""Kinds of one code that have a line each; further ones are counted."""


def warning_lines(manifest: Manifest) -> Iterator[str]:
    """Yields a line for each kind of warning about the data: one such finding, and how many there are."""
    kinds: dict[str, dict[str, list[Diagnostic]]] = {}
    for finding in manifest.findings:
        if finding.severity is Severity.WARNING:
            kinds.setdefault(finding.code, {}).setdefault(_PARTICULAR.sub("", finding.message), []).append(finding)
    for code, of_code in kinds.items():
        for first, *others in [*of_code.values()][:_SHOWN]:
            yield f"{code} {first.span or first.labels[0].path or 'the spec'}: {first.message}{_more(len(others))}"
        rest = sum(map(len, [*of_code.values()][_SHOWN:]))
        if rest:
            yield f"{code}: {rest} more such finding{'s' * (rest > 1)}; `pipegen validate --data` shows all"


def _more(number: int) -> str:
    return f" ({number} more like this)" if number else ""


def left_out(manifest: Manifest) -> list[str]:
    """Counts what is in the data and in no split, a text for each reason."""
    counted: dict[tuple[str, str], int] = {}
    for part in manifest.by_part().values():
        for one in (*(one for note in part.listing.notes for one in note.left_out), *_by_the_spec(part)):
            counted[one[1:]] = counted.get(one[1:], 0) + one.number
    return [str(LeftOut(number, *words)) for words, number in counted.items() if number]


def _by_the_spec(part: Manifest) -> Iterator[LeftOut]:
    yield LeftOut(len(part.excluded), "excluded entry", "excluded entries")
    yield LeftOut(len(part.left_out), "record that `splits.exclude` names", "records that `splits.exclude` names")
    yield LeftOut(part.spared, "training example that `subset` leaves out", "training examples that `subset` leaves out")
    yield LeftOut(part.unused, "example that no part asks for", "examples that no part asks for")
