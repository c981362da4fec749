"""Sorts the examples of a split from easy to hard."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.sampling.epochs import Easiest, Paced
from pipegen.ops.sources.listing.strings import as_places, shareable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Array = np.ndarray[Any, Any]

_SLACK = 1e-9
"""How far above a whole number of examples a share still counts as it, so that 0.1 of 30 is 3."""


def easiest_first(difficulty: Array, ids: Array, shares: Sequence[float], size: int, seed: int) -> Easiest:
    """Lets epoch e draw from the ⌈share · n⌉ easiest of n examples, with the share of that epoch (Bengio et al. 2009).

    Args:
        difficulty: Numbers `(n,)`: the lowest is the easiest. Examples of one difficulty stand in the order of their ids, which is random.
        ids: The example ids, uint64 `(n,)`.
        shares: The share of each epoch from 0 on, above 0 and at most 1; the last one stays.
        size: The examples of an epoch.
        seed: The spec's seed.
    """
    n = len(difficulty)
    members = shareable(as_places(np.lexsort((ids, difficulty)), n))
    counts = [min(max(math.ceil(share * n - _SLACK * n), 1), n) for share in shares]
    return Easiest(size, members, np.array(counts, np.int64), seed)


def paced(easiest: Easiest, before: Callable[[int], int]) -> Paced:
    """Lets a part of a mix go through its easiest records.

    Args:
        easiest: Of how many records each epoch draws.
        before: Counts the examples of the part in all epochs before one.
    """
    firsts = np.flatnonzero(np.diff(easiest.counts, prepend=0))
    begins = np.array([before(int(epoch)) for epoch in firsts], np.int64)
    counts = easiest.counts[firsts]
    passes = np.cumsum([0, *(-(-np.diff(begins) // counts[:-1]))], dtype=np.int64)
    return Paced(len(easiest.members), easiest.members, begins, counts, passes, easiest.seed)
