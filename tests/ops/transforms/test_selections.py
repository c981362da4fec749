"""`one_of` and `some_of`: which step an example gets, where its draws lie, and what such a block may hold."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from planning import built, checked, compiled, load_spec

from pipegen.ops.families.lookup_tables import LookupTable
from pipegen.ops.families.selections import Selection
from pipegen.ops.registry import transforms
from pipegen.plan import stages as s
from pipegen.plan.recipe import recipe
from pipegen.spec.load import load

Array = np.ndarray[Any, Any]
STEPS: list[Any] = ["random_flip", {"random_rotation": {"degrees": 30, "probability": 0.5}}, {"random_hue": {"degrees": 9, "id": "tint"}}]


def selection(name: str, **given: Any) -> Selection:
    step = transforms()[name].model_validate({"steps": STEPS, **given})
    assert isinstance(step, Selection)
    return step


def choices(step: Selection, n: int = 30_000) -> Array:
    """Which steps each of `n` examples gets: bool `(n, steps)`."""
    import tensorflow as tf

    u = tf.constant(np.random.default_rng(0).random((n, step.num_draws())))
    return np.stack([step.chosen(u, number).numpy() for number in range(len(step.steps))], -1)


@pytest.mark.tf
@pytest.mark.parametrize("weights", [None, [1, 2, 5], [0, 1, 0], [0.1, 0.1, 0.1]])
def test_one_of_does_exactly_one_by_its_weights(weights: Any) -> None:
    import tensorflow as tf

    step = selection("one_of", weights=weights)
    chosen = choices(step)
    assert (chosen.sum(-1) == 1).all()
    share = np.array([step.share(i) for i in range(3)])
    np.testing.assert_allclose(share, np.array(weights or [1, 1, 1]) / sum(weights or [1, 1, 1]))
    assert np.abs(chosen.mean(0) - share).max() < 5 * np.sqrt(0.25 / 30_000)
    edges = tf.constant([[0.0], [1 - 2.0**-53]], tf.float64)
    assert sum(step.chosen(edges, i).numpy().astype(int) for i in range(3)).tolist() == [1, 1]


@pytest.mark.tf
@pytest.mark.parametrize(("count", "sizes"), [(0, {0}), (2, {2}), ([1, 2], {1, 2}), (3, {3})])
def test_some_of_draws_every_choice_alike(count: Any, sizes: set[int]) -> None:
    """Chi-square at 5 standard deviations over the sizes and, within each, over the subsets."""
    step = selection("some_of", count=count)
    chosen = choices(step)
    codes = chosen @ (1 << np.arange(3))
    expected = {sum(1 << i for i in subset): 1 / len(sizes) for size in sizes for subset in combinations(range(3), size)}
    expected = {code: p / len([c for c in expected if c.bit_count() == code.bit_count()]) for code, p in expected.items()}
    assert set(np.unique(codes).tolist()) == set(expected)
    chi = sum(((codes == code).sum() - 30_000 * p) ** 2 / (30_000 * p) for code, p in expected.items())
    assert chi < len(expected) + 5 * (2 * len(expected)) ** 0.5
    assert chosen.mean(0) == pytest.approx([step.share(i) for i in range(3)], abs=0.02)


def blocks(body: Any, **more: Any) -> list[Any]:
    return [{"resize": {"size": 16}}, {"one_of": {"steps": body, **more}}]


def test_inner_steps_draw_for_themselves() -> None:
    """Each has an id of its own below the block's, and is a choice of it; the block draws once, in front of them."""
    chosen = recipe(load_spec(transforms=[*blocks(STEPS, probability=0.25), "random_flip", *blocks(STEPS[:2])[1:]]), "train")
    assert [r.id for r in chosen.draws] == [
        "one_of", "one_of/random_flip", "one_of/random_rotation", "tint", "random_flip", "one_of#2", "one_of#2/random_flip",
        "one_of#2/random_rotation",
    ]  # fmt: skip
    start = 0
    for ref in chosen.draws:
        assert ref.start == start
        start += ref.num_draws
    inner = [r for r in chosen.steps if r.choice is not None]
    assert [(r.id, r.choice.number) for r in inner if r.choice is not None][:3] == [
        ("one_of/random_flip", 0),
        ("one_of/random_rotation", 1),
        ("tint", 2),
    ]
    assert inner[1].path == ("transforms", 1, "one_of", "steps", 1, "random_rotation")
    assert inner[1].share == pytest.approx(0.25 / 3 * 0.5)
    assert all(r.conditional and r.is_random and r.end <= start for r in inner)


def test_families_come_in_the_order_of_a_block() -> None:
    steps: list[Any] = [{"random_hue": {"degrees": 9}}, "random_flip", "random_invert", {"random_zoom": {"factor": 0.1}}]
    plan = built(transforms=blocks(steps))
    order = [stage.uses()[0].step.op for stage in plan.stages() if stage.uses()]
    assert order[2:] == ["random_invert", "random_flip", "random_zoom", "random_hue"]
    found = compiled(plan, load_spec(transforms=blocks(steps))).plan.stages()
    assert [type(stage) for stage in found[2:]] == [LookupTable, s.Warp, s.Colour], "one warp and one matrix for all"


