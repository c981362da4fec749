"""Says what a survey found: copies in two splits are errors or warnings, and all that is odd is a note."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.data.verdict import place_of
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Severity
from pipegen.ops.sources.listing.wording import count, quoted
from pipegen.quality.oddities import UNEVEN
from pipegen.spec.joined import joined, relocate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipegen.diagnostics.diagnostic import Diagnostic, Label
    from pipegen.quality.leaks import Leaks, Pair
    from pipegen.quality.survey import Survey
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec
    from pipegen.spec.source_map import KeyPath

_SHOWN = 10
"""Pairs of each kind that are shown to people; a line counts the rest."""
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
    """Returns every finding about what was seen, those about copies first."""
    at = locate(("source",))
    return [*_leaks(spec, seen.leaks, locate), *_unread(seen, at), *_repeats(seen, at), *_oddities(seen, at), *_labels(seen, at)]


def briefly(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Returns findings for people to read: of pairs the first of each kind, and a line that counts the rest."""
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
    """Returns all that was found as plain values, with the key of every record."""
    keys = seen.manifest.every_key
    pair = ("split", "key", "other_split", "other_key", "same", "distance", "likeness", "mirrored", "severity")
    return {
        "pairs": [{name: getattr(one, name) for name in pair} for one in seen.leaks.pairs],
        "repeats": [{"split": split, "keys": [keys[record] for record in group]} for split, group in seen.repeats],
        "contradictions": [[keys[record] for record in group] for group in seen.contradictions],
        "odd": [
            {
                "code": odd.code,
                "name": odd.name,
                "records": [{"key": keys[int(r)], "says": w} for r, w in zip(odd.records, odd.words, strict=True)],
            }
            for odd in seen.odd
        ],
        "unreadable": list(seen.unreadable),
    }


def _leaks(spec: PipelineSpec, leaks: Leaks, locate: Locate) -> Iterator[Diagnostic]:
    kinds: dict[tuple[str, str], list[Pair]] = {}
    for pair in leaks.pairs:
        code = "PG730" if pair.same else "PG732" if pair.severity == "info" else "PG731"
        kinds.setdefault((code, pair.severity), []).append(pair)
    first = True
    for (code, severity), pairs in kinds.items():
        for pair in pairs:
            here, there = (locate(_place(spec, split, key)) for split, key in ((pair.split, pair.key), (pair.other_split, pair.other_key)))
            advice = (_LEAVE_OUT, _GROUP) if spec.source.split_names() is None else (_LEAVE_OUT,)
            help_ = advice if first and code != "PG732" else ()
            yield make(code, said(pair), here, there, help=help_, severity=Severity(severity))
            first = first and code == "PG732"
    if leaks.left_out:
        message = f"{leaks.left_out:,} more pairs hash alike, and were not compared"
        yield make(
            "PG742",
            message,
            locate(("source",)),
            help=("frames of a film belong in one split, by `splits.group`", "or leave out the copies that were found, and run this again"),
        )


def _place(spec: PipelineSpec, split: str, key: str) -> KeyPath:
    """Returns the key path of what puts a record into its split; of a mix, in the part that the record is of."""
    part = next((name for name in spec.source.mixed() if key.startswith(f"{name}/")), None)
    return place_of(spec, split) if part is None else relocate(place_of(joined(spec, part), split), part, 0)


def said(pair: Pair) -> str:
    """Says what two records have in common."""
    names = f"{pair.key!r} in `{pair.split}` and {pair.other_key!r} in `{pair.other_split}`"
    if pair.same:
        return f"{names} are the same, byte by byte"
    mirrored = ", one of them mirrored" if pair.mirrored else ""
    measured = f"{pair.distance} of 64 bits of their hashes differ, and their pixels correlate at {pair.likeness:.2f}{mirrored}"
    return f"{names} {'hash alike, and differ' if pair.severity == 'info' else 'are copies of one picture'}: {measured}"


def _unread(seen: Survey, at: Label) -> Iterator[Diagnostic]:
    total = seen.leaks.unreadable
    if not total:
        return
    named = f": {quoted(seen.unreadable)}" if seen.unreadable and not seen.manifest.listing.numbered else ""
    help_ = "`pipegen validate SPEC --data=all` says what is wrong with each file; files that Pillow cannot read are not compared"
    yield make("PG742", f"{count(total, 'record')} could not be looked at{named}", at, help=help_)


def _repeats(seen: Survey, at: Label) -> Iterator[Diagnostic]:
    keys, labels = seen.manifest.every_key, seen.manifest.every_label
    if seen.contradictions and labels is not None:
        first = seen.contradictions[0]
        classes = dict.fromkeys(f"`{seen.manifest.class_names[int(labels[record])]}`" for record in first)
        stored = count(len(seen.contradictions), "picture is", "pictures are")
        message = f"{stored} stored under several classes, such as {' and '.join(classes)}: {quoted([keys[r] for r in first])}"
        yield make("PG740", message, at, help="decide on one, and remove the others")
    told = {record for group in seen.contradictions for record in group}
    for split in seen.manifest.splits:
        groups = [group for of, group in seen.repeats if of == split and group[0] not in told]
        if groups:
            more = count(sum(map(len, groups)) - len(groups), f"record of `{split}` repeats", f"records of `{split}` repeat")
            message = f"{more} the content of another one there: {quoted([keys[r] for r in groups[0]])}"
            yield make("PG741", message, at, help="a repeated picture counts twice, in training and in a metric")


def _oddities(seen: Survey, at: Label) -> Iterator[Diagnostic]:
    keys = seen.manifest.every_key
    for odd in seen.odd:
        examples = ", ".join(f"{keys[int(r)]!r} ({words})" for r, words in zip(odd.records[:3], odd.words, strict=False))
        message = (
            f"{len(odd.records):,} of {seen.leaks.looked_at:,} pictures {'is' if len(odd.records) == 1 else 'are'} {odd.name}: {examples}"
        )
        yield make(odd.code, message, at, help="the page of `pipegen report` shows the oddest")


def _labels(seen: Survey, at: Label) -> Iterator[Diagnostic]:
    classes = seen.classes
    if classes is None:
        return
    few = classes.nearly_empty
    if few:
        counted = ", ".join(f"{name!r} ({n})" for name, n in [*few.items()][:5])
        beside = f"beside a mean of {sum(classes.counts.values()) / len(classes.counts):,.0f} {classes.each}s"
        message = f"{count(len(few), 'class', 'classes')} of `{classes.split}` nearly empty, {beside}: {counted}"
        yield make("PG738", message, at, help="add examples, or fold such a class into another one")
    if classes.entropy < UNEVEN:
        most = max(classes.counts, key=lambda name: classes.counts[name])
        share = classes.counts[most] / max(1, sum(classes.counts.values()))
        message = f"the labels of `{classes.split}` are uneven: {share:.0%} are {most!r}, and their entropy is {classes.entropy:.2f} of 1"
        yield make("PG739", message, at, help=_UNEVEN[classes.each])
