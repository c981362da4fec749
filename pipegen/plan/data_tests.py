"""Checks the tests of a spec without data: whether what they look at is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.diagnostics.catalog import make

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.ops.testing.base import DataTest, Known
    from pipegen.plan.nodes import Plan
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec
    from pipegen.spec.source_map import KeyPath


def check_data_tests(spec: PipelineSpec, plans: Mapping[str, Plan], locate: Locate) -> Iterator[Diagnostic]:
    """Yields what cannot work about the tests, whatever the data is; splits that do not exist are found with the other uses of splits."""
    if not spec.tests:
        return
    known = known_of(spec, plans)
    for index, test in enumerate(spec.tests):
        if set(test.splits(known.splits)) <= set(known.splits):
            for problem in test.problems(known):
                yield make(problem.code, problem.message, locate(place_of_test(index, test, problem.field)), help=problem.lines)


def known_of(spec: PipelineSpec, plans: Mapping[str, Plan]) -> Known:
    """Returns what tests may know of a spec without its data."""
    from pipegen.ops.testing.base import Known  # here, as most specs have no tests

    return Known(spec.split_names(), spec.source, {split: plan.out for split, plan in plans.items()})


def place_of_test(index: int, test: DataTest, field: str | None = None) -> KeyPath:
    """Returns the place of a test, or of one of its arguments that was given."""
    own = (field,) if field is not None and field in test.model_fields_set else ()
    return ("tests", index, test.op, *own)