def test_a_block_in_a_block_is_decided_twice() -> None:
    inner = {"one_of": {"steps": ["random_flip", {"random_shear": {"degrees": 9}}], "probability": 0.5}}
    (ref,) = [r for r in recipe(load_spec(transforms=blocks([inner, "random_invert"])), "train").steps if r.step.op == "random_shear"]
    assert ref.id == "one_of/one_of/random_shear"
    assert ref.share == pytest.approx(0.5 * 0.5 * 0.5)


def test_evaluation_leaves_a_policy_out() -> None:
    spec = load_spec(transforms=[*blocks(STEPS), "rand_augment"])
    assert [r.step.op for r in recipe(spec, "validation").steps] == ["resize"]
    assert [r.step.op for r in recipe(spec, "train").steps].count("resize") == 1


SPEC = """\
pipegen: 1
source: {image_folder: {path: photos/}}
splits: {parts: {train: 0.5, validation: 0.5}}
transforms:
  - resize: {size: 32}
%s"""
TWO = "  - one_of:\n      steps:\n        - random_flip\n        - "
"""Two steps to choose from, the second of which is yet to come, on line 9."""


@pytest.mark.parametrize(("body", "code", "said", "line"), [
    (TWO + "random_crop: {size: 9}\n", "PG226", "`one_of` leaves images at 32×32 after `random_flip`, and at 9×9", 6),
    (TWO + "mixup\n", "PG226", "`one_of` cannot hold `mixup`", 9),
    (TWO + "random_flip: {when: all}\n", "PG226", "`when` of `random_flip` is decided by", 9),
    (TWO + "random_hue: {degres: 9}\n", "PG102", "has no argument `degres`", 9),
    (TWO + "random_hiu: {degrees: 9}\n", "PG103", "unknown step `random_hiu`", 9),
    (TWO + "grayscale: {channels: 1}\n", "PG226", "`grayscale` makes 32×32×1 of 32×32×3", 9),
    ("  - one_of: {steps: [random_flip]}\n", "PG105", "`one_of.steps`", 6),
    ("  - one_of: {steps: random_flip}\n", "PG104", "`one_of.steps` is a list", 6),
    ("  - one_of: {steps: [random_flip, random_flip], weights: [1]}\n", "PG105", "a number for each step: 2, not 1", 6),
    ("  - one_of: {steps: [random_flip, random_flip], weights: [0, 0]}\n", "PG105", "all 0", 6),
    ("  - some_of: {steps: [random_flip, random_flip], count: 3}\n", "PG105", "reaches 3, and there are 2 steps", 6),
    ("  - some_of: {steps: [random_flip, random_flip], count: [2, 1]}\n", "PG105", "2 is above 1", 6),
    ("  - some_of: {steps: [random_flip, {random_flip: {id: a}}], count: 1}\n  - random_flip: {id: a}\n", "PG216", "have the id `a`", 7),
])  # fmt: skip
def test_findings_point_at_the_inner_step(body: str, code: str, said: str, line: int) -> None:
    loaded = load("s.yaml", text=SPEC % body)
    found = list(loaded.diagnostics)
    if loaded.spec is not None:
        from pipegen.plan.check import check

        found += list(check(loaded.spec, loaded.locate.label).diagnostics)
    (finding,) = [f for f in found if f.severity.value == "error"]
    assert finding.code == code
    assert said in finding.message
    span = finding.labels[0].span
    assert span is not None
    assert span.line == line


def test_the_hash_covers_what_stands_inside() -> None:
    from pipegen.spec.spec_hash import spec_hash

    def of(steps: Any, **more: Any) -> str:
        return spec_hash(load_spec(transforms=blocks(steps, **more)))

    base = of(STEPS)
    assert of([{"random_flip": {"probability": 0.5}}, *STEPS[1:]]) == base, "a default that is written out"
    assert of(STEPS, weights=[2, 2, 2]) == base
    assert of([*STEPS[:2], {"random_hue": {"degrees": 10, "id": "tint"}}]) != base
    assert of(STEPS[::-1]) != base


def test_editors_see_any_step_inside() -> None:
    from pipegen.spec.json_schema import json_schema

    defs = json_schema()["$defs"]
    assert defs["OneOf"]["properties"]["steps"]["items"] == {"$ref": "#/$defs/Step"}
    assert {"one_of", "rand_augment"} <= set(defs["Step"]["anyOf"][-2]["properties"])
    assert {"LinearSchedule", "CosineSchedule", "StepSchedule", "TableSchedule", "Ramp"} <= set(defs)


def test_lints_of_an_inner_step_are_found() -> None:
    found = checked(transforms=blocks(["random_flip", {"random_rotation": {"degrees": 0.3}}])).diagnostics
    assert [f.code for f in found] == ["PG503"]
