"""Which stages compute exactly: those whose floats a later stage rounds to whole numbers, in the plan as built and after every pass."""

from __future__ import annotations

import pytest
from planning import built, compiled, load_spec

from pipegen.ops.stage import Stage
from pipegen.passes.fold_constants import fold_constants
from pipegen.plan import stages as s
from pipegen.plan.plan_text import render_plan


def stages(steps: str, **sections: object) -> list[Stage]:
    """The stages of the training plan as built, without decoding and resizing."""
    plan = built({"transforms": [{"resize": {"size": 24}}, *steps_of(steps)], **sections}, classes=3)
    return [stage for stage in plan.stages() if not stage.one_example and stage.feature == "image"]


def steps_of(text: str) -> list[object]:
    """Steps written one after another."""
    import yaml

    found: list[object] = yaml.safe_load(f"[{text}]")
    return found


@pytest.mark.parametrize(("steps", "exact"), [
    ("{random_hue: {degrees: 30}}, equalization", "ApplyColour"),
    ("{random_hue: {degrees: 30}}, equalization, {random_hue: {degrees: 30}}, {normalize: {preset: tf}}", "ApplyColour"),
    ("{random_hue: {degrees: 30}}, {normalize: {preset: tf}}", ""),
    ("equalization, {random_gaussian_blur: {sigma: 2}}, posterization: {bits: 3}", ""),
    ("{random_hue: {degrees: 30}}, {random_gaussian_blur: {sigma: 2}}, {random_rotation: {degrees: 9}}, invert",
     "ApplyColour Neighbourhood Resample"),
    ("mixup, {random_elastic: {alpha: 9, sigma: 2}}, {random_solarization: {threshold: [0, 255]}}", "Combine Neighbourhood"),
    ("{rescale: {to: [0, 1]}}, {rescale: {to: [0, 255]}}, {cast: {dtype: uint8}}, {rescale: {to: [0, 1]}}",
     "Pointwise Pointwise Pointwise"),
    ("{standardize: {statistics: samplewise}}, {rescale: {to: [0, 255]}}, auto_contrast", "Neighbourhood Pointwise"),
    ("{random_hue: {degrees: 30}}, {cast: {dtype: float16}}", ""),
    ("{rand_augment: {num_ops: 1}}, {rand_augment: {num_ops: 1}}", "ApplyColour"),
])  # fmt: skip
def test_what_is_rounded_later_is_exact(steps: str, exact: str) -> None:
    """Neither what stands behind the last table nor bytes between two of them, and half floats not at all."""
    found = stages(steps, output={"encode": {"label": "one_hot"}})
    assert [type(stage).__name__ for stage in found if getattr(stage, "exact", False)] == exact.split()


def test_bytes_at_the_end_are_rounded_too() -> None:
    found = stages("{random_hue: {degrees: 30}}", output={"dtype": "uint8"})
    assert [stage.exact for stage in found if isinstance(stage, (s.ApplyColour, s.Pointwise))] == [True, True]


def test_passes_keep_it_and_explain_shows_it() -> None:
    steps = "{random_hue: {degrees: 30}}, {random_rotation: {degrees: 9}}, equalization, random_hue: {degrees: 9}"
    text = f"{{transforms: [{{resize: {{size: 24}}}}, {steps}]}}"
    done = compiled(built(text), load_spec(text))
    shown = [line.strip() for line in render_plan(done.plan).splitlines()]
    assert [line.endswith(", exact") for line in shown if line.startswith("image: one colour matrix")] == [True, False]
    assert [line.endswith(", exact") for line in shown if line.startswith("image: warp")] == [True]


def test_arithmetic_that_is_rounded_later_is_not_merged() -> None:
    """Two roundings and one differ in the last bit, which a rounding to whole numbers shows."""
    kept, merged = (
        built(f"{{transforms: [{{resize: {{size: 24}}}}, {{rescale: {{to: [0, 1]}}}}, {{rescale: {{to: [0, 255]}}}}, {last}]}}")
        for last in ("{cast: {dtype: uint8}}", "{cast: {dtype: float16}}")
    )
    for plan, changes in ((kept, False), (merged, True)):
        spec = load_spec("")
        done = next(r for r in compiled(plan, spec).records if r.name == fold_constants.name)
        assert done.changed == changes
