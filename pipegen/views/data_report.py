"""The page of `pipegen report`: classes, splits, samples, copies with both images, oddities, sizes and statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipegen.data.rounding import spread
from pipegen.data.verdict import class_counts, shown_label
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.page import Html, Page, bar, element, folded, page, picture, table
from pipegen.quality.looks import SEEN, Pictures, preview_of
from pipegen.quality.survey import FEW, UNEVEN, Survey, said
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from pipegen.phases.specs import Spec

_SIDE = 112
_SAMPLES, _CLASSES, _ODDEST, _PAIRS = 5, 60, 10, 60
"""Maximal numbers on a page: images of a class, classes, images of each oddity, and pairs; about 3 MB in all."""
_STYLE = """
.row { display: flex; flex-wrap: wrap; gap: .6rem; align-items: flex-start; margin: .3rem 0 1rem; }
.row figure, .pair figure { width: 7.4rem; }
.row figcaption, .pair figcaption { font-size: .78em; line-height: 1.3; margin-top: .2rem; }
.row img, .pair img { outline: 1px solid var(--line); }
.pairs { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: .8rem; }
.pair { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .6rem .7rem; }
.pair div { display: flex; gap: .7rem; margin-bottom: .3rem; }
.pair p { font-size: .85em; margin: 0; }
nav { margin: .8rem 0; }
"""


def data_report(spec: Spec, seen: Survey, findings: Sequence[Diagnostic]) -> Page:
    """Makes the page from the survey of a spec's data and its findings."""
    made, manifest = _Report(seen, findings), seen.manifest
    name = spec.model.name or "unnamed"
    counts = ", ".join(f"{manifest.num_examples(split):,} in {split}" for split in manifest.splits)
    sections = {
        "Findings": made.found(),
        "Splits and classes": made.splits(),
        "Samples": made.samples(),
        "Copies in two splits": made.copies(),
        "Repeats in one split": made.repeats(),
        "Oddities": made.odd(),
        "Sizes": made.sizes(),
        "Statistics": made.statistics(),
    }
    anchors = {title: title.lower().replace(" ", "-") for title, parts in sections.items() if parts}
    links = [element("a", title, href=f"#{anchor}", class_="chip") for title, anchor in anchors.items()]
    body = [part for title, anchor in anchors.items() for part in (element("h2", title, id=anchor), *sections[title])]
    total = f"{spec.model.source.op}: {sum(map(manifest.num_examples, manifest.splits)):,} examples, {counts}"
    head = [element("h1", f"The data of {name}"), element("p", total, class_="quiet"), element("nav", *links)]
    return page(f"{name}: data", *head, *body, style=_STYLE)


