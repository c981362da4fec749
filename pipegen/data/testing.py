"""The tests of a spec: which to run, the listed data that they see, and their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np

from pipegen.data.manifest import Manifest
from pipegen.data.shards import mix64
from pipegen.data.verdict import class_counts
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, Severity
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.data_test import ClassCounts, Copies, DataTest, ExampleTest, Failure, Known, Outcome
from pipegen.ops.kinds.base import Numbers, having
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec
from pipegen.spec.source_map import KeyPath
from pipegen.spec.step_list import ids_of
from pipegen.terminal import one_line

FindCopies = Callable[[Sequence[str], bool], tuple[Sequence[Copies], int]]
Array = np.ndarray[Any, Any]
Status = Literal["passed", "failed", "warned", "skipped"]


@dataclass(frozen=True, slots=True)
class DataTestResult:
    """The result of one test."""

    id: str  # the test's name in reports
    test: str  # the kind of test, such as `balance`
    path: str  # the test's key path in the spec, such as `tests[2].balance`
    place: str  # the test's `file:line:column` if the spec is a file, else `path`
    status: Status  # `passed`, `failed`, `warned` (failed with severity `warning`), or `skipped` (something that it needs is missing)
    seen: str  # what the test saw, in a few words; for a skipped one, why it was skipped
    seconds: float  # the time that the test took; tests that look at the same examples share their time
    findings: tuple[Diagnostic, ...] = ()  # the failures


@dataclass(frozen=True, slots=True)
class Chosen:
    """A test to run, with its index in the spec and its id."""

    index: int
    id: str
    test: DataTest

    @property
    def path(self) -> KeyPath:
        """The key path of the test."""
        return ("tests", self.index, self.test.op)


def choose(spec: PipelineSpec, select: Sequence[str] = ()) -> list[Chosen]:
    """Selects the tests whose id or kind matches a pattern, such as `range`, `range#2` or `im*`; without patterns, all. Raises
    `ValueError` for a pattern that matches no test."""
    ids = ids_of(spec.tests)
    every = [Chosen(i, test_id, test) for i, (test_id, test) in enumerate(zip(ids, spec.tests, strict=True))]
    chosen: set[int] = set()
    for pattern in select:
        found = {c.index for c in every if fnmatchcase(c.id, pattern) or c.test.op == pattern}
        if not found:
            near = closest(pattern, dict.fromkeys((*ids, *(test.op for test in spec.tests))))
            hint = f"did you mean {near!r}?" if near else f"the tests are {', '.join(ids)}" if ids else "the spec has none"
            raise ValueError(f"no test matches {pattern!r}; {hint}")
        chosen |= found
    return [c for c in every if not select or c.index in chosen]


class ListedData:
    """The listed data as tests see it; `find_copies` reads the files of splits for `copies`."""

    def __init__(self, known: Known, manifest: Manifest, find_copies: FindCopies) -> None:
        self.known = known
        self.manifest = manifest
        self._find_copies = find_copies
        self._cells: dict[tuple[Manifest, str | int], Array] = {}
        self._keys: dict[str, Sequence[str]] = {}

    def num_examples(self, split: str) -> int:
        """Counts the examples of a split."""
        return self.manifest.num_examples(split)

    def keys(self, split: str) -> Sequence[str]:
        """The names of the examples of a split; for rows, their places."""
        if split not in self._keys:
            listing = self.manifest.own(split).listing
            rows = listing.in_table and listing.location.kind == "row"
            self._keys[split] = self.manifest.files(split) if rows else self.manifest.keys(split)
        return self._keys[split]

    def class_counts(self, split: str, feature: str) -> ClassCounts:
        """Counts the examples of a split, or the items on them, by class; multi-label examples count once per label. Raises `PG702` if
        the label is not in the listing."""
        found = class_counts(self.manifest, split, feature, main=feature == self.known.source.class_feature(), read=True)
        if found is None:
            message = f"the labels `{feature}` are stored in the records, so they cannot be counted without reading these"
            raise OpError("PG702", message, field="feature")
        return found

    def cells(self, split: str, column: str | int) -> Sequence[str]:
        """Reads the texts of a column for the examples of a split; raises `PG702` if the data lacks the column."""
        own = self.manifest.own(split)
        if own.listing.cells is None:
            raise OpError("PG702", f"the data has no columns, so `{column}` does not exist")
        if (own, column) not in self._cells:
            try:
                self._cells[own, column] = np.array(own.listing.cells(column, ""), object)
            except OpError as error:
                raise OpError("PG702", error.message, help=error.help) from None
        return self._cells[own, column][own.numbers(split)].tolist()

    def numbers(self, split: str, feature: str) -> Array | None:
        """The values of a numeric feature held in memory, `(n, ...)`; `None` for other features."""
        if feature not in having(self.manifest.type or self.known.source.infer(), Numbers):
            return None
        return self.manifest.columns(split).get(feature)

    def files(self, split: str, feature: str) -> Sequence[str] | None:
        """The path of a feature's file for each example of a split; `None` for features without files."""
        type_ = dict(self.known.source.infer().items())
        listing = self.manifest.own(split).listing
        if feature not in type_ or not type_[feature].encoded or listing.shards is not None or feature in listing.columns:
            return None
        return self.manifest.files(split, feature)

    def copies(self, splits: Sequence[str], near: bool) -> tuple[Sequence[Copies], int]:
        """Finds pairs of copies between splits, and counts the records compared."""
        return self._find_copies(splits, near)


