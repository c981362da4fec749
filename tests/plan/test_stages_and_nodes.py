"""Stages and nodes as values: what they say of themselves, and that they do not change."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, is_dataclass
from typing import get_args

import pytest
from planning import built, compiled, load_spec

from pipegen.ops.stage import Stage
from pipegen.plan import nodes as n
from pipegen.plan import stages as s
from pipegen.plan.plan_rules import same_output
from pipegen.types import ElementType

TEXT = """\
transforms:
  - random_resized_crop: {size: 24}
  - random_rotation: {degrees: 10}
  - random_flip
  - random_contrast: {factor: 0.2}
  - rescale: {to: [0, 1]}
output: {channels: first, encode: {label: one_hot}}
"""

KINDS = tuple(kind for kind in vars(s).values() if isinstance(kind, type) and issubclass(kind, Stage) and is_dataclass(kind))


@pytest.mark.parametrize("kind", [*KINDS, *get_args(n.Node)], ids=lambda k: k.__name__)
def test_they_are_frozen_values_of_a_closed_set(kind: type) -> None:
    assert is_dataclass(kind)
    assert kind.__doc__
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    names = {f.name for f in fields(kind)}
    assert ("feature" if kind in KINDS else "out") in names


def test_a_plan_cannot_be_changed_in_place() -> None:
    plan = built(TEXT, classes=3)
    with pytest.raises(FrozenInstanceError):
        plan.index.order = "global"  # type: ignore[misc]
    assert plan.with_nodes(plan.nodes) == plan
    assert hash(plan.index.draws) == hash(built(TEXT, classes=3).index.draws)


def test_equal_specs_build_equal_plans() -> None:
    assert built(TEXT, classes=3) == built(TEXT, classes=3)
    assert built(TEXT, classes=3) != built(TEXT, classes=4)


def test_what_a_stage_uses_and_whether_it_draws() -> None:
    plan = compiled(built(TEXT, classes=3), load_spec(TEXT)).plan
    said = [(type(st).__name__, [r.step.op for r in st.uses()], s.is_random(st)) for st in plan.stages()]
    assert said == [
        ("DecodeWindow", ["decode", "random_resized_crop"], True),
        ("Warp", ["random_rotation", "random_flip"], True),
        ("Colour", ["random_contrast"], True),
        ("Pointwise", ["rescale"], False),
        ("ChannelsFirst", [], False),
        ("EncodeLabel", [], False),
    ]


def test_the_index_knows_every_draw() -> None:
    plan = built(TEXT, classes=3)
    used = [r for st in plan.stages() for r in st.uses() if r.num_draws]
    assert [r.id for r in plan.index.draws] == [r.id for r in used]
    assert plan.index.num_draws == sum(r.num_draws for r in used)
    assert built(TEXT, classes=3, split="validation").index.num_draws == 0, "nothing is drawn off the training split"


def test_the_ends_of_a_plan() -> None:
    plan = built(TEXT, classes=3)
    assert plan.out is plan.nodes[-1].out
    assert isinstance(plan.batch, n.Batch)
    assert plan.out["image"].shape == (3, 24, 24)
    assert plan.out["label"].shape == (3,)


def test_same_output_compares_what_the_model_receives() -> None:
    plan = built(TEXT, classes=3)

    def ending_in(out: ElementType) -> n.Plan:
        return plan.with_nodes([*plan.nodes[:-1], n.Emit(out, plan.emit.output)])

    assert same_output(plan, built(TEXT, classes=3))
    assert same_output(plan, ending_in(plan.out.replace(other=plan.out["label"]))), "nobody asks for it"
    for changes in ({"dtype": "float16"}, {"shape": (3, 24, 25)}, {"interval": None}):
        assert not same_output(plan, ending_in(plan.out.replace(image=plan.out["image"].with_(**changes))))
    assert not same_output(plan, ending_in(plan.out.without("label")))
    assert not same_output(plan, plan.with_nodes([*plan.nodes[:-1], n.Emit(plan.out, plan.emit.output.model_copy(update={"y": None}))]))
