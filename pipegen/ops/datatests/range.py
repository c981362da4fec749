"""`range`: no value lies outside."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

from pipegen.lazy import np
from pipegen.ops.arguments.checks import checked
from pipegen.ops.arguments.schedules import Range as Bounds
from pipegen.ops.testing.base import many, named
from pipegen.ops.testing.evidence import Failure, Outcome
from pipegen.ops.testing.example_tests import Watch
from pipegen.ops.testing.values import SLACK, ValueTest, check_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.ops.testing.evidence import Array, Known


class Range(ValueTest):
    """Looks for values outside of a range, and for those that are no numbers."""

    op = "range"
    examples = ("range: {feature: image, within: [-3, 3]}", "range: {column: age, within: [0, 120]}")

    within: Annotated[Bounds, checked(check_within)]
    """The least and the greatest value, both included."""

    def watch(self, known: Known) -> Watch:
        return _Extremes(self)


class _Extremes(Watch):
    """Keeps the least and the greatest value of each split, and the examples that hold one outside."""

    def __init__(self, test: Range) -> None:
        self.test = test
        self.seen: dict[str, tuple[int, float, float]] = {}
        self.wrong: dict[str, list[str]] = {}

    def see(self, split: str, values: Sequence[Array], keys: Sequence[str]) -> None:
        low, high = self.test.within
        slack = SLACK * (high - low)
        flat = values[0].reshape(len(values[0]), math.prod(values[0].shape[1:]))
        if not flat.shape[1]:
            return
        held = ~np.ma.getmaskarray(flat)
        smallest = np.where(held, flat.data, np.inf) if np.ma.isMaskedArray(flat) else flat
        largest = np.where(held, flat.data, -np.inf) if np.ma.isMaskedArray(flat) else flat
        least, most = smallest.min(1).astype(np.float64), largest.max(1).astype(np.float64)
        inside = (least >= low - slack) & (most <= high + slack)  # neither holds for NaN
        counted = held.any(1)
        n, before, after = self.seen.get(split, (0, np.inf, -np.inf))
        self.seen[split] = n + int(counted.sum()), float(np.fmin.reduce(least, initial=before)), float(np.fmax.reduce(most, initial=after))
        self.wrong.setdefault(split, []).extend(str(keys[i]) for i in np.flatnonzero(counted & ~inside).tolist())

    def outcome(self) -> Outcome:
        low, high = self.test.within
        found = []
        for split, wrong in self.wrong.items():
            n, least, most = self.seen[split]
            if wrong:
                ends = ["" if least >= low else f"{least:.5g}, below {low:g}", "" if most <= high else f"{most:.5g}, above {high:g}"]
                reach = " and ".join(end for end in ends if end) or "what is no number"
                message = f"{self.test.called} reaches {reach}, in {len(wrong):,} of {many(n, 'example')} of `{split}`: {named(wrong)}"
                found.append(Failure("PG713", message, "within", ()))
        spans = (
            f"{s}: {least:.4g} to {most:.4g} in {many(n, 'example')}" if n else f"{s}: no values"
            for s, (n, least, most) in self.seen.items()
        )
        return Outcome("; ".join(spans), tuple(found))
