"""A family of steps that pipegen has never heard of: its own file, its lowering, and one entry in the table of lowerings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from planning import compiled, interpret, load_spec, photos, records, run_plan

from pipegen.cli.reference.ops import family
from pipegen.ops.stage import Stage, StagedTransform, StepRef, only_identities, uses
from pipegen.ops.step_bases import require_image
from pipegen.plan.check import check
from pipegen.plan.cost import Circumstances, plan_cost
from pipegen.plan.nodes import Kernel
from pipegen.plan.plan_text import plan_json, render_plan
from pipegen.plan.stages import Branch

if TYPE_CHECKING:
    import tensorflow as tf

    from pipegen.backend.features import Features, Params
    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import PipelineSpec
    from pipegen.types import FeatureType

# The family's file


class RollingTransform(StagedTransform):
    """Rows that leave at the bottom come in again at the top."""

    family: ClassVar[str] = "rolling"
    random = True
    probability: float = 1.0

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        return x

    def is_identity(self, x: FeatureType) -> bool:
        return self.probability == 0

    def stage(self, feature: str, ref: StepRef[Any], x: FeatureType) -> Roll:
        return Roll(feature, (ref,))

    def rows(self, u: tf.Tensor, height: tf.Tensor) -> tf.Tensor:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Roll(Stage):
    """Moves the rows of images."""

    ns_per_value: ClassVar[float] = 3.0

    feature: str
    refs: tuple[StepRef[RollingTransform], ...]

    def uses(self) -> tuple[StepRef, ...]:
        return self.refs

    def says(self) -> str:
        return f"roll: {uses(self.refs)}"

    def leads(self) -> bool:
        return True

    def is_identity(self, x: FeatureType, y: FeatureType) -> bool:
        return only_identities(self.refs, x, y)


# A step of it


class RandomRoll(RollingTransform):
    """Moves the rows by a drawn number of them."""

    op = "random_roll"
    most: float = 0.5

    def num_draws(self) -> int:
        return 1

    def rows(self, u: tf.Tensor, height: tf.Tensor) -> tf.Tensor:
        import tensorflow as tf

        return tf.cast(u[:, 0] * self.most * tf.cast(height, tf.float64), tf.int32)


# Its lowering


def roll_params(stage: Roll, features: Features) -> Params:
    import tensorflow as tf

    from pipegen.backend.index.draws import acts, own_draws, step_of

    draws = features["@draws"]
    total = tf.zeros_like(draws[:, 0], tf.int32)
    for ref in stage.refs:
        rows = step_of(ref, draws).rows(own_draws(ref, draws), tf.shape(features[stage.feature])[1])
        total += tf.where(acts(ref, draws), rows, 0) if ref.conditional else rows
    return (total,)


def roll(_stage: Roll, value: tf.Tensor, params: Params) -> tf.Tensor:
    import tensorflow as tf

    height = tf.shape(value)[1]
    return tf.gather(value, (tf.range(height)[None] - params[0][:, None]) % height, batch_dims=1)


TEXT = """\
transforms:
  - resize: {size: 32}
  - invert
  - random_brightness: {factor: 0.2}
"""
PLACE = 1
"""The step that the new one stands in the place of: a spec finds steps by their files."""


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    from pipegen.backend.kernels.lower import LOWERINGS, Lowering

    monkeypatch.setitem(LOWERINGS, Roll, Lowering(roll, roll_params))


def spec_with(step: RollingTransform, **runtime: Any) -> PipelineSpec:
    spec = load_spec(TEXT, runtime=runtime)
    steps = [*spec.transforms[:PLACE], step, *spec.transforms[PLACE + 1 :]]
    return spec.model_copy(update={"transforms": tuple(steps)})


def plan_of(spec: PipelineSpec) -> Plan:
    found = check(spec, load_spec_place, classes=3)
    assert "train" in found.plans, [d.message for d in found.diagnostics.items]
    return found.plans["train"]


def load_spec_place(path: tuple[str | int, ...], text: str = "", *, key: bool = False) -> Any:
    from pipegen.diagnostics.diagnostic import Label

    return Label(None, text, ".".join(map(str, path)))


def test_it_is_planned_rewritten_priced_and_explained() -> None:
    spec = spec_with(RandomRoll(most=0.25))
    plan = compiled(plan_of(spec), spec).plan
    kernels = [node for node in plan.nodes if isinstance(node, Kernel)]
    stage = kernels[0].stages[0]
    assert isinstance(stage, Roll)
    assert "    image: roll: random_roll(most: 0.25)\n" in render_plan(plan)
    shown = next(st for node in plan_json(plan)["nodes"] for st in node.get("stages", ()) if st["stage"] == "Roll")
    assert shown["steps"][0]["op"] == "random_roll"
    place = plan.nodes.index(kernels[0])
    cost = plan_cost(plan, Circumstances()).nodes[place]
    assert cost.stages[0] == pytest.approx(4.0 + 3.0 * 32 * 32 * 3 / 1e3)
    assert family(RandomRoll) == "rolling"


def test_one_that_does_nothing_is_dropped() -> None:
    spec = spec_with(RandomRoll(probability=0.0))
    assert not any(isinstance(stage, Roll) for stage in compiled(plan_of(spec), spec).plan.stages())


@pytest.mark.parametrize("branches", [False, True])
def test_it_goes_behind_a_branch_where_it_says_that_it_may(branches: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Roll, "branches", branches)
    spec = spec_with(RandomRoll(probability=0.1))
    spec = spec.model_copy(update={"runtime": spec.runtime.model_copy(update={"jit": "never"})})
    plan = compiled(plan_of(spec), spec).plan
    assert any(isinstance(stage, Branch) for stage in plan.stages()) == branches
    assert ("roll: random_roll(probability: 0.1), on those examples alone" in render_plan(plan)) == branches


@pytest.mark.by_day(1)
@pytest.mark.tf
@pytest.mark.usefixtures("lowered")
@pytest.mark.parametrize(
    ("jit", "branches"),
    [pytest.param("never", False, marks=pytest.mark.nightly), pytest.param("always", False, marks=pytest.mark.nightly), ("always", True)],
)
def test_it_runs_one_by_one_and_in_batches(jit: str, branches: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Roll, "branches", branches)
    spec, data = spec_with(RandomRoll(probability=0.7), jit=jit), records(photos(8))
    built = plan_of(spec)
    apart, together = interpret(built, spec, data)["image"], interpret(compiled(built, spec).plan, spec, data)["image"]
    np.testing.assert_allclose(apart, together, atol=255e-6)
    ((first, _), *_) = run_plan(compiled(built, spec).plan, spec, data)
    assert first.shape == (8, 32, 32, 3)
    still = spec_with(RandomRoll(probability=0.0), jit=jit)
    unmoved = interpret(plan_of(still), still, data)["image"]
    moved = np.abs(unmoved - apart).max((1, 2, 3)) > 1
    assert 0 < moved.sum() < len(data)
