"""Finds records of one split that are in another, too: the same content, or a copy that was saved anew, made smaller, cut or mirrored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pipegen.memory import threads
from pipegen.quality.candidates import find_candidates
from pipegen.quality.likeness import likeness
from pipegen.quality.looks import SEEN, UNREADABLE, look_at
from pipegen.quality.pictures import Pictures
from pipegen.spec.models import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from pipegen.data.manifest import Manifest

    Array: TypeAlias = np.ndarray[Any, Any]

CERTAIN, LIKELY = 4, 8
"""The distances of pHashes up to which copies are errors and warnings; candidates are those up to the second."""
CONFIRMED = 0.9
"""The least likeness of copies; of edited photographs 999 of 1,000 reach it."""
MOST = 500_000
"""Candidates that are compared; of more the rest is left out, and it is said."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Holds two records of different splits whose pictures are, or may be, the same.

    Attributes:
        split: The split of the record that is to go: that of the training where one is, else the one that the spec names first.
        key: Its relative path, or its row.
        record: Its number among all records.
        other_split: The other's.
        other_key: Likewise.
        other_record: Likewise.
        same: Whether what is stored is the same, byte by byte.
        distance: The bits of 64 in which the pHashes differ.
        likeness: The correlation of the pixels at 64×64, of which copies have 0.9 or more; 1 for the same content.
        mirrored: Whether one is the mirror image of the other.
    """

    split: str
    key: str
    record: int
    other_split: str
    other_key: str
    other_record: int
    same: bool
    distance: int = 0
    likeness: float = 1.0
    mirrored: bool = False

    @property
    def severity(self) -> Literal["error", "warning", "info"]:
        """Says how certain it is that one is a copy of the other."""
        if self.same or (self.likeness >= CONFIRMED and self.distance <= CERTAIN):
            return "error"
        return "warning" if self.likeness >= CONFIRMED else "info"


@dataclass(frozen=True)
class Leaks:
    """Holds what was found between splits.

    Attributes:
        pairs: The surest first. Of records with the same content each stands once, beside the first of the other split; of a
            record with many near ones, the nearest eight were compared.
        looked_at: How many records were compared.
        unreadable: The records that could not be: no pictures that Pillow reads.
        left_out: Candidates beyond `MOST`, which were not compared.
    """

    pairs: tuple[Pair, ...]
    looked_at: int
    unreadable: int = 0
    left_out: int = 0

    def to_exclude(self) -> list[str]:
        """Returns the keys whose absence leaves no error and no warning, each once, in order."""
        return sorted({pair.key for pair in self.pairs if pair.severity != "info"})


def find_leaks(
    manifest: Manifest,
    splits: Sequence[str] | None = None,
    *,
    near: bool = True,
    runtime: Runtime | None = None,
    looks: Array | None = None,
    progress: Callable[[int], None] | None = None,
    comparing: Callable[[int], None] | None = None,
) -> Leaks:
    """Finds the records that two splits share.

    Near copies are found by their pHashes (`perceptual.py`) and confirmed by their pixels, mirror images included; pictures with so
    little contrast that all hashes are alike are compared by their content alone.

    Args:
        manifest: The records and their splits.
        splits: The splits that are compared with each other; all by default.
        near: Whether copies count that are not the same byte by byte.
        runtime: Says how many threads there are, and by its cache in which folder what is seen is kept for the next time.
        looks: What `look_at` has returned, so that nothing is looked at again.
        progress: Called with how many records were looked at.
        comparing: Called with how many of those that hash alike were read once more.
    """
    runtime = runtime or Runtime()
    names = tuple(splits if splits is not None else manifest.splits)
    looks = look_at(manifest, runtime, progress=progress) if looks is None else looks
    home: Array = np.full(len(looks), -1, np.int16)
    for i, name in enumerate(names):
        home[manifest.numbers(name)] = i
    inside = home >= 0
    search = _Search(manifest, sorted(names, key=lambda name: name != "train"), names, looks, home)
    pairs = search.same()
    left_out = 0
    if near:
        copies, left_out = search.near(runtime, comparing)
        pairs += copies
    rank = {"error": 0, "warning": 1, "info": 2}
    pairs.sort(key=lambda p: (rank[p.severity], not p.same, p.distance, p.other_key, p.key))
    unreadable = int((inside & (looks["state"] == UNREADABLE)).sum())
    return Leaks(tuple(pairs), int((inside & (looks["state"] == SEEN)).sum()), unreadable, left_out)


class _Search:
    """One search between splits: `order` says whose record goes, the first one's; `home` is the place of each record's split in `names`."""

    def __init__(self, manifest: Manifest, order: Sequence[str], names: Sequence[str], looks: Array, home: Array) -> None:
        self._manifest, self._names, self._looks, self._home = manifest, names, looks, home
        self._keys = manifest.every_key
        self._rank = [order.index(name) for name in names]  # a record goes before those of splits with a higher one
        self._seen: Array = np.flatnonzero((home >= 0) & (looks["state"] == SEEN))
        self._content: Array = np.unique(looks["digest"][self._seen], axis=0, return_inverse=True)[1].reshape(-1)

    def _pair(self, a: int, b: int, **about: Any) -> Pair:
        first, other = sorted((a, b), key=lambda record: (self._rank[self._home[record]], record))
        (split, key), (other_split, other_key) = ((self._names[int(self._home[record])], self._keys[record]) for record in (first, other))
        return Pair(split, key, first, other_split, other_key, other, **about)

    def _groups(self) -> list[list[int]]:
        """The records of each content that is stored several times."""
        order: Array = np.argsort(self._content, kind="stable")
        ends: list[int] = [*(np.flatnonzero(np.diff(self._content[order])) + 1).tolist(), len(order)]
        return [self._seen[order[a:b]].tolist() for a, b in zip([0, *ends], ends, strict=False) if b - a > 1]

    def same(self) -> list[Pair]:
        """Pairs of the same content: each record of a split beside the first of each other one."""
        found: dict[tuple[int, int], Pair] = {}
        for homes in map(self._by_split, self._groups()):
            for ours, theirs in combinations(homes.values(), 2):
                for x, y in [*((x, theirs[0]) for x in ours), *((ours[0], y) for y in theirs)]:
                    found[x, y] = self._pair(x, y, same=True)
        return list(found.values())

    def _by_split(self, group: list[int]) -> dict[int, list[int]]:
        homes: dict[int, list[int]] = {}
        for record in group:
            homes.setdefault(int(self._home[record]), []).append(record)
        return homes

    def near(self, runtime: Runtime, progress: Callable[[int], None] | None) -> tuple[list[Pair], int]:
        """Pairs of different contents that hash alike, compared by their pixels, and how many there was no room for; of two records the
        likelier way round counts, and what is stored several times in the split where it is to go is there as often.
        """
        candidates, left_out = find_candidates(self._looks[self._seen], self._home[self._seen], self._content, LIKELY, MOST)
        candidates[:, :2] = self._seen[candidates[:, :2]]
        copies = {several[0]: several for group in self._groups() for several in self._by_split(group).values()}
        best: dict[tuple[int, int], Pair] = {}
        found = likeness(Pictures(self._manifest), candidates[:, :2], candidates[:, 3].astype(bool), threads(runtime), progress)
        for (x, y, far, turned), alike in zip(candidates.tolist(), found.tolist(), strict=True):
            if (x, y) not in best or best[x, y].likeness < alike:
                best[x, y] = self._pair(x, y, same=False, distance=far, likeness=alike, mirrored=bool(turned))
        every = [replace(p, key=self._keys[r], record=r) for p in best.values() for r in copies.get(p.record, (p.record,))]
        return every, left_out
