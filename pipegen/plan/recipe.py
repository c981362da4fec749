"""The steps that a split runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from pipegen.frozen import dataclass
from pipegen.ops.families.combining import anchor, on_split
from pipegen.ops.families.crops import sizes_differ
from pipegen.ops.registry import default_decoder
from pipegen.ops.stage import Choice, Path, Stage, StepRef
from pipegen.ops.transform import Policy, Transform, require_same_shape
from pipegen.spec.models import PipelineSpec
from pipegen.spec.step_list import ids_of
from pipegen.types import ElementType, FeatureType


@dataclass(frozen=True, slots=True)
class Recipe:
    """The steps of one split, in order."""

    steps: tuple[StepRef, ...]  # each use of a step, with its place in the vector of draws; a policy is expanded into its parts
    draws: tuple[StepRef, ...]  # the uses that draw, in the order of the vector; a policy counts as one
    stand_ins: frozenset[Path]  # the paths of random steps replaced by their evaluation form

    def beside(self, record: ElementType) -> Recipe:
        """Gives each step the form that it has beside what is aligned with the images of a record."""
        homes = {name: anchor(record, name) for name in record}

        def form(step: Transform) -> Transform:
            return step.beside([record[name] for name, home in homes.items() if home != name and step.feature in (None, home)])

        own = {id(ref.step): form(ref.step) for ref in (*self.steps, *self.draws)}
        steps, draws = (tuple(replace(ref, step=own[id(ref.step)]) for ref in refs) for refs in (self.steps, self.draws))
        return replace(self, steps=steps, draws=draws)


def step_path(index: int, step: Transform) -> Path:
    """The path of step number `index` in a spec."""
    return ("transforms", index, step.op)


def decided_by(ref: StepRef) -> tuple[StepRef, ...]:
    """A use of a step, the policy that it is a part of, and so on."""
    return (ref, *(decided_by(ref.choice.policy) if ref.choice is not None else ()))


def alternatives(ref: StepRef) -> StepRef | None:
    """The outermost policy of a crop or resize, if each example gets at most one of all steps inside it."""
    _, *policies = decided_by(ref)
    one = ref.step.only_sizes and all(policy.of(Policy).step.picks_one() for policy in policies)
    return policies[-1] if policies and one else None


def type_after(ref: StepRef, x: FeatureType) -> FeatureType:
    """The type of images of type `x` after a use of a step, also of those that it leaves as they are. Raises `OpError`."""
    y = ref.step.infer(x)
    if ref.choice is not None and not ref.step.only_sizes:
        require_same_shape(ref.step, x, y)
    if x.shape == y.shape or not ref.conditional or not ref.step.only_sizes:
        return y
    if ref.choice is None:
        raise sizes_differ(ref.step, {y.shape: ref.step, x.shape: None}, x)
    return y.with_(shape=decided_by(ref)[-1].of(Policy).step.shape_after(x))


def python_steps(stages: Iterable[Stage]) -> dict[Path, Transform]:
    """The steps of stages that call a user's Python for each example, by their paths."""
    return {ref.path: ref.step for stage in stages for ref in stage.uses() if ref.step.calls_python == "always"}


def implicit_decode() -> StepRef:
    """The use of the default decoder in front of steps that have none."""
    return StepRef(default_decoder(), "decode", ("transforms",), 0, False)


def recipe(spec: PipelineSpec, split: str, relocate: Callable[[Path], Path] = tuple) -> Recipe:
    """The steps that `split` runs; `relocate` maps the path of a step to that in the file.

    On evaluation splits, a random step that fixes the shape and has no `when` is replaced by its evaluation form.
    """
    steps: list[StepRef] = []
    draws: list[StepRef] = []
    stand_ins: set[Path] = set()
    ids = ids_of(spec.transforms)
    for index, step in enumerate(spec.transforms):
        path = relocate(step_path(index, step))
        for use in on_split(step, split):
            stand_ins |= {path} if use is not step else set()
            _add(use, ids[index], path, None, steps, draws)
    return Recipe(tuple(steps), tuple(draws), frozenset(stand_ins))


def _add(step: Transform, step_id: str, path: Path, choice: Choice | None, steps: list[StepRef], draws: list[StepRef]) -> None:
    """Adds one use of a step, or of each part of a policy, and what it draws."""
    start = draws[-1].start + draws[-1].num_draws if draws else 0
    ref = StepRef(step, step_id, path, start, step.is_gated(), choice)
    if ref.num_draws:
        draws.append(ref)
    parts = step.parts()
    if not parts:
        steps.append(ref)
    ids = ids_of(step.inner_steps(), f"{step_id}/")
    once: dict[int, StepRef] = {}
    for part in parts:
        decided = Choice(ref, part.choice) if ref.conditional or part.choice is not None else None
        if part.inner is None:
            steps.append(replace(ref, step=part.step, gated=False, choice=decided))
        elif part.inner in once:  # a possible other position of it, in a random order: it draws once
            steps.append(replace(once[part.inner], choice=decided))
        else:
            _add(part.step, ids[part.inner], (*path, "steps", part.inner, part.step.op), decided, steps, draws)
            once[part.inner] = steps[-1]
