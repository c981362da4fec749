"""Which steps a split runs: `when`, evaluation forms, ids and the layout of the vector of draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipegen.plan.stages import StepRef
from pipegen.spec.steps import step_ids

if TYPE_CHECKING:
    from pipegen.ops.base import Transform
    from pipegen.plan.stages import Path
    from pipegen.spec.models import PipelineSpec


@dataclass(frozen=True, slots=True)
class Recipe:
    """The steps of one split, in order.

    Attributes:
        steps: Each use of a step, with its place in the vector of draws.
        stand_ins: The paths of random steps whose evaluation form runs instead.
    """

    steps: tuple[StepRef, ...]
    stand_ins: frozenset[Path]


def step_path(index: int, step: Transform) -> Path:
    """Where step number `index` stands in a spec."""
    return ("transforms", index, step.op)


def runs_on(step: Transform, split: str) -> bool:
    """Whether a step acts on a split: random steps on `train` alone unless `when` says otherwise."""
    when = step.when if step.when is not None else ("train" if step.random else "all")
    if isinstance(when, list):
        return split in when
    return when == "all" or (split == "train") == (when == "train")


def recipe(spec: PipelineSpec, split: str) -> Recipe:
    """The steps that `split` runs.

    A random step that fixes the shape and has no `when` of its own is replaced, off the training split, by its
    evaluation form.
    """
    steps: list[StepRef] = []
    stand_ins: set[Path] = set()
    start = 0
    ids = step_ids(spec)
    for index, step in enumerate(spec.transforms):
        path = step_path(index, step)
        if runs_on(step, split):
            chosen: tuple[Transform, ...] = (step,)
        elif step.random and step.when is None and step.evaluation_form():
            chosen = step.evaluation_form()
            stand_ins.add(path)
        else:
            continue
        for use in chosen:
            gated = not use.handles_probability and getattr(use, "probability", 1.0) < 1.0
            ref = StepRef(use, ids[index], path, start, gated)
            steps.append(ref)
            start += ref.num_draws
    return Recipe(tuple(steps), frozenset(stand_ins))
