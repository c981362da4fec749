"""Rounds how often examples are seen to units of 2⁻¹⁶ that sum to whole examples."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

BITS = 16
UNIT = 1 << BITS
"""Units in one visit of an example."""


def settled(units: Array, examples: int) -> Array:
    """Moves what groups have by as little as it takes for all to sum to whole `examples`: int64 `(groups,)`.

    Each group stays between its own value rounded down and rounded up to whole visits, so that what was whole stays as it is; the
    difference, which is less than a visit where `examples` is the rounded sum, is spread over the others in proportion to their room.
    """
    low = units >> BITS << BITS
    high = low + UNIT * (units > low)
    missing = examples * UNIT - int(units.sum())
    while True:
        room = high - units if missing > 0 else units - low
        if room.sum() >= abs(missing):
            return units + int(np.sign(missing)) * _spread(abs(missing), room)
        low, high = np.maximum(low - UNIT, 0), high + UNIT  # of weights alone, where thousands are all but whole


def _spread(amount: int, room: Array) -> Array:
    """Cuts an amount in proportion to the room of each group, to less than a unit and never above it."""
    if amount == 0:
        return np.zeros_like(room)
    ends = np.cumsum(room)
    total = int(ends[-1])
    # `ends * amount // total` in two parts, since the product can be longer than 63 bits.
    high, rest = np.divmod(ends * (amount >> BITS), total)
    return np.diff((high << BITS) + ((rest << BITS) + ends * (amount & UNIT - 1)) // total, prepend=0)
