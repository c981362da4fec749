"""Picks what is odd about the pictures and the classes of a data set; nothing of it is an error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.class_counts import class_counts, shown_label
from pipegen.quality.looks import SEEN, flat

if TYPE_CHECKING:
    from typing import TypeAlias

    from pipegen.data.manifest import Manifest

    Array: TypeAlias = np.ndarray[Any, Any]

DARK, BRIGHT, BLURRY, SIZES, ASPECTS = 32.0, 224.0, 20.0, 8.0, 2.0
"""Mean luma below and above which a picture is dark or bright; variance of the Laplacian below which it is blurry; how many times more or
fewer pixels than the median are odd, and how many times wider or higher."""
_SHARP_SIDE = 128
"""A smaller picture is not judged blurry: it is looked at enlarged."""
FEW, UNEVEN = 0.1, 0.8
"""The share of the mean class below which a class is nearly empty, and the entropy of the labels, of the highest, below which they are
uneven."""


@dataclass(frozen=True, eq=False)
class Odd:
    """Holds the pictures that are odd in one way.

    Attributes:
        code: The code of the finding.
        name: The way, in a word.
        records: The numbers of the records, the oddest first: int64 `(n,)`.
        words: What is odd of each, such as `mean 3 of 255`.
    """

    code: str
    name: str
    records: Array
    words: tuple[str, ...]


@dataclass(frozen=True)
class Classes:
    """Counts the classes of the split that is trained on.

    Attributes:
        split: The split.
        counts: Its examples, or items on examples, of each class, by name.
        entropy: The entropy of its labels, of the highest that so many classes can have: 0 to 1.
    """

    split: str
    counts: Mapping[str, int]
    entropy: float
    each: str = "example"
    """What has a class: an `example`, or an `item` on one."""

    @property
    def nearly_empty(self) -> dict[str, int]:
        """Returns the classes that have a tenth of the mean or less, the emptiest first."""
        mean = sum(self.counts.values()) / max(1, len(self.counts))
        return {name: n for name, n in sorted(self.counts.items(), key=lambda item: item[1]) if 0 < n <= FEW * mean}


def odd_pictures(looks: Array) -> list[Odd]:
    """Ranks the pictures that are flat, dark, bright or blurry, or of an unusual size or aspect; flat ones are judged by nothing else."""
    seen = looks["state"] == SEEN
    plain = flat(looks)
    usual = seen & ~plain
    light, sharp = looks["brightness"], looks["sharpness"]
    side = np.minimum(looks["width"], looks["height"])
    pixels = looks["width"].astype(np.float64) * looks["height"]
    shape = looks["width"] / np.maximum(1, looks["height"]).astype(np.float64)
    size, aspect = (_times(values, seen) for values in (pixels, shape))
    found = [
        _ranked("PG735", "flat", seen & plain, looks["contrast"], "contrast {:.0f} of 255"),
        _ranked("PG735", "dark", usual & (light < DARK), light, "mean {:.0f} of 255"),
        _ranked("PG735", "bright", usual & (light > BRIGHT), 255 - light, "mean {:.0f} of 255", light),
        _ranked("PG736", "blurry", usual & (sharp < BLURRY) & (side >= _SHARP_SIDE), sharp, "sharpness {:.1f}"),
        _ranked("PG737", "of an odd size", seen & (size > math.log(SIZES)), -size, "{}×{}", looks["width"], looks["height"]),
        _ranked("PG737", "of an odd aspect", seen & (aspect > math.log(ASPECTS)), -aspect, "{}×{}", looks["width"], looks["height"]),
    ]
    return [odd for odd in found if len(odd.records)]


def _times(values: Array, seen: Array) -> Array:
    """The logarithm of how many times a value is larger or smaller than the median of those that count."""
    middle = float(np.median(values[seen])) if seen.any() else 1.0
    return np.abs(np.log(np.maximum(values, 1e-9) / max(middle, 1e-9)))


def _ranked(code: str, name: str, which: Array, by: Array, words: str, *shown: Array) -> Odd:
    records: Array = np.flatnonzero(which)
    records = records[np.argsort(by[records], kind="stable")]
    values = [column[records].tolist() for column in shown or (by,)]
    return Odd(code, name, records, tuple(words.format(*row) for row in zip(*values, strict=True)))


def classes_of(manifest: Manifest) -> Classes | None:
    """Counts the classes of the training split, or of the first one; `None` without labels."""
    split = "train" if "train" in manifest.splits else manifest.splits[0]
    label = shown_label(manifest)
    found = class_counts(manifest, split, label, main=label is None)
    if found is None or not found.names:
        return None
    shares = [n / sum(found.counts) for n in found.counts if n]
    entropy = -sum(share * math.log(share) for share in shares)
    most = math.log(len(found.counts)) if len(found.counts) > 1 else 0.0
    return Classes(split, dict(zip(found.names, found.counts, strict=True)), entropy / most if most else 1.0, found.each)


def repeated(manifest: Manifest, looks: Array) -> list[tuple[str, list[int]]]:
    """Returns the records of each split that hold the same content, the largest groups first."""
    found = [(split, group) for split in manifest.splits for group in _groups(looks, manifest.numbers(split))]
    return sorted(found, key=lambda item: -len(item[1]))


def several_labels(manifest: Manifest, looks: Array) -> list[list[int]]:
    """Returns the records that hold the same content and are of different classes, in whichever split."""
    labels = manifest.every_label
    if labels is None:
        return []
    every: Array = np.concatenate([*map(manifest.numbers, manifest.splits)])
    return [group for group in _groups(looks, np.sort(every)) if len(set(labels[group].tolist())) > 1]


def _groups(looks: Array, records: Array) -> list[list[int]]:
    """The records with the same content, of those that were seen."""
    records = records[looks["state"][records] == SEEN]
    _, content = np.unique(looks["digest"][records], axis=0, return_inverse=True)
    order: Array = np.argsort(content.reshape(-1), kind="stable")
    cuts: Array = np.flatnonzero(np.diff(content.reshape(-1)[order])) + 1
    ends: list[int] = [*cuts.tolist(), len(order)]
    return [records[order[a:b]].tolist() for a, b in zip([0, *ends], ends, strict=False) if b - a > 1]
