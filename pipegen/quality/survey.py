"""A survey of a spec's data: leaks, repeats and oddities, from one pass over the pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from pipegen.data.manifest import Manifest
from pipegen.data.verdict import class_counts, place_of, shown_label
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, Label, Severity
from pipegen.frozen import dataclass
from pipegen.ops.fields.notes import count, is_are, quoted
from pipegen.ops.kinds.base import Levels, having
from pipegen.quality.leaks import Leaks, Pair, content_numbers, equal_contents, find_leaks
from pipegen.quality.looks import SEEN, UNREADABLE, flat, hashed
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec, Runtime
from pipegen.spec.source_map import KeyPath
from pipegen.spec.variants import joined, relocate_part

Array = np.ndarray[Any, Any]

DARK, BRIGHT, BLURRY, SIZES, ASPECTS = 32.0, 224.0, 20.0, 8.0, 2.0
"""Limits of oddities: a mean luma below the first is dark, above the second bright; a variance of the Laplacian below the third is blurry;
then the odd ratios of pixels and of aspects to the median."""
_SHARP_SIDE = 128  # the least side of a picture that can be blurry: smaller ones are enlarged first
FEW, UNEVEN = 0.1, 0.8
"""The share of the mean class below which a class is nearly empty, and the relative entropy of labels below which they are uneven."""


@dataclass(frozen=True, eq=False)
class Odd:
    """The pictures with one kind of oddity: int64 `(n,)`, the oddest first, and the oddity of each, such as `mean 3 of 255`."""

    code: str
    name: str
    records: Array
    words: tuple[str, ...]


@dataclass(frozen=True)
class Classes:
    """The classes of the training split: its examples, or items on examples, of each class, by name.

    `entropy` is that of its labels, relative to the highest for this number of classes: 0 to 1.
    """

    split: str
    counts: Mapping[str, int]
    entropy: float
    each: str = "example"  # what has a class: an `example`, or an `item` on one

    @property
    def nearly_empty(self) -> dict[str, int]:
        """The classes with a tenth of the mean or less, the smallest first."""
        mean = sum(self.counts.values()) / max(1, len(self.counts))
        return {name: n for name, n in sorted(self.counts.items(), key=lambda item: item[1]) if 0 < n <= FEW * mean}


def odd_pictures(looks: Array) -> list[Odd]:
    """Ranks pictures that are flat, dark, bright, blurry, or of an odd size or aspect; flat ones are not checked for the next three."""
    seen = looks["state"] == SEEN
    plain = flat(looks)
    usual = seen & ~plain
    light, sharp = looks["brightness"], looks["sharpness"]
    side = np.minimum(looks["width"], looks["height"])
    pixels = looks["width"].astype(np.float64) * looks["height"]
    shape = looks["width"] / np.maximum(1, looks["height"]).astype(np.float64)

    def from_median(values: Array) -> Array:
        """The absolute logarithm of the ratio to the median."""
        middle = float(np.median(values[seen])) if seen.any() else 1.0
        return np.abs(np.log(np.maximum(values, 1e-9) / max(middle, 1e-9)))

    size, aspect = from_median(pixels), from_median(shape)
    found = [
        _ranked("PG735", "flat", seen & plain, looks["contrast"], "contrast {:.0f} of 255"),
        _ranked("PG735", "dark", usual & (light < DARK), light, "mean {:.0f} of 255"),
        _ranked("PG735", "bright", usual & (light > BRIGHT), 255 - light, "mean {:.0f} of 255", light),
        _ranked("PG736", "blurry", usual & (sharp < BLURRY) & (side >= _SHARP_SIDE), sharp, "sharpness {:.1f}"),
        _ranked("PG737", "of an odd size", seen & (size > math.log(SIZES)), -size, "{}×{}", looks["width"], looks["height"]),
        _ranked("PG737", "of an odd aspect", seen & (aspect > math.log(ASPECTS)), -aspect, "{}×{}", looks["width"], looks["height"]),
    ]
    return [odd for odd in found if len(odd.records)]


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


def _groups(looks: Array, records: Array) -> list[list[int]]:
    """Groups records with equal contents; skips those that were not read."""
    records = records[hashed(looks[records])]
    return equal_contents(records, content_numbers(looks, records))


@dataclass(frozen=True, eq=False)
class Survey:
    """The results for a spec's data: `LOOK (n,)`, for each record of the listing, and what follows from it.

    `repeats` are groups of records of a split with equal contents, the largest first; `contradictions` groups of equal contents and
    different classes.
    """

    manifest: Manifest
    looks: Array
    leaks: Leaks
    odd: tuple[Odd, ...]
    repeats: tuple[tuple[str, list[int]], ...]
    contradictions: tuple[list[int], ...]
    classes: Classes | None
    unreadable: tuple[str, ...]


def survey(manifest: Manifest, looks: Array, runtime: Runtime, comparing: Callable[[int], None] | None = None) -> Survey:
    """Makes a survey from the result of `look_at`; for `comparing` see `find_leaks`."""
    leaks = find_leaks(manifest, looks, manifest.splits, runtime, near=True, comparing=comparing)
    classes = classes_of(manifest)
    keys, labels = manifest.every_key, manifest.every_label
    unread = tuple(keys[record] for record in np.flatnonzero(looks["state"] == UNREADABLE).tolist())
    of_splits = ((split, group) for split in manifest.splits for group in _groups(looks, manifest.numbers(split)))
    again = tuple(sorted(of_splits, key=lambda item: -len(item[1])))
    every: Array = np.sort(np.concatenate([*map(manifest.numbers, manifest.splits)]))
    groups = _groups(looks, every) if labels is not None else []
    several = tuple(group for group in groups if labels is not None and len({*labels[group].tolist()} - {-1}) > 1)
    return Survey(manifest, looks, leaks, tuple(odd_pictures(looks)), again, several, classes, unread)


_SHOWN = 10  # pairs of each kind that are shown in text; a line counts the rest
_PAIRS = ("PG730", "PG731", "PG732")
_LEAVE_OUT = (
    "leave the copies out: `pipegen report SPEC --write-exclude copies.txt`, then `splits: {exclude: copies.txt}`; no other record moves"
)
_UNEVEN = {
    "example": "`pipe.class_weights` weighs classes against it; accuracy alone says little here",
    "item": "weigh classes in the loss, and look at a metric of each",
}
_GROUP = "or keep what belongs together in one split, by `splits.group`"


def findings(spec: PipelineSpec, seen: Survey, locate: Locate) -> list[Diagnostic]:
    """Makes the findings of a survey, those about copies first."""
    return [*_leaks(spec, seen.leaks, locate), *_of_pictures(spec, seen, locate(("source",))), *_labels(seen, locate(("source",)))]


def briefly(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Shortens findings for text output: of pairs, keeps the first of each kind, and counts the rest."""
    kept: list[Diagnostic] = []
    rest: dict[tuple[str, Severity], list[Diagnostic]] = {}
    for d in diagnostics:
        alike = rest.setdefault((d.code, d.severity), [])
        alike.append(d)
        if d.code not in _PAIRS or len(alike) <= _SHOWN:
            kept.append(d)
    for (code, severity), alike in rest.items():
        if code in _PAIRS and len(alike) > _SHOWN:
            more = f"{count(len(alike) - _SHOWN, 'more pair')} are like these; `--format json` has all of them, and the page more"
            kept.insert(kept.index(alike[_SHOWN - 1]) + 1, make(code, more, *alike[0].labels[:1], severity=severity))
    return kept


