"""Perceptual hashes, which change little when an image is encoded again, and the search for near ones.

pHash: the signs, about their median, of the 8×8 lowest frequencies of a DCT-II of the image in 32×32 grays (Zauner, "Implementation and
benchmarking of perceptual image hash functions", 2010). The search uses bands: two hashes at a distance of 8 or less have at least three
equal bands of 11, so only hashes with three equal bands are compared (Norouzi, Punjani, Fleet, "Fast exact search in Hamming space with
multi-index hashing", 2014).
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

Array = np.ndarray[Any, Any]

GRAYS, LOW = 32, 8
_COSINES = np.cos(np.pi * np.arange(LOW)[:, None] * (2 * np.arange(GRAYS)[None] + 1) / (2 * GRAYS)).astype(np.float64)
_EQUAL = 3
"""The number of equal bands; one more makes the search finer, but needs more sorts."""


def gray(small: Array) -> Array:
    """Computes the luma (Rec. 601) of RGB: float32 `(..., height, width)` from `(..., height, width, 3)`."""
    return small @ np.array([0.299, 0.587, 0.114], np.float32)


def shrink(picture: Array, side: int) -> Array:
    """Averages an image `(height, width, ...)` in `side` × `side` cells."""
    height, width = picture.shape[:2]
    return picture.reshape(side, height // side, side, width // side, *picture.shape[2:]).mean((1, 3))


def frequencies(grays: Array) -> Array:
    """Computes the lowest frequencies of an image, float64 `(8, 8)`: a DCT-II (not normalised) of `(32, 32)`."""
    return _COSINES @ grays.astype(np.float64) @ _COSINES.T


def phash(low: Array) -> tuple[int, int]:
    """Computes the pHashes of an image and of its mirror image from its lowest frequencies."""
    return _signs(low), _signs(low * np.where(np.arange(LOW) % 2, -1.0, 1.0))


def _signs(low: Array) -> int:
    bits = (low > np.median(low.ravel()[1:])).ravel()
    bits[0] = low[0, 0] > 128 * GRAYS * GRAYS  # the mean, which is far from all others
    return int(np.packbits(bits).view(">u8")[0])


def distance(a: Array, b: Array) -> Array:
    """Counts the bits in which 64-bit hashes differ, uint8."""
    x = np.bitwise_xor(a, b)
    ones = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
    x = x - ((x >> np.uint64(1)) & ones[0])
    x = (x & ones[1]) + ((x >> np.uint64(2)) & ones[1])
    x = (x + (x >> np.uint64(4))) & ones[2]
    return ((x * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.uint8)


def near_pairs(hashes: Array, most: int) -> Iterator[Array]:
    """Finds all pairs of hashes (which have to be unique) at a distance of `most` or less.

    Yields:
        Indices int64 `(n, 2)`, the smaller first, some pairs at a time; each pair once.
    """
    count = most + _EQUAL
    edges = np.linspace(0, 64, count + 1).round().astype(int).tolist()
    widths = [b - a for a, b in pairwise(edges)]
    bands = np.stack([(hashes >> np.uint64(a)) & np.uint64((1 << w) - 1) for a, w in zip(edges, widths, strict=False)])
    for chosen in combinations(range(count), _EQUAL):
        key: Array = np.zeros(len(hashes), np.uint64)
        for band in chosen:
            key = (key << np.uint64(widths[band])) | bands[band]
        for pairs in _with_equal(key, hashes, most):
            equal = bands[:, pairs[:, 0]] == bands[:, pairs[:, 1]]
            before = equal[: chosen[-1]].sum(0) == _EQUAL - 1  # else an earlier choice of bands has found the pair
            if before.any():
                yield pairs[before]


def _with_equal(key: Array, hashes: Array, most: int) -> Iterator[Array]:
    """Compares hashes with equal keys: in sorted order, each with the next one, then with the one after that, and so on."""
    order = np.argsort(key, kind="stable")
    key = key[order]
    first, step = np.arange(len(key)), 1
    while len(first):
        first = first[first < len(key) - step]
        first = first[key[first] == key[first + step]]
        a, b = order[first], order[first + step]
        close = distance(hashes[a], hashes[b]) <= most
        if close.any():
            yield np.stack([np.minimum(a, b)[close], np.maximum(a, b)[close]], 1)
        step += 1
