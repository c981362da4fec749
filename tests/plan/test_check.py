"""Every split gives the model one element type (DESIGN rule 3), and each finding is made once."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from planning import checked, load_spec
from strategies import recipes

from pipegen.plan.check import possible_types

SPLITS = "splits: {parts: {train: 0.6, validation: 0.2, test: 0.2}}"


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=recipes())
def test_every_split_infers_the_same_type_or_there_is_a_finding(text: str) -> None:
    found = checked(text, classes=3)
    if found.diagnostics.has_errors:
        return
    assert set(found.plans) == {"train", "validation"}
    kinds = {tuple((name, t.dtype, t.shape) for name, t in plan.out.items()) for plan in found.plans.values()}
    assert len(kinds) == 1


@pytest.mark.parametrize(("transforms", "shown"), [
    ("[{resize: {size: 24, when: train}}, {resize: {size: 20, when: eval}}]", "24×24×3"),
    ("[{resize: {size: 24}}, {grayscale: {channels: 1, when: eval}}]", "24×24×1"),
    ("[{resize: {size: 24}}, {random_crop: {size: 20, when: train}}]", "20×20×3"),
])  # fmt: skip
def test_splits_that_differ_are_an_error(transforms: str, shown: str) -> None:
    found = checked(f"{{transforms: {transforms}, {SPLITS}}}")
    (error,) = [d for d in found.diagnostics.items if d.severity == "error"]
    assert error.code == "PG210"
    assert shown in error.message
    assert "`train`" in error.message


def test_an_output_dtype_of_one_s_own_is_the_same_on_every_split() -> None:
    found = checked(f"{{transforms: [{{resize: {{size: 24}}}}, {{cast: {{dtype: float16, when: train}}}}], {SPLITS}}}")
    assert not found.diagnostics.has_errors, "`output: {dtype}` casts at the end"
    assert {p.out["image"].dtype for p in found.plans.values()} == {"float32"}


def test_what_every_split_has_in_common_is_said_once() -> None:
    found = checked(f"{{transforms: [{{resize: {{size: 24}}}}, {{center_crop: {{size: 30}}}}], {SPLITS}}}")
    (error,) = [d for d in found.diagnostics.items if d.severity == "error"]
    assert error.code == "PG206"
    assert "split" not in error.message


def test_what_only_some_splits_have_names_them() -> None:
    found = checked(f"{{transforms: [{{resize: {{size: 24}}}}, {{center_crop: {{size: 30, when: eval}}}}], {SPLITS}}}")
    errors = [d for d in found.diagnostics.items if d.severity == "error"]
    assert [d.code for d in errors] == ["PG206"]
    assert errors[0].message.endswith("(in split `validation` and `test`)")


def test_a_random_step_and_its_stand_in_make_one_finding() -> None:
    found = checked(f"{{transforms: [{{resize: {{size: 24}}}}, {{random_crop: {{size: 30}}}}], {SPLITS}}}")
    assert [d.code for d in found.diagnostics.items if d.severity == "error"] == ["PG206"]


def test_a_missing_resize_is_one_finding_of_all_splits() -> None:
    found = checked(f"{{transforms: [random_flip], {SPLITS}}}")
    (error,) = [d for d in found.diagnostics.items if d.severity == "error"]
    assert error.code == "PG201"
    assert "splits `train` and `validation` and `test`" in error.message


def test_classes_reach_the_label() -> None:
    text = "{transforms: [{resize: {size: 8}}], output: {encode: {label: one_hot}}}"
    assert checked(text, classes=5).plans["train"].out["label"].shape == (5,)
    assert checked(text).plans["train"].out["label"].shape == (None,)


def test_a_number_of_classes_is_for_labels_that_name_none() -> None:
    features = {
        "image": {"kind": "image", "size": 8, "channels": 3, "bits": 8},
        "named": {"kind": "label", "classes": ["a", "b"]},
        "label": {"kind": "label"},
    }
    spec = load_spec(source={"arrays": {"features": features}})
    (plain,), (known,) = possible_types(spec), possible_types(spec, classes=5)
    assert [(plain[name].classes, known[name].classes) for name in features] == [(None, None), (2, 2), (None, 5)]
