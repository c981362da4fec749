"""Finds records of one split that are in another, too: equal contents, or copies that were encoded again, shrunk, cropped or mirrored."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pipegen.frozen import dataclass
from pipegen.memory import threads
from pipegen.quality.looks import CHUNK, SEEN, UNREADABLE, NotAPictureError, Pictures, at_once, cut, flat, gray, hashed

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.spec.models import Runtime


Array = np.ndarray[Any, Any]

_ALIKE = 4  # the most records of a split with equal pHashes that a record elsewhere is compared with
_NEAREST = 8  # the nearest candidates of a record, which are kept
_HASHES = ("hash", "mirror", "inner")  # hashes of a record: the first of one record is compared with each of another
_MIRROR = 1
_AT_ONCE = 128  # pairs of hashes expanded at a time to pairs of records
_HELD = 1_000_000
_EQUAL = 3  # the number of equal bands; one more makes the search finer, but needs more sorts


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

    The search uses bands: two hashes at a distance of 8 or less have at least three equal bands of 11, so only hashes with three equal
    bands are compared (Norouzi, Punjani, Fleet, "Fast exact search in Hamming space with multi-index hashing", 2014).

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


def find_candidates(looks: Array, home: Array, content: Array, most: int, room: int) -> tuple[Array, int]:
    """Finds pairs of records of different splits and contents with near pHashes.

    The hash of one record is compared with that of the other, of its mirror image, and of its inner part. Flat images are left out, and of
    records of a split with equal contents one stands for all. Of a record with many candidates, such as a frame of a film, the nearest
    are kept.

    `looks` are `LOOK (n,)`; `home` and `content` number the split and the content of each record; `most` is the largest distance in bits.
    Returns int64 `(m, 4)`, at most `room` pairs, each once: the two records, the smaller first, the distance, and 1 if one is compared by
    its mirror image; and the number of further pairs."""
    _, first = np.unique(np.stack([content, home], 1), axis=0, return_index=True)
    use: Array = first[~flat(looks[first])]
    records: Array = np.tile(use, len(_HASHES))
    kind: Array = np.repeat(np.arange(len(_HASHES)), len(use))
    hashes: Array = np.concatenate([looks[name][use] for name in _HASHES])
    unique, of = np.unique(hashes, return_inverse=True)
    # The entries of each hash, split by split; and the first few of each split.
    of, homes = of.reshape(-1), home[records]
    order: Array = np.lexsort((homes, of))
    changes: Array = np.diff(of[order], prepend=-1).astype(bool) | np.diff(homes[order], prepend=-1).astype(bool)
    some = order[_places(np.cumsum(changes)) < _ALIKE]
    every, few = ((own, np.asarray(np.searchsorted(of[own], np.arange(len(unique) + 1)))) for own in (order, some))
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
    """Keeps the candidates among the nearest of one of their records, each once, in order of distance."""
    pairs = np.unique(pairs[:, [2, 0, 1, 3]], axis=0)[:, [1, 2, 0, 3]]
    return pairs[(_places(pairs[:, 0]) < _NEAREST) | (_places(pairs[:, 1]) < _NEAREST)]


def _places(values: Array) -> Array:
    """Counts the equal values before each."""
    order: Array = np.argsort(values, kind="stable")
    rising = values[order]
    places: Array = np.empty(len(values), np.int64)
    places[order] = np.arange(len(values)) - np.searchsorted(rising, rising)
    return places


def _expanded(near: Array, ours: tuple[Array, Array], theirs: tuple[Array, Array]) -> Iterator[tuple[Array, Array]]:
    """Expands pairs of hashes to pairs of entries, one of `ours` and one of `theirs`, some at a time."""
    (a, a_starts), (b, b_starts) = ours, theirs
    for begin in range(0, len(near), _AT_ONCE):
        block = near[begin : begin + _AT_ONCE]
        widths: Array = np.diff(b_starts)[block[:, 1]]
        counts: Array = np.diff(a_starts)[block[:, 0]] * widths
        pair: Array = np.repeat(np.arange(len(block)), counts)
        before: Array = np.cumsum(counts) - counts
        place: Array = np.arange(len(pair)) - np.repeat(before, counts)
        yield a[a_starts[block[pair, 0]] + place // widths[pair]], b[b_starts[block[pair, 1]] + place % widths[pair]]


_SMALL = 64
_CUTS = (0.0, 0.015, 0.03)
"""Fractions that are cropped off each side of one of two images: a copy may be cropped, and fine patterns correlate only if aligned."""
_GRAY = 4.0  # the mean difference of the channels, of 255, below which an image has no colour
_SURE = 0.98  # the correlation of two whole images from which on they are not compared cropped


def likeness(pictures: Pictures, pairs: Array, mirrored: Array, workers: int, progress: Callable[[int], None] | None = None) -> Array:
    """Correlates the pixels of pairs of records: whole, and each slightly cropped with the whole other one; the best counts.

    All values of RGB are correlated together, so that brightness and contrast do not matter, but colours do; or luma, if one of the two
    has no colour. If the whole images reach 0.98, they are not cropped.

    `pairs` are numbers of records, int64 `(n, 2)`; of those that are `mirrored`, bool `(n,)`, the second is compared by its mirror image.
    `progress` is called with the number of pictures read. Returns float64 `(n,)`, -1 to 1; 0 if one cannot be read."""
    wanted = np.unique(pairs)
    found: Array = np.zeros(len(pairs))
    if not len(wanted):
        return found
    shape = (len(wanted), len(_CUTS), _SMALL, _SMALL, 3)
    with tempfile.TemporaryFile() as file:  # 72 KiB for each record, which the system may page out
        views: Array = np.memmap(file, np.float16, "w+", shape=shape)
        colourless: Array = np.zeros(len(wanted), bool)
        chunks = [wanted[i : i + CHUNK].tolist() for i in range(0, len(wanted), CHUNK)]
        place = 0
        for several in at_once(lambda chunk: [_views(pictures, record) for record in chunk], chunks, workers):
            for seen in several:
                if seen is not None:
                    views[place], colourless[place] = seen
                place += 1
            if progress is not None:
                progress(place)
        for start in range(0, len(pairs), _AT_ONCE):
            block = slice(start, start + _AT_ONCE)
            one, other = (np.searchsorted(wanted, pairs[block, i]) for i in (0, 1))
            found[block] = _best(views[one], views[other], mirrored[block], colourless[one] | colourless[other])
        del views
    return found


def _views(pictures: Pictures, record: int) -> tuple[Array, bool] | None:
    """Reads a picture, whole and cropped, minus its mean: float16 `(cuts, 64, 64, 3)`; the second value is true without colour."""
    try:
        small = pictures.read(record).small
    except (OSError, NotAPictureError):
        return None
    views = np.stack([cut(small, part, _SMALL) for part in _CUTS])
    colourless = float((small.max(-1) - small.min(-1)).mean()) < _GRAY
    return (views - views.mean((1, 2, 3), keepdims=True)).astype(np.float16), colourless


def _best(one: Array, other: Array, mirrored: Array, colourless: Array) -> Array:
    """Computes the likeness of pairs of views `(n, cuts, 64, 64, 3)`."""
    one, other = one.astype(np.float32), other.astype(np.float32)
    other[mirrored] = other[mirrored, :, :, ::-1]
    for views in (one, other):
        views[colourless] = gray(views[colourless])[..., None]
        np.subtract(views, views.mean((2, 3, 4), keepdims=True), out=views)
    best = _correlation(one[:, 0], other[:, 0])
    unsure: Array = np.flatnonzero(best < _SURE)
    ways = [*((0, cut) for cut in range(1, len(_CUTS))), *((cut, 0) for cut in range(1, len(_CUTS)))]
    for a, b in ways if len(unsure) else ():
        best[unsure] = np.maximum(best[unsure], _correlation(one[unsure, a], other[unsure, b]))
    return best


def _correlation(one: Array, other: Array) -> Array:
    """Correlates centred pictures `(n, ...)`, float64; 0 for a constant one."""
    one, other = (views.reshape(len(views), -1) for views in (one, other))
    product, a, b = (np.einsum("ij,ij->i", x, y).astype(np.float64) for x, y in ((one, other), (one, one), (other, other)))
    norm: Array = np.sqrt(a * b)
    found: Array = np.divide(product, norm, out=np.zeros(len(one)), where=norm > 0)
    return np.minimum(found, 1.0)


CERTAIN, LIKELY = 4, 8
"""The distances of pHashes up to which copies are errors and warnings; the second is the limit for candidates."""
CONFIRMED = 0.9  # the least likeness of copies, which 999 of 1,000 edited photographs reach
MOST = 500_000  # the most candidates that are compared; a finding counts the rest


@dataclass(frozen=True, slots=True)
class Pair:
    """Two records of different splits whose pictures are, or may be, the same."""

    split: str  # the split of the record to leave out: the training split if it is one of the two, else the first in the spec
    key: str  # the relative path, or the row, of this record
    record: int  # the number of this record among all
    other_split: str  # the split of the other record
    other_key: str  # the relative path, or the row, of the other record
    other_record: int  # the number of the other record among all
    same: bool  # the stored bytes are equal
    distance: int = 0  # the number of bits, of 64, in which the pHashes differ
    likeness: float = 1.0  # the correlation of the pixels at 64×64, 0.9 or more for copies; 1 for equal contents
    mirrored: bool = False  # one is the mirror image of the other

    @property
    def severity(self) -> Literal["error", "warning", "info"]:
        """The severity, by how certain it is that one is a copy of the other."""
        if self.same or (self.likeness >= CONFIRMED and self.distance <= CERTAIN):
            return "error"
        return "warning" if self.likeness >= CONFIRMED else "info"


@dataclass(frozen=True)
class Leaks:
    """The leaks between splits."""

    pairs: tuple[Pair, ...]
    """The pairs, the most certain first. A record with equal contents is paired once, with the first of the other split; of a record with
    many near ones, the nearest eight were compared."""
    looked_at: int  # number of records whose pictures were compared
    unreadable: int = 0  # number of records without a picture that Pillow reads
    bytes_only: int = 0  # of those, the number whose stored bytes were compared
    left_out: int = 0  # number of candidates beyond `MOST`, which were not compared

    @property
    def compared(self) -> str:
        """What was compared, in words."""
        images = f"{self.looked_at:,} images"
        return images if self.looked_at or not self.bytes_only else f"the bytes of {self.bytes_only:,} records"

    def to_exclude(self) -> list[str]:
        """Lists the keys to exclude so that no error and no warning is left, each once, in order."""
        return sorted({pair.key for pair in self.pairs if pair.severity != "info"})


def find_leaks(
    manifest: Manifest, looks: Array, splits: Sequence[str], runtime: Runtime, *, near: bool, comparing: Callable[[int], None] | None = None
) -> Leaks:
    """Finds the records that two splits share.

    Near copies, also mirrored ones, are found by their pHashes and confirmed by their pixels. Pictures with so little
    contrast that all hashes are alike are compared only by their contents.

    `looks` is the result of `look_at`. Compares some `splits` with each other; with `near`, finds copies that are not equal byte by byte,
    too. `runtime` sets the number of threads; `comparing` is called with the number of candidates read again.
    """
    home: Array = np.full(len(looks), -1, np.int16)
    for i, name in enumerate(splits):
        home[manifest.numbers(name)] = i
    inside = home >= 0
    search = _Search(manifest, sorted(splits, key=lambda name: name != "train"), splits, looks, home)
    copies, left_out = search.near(runtime, comparing) if near else ([], 0)
    pairs = [*search.same(), *copies]
    rank = {"error": 0, "warning": 1, "info": 2}
    pairs.sort(key=lambda p: (rank[p.severity], not p.same, p.distance, p.other_key, p.key))
    seen, unreadable = inside & (looks["state"] == SEEN), inside & (looks["state"] == UNREADABLE)
    return Leaks(tuple(pairs), int(seen.sum()), int(unreadable.sum()), int((unreadable & hashed(looks)).sum()), left_out)


def content_numbers(looks: Array, records: Array) -> Array:
    """Numbers the contents of records: equal ones have one number."""
    return np.unique(looks["digest"][records], axis=0, return_inverse=True)[1].reshape(-1)


def equal_contents(records: Array, content: Array) -> list[list[int]]:
    """Groups records with equal numbers of their contents."""
    order: Array = np.argsort(content, kind="stable")
    ends: list[int] = [*(np.flatnonzero(np.diff(content[order])) + 1).tolist(), len(order)]
    return [records[order[a:b]].tolist() for a, b in zip([0, *ends], ends, strict=False) if b - a > 1]


class _Search:
    """A search between splits. Leaves out records of the first split in `order`; `home` is the index of each record's split in `names`."""

    def __init__(self, manifest: Manifest, order: Sequence[str], names: Sequence[str], looks: Array, home: Array) -> None:
        self._manifest, self._names, self._looks, self._home = manifest, names, looks, home
        self._keys = manifest.every_key
        self._rank = [order.index(name) for name in names]  # of two records, the one of the lower rank is left out
        self._seen: Array = np.flatnonzero((home >= 0) & hashed(looks))
        self._content = content_numbers(looks, self._seen)

    def _pair(self, a: int, b: int, **about: Any) -> Pair:
        first, other = sorted((a, b), key=lambda record: (self._rank[self._home[record]], record))
        (split, key), (other_split, other_key) = ((self._names[int(self._home[record])], self._keys[record]) for record in (first, other))
        return Pair(split, key, first, other_split, other_key, other, **about)

    def same(self) -> list[Pair]:
        """Pairs records of equal contents: each record of a split with the first of each other split."""
        found: dict[tuple[int, int], Pair] = {}
        for homes in self._groups():
            for ours, theirs in combinations(homes.values(), 2):
                for x, y in [*((x, theirs[0]) for x in ours), *((ours[0], y) for y in theirs)]:
                    found[x, y] = self._pair(x, y, same=True)
        return list(found.values())

    def _groups(self) -> Iterator[dict[int, list[int]]]:
        """Yields the records of equal contents, by their split."""
        for group in equal_contents(self._seen, self._content):
            homes: dict[int, list[int]] = {}
            for record in group:
                homes.setdefault(int(self._home[record]), []).append(record)
            yield homes

    def near(self, runtime: Runtime, progress: Callable[[int], None] | None) -> tuple[list[Pair], int]:
        """Compares the pixels of records that hash alike; returns the pairs, and the number of candidates beyond `MOST`.

        Of two records, the likelier of mirrored and not counts. Equal contents in the split of the record to leave out are all paired.
        """
        pictures = self._looks["state"][self._seen] == SEEN
        seen, content = self._seen[pictures], self._content[pictures]
        candidates, left_out = find_candidates(self._looks[seen], self._home[seen], content, LIKELY, MOST)
        candidates[:, :2] = seen[candidates[:, :2]]
        copies = {several[0]: several for homes in self._groups() for several in homes.values()}
        best: dict[tuple[int, int], Pair] = {}
        found = likeness(Pictures(self._manifest), candidates[:, :2], candidates[:, 3].astype(bool), threads(runtime), progress)
        for (x, y, far, turned), alike in zip(candidates.tolist(), found.tolist(), strict=True):
            if (x, y) not in best or best[x, y].likeness < alike:
                best[x, y] = self._pair(x, y, same=False, distance=far, likeness=alike, mirrored=bool(turned))
        every = [replace(p, key=self._keys[r], record=r) for p in best.values() for r in copies.get(p.record, (p.record,))]
        return every, left_out