class _Report:
    """The sections of the page."""

    def __init__(self, seen: Survey, findings: Sequence[Diagnostic]) -> None:
        self._seen, self._findings = seen, findings
        self._manifest = seen.manifest
        self._pictures = Pictures(self._manifest)
        self._keys, self._labels = self._manifest.every_key, self._manifest.every_label
        self._looks = seen.looks[seen.looks["state"] == SEEN]

    def _figure(self, record: int, *words: str) -> Html:
        """Makes a thumbnail of a record with its name, class and other words."""
        key = self._keys[record]
        label = "" if self._labels is None or self._labels[record] < 0 else self._manifest.class_names[int(self._labels[record])]
        shown = preview_of(self._pictures, record, _SIDE)
        alt = f"{key}{f', class {label}' if label else ''}"
        image = element("p", "cannot be shown", class_="quiet") if shown is None else picture(shown[0], alt, shown[1], shown[2])
        parts = [part for word in (label, *words) if word for part in (element("br"), word)]
        return element("figure", image, element("figcaption", element("code", key), *parts))

    def found(self) -> list[Html]:
        rows = [[_severity(d.severity.value), d.code, d.message] for d in self._findings]
        return [table(("", "Code", "Finding"), rows) if rows else element("p", "No findings.")]

    def splits(self) -> list[Html]:
        splits = self._manifest.splits
        label = shown_label(self._manifest)
        found = {split: class_counts(self._manifest, split, label, main=label is None) for split in splits}
        totals = [f"{self._manifest.num_examples(split):,}" for split in splits]
        parts = [table(("", *splits), [["examples", *totals]], range(1, len(splits) + 1))]
        counted = {split: of.counts for split, of in found.items() if of is not None}
        names = next((of.names for of in found.values() if of is not None), ())
        if not counted or not names:
            return parts
        if label is not None:
            each = next((of.each for of in found.values() if of is not None and of.total), "example")
            parts.append(element("p", f"{each.capitalize()}s of each class, by `{label}`:"))
        most = max(1, *(max(counts) for counts in counted.values()))
        first = next(iter(counted))
        rows = [
            [name, *(f"{counted[split][i]:,}" for split in counted), bar(counted[first][i] / most, f"{counted[first][i]} in {first}")]
            for i, name in enumerate(names)
        ]
        whole = table(("Class", *counted, f"Share of {first}"), rows, range(1, len(counted) + 1))
        parts.append(whole if len(rows) <= _CLASSES else folded(f"{len(rows):,} classes", whole))
        if self._seen.classes is not None:
            entropy = self._seen.classes.entropy
            words = f"The labels of {self._seen.classes.split} have an entropy of {entropy:.2f}; equally frequent classes have 1"
            parts.append(element("p", f"{words}. Less than {UNEVEN} is a note, and so is a class with less than {FEW:.0%} of the mean."))
        return parts

    def samples(self) -> list[Html]:
        split = "train" if "train" in self._manifest.splits else self._manifest.splits[0]
        members, labels = self._manifest.numbers(split), self._manifest.labels(split)
        if not len(self._looks):
            return []
        if labels is None:
            return [element("div", *(self._figure(int(members[i])) for i in spread(len(members), 2 * _SAMPLES)), class_="row")]
        parts: list[Html] = []
        for i, name in enumerate(self._manifest.class_names[:_CLASSES]):
            own = members[labels == i].tolist()
            parts.append(element("h3", f"{name} ({len(own):,})"))
            parts.append(element("div", *(self._figure(own[i]) for i in spread(len(own), _SAMPLES)), class_="row"))
        left = len(self._manifest.class_names) - _CLASSES
        return [*parts, element("p", f"{left:,} more classes are not shown.", class_="quiet")] if left > 0 else parts

    def copies(self) -> list[Html]:
        pairs = self._seen.leaks.pairs
        if len(self._manifest.splits) < 2:
            return []
        if not pairs:
            return [element("p", f"None; compared: {self._seen.leaks.compared}.")]
        cards = []
        for p in pairs[:_PAIRS]:
            both = [self._figure(record, f"in {split}") for record, split in ((p.record, p.split), (p.other_record, p.other_split))]
            what = "the same, byte by byte" if p.same else said(p).rpartition(": ")[2]
            cards.append(element("div", element("div", *both), element("p", _severity(p.severity), f": {what}"), class_="pair"))
        more = [element("p", f"{len(pairs) - _PAIRS:,} more pairs are not shown.", class_="quiet")] if len(pairs) > _PAIRS else []
        return [element("div", *cards, class_="pairs"), *more]

    def repeats(self) -> list[Html]:
        rows = []
        for split, group in self._seen.repeats[:_ODDEST]:
            copies = f"{len(group):,} times in {split}"
            rows.append(self._figure(group[0], copies, *(self._keys[record] for record in group[1:4])))
        return [element("div", *rows, class_="row")] if rows else []

    def odd(self) -> list[Html]:
        parts: list[Html] = []
        for odd in self._seen.odd:
            parts.append(element("h3", f"{odd.name.capitalize()} ({len(odd.records):,})"))
            figures = [self._figure(int(r), words) for r, words in zip(odd.records[:_ODDEST].tolist(), odd.words, strict=False)]
            parts.append(element("div", *figures, class_="row"))
        return parts

    def sizes(self) -> list[Html]:
        if not len(self._looks):
            return []
        sizes = Counter(zip(self._looks["width"].tolist(), self._looks["height"].tolist(), strict=True))
        common = sizes.most_common(12)
        rows = [[f"{w}×{h}", f"{n:,}", bar(n / common[0][1], f"{n} images")] for (w, h), n in common]
        more = [element("p", f"{len(sizes) - 12:,} more sizes.", class_="quiet")] if len(sizes) > 12 else []
        return [table(("Width × height", "Images", ""), rows, (1,)), *more]

    def statistics(self) -> list[Html]:
        rows = []
        for split in self._manifest.splits:
            looks = self._seen.looks[self._manifest.numbers(split)]
            looks = looks[looks["state"] == SEEN]
            if len(looks):
                mean = looks["means"].astype(np.float64).mean(0)
                spread = np.sqrt(np.maximum(looks["squares"].astype(np.float64).mean(0) - mean**2, 0))
                light = float(looks["brightness"].mean())
                stored = format_bytes(int(self._manifest.mean_bytes(split)))
                rows.append([split, _three(mean), _three(spread), f"{light:.0f}", f"{float(looks['contrast'].mean()):.0f}", stored])
        if not rows:
            return []
        head = ("Split", "Mean of R, G, B", "Standard deviation", "Brightness", "Contrast", "Stored size")
        words = "Of each image at 128×128 pixels, before any step; from 0 to 1, brightness and contrast (5th to 95th percentile) to 255."
        note = "`standardize` measures the training split after the steps before it."
        counts = np.histogram(self._looks["brightness"], 8, (0, 256))[0].tolist()
        bars = [[f"{32 * i} to {32 * i + 31}", f"{n:,}", bar(n / max(1, *counts), f"{n} images")] for i, n in enumerate(counts)]
        lights = [element("h3", "Brightness"), table(("Mean luma", "Images", ""), bars, (1,))]
        return [table(head, rows, (3, 4, 5)), element("p", f"{words} {note}", class_="quiet"), *lights]


def _severity(word: str) -> Html:
    return element("span", {"info": "note"}.get(word, word), class_=word)


def _three(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)