def result_of(chosen: Chosen, outcome: Outcome | OpError, seconds: float, locate: Locate) -> DataTestResult:
    """Makes the result of a test: of what it saw or, if it could not run, of the error, whatever its severity."""
    if isinstance(outcome, OpError):
        failure, seen = Failure(outcome.code, outcome.message, outcome.field, outcome.lines), outcome.message
        findings: tuple[Diagnostic, ...] = (_finding(chosen, failure, locate, Severity.ERROR),)
    else:
        findings, seen = tuple(_finding(chosen, failure, locate) for failure in outcome.failures), outcome.seen
    bad = any(finding.severity is Severity.ERROR for finding in findings)
    status: Status = "failed" if bad else "warned" if findings else "passed"
    label = locate(chosen.path, key=True)
    place = str(label.span) if label.span is not None else label.path
    return DataTestResult(chosen.id, chosen.test.op, label.path, place, status, one_line(seen), seconds, findings)


def _finding(chosen: Chosen, failure: Failure, locate: Locate, severity: Severity | None = None) -> Diagnostic:
    field = failure.field if failure.field in chosen.test.model_fields_set else None
    label = locate((*chosen.path, field) if field is not None else chosen.path, key=field is None)
    severity = severity or Severity("warning" if failure.doubtful else chosen.test.severity)
    return make(failure.code, failure.message, label, help=failure.help, severity=severity)


def listed_outcome(test: DataTest, data: ListedData) -> Outcome | None:
    """Runs a test that needs only the listing; `None` for others."""
    if not isinstance(test, ExampleTest):
        return test.run(data) if test.reads == "listing" else None
    splits = test.splits(data.known.splits)
    held = {split: test.in_memory(data, split) for split in splits}
    if any(values is None for values in held.values()):
        return None
    watch = test.watch(data.known)
    for split, values in held.items():
        watch.see(split, values or (), data.keys(split))
    return watch.outcome()


def pick(manifest: Manifest, split: str, sample: int | Literal["all"]) -> Array:
    """Samples the examples of a split and returns their numbers, rising: int64 `(n,)`.

    Takes the examples whose hashed ids rank first (the finaliser of SplitMix64; G. L. Steele, D. Lea, C. H. Flood, "Fast splittable
    pseudorandom number generators", 2014). So a smaller sample is a part of a larger one, and a new example displaces at most one.
    """
    count = manifest.num_examples(split)
    if sample == "all" or sample >= count:
        return np.arange(count)
    hashes = mix64(manifest.ids(split) ^ np.uint64(0x7E57_DA7A_7E57_DA7A))
    return np.sort(np.argpartition(hashes, sample - 1)[:sample])
