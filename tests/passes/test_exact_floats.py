"""What is rounded to whole numbers has the same bits in XLA and out of it, at every batch size: a table would show the last of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from planning import built, checked, compiled, interpret, load_spec, photos, records
from strategies import steps
from test_execution import close, width_of, with_jit

from pipegen.ops.registry import transforms
from pipegen.ops.traits import Family
from pipegen.types import FeatureType, Interval

pytestmark = pytest.mark.tf

COMPOSING = (Family.COLOUR, Family.LOOKUP_TABLE, Family.GEOMETRIC, Family.NEIGHBOURHOOD, Family.COMBINING, Family.POLICY)

CASES = {
    "a table of the histogram, then a filter": "{random_contrast: {factor: 0.4}}, {random_rotation: {degrees: 20}}, "
    "{random_contrast: {factor: 0.4}}, equalization, {gaussian_blur: {sigma: 1}}, {random_hue: {degrees: 60}}",
    "floats through every family": "{random_hue: {degrees: 60}}, mixup, {random_contrast: {factor: 0.4}}, "
    "{random_gaussian_blur: {sigma: 2}}, {random_gaussian_noise: {std: 9}}, {random_sharpness: {factor: 0.9, probability: 1}}, "
    "equalization, "
    "{random_hue: {degrees: 60}}, {random_elastic: {alpha: 60, sigma: 4}}, {posterization: {bits: 3}}, {random_saturation: {factor: 0.9}}",
    "other units": "{rescale: {to: [0, 1]}}, {random_rotation: {degrees: 20, interpolation: bicubic}}, {rescale: {scale: 255}}, "
    "{cast: {dtype: uint8}}, {standardize: {statistics: samplewise}}, {rescale: {to: [0, 255]}}, {gamma: {gamma: 0.3}}, "
    "{brightness: {factor: 1.1}}, {cast: {dtype: float16}}, {random_sharpness: {factor: 0.9, probability: 0.5}}, "
    "{gaussian_blur: {sigma: 1}}, cutmix, {random_rotation: {degrees: 9}}",
}
"""Steps between a resize and a cast to bytes."""


def recipe(steps: str, dtype: str = "uint8", part: int = 1) -> str:
    """A spec of these steps whose output has this dtype; `part` is what the sides of the images are divided by."""
    resize = f"{{resize: {{size: [{224 // part}, {288 // part}]}}}}"
    return f"{{transforms: [{resize}, {steps}], output: {{dtype: {dtype}, encode: {{label: one_hot}}}}}}"


DAILY = "a table of the histogram, then a filter"
"""The case that runs by day."""


def in_and_out_of_xla(text: str, count: int = 8, part: int = 1) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the plan as built gives without XLA, and what all passes and XLA make of it."""
    plan, spec, data = built(text, classes=3), load_spec(text), records(photos(count, 240 // part, 320 // part))
    done = compiled(plan, spec)
    return interpret(plan, with_jit(spec, "never"), data), interpret(done.plan, with_jit(spec, "always"), data)


@pytest.mark.smoke
@pytest.mark.parametrize("name", [n if n == DAILY else pytest.param(n, marks=pytest.mark.nightly) for n in CASES])
def test_bytes_out_of_floats_are_the_same_in_xla(name: str, as_users: bool) -> None:
    """The smoke set, which runs beside the suite, has images of four times as many pixels."""
    part = 1 if as_users else 2
    plain, fast = in_and_out_of_xla(recipe(CASES[name], part=part), count=4 if name == DAILY else 8, part=part)
    assert plain["image"].dtype == np.uint8
    for feature, values in plain.items():
        np.testing.assert_array_equal(fast[feature], values)


@pytest.mark.nightly
def test_a_batch_of_another_size_changes_nothing() -> None:
    """Parameters and images are computed for one example, for three and for eight at a time."""
    text = recipe(CASES["a table of the histogram, then a filter"])
    spec, data = with_jit(load_spec(text), "never"), records(photos(8, 240, 320))
    plan = compiled(built(text, classes=3), spec).plan
    whole = interpret(plan, spec, data)["image"]
    for size in (1, 3):
        part = interpret(plan, spec, records(photos(8, 240, 320)[:size]))["image"]
        np.testing.assert_array_equal(part, whole[:size])


def is_composing(step: dict[str, Any]) -> bool:
    """Whether a step changes values or places of an image whose size is known, and keeps the size."""
    op = transforms()[next(iter(step))]
    image = FeatureType("image", "uint8", (224, 288, 3), Interval(0, 255))
    try:
        chosen = op.model_validate(next(iter(step.values())))
        return chosen.traits(image).family in COMPOSING and chosen.infer(image).shape == image.shape
    except Exception:  # it takes other images
        return False


@st.composite
def chains(draw: st.DrawFn) -> str:
    """A run of steps in front of a cast to bytes, or of arithmetic that ends in floats."""
    import yaml

    chosen = draw(st.lists(steps().filter(is_composing), min_size=2, max_size=7))
    dtype = draw(st.sampled_from(["uint8", "uint8", "float32"]))
    text = recipe(", ".join(yaml.safe_dump(step, default_flow_style=True).strip() for step in chosen), dtype)
    assume("train" in checked(text, classes=3).plans)
    return text


def holds_for(text: str) -> None:
    """Bytes are the same, and floats within E1 although tables stand before them."""
    plain, fast = in_and_out_of_xla(text)
    plan = built(text, classes=3)
    record = replace(compiled(plan, load_spec(text)).records[-1], rewrite_class="E0" if plain["image"].dtype == np.uint8 else "E1")
    close(record, width_of(plan, plain), plain, fast)


@pytest.mark.nightly  # by day one chain of every family is
@pytest.mark.timeout(3000)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=chains())
def test_any_chain(text: str) -> None:
    holds_for(text)
