"""`balance`: the most usual class against the rarest."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.ops.testing.base import many
from pipegen.ops.testing.evidence import Failure, Listed, Outcome
from pipegen.ops.testing.labels import LabelTest


class Balance(LabelTest):
    """Compares the most usual class of each split with the rarest."""

    op = "balance"
    bare = "max_ratio"
    examples = ("balance: {feature: label, max_ratio: 10}",)

    max_ratio: Annotated[float, Field(ge=1)]
    """How many times as many examples, or items, as the rarest class the most usual one may have."""

    def run(self, data: Listed) -> Outcome:
        found: list[Failure] = []
        seen = []
        for split in self.splits(data.known.splits):
            counted = data.class_counts(split, self.label(data.known) or "")
            names, counts = counted.names, counted.counts
            if not counts:
                continue
            most, least = max(range(len(counts)), key=counts.__getitem__), min(range(len(counts)), key=counts.__getitem__)
            ratio = counts[most] / counts[least] if counts[least] else float("inf") if counts[most] else 1.0
            seen.append(f"{split}: {ratio:.3g} to 1" if counts[least] or not counts[most] else f"{split}: a class without {counted.each}s")
            if ratio > self.max_ratio:
                rarest = f"{names[least]!r} has {counts[least]:,}: {ratio:.3g} times as many" if counts[least] else f"{names[least]!r} none"
                both = f"{names[most]!r} has {many(counts[most], counted.each)} and {rarest}"
                message = f"in `{split}`, {both}, and `max_ratio` is {self.max_ratio:g}"
                weigh = (
                    "weigh the loss: `model.fit(…, class_weight=pipe.class_weights)`"
                    if counted.each == "example"
                    else "weigh it in the loss"
                )
                found.append(Failure("PG712", message, "max_ratio", (f"add examples of the rare class, or {weigh}",)))
        return Outcome("; ".join(seen), tuple(found))