def in_full(seen: Survey) -> dict[str, Any]:
    """Converts a survey to plain values, with the key of every record."""
    keys = seen.manifest.every_key
    pair = ("split", "key", "other_split", "other_key", "same", "distance", "likeness", "mirrored", "severity")

    def records(kind: Odd) -> list[dict[str, str]]:
        return [{"key": keys[int(record)], "says": said} for record, said in zip(kind.records, kind.words, strict=True)]

    return {
        "pairs": [{name: getattr(one, name) for name in pair} for one in seen.leaks.pairs],
        "repeats": [{"split": split, "keys": [keys[record] for record in group]} for split, group in seen.repeats],
        "contradictions": [[keys[record] for record in group] for group in seen.contradictions],
        "odd": [{"code": kind.code, "name": kind.name, "records": records(kind)} for kind in seen.odd],
        "unreadable": list(seen.unreadable),
        "bytes_only": seen.leaks.bytes_only,
    }


def _leaks(spec: PipelineSpec, leaks: Leaks, locate: Locate) -> Iterator[Diagnostic]:
    def place(split: str, key: str) -> KeyPath:
        """The key path of the definition of a record's split, in its part of a mix."""
        part = next((name for name in spec.source.mixed() if key.startswith(f"{name}/")), None)
        return place_of(spec, split) if part is None else relocate_part(place_of(joined(spec, part), split), part, 0)

    kinds: dict[tuple[str, str], list[Pair]] = {}
    for pair in leaks.pairs:
        code = "PG730" if pair.same else "PG732" if pair.severity == "info" else "PG731"
        kinds.setdefault((code, pair.severity), []).append(pair)
    first = True
    for (code, severity), pairs in kinds.items():
        for pair in pairs:
            here, there = locate(place(pair.split, pair.key)), locate(place(pair.other_split, pair.other_key))
            advice = (_LEAVE_OUT, _GROUP) if spec.source.split_names() is None else (_LEAVE_OUT,)
            help_ = advice if first and code != "PG732" else ()
            yield make(code, said(pair), here, there, help=help_, severity=Severity(severity))
            first = first and code == "PG732"
    if leaks.left_out:
        message = f"{leaks.left_out:,} more pairs have similar hashes, but were not compared"
        help_ = (
            "keep frames of a film in one split, by `splits.group`",
            "or leave out the copies that were found, and run the report again",
        )
        yield make("PG742", message, locate(("source",)), help=help_)


