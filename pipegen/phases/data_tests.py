"""Runs the tests of a spec on its data, as far as that goes without TensorFlow."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pipegen.data.testing import Chosen, DataTestResult, ListedData, choose, listed_outcome, result_of
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.memory import threads
from pipegen.ops.data_test import Copies, DataTest, Outcome
from pipegen.ops.datatests.python import Python
from pipegen.phases.compilation import of_first_view
from pipegen.phases.specs import BoundSpec, Spec
from pipegen.phases.user_functions import find_functions
from pipegen.plan.check import known_of


@dataclass(frozen=True)
class Run:
    """A run of tests; `results` has the results so far, by the test's index in the spec."""

    bound: BoundSpec
    data: ListedData
    results: dict[int, DataTestResult]

    def done(self, chosen: Chosen, outcome: Outcome | OpError, seconds: float) -> None:
        """Adds the result of a test, or the error for which it could not run."""
        self.results[chosen.index] = result_of(chosen, outcome, seconds, self.bound.spec.loaded.locate.label)


def begin(bound: BoundSpec, progress: Callable[[int], None] | None = None, results: dict[int, DataTestResult] | None = None) -> Run:
    """Begins a run, perhaps with some results; `progress` is called with the number of files looked at."""
    bound = of_first_view(bound)
    model, manifest = bound.spec.model, bound.manifest

    def copies(splits: Sequence[str], near: bool) -> tuple[Sequence[Copies], int]:
        if not near and manifest.listing.in_files:
            from pipegen.data.content import same_files

            return same_files(manifest, splits, threads(model.runtime), progress)
        from pipegen.quality.leaks import find_leaks
        from pipegen.quality.looks import look_at

        found = find_leaks(manifest, look_at(manifest, model.runtime, progress=progress), splits, model.runtime, near=near)
        pairs = [Copies(p.split, p.key, p.other_split, p.other_key, p.same, p.mirrored, p.severity) for p in found.pairs]
        return pairs, found.looked_at + (0 if near else found.bytes_only)

    data = ListedData(known_of(model, bound.plans), manifest, copies)
    return Run(bound, data, {} if results is None else results)


def run_cheap(run: Run, chosen: Sequence[Chosen]) -> list[Chosen]:
    """Runs the tests that read only the listing, and returns the others."""
    return _left(run, chosen, lambda test: listed_outcome(test, run.data))


def run_on_files(run: Run, chosen: Sequence[Chosen]) -> list[Chosen]:
    """Runs the tests that read files without TensorFlow, and returns the others."""
    return _left(run, chosen, lambda test: test.run(run.data) if test.reads == "files" else None)


def _left(run: Run, chosen: Sequence[Chosen], outcome_of: Callable[[DataTest], Outcome | None]) -> list[Chosen]:
    """Runs tests in order; returns those without an outcome, which read more."""
    left = []
    for each in chosen:
        start = time.perf_counter()
        try:
            outcome: Outcome | OpError | None = outcome_of(each.test)
        except OpError as error:
            outcome = error
        if outcome is None:
            left.append(each)
        else:
            run.done(each, outcome, time.perf_counter() - start)
    return left


def cheap_results(bound: BoundSpec) -> list[DataTestResult]:
    """Runs the tests of a spec that read only the listing, for commands that list the data anyway."""
    if not bound.spec.model.tests:
        return []
    run = begin(bound)
    run_cheap(run, choose(bound.spec.model))
    return [run.results[index] for index in sorted(run.results)]


def with_test_functions(spec: Spec, chosen: Sequence[Chosen], allowed: tuple[str, ...]) -> list[Chosen]:
    """Gives tests the functions that they call; raises `SpecError` as `phases.user_functions.with_functions`."""
    calls = {each.index: (each.test, each.path) for each in chosen if isinstance(each.test, Python)}
    found = find_functions(calls, spec, allowed)
    return [Chosen(c.index, c.id, c.test.with_callee(found[c.index])) if isinstance(c.test, Python) else c for c in chosen]
