"""Computes how often the examples of a split are seen, from their classes or their weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.sampling.epochs import Repeats
from pipegen.data.sampling.rounding import BITS, UNIT, settled
from pipegen.ops.sources.listing.strings import as_places, shareable

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]


def repeated(labels: Array, threshold: float, seed: int) -> Repeats:
    """Repeats examples of rare classes (Gupta, Dollár and Girshick 2019, LVIS, section 3.5).

    A class that a share f of the examples has is repeated r = max(1, √(threshold / f)) times, rounded to 2⁻¹⁶, and an example as its
    class with the largest r. An epoch has the rounded sum of all r.

    Args:
        labels: Class indices `(n,)`; or `(n, classes)`, 1 for each class that an example has.
        threshold: The share below which a class is rare.
        seed: The spec's seed.
    """
    n = len(labels)

    def factors(counts: Array) -> Array:
        most = np.sqrt(threshold * n / np.maximum(counts, 1))
        return np.rint(np.maximum(most, 1.0) * UNIT).astype(np.int64)

    if labels.ndim == 1:
        return _by_group(labels, lambda sizes: sizes * factors(sizes), None, seed)
    counts = labels.sum(0, dtype=np.int64)
    rarest = np.argsort(np.where(counts > 0, counts, n + 1), kind="stable")
    # The rarest class of an example comes first; one that has none is in a group of its own, behind all others.
    has: Array = labels[:, rarest].astype(bool)
    group = np.where(has.any(1), rarest[has.argmax(1)], len(counts))
    each: Array = np.append(factors(counts), UNIT)
    return _by_group(group, lambda sizes: sizes * each[: len(sizes)], None, seed)


def balanced(labels: Array, power: float, seed: int) -> Repeats:
    """Gives classes shares of an epoch in proportion to their sizes to the power of 1 - `power`; an epoch stays as long as it is.

    Args:
        labels: Class indices `(n,)`.
        power: From 0, which changes nothing, to 1, which makes the classes equal.
        seed: The spec's seed.
    """

    def units(sizes: Array) -> Array:
        shares = np.where(sizes > 0, np.maximum(sizes, 1) ** (1.0 - power), 0.0)
        return np.rint(shares * (len(labels) / math.fsum(shares)) * UNIT).astype(np.int64)

    return _by_group(labels, units, len(labels), seed)


def weighted(weights: Array, seed: int) -> Repeats:
    """Lets examples be seen in proportion to their weights; an epoch has as many as there are.

    Args:
        weights: Numbers of 0 or more `(n,)`, not all 0.
        seed: The spec's seed.
    """
    n = len(weights)
    values: Array = weights.astype(np.float64)
    units = np.rint(values * (n / math.fsum(values)) * UNIT).astype(np.int64)
    return Repeats(_bounds(settled(units, n)), None, None, seed)


def _by_group(group: Array, units: Callable[[Array], Array], examples: int | None, seed: int) -> Repeats:
    """Repeats the records of numbered groups, of which `units` says from their sizes how long they are."""
    sizes = np.bincount(group).astype(np.int64)
    wanted = units(sizes)
    count = (int(wanted.sum()) + UNIT // 2) >> BITS if examples is None else examples
    stored = bool((group[1:] >= group[:-1]).all())
    members = None if stored else shareable(as_places(_by_value(group, len(sizes)), len(group)))
    return Repeats(_bounds(settled(wanted, count)), sizes, members, seed)


def _by_value(group: Array, groups: int) -> Array:
    """The records of one group behind those of another; small numbers are sorted in linear time."""
    return np.argsort(group.astype(np.uint16) if groups <= UNIT else group, kind="stable")


def _bounds(units: Array) -> Array:
    return shareable(np.concatenate([np.zeros(1, np.int64), np.cumsum(units)]))
