"""Picks, out of all pairs of records of different splits, those whose pHashes are near: only their pixels are compared."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.quality.looks import flat
from pipegen.quality.perceptual import distance, near_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    Array: TypeAlias = np.ndarray[Any, Any]

_ALIKE = 4
"""Of records of a split with one and the same pHash, each record elsewhere is compared with so many."""
_NEAREST = 8
"""Candidates of a record that are kept, the nearest."""
_HASHES = ("hash", "mirror", "inner")
"""Hashes of a record: the first of one is compared with each of another."""
_MIRROR = 1
_AT_ONCE = 128
"""Pairs of hashes that become pairs of records at a time."""
_HELD = 1_000_000


def find_candidates(looks: Array, home: Array, content: Array, most: int, room: int) -> tuple[Array, int]:
    """Finds pairs of records of different splits and contents whose pHashes differ in `most` bits or fewer, or that of one from that of the
    other's mirror image, or of the other less its edges.

    Flat pictures are left out; of records of a split with the same content one stands for all. Of a record with many candidates, as frames
    of a film have them, the nearest stay.

    Args:
        looks: `LOOK (n,)`.
        home: The split of each record, whole numbers `(n,)`.
        content: The same number for the same content, whole numbers `(n,)`.
        most: The distance.
        room: How many pairs are returned at most.

    Returns:
        int64 `(m, 4)`, each once: the two records, the smaller first, the distance, and 1 where one is compared by its mirror image; and
        how many more there was no room for.
    """
    _, first = np.unique(np.stack([content, home], 1), axis=0, return_index=True)
    use: Array = first[~flat(looks[first])]
    records: Array = np.tile(use, len(_HASHES))
    kind: Array = np.repeat(np.arange(len(_HASHES)), len(use))
    hashes: Array = np.concatenate([looks[name][use] for name in _HASHES])
    unique, of = np.unique(hashes, return_inverse=True)
    every, few = (_members(of.reshape(-1), home[records], alike) for alike in (None, _ALIKE))
    itself: Array = np.repeat(np.arange(len(unique)), 2).reshape(-1, 2)
    found: list[Array] = [np.zeros((0, 4), np.int64)]
    held = 0
    for near in chain([itself], near_pairs(unique, most)):
        for i, j in chain(_expanded(near, few, every), _expanded(near, every, few)):
            one, other = records[i], records[j]
            right = (home[one] != home[other]) & (content[one] != content[other]) & ((kind[i] == 0) | (kind[j] == 0))
            low, high = np.sort(np.stack([one, other])[:, right], 0)
            about = distance(hashes[i], hashes[j])[right], (kind[i] + kind[j] == _MIRROR)[right]
            found.append(np.stack([low, high, *about], 1).astype(np.int64))
            held += len(found[-1])
            if held > _HELD:
                found = [_nearest(np.concatenate(found))]
                held = len(found[0])
    pairs = _nearest(np.concatenate(found))
    return pairs[:room], max(0, len(pairs) - room)


def _nearest(pairs: Array) -> Array:
    """The candidates that are among the nearest of one of their records, each once, in order of their distance."""
    pairs = np.unique(pairs[:, [2, 0, 1, 3]], axis=0)[:, [1, 2, 0, 3]]
    kept: Array = pairs[(_places(pairs[:, 0]) < _NEAREST) | (_places(pairs[:, 1]) < _NEAREST)]
    return kept


def _places(values: Array) -> Array:
    """Counts how many of the values before each are the same."""
    order: Array = np.argsort(values, kind="stable")
    rising = values[order]
    places: Array = np.empty(len(values), np.int64)
    places[order] = np.arange(len(values)) - np.searchsorted(rising, rising)
    return places


def _members(of: Array, home: Array, alike: int | None) -> tuple[Array, Array]:
    """The entries of each hash, or the first so many of each split; and where those of each begin, with the end."""
    order: Array = np.lexsort((home, of))
    if alike is not None:
        changes: Array = np.diff(of[order], prepend=-1).astype(bool) | np.diff(home[order], prepend=-1).astype(bool)
        order = order[_places(np.cumsum(changes)) < alike]
    starts = np.searchsorted(of[order], np.arange(int(of.max(initial=-1)) + 2))
    return order, np.asarray(starts)


def _expanded(near: Array, ours: tuple[Array, Array], theirs: tuple[Array, Array]) -> Iterator[tuple[Array, Array]]:
    """From pairs of hashes to the pairs of entries, one of `ours` and one of `theirs`, some at a time."""
    (a, a_starts), (b, b_starts) = ours, theirs
    for begin in range(0, len(near), _AT_ONCE):
        block = near[begin : begin + _AT_ONCE]
        widths: Array = np.diff(b_starts)[block[:, 1]]
        counts: Array = np.diff(a_starts)[block[:, 0]] * widths
        pair: Array = np.repeat(np.arange(len(block)), counts)
        before: Array = np.cumsum(counts) - counts
        place: Array = np.arange(len(pair)) - np.repeat(before, counts)
        yield a[a_starts[block[pair, 0]] + place // widths[pair]], b[b_starts[block[pair, 1]] + place % widths[pair]]
