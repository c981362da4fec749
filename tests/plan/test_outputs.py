"""What the model receives: stages that make it, for each dtype, layout and encoding. Findings stand in the golden corpus."""

from __future__ import annotations

from typing import Any

import pytest
from planning import built, checked

from pipegen.plan import stages as s
from pipegen.plan.evaluation_plans import unlabelled_plan
from pipegen.plan.nodes import Emit, Plan
from pipegen.types import Interval


def output(transforms: str = "{resize: {size: [24, 36]}}", **section: Any) -> Plan:
    """The training plan with an output section."""
    return built(f"{{transforms: [{transforms}]}}", classes=2, output=section)


def last_stages(plan: Plan, count: int) -> list[type]:
    """The classes of the last stages."""
    return [type(st) for st in plan.stages()][-count:]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_bytes_become_the_dtype_once(dtype: str) -> None:
    plan = output(dtype=dtype)
    casts = [st for st in plan.stages() if isinstance(st, s.Pointwise)]
    assert [c.arithmetic.dtype for c in casts] == [dtype]
    assert plan.out["image"].dtype == dtype
    assert plan.out["image"].interval == Interval(0, 255)


def test_bytes_stay_bytes_when_asked() -> None:
    plan = output(dtype="uint8")
    assert plan.out["image"].dtype == "uint8"
    assert not [st for st in plan.stages() if isinstance(st, s.Pointwise)]


def test_colour_comes_back_to_bytes() -> None:
    plan = output("{resize: {size: 24}}, {random_brightness: {factor: 0.2}}", dtype="uint8")
    assert last_stages(plan, 2) == [s.ApplyColour, s.Pointwise]
    assert plan.out["image"].dtype == "uint8"


def test_what_is_no_byte_is_refused() -> None:
    found = checked("{transforms: [{resize: {size: 8}}, {rescale: {to: [0, 1]}}]}", output={"dtype": "uint8"})
    assert "PG219" in [d.code for d in found.diagnostics.items]


def test_channels_first_turns_the_axes_last() -> None:
    plan = output(channels="first")
    assert plan.out["image"].shape == (3, 24, 36)
    assert last_stages(plan, 1) == [s.ChannelsFirst]


@pytest.mark.parametrize(("encoding", "dtype", "shape"), [("int", "int64", ()), ("one_hot", "float32", (2,)), ("binary", "float32", (1,))])
def test_labels(encoding: str, dtype: str, shape: tuple[int, ...]) -> None:
    label = output(encode={"label": encoding}).out["label"]
    assert (label.dtype, label.shape) == (dtype, shape)


@pytest.mark.parametrize(("x", "y"), [
    ("image", "label"), (["image"], ["label"]), ({"pixels": "image"}, {"class": "label"}), ("image", None),
])  # fmt: skip
def test_features_by_name(x: Any, y: Any) -> None:
    emit = output(x=x, y=y).nodes[-1]
    assert isinstance(emit, Emit)
    assert (emit.output.x, emit.output.y) == (x, y)


def test_a_source_without_labels_gives_images_alone() -> None:
    text = "{transforms: [{resize: {size: 8}}], source: {image_folder: {path: photos, labels: none}}}"
    emit = built(text).nodes[-1]
    assert isinstance(emit, Emit)
    assert emit.output.y is None


def test_prediction_runs_the_evaluation_steps_on_images_alone() -> None:
    from planning import load_spec

    from pipegen.diagnostics.diagnostic import Label

    spec = load_spec(
        "{transforms: [{random_resized_crop: {size: 24}}, random_flip, {normalize: {preset: tf}}], "
        "output: {encode: {label: one_hot}}, batch: {size: 8, remainder: pad}, runtime: {cache: memory}}"
    )
    plan = unlabelled_plan(spec, lambda path, text="", key=False: Label("", path=str(path), text=text))
    assert list(dict(plan.out.items())) == ["image"]
    assert [r.step.op for st in plan.stages() for r in st.uses()] == ["decode", "resize", "center_crop", "normalize"]
    assert plan.batch.remainder == "keep"
    assert plan.index.order == "stored"
    assert plan.index.num_draws == 0
