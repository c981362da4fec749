"""Findings about migrated code, the report in sections, and the page that explains each code.

A page is `rules/PG6nn.md`: a title line `# PG640 augmented-validation`, a paragraph under `## What it finds` and one under `## Why`, then
`## Before` and `## After`, each with one fenced block: `python` for a script, `notebook` for the text of an `.ipynb` file. The first yields
the finding, perhaps among others; the second is the corrected or migrated code, and does not yield it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import field, replace
from typing import Literal

from pipegen.diagnostics.catalog import Page, page_sections
from pipegen.frozen import dataclass

Kind = Literal["broken", "mistake", "meaning", "missing", "unresolved", "by hand"]


@dataclass(frozen=True)
class Rule:
    """One kind of finding."""

    code: str  # `PG6` and two digits
    name: str  # the problem in a word or three, joined by hyphens
    kind: Kind  # its section of the report
    title: str  # the problem in one sentence without a full stop


_TABLE = (
    Rule("PG601", "not-readable", "broken", "A file is not text, or nested too deeply"),
    Rule("PG602", "not-python-3", "broken", "The code is not Python 3"),
    Rule("PG603", "broken-notebook", "broken", "A file is not a valid notebook"),
    Rule("PG610", "unknown-value", "unresolved", "A value is known only at run time"),
    Rule("PG611", "unknown-data", "unresolved", "Code makes or selects the data"),
    Rule("PG612", "unknown-generator", "unresolved", "The generator or its iterator is not in the file"),
    Rule("PG613", "default-value", "unresolved", "A value is a default that the command line or the environment can change"),
    Rule("PG615", "edit-by-hand", "by hand", "Code that has to be edited by hand"),
    Rule("PG620", "other-split", "meaning", "The splits hold other rows than before"),
    Rule("PG621", "other-draws", "meaning", "A step draws from another distribution"),
    Rule("PG622", "other-batches", "meaning", "Batches or epochs differ from Keras"),
    Rule("PG623", "other-pixels", "meaning", "Pixels differ from Keras"),
    Rule("PG624", "other-classes", "meaning", "Classes or their order can differ from Keras"),
    Rule("PG625", "other-passes", "meaning", "An epoch or an evaluation was not one pass over the data"),
    Rule("PG630", "no-equivalent", "missing", "Something has no equivalent in a spec"),
    Rule("PG631", "unknown-argument", "missing", "Keras has no argument of this name"),
    Rule("PG640", "augmented-validation", "mistake", "Evaluation data is augmented too"),
    Rule("PG641", "tiny-amount", "mistake", "An angle or a shift is too small to have an effect"),
    Rule("PG642", "needless-fit", "mistake", "`fit` is called without anything to fit"),
    Rule("PG643", "never-fitted", "mistake", "Statistics are used, but never fitted"),
    Rule("PG644", "shuffled-predictions", "mistake", "Predictions are in random order"),
    Rule("PG645", "positional-argument", "mistake", "An argument of the constructor is given by position"),
    Rule("PG646", "swallowed-keyword", "mistake", "A keyword is silently ignored"),
    Rule("PG647", "text-for-boolean", "mistake", "A text is used as a boolean"),
    Rule("PG648", "normalised-twice", "mistake", "Values are normalised twice"),
    Rule("PG649", "skipped-data", "mistake", "Evaluation leaves out its last examples"),
    Rule("PG650", "odd-rescale", "mistake", "`rescale` is nearly 1/255"),
    Rule("PG651", "odd-zoom", "mistake", "The range of a zoom reaches 0"),
    Rule("PG652", "whole-pixel-shift", "mistake", "A shift is in whole pixels"),
    Rule("PG653", "width-before-height", "mistake", "Width and height are swapped"),
    Rule("PG654", "unequal-preprocessing", "mistake", "The splits are preprocessed differently"),
    Rule("PG655", "flip-probability", "mistake", "A flip is given as a probability"),
    Rule("PG656", "subset-without-split", "mistake", "A subset without a split, or a split without subsets"),
    Rule("PG657", "zipped-iterators", "mistake", "Images and masks come from two iterators"),
    Rule("PG658", "black-images", "mistake", "A change of brightness makes values in 0..1 black"),
)

RULES: dict[str, Rule] = {rule.code: rule for rule in _TABLE}  # every rule by code, in order


@dataclass(frozen=True)
class Finding:
    """One remark."""

    code: str
    line: int  # line of the code, from 1; 0 for the whole file
    message: str  # one self-contained sentence
    help: str = ""  # what to do about it, or what was done

    @property
    def kind(self) -> Kind:
        """Section of the report."""
        return RULES[self.code].kind


@dataclass
class Findings:
    """Collects findings; drops exact repeats."""

    items: dict[Finding, None] = field(default_factory=dict)

    def add(self, code: str, line: int, message: str, help: str = "") -> Finding:
        """Adds a finding, and returns it."""
        finding = Finding(code, line, message, help)
        self.items.setdefault(finding)
        return finding

    def exchange(self, old: Finding, help: str) -> None:
        """Replaces a finding by one with another help."""
        self.items = {(replace(f, help=help) if f == old else f): None for f in self.items}

    def of(self, kind: Kind) -> list[Finding]:
        """Findings of one kind, by line."""
        return sorted((f for f in self.items if f.kind == kind), key=lambda f: (f.line, f.code, f.message))


_SECTIONS: tuple[tuple[Kind, str], ...] = (
    ("broken", "could not be read"),
    ("mistake", "silent mistakes of the old code"),
    ("unresolved", "not known from the code"),
    ("missing", "without an equivalent"),
    ("by hand", "to be edited by hand"),
    ("meaning", "changes in meaning"),
)
_WIDTH = 110


def report_text(findings: Findings, place: Callable[[int], str]) -> str:
    """Renders the findings in sections, each with its line as `place` names it, such as `line 12` or `cell 3, line 2`."""
    lines: list[str] = []
    for kind, title in _SECTIONS:
        items = findings.of(kind)
        if not items:
            continue
        lines += ["", f"{title} ({len(items)})"] if lines else [f"{title} ({len(items)})"]
        for item in items:
            lines += _wrapped(f"{place(item.line)}: {item.code} {RULES[item.code].name}: {item.message}", "  ", "    ")
            if item.help:
                lines += _wrapped(item.help, "    = ", "      ")
    return "\n".join([*lines, "", "`pipegen rule CODE` explains a code"]) + "\n" if lines else "nothing to remark\n"


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)


def migration_page(code: str) -> Page:
    """Reads the page of a code from the package. Raises `KeyError` if there is no such code."""
    from importlib.resources import files

    text = (files("pipegen.migrate") / "rules" / f"{RULES[code].code}.md").read_text(encoding="utf-8")
    return Page(*page_sections(code, text, ("What it finds", "Why", "Before", "After")), text)
