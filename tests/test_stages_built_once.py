"""Each stage of a spec checks it once, builds each plan once and runs the passes over each plan once."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pipes import RESIZE, sections
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pytest

import pipegen
from pipegen.phases.compilation import bind, collect_data, inspect, load, optimise

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEARNS = [RESIZE, {"standardize": {"statistics": "featurewise"}}]
ROWS = {"image": np.zeros([20, 6, 6, 3], np.uint8), "label": np.arange(20) % 2}
ARRAYS = {"arrays": {"features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}}


@dataclass
class Work:
    """What was done: of each kind of work, what each piece of it was done on."""

    checked: list[Any] = field(default_factory=list)
    built: list[Any] = field(default_factory=list)
    optimised: list[Any] = field(default_factory=list)

    def counts(self) -> tuple[int, int, int]:
        for done in (self.checked, self.built, self.optimised):
            assert not [a for i, a in enumerate(done) if a in done[:i]], "the same was done twice"
        return len(self.checked), len(self.built), len(self.optimised)


@contextmanager
def watched() -> Iterator[Work]:
    """Notes every check of a spec, every plan that is built, and every plan that goes through the passes."""
    from pipegen.phases import compilation
    from pipegen.plan.build import Builder

    work = Work()
    check, build, run_passes = compilation.check, Builder.build, compilation.run_passes

    def noting_check(spec: Any, locate: Any, **known: Any) -> Any:
        work.checked.append((spec, known))
        return check(spec, locate, **known)

    def noting_build(builder: Any, *given: Any) -> Any:
        work.built.append((builder.spec, builder.split, builder.type))
        return build(builder, *given)

    def noting_passes(plan: Any, chosen: Any, context: Any) -> Any:
        work.optimised.append((plan, context))
        return run_passes(plan, chosen, context)

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(compilation, "check", noting_check))
        stack.enter_context(mock.patch.object(Builder, "build", noting_build))
        stack.enter_context(mock.patch.object(compilation, "run_passes", noting_passes))
        yield work


@pytest.mark.nightly
@pytest.mark.tf
def test_a_build_checks_once_as_loaded_and_once_with_its_data(photo_folder: Path) -> None:
    with watched() as work:
        pipe = pipegen.build(sections(photo_folder, transforms=[RESIZE]))
    assert work.counts() == (2, 4, 4), "two splits, loaded and bound; then through the passes as loaded, and as they run"
    plans = pipe._plans
    with watched() as work:
        pipe.explain(all=True, before=True)
        pipe.dataset("train", epoch=1)
        pipe.steps("validation")
        repr(pipe)
    assert work.counts() == (0, 0, 0), "what a pipeline holds is not made again"
    assert pipe._plans is plans


@pytest.mark.tf
def test_data_that_says_no_more_than_the_spec_leaves_the_plans_as_they_are(photo_folder: Path) -> None:
    source = {"image_folder": {"path": str(photo_folder), "labels": "none"}}
    with watched() as work:
        pipe = pipegen.build(sections(photo_folder, source=source))
    assert work.counts() == (1, 2, 4)
    assert all(pipe._plans[split] is plan for split, plan in pipe.spec.plans.items())


@pytest.mark.tf
def test_a_step_that_learns_adds_its_measuring_and_the_plans_with_its_numbers(photo_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(photo_folder, tmp_path / "photos")
    spec = sections(tmp_path / "photos", transforms=LEARNS, runtime={"cache": {"disk": str(tmp_path / "cache")}, "jit": "never"})
    with watched() as work:
        pipegen.build(spec)
    assert work.counts() == (3, 7, 5), "the plan that measures is built and compiled once"
    with watched() as work:
        pipegen.build(spec)
    assert work.counts() == (3, 7, 4), "its numbers were kept, under a key that the plan decides"


@pytest.mark.tf
def test_arrays_are_looked_at_as_all_that_they_may_be_and_then_as_what_they_are() -> None:
    spec = {"pipegen": 1, "source": ARRAYS, "splits": {"parts": {"train": 0.5, "validation": 0.5}}, "batch": {"size": 4}}
    possible = len(load(spec).model.source.possible())
    with watched() as work:
        pipegen.build(spec, data=ROWS)
    checked, built, optimised = work.counts()
    assert (checked, optimised) == (2, 4)
    assert 4 <= built <= 2 * (possible + 1)


def test_looking_at_a_spec_runs_every_pass_once_for_each_split(photo_folder: Path) -> None:
    from pipegen.passes import PASSES

    with watched() as work:
        found = inspect(sections(photo_folder))
    assert work.counts() == (1, 2, 2)
    assert found.spec is not None
    for split, done in found.compiled.items():
        assert [record.name for record in done.records] == [p.name for p in PASSES]
        assert done.records[0].before is found.plans[split]
    with watched() as work:
        bound = bind(found.spec, collect_data(found.spec))
        assert work.counts() == (1, 2, 0)
        bind(bound.spec, bound.manifest)
    assert Counter(split for _, split, _ in work.built) == {"train": 2, "validation": 2}, "or this test would count nothing"


def test_a_wrong_spec_goes_through_no_pass(photo_folder: Path) -> None:
    with watched() as work:
        found = inspect(sections(photo_folder, transforms=["random_flip"]))
    assert found.spec is None
    assert found.compiled == {}
    assert work.counts() == (1, 2, 0)


@pytest.mark.parametrize("twice", ["check", "passes"])
def test_what_is_done_twice_is_seen(photo_folder: Path, twice: str) -> None:
    spec = load(sections(photo_folder))
    with watched() as work:
        for _ in range(2):
            if twice == "passes":
                optimise(spec.model, spec.plans["train"])
            else:
                load(sections(photo_folder))
    with pytest.raises(AssertionError, match="twice"):
        work.counts()
