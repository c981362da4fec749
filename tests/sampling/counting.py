"""Walks a sampled epoch one slot at a time, in Python's whole numbers and fractions: what the tables and the graph are compared with."""

from __future__ import annotations

from typing import Any

UNIT = 2**16


def groups_of_slots(repeats: Any, epoch: int) -> list[int]:
    """The group at each slot of an epoch, before slots are permuted."""
    phase = (repeats.phase + epoch * 40503) % UNIT
    bounds = [int(b) for b in repeats.bounds]
    found, group = [], 0
    for slot in range(bounds[-1] // UNIT):
        while bounds[group + 1] <= slot * UNIT + phase:
            group += 1
        found.append(group)
    return found