def said(pair: Pair) -> str:
    """Describes what two records have in common."""
    names = f"{pair.key!r} in `{pair.split}` and {pair.other_key!r} in `{pair.other_split}`"
    if pair.same:
        return f"{names} are the same, byte by byte"
    mirrored = ", one of them mirrored" if pair.mirrored else ""
    measured = f"{pair.distance} of 64 bits of their hashes differ, and their pixels correlate at {pair.likeness:.2f}{mirrored}"
    return f"{names} {'have similar hashes, but differ' if pair.severity == 'info' else 'are copies of one image'}: {measured}"


def _of_pictures(spec: PipelineSpec, seen: Survey, at: Label) -> Iterator[Diagnostic]:
    """Reports unreadable, repeated and odd pictures."""
    keys, labels = seen.manifest.every_key, seen.manifest.every_label
    noun = "image" if having(spec.source.infer(), Levels) else "record"
    unreadable = seen.leaks.unreadable - (seen.leaks.bytes_only if noun == "record" else 0)
    if unreadable:
        named = f": {quoted(seen.unreadable)}" if seen.unreadable and seen.manifest.listing.location.kind != "row" else ""
        help_ = (
            "`pipegen validate SPEC --data=all` says what is wrong with each file"
            if noun == "image" or seen.manifest.listing.in_files
            else "rows of numbers are not compared, only images, and sounds by their bytes"
        )
        yield make("PG742", f"{count(unreadable, 'record')} could not be checked{named}", at, help=help_)
    if seen.contradictions and labels is not None:
        first = seen.contradictions[0]
        classes = dict.fromkeys(f"`{seen.manifest.class_names[int(labels[record])]}`" for record in first)
        stored = count(len(seen.contradictions), f"{noun} is", f"{noun}s are")
        message = f"{stored} stored under several classes, such as {' and '.join(classes)}: {quoted([keys[r] for r in first])}"
        yield make("PG740", message, at, help="keep one of them, and remove the others")
    told = {record for group in seen.contradictions for record in group}
    for split in seen.manifest.splits:
        groups = [group for of, group in seen.repeats if of == split and group[0] not in told]
        if groups:
            more = count(sum(map(len, groups)) - len(groups), f"record of `{split}` repeats", f"records of `{split}` repeat")
            message = f"{more} the content of another record: {quoted([keys[r] for r in groups[0]])}"
            yield make("PG741", message, at, help=f"a repeated {noun} counts twice, in training and in metrics")
    for odd in seen.odd:
        examples = ", ".join(f"{keys[int(r)]!r} ({words})" for r, words in zip(odd.records[:3], odd.words, strict=False))
        message = f"{len(odd.records):,} of {seen.leaks.looked_at:,} images {is_are(len(odd.records))} {odd.name}: {examples}"
        yield make(odd.code, message, at, help="the page of `pipegen report` shows the most extreme")


def _labels(seen: Survey, at: Label) -> Iterator[Diagnostic]:
    classes = seen.classes
    if classes is None:
        return
    few = classes.nearly_empty
    if few:
        counted = ", ".join(f"{name!r} ({n})" for name, n in [*few.items()][:5])
        beside = f"beside a mean of {sum(classes.counts.values()) / len(classes.counts):,.0f} {classes.each}s"
        message = f"{count(len(few), 'class', 'classes')} of `{classes.split}` nearly empty, {beside}: {counted}"
        yield make("PG738", message, at, help="add examples, or merge such a class with another one")
    if classes.entropy < UNEVEN:
        most = max(classes.counts, key=lambda name: classes.counts[name])
        share = classes.counts[most] / max(1, sum(classes.counts.values()))
        message = f"the labels of `{classes.split}` are uneven: {share:.0%} are {most!r}, and their entropy is {classes.entropy:.2f} of 1"
        yield make("PG739", message, at, help=_UNEVEN["example" if classes.each == "example" else "item"])
