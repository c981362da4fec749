"""Fits the cost model to this machine: how many times what it says each kind of work takes here."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from pipegen.plan.cost import fitted_as

if TYPE_CHECKING:
    from pipegen.profiling.report import Profile

_LEAST_US = 1.0
"""What takes less is measured too badly, ..."""
_LEAST_FACTOR, _MOST_FACTOR = 0.1, 50.0
"""... and so is what seems to take so little: it runs where no trace tells. Storage may be slow beyond all measure."""


def fitted_factors(made: Profile) -> dict[str, float]:
    """Returns the factors of a profile, by `fitted_as`; it must come from the costs as they stand.

    Functions of the user are left out. Time that other programs took from this one does not count, and is taken from all parts alike.
    """
    alone = made.recording.trace.alone
    measured: dict[str, float] = {}
    expected: dict[str, float] = {}
    for part in made.parts:
        if part.calls_python or not part.us or not part.expected:
            continue
        kind = fitted_as(part.node, part.stage)
        measured[kind] = measured.get(kind, 0.0) + part.us * alone
        expected[kind] = expected.get(kind, 0.0) + part.expected
    known = {kind: measured[kind] / expected[kind] for kind in measured if min(measured[kind], expected[kind]) >= _LEAST_US}
    return {kind: round(min(_MOST_FACTOR, factor), 3) for kind, factor in known.items() if factor >= _LEAST_FACTOR}


def today() -> str:
    """Returns the date, such as 2026-11-23."""
    return datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
