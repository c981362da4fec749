"""The section `stages`: what a stage may say, what is wrong with it, and what it means for the hash and for other commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from spec_helpers import other_numbers

from pipegen.cli.show import resolved_json, resolved_yaml
from pipegen.phases.compilation import inspect
from pipegen.spec.changes import meaning_changes
from pipegen.spec.models import Stretch
from pipegen.spec.spec_hash import meaning
from pipegen.views.explanation import explain_json, stage_rows, stages_text

if TYPE_CHECKING:
    from pipegen.phases.specs import Inspection, Spec

BASE: dict[str, Any] = {
    "pipegen": 1,
    "params": {"size": {"type": "int", "default": 224, "max": 512}, "strength": {"type": "float", "default": 0.2}},
    "source": {"image_folder": {"path": "photos"}},
    "splits": {"parts": {"train": 0.8, "validation": 0.2}},
    "transforms": [{"resize": {"size": "$size"}}, {"random_brightness": {"factor": "$strength"}}, {"rescale": {"to": [0, 1]}}],
    "stages": [{"epochs": 5, "params": {"size": 128}, "batch": 128}, {"epochs": 10}],
}


def look(**own: Any) -> Inspection:
    """As it is read from a file."""
    return inspect("spec.yaml", text=yaml.safe_dump({**BASE, **own}, sort_keys=False, default_flow_style=None))


def spec(**own: Any) -> Spec:
    found = look(**own)
    assert found.spec is not None, list(found.diagnostics)
    return found.spec


def codes(found: Inspection) -> list[str]:
    return [d.code for d in found.diagnostics]


def test_a_stage_is_the_spec_with_its_own_values() -> None:
    whole = spec()
    first, last = whole.stages
    assert whole.stages[0].warnings.items == []
    assert [(s.model.transforms[0].size, s.model.batch.size) for s in (whole, first, last)] == [(224, 32), (128, 128), (224, 32)]
    assert [s.model.stretch for s in (whole, first, last)] == [Stretch(), Stretch(0, 5, 0), Stretch(5, 15, 0)]
    assert first.plans["validation"].out["image"].shape == (128, 128, 3)
    assert first.loaded.locate.origin(("transforms", 0, "resize", "size")).startswith("spec.yaml:16:")
    assert first.loaded.locate.origin(("batch", "size")).startswith("spec.yaml:17:")
    assert first.alone().model.stretch == Stretch()


def test_a_slip_of_a_key_is_none_of_keras_words() -> None:
    (finding,) = look(stages=[{"epoch": 5}]).diagnostics
    assert finding.help[0] == "did you mean `epochs`?"
    assert finding.fix is not None


def test_epochs_of_so_many_steps_go_on_where_the_stage_before_ends() -> None:
    stages = spec(epoch={"steps": 10}, stages=[{"epochs": 2, "batch": 64}, {"epochs": 3}, {"epochs": 1, "batch": 8}]).stages
    assert [s.model.stretch.examples for s in stages] == [0, 2 * 10 * 64, 2 * 10 * 64 + 3 * 10 * 32]


def test_values_from_outside_go_to_the_spec_and_into_stages() -> None:
    found = inspect(BASE, params={"size": 200}, overrides={"stages[1].epochs": 3, "stages[0].params.strength": 0.5, "batch.size": 7})
    assert found.spec is not None
    first, last = found.spec.stages
    assert (first.model.transforms[0].size, last.model.transforms[0].size) == (128, 200)
    assert (first.model.batch.size, last.model.batch.size, last.model.stretch.end) == (128, 7, 8)
    assert first.model.transforms[1].factor == 0.5


def test_a_stage_may_use_a_param() -> None:
    params = {**BASE["params"], "warm_up": {"type": "int", "default": 3}, "small": {"type": "int", "default": 96}}
    first = spec(params=params, stages=[{"epochs": "$warm_up", "params": {"size": "$small"}}, {"epochs": 1}]).stages[0]
    assert (first.model.stretch.end, first.model.transforms[0].size) == (3, 96)


@pytest.mark.parametrize(
    ("stages", "code", "words"),
    [
        ([], "PG105", "stages"),
        ([{"batch": 8}], "PG101", "needs `epochs`"),
        ([{"epochs": 0}], "PG105", "1 or more"),
        ([{"epochs": 1, "size": 128}], "PG102", "no key `size`"),
        ([{"epochs": 1, "params": {"sise": 128}}], "PG108", "unknown param `sise`"),
        ([{"epochs": 1, "params": {"size": 1024}}], "PG108", "at most 512"),
        ([{"epochs": 1, "params": {"size": "big"}}], "PG108", "a whole number"),
        ([{"epochs": 1, "params": {"size": "$nothing"}}], "PG106", "not declared"),
        ([{"epochs": 1, "batch": {"size": 8}}], "PG104", "batch"),
    ],
)
def test_what_is_wrong_with_a_stage_is_said_of_the_stage(stages: Any, code: str, words: str) -> None:
    found = look(stages=stages)
    assert codes(found) == [code]
    (finding,) = found.diagnostics
    assert words in finding.message
    assert finding.labels[0].path.startswith("stages")
    assert found.spec is None


@pytest.mark.parametrize(
    ("own", "reached"),
    [
        ({"seed": "$n"}, "seed"),
        ({"splits": {"parts": {"train": 0.8, "validation": 0.2}, "seed": "$n"}}, "splits"),
        ({"source": {"image_folder": {"path": "photos-$n"}}}, "source"),
        ({"errors": {"exclude": "bad-$n.txt"}}, "errors.exclude"),
    ],
)
def test_what_stages_share_is_out_of_their_reach(own: dict[str, Any], reached: str) -> None:
    params = {**BASE["params"], "n": {"type": "int", "default": 0}}
    found = look(**own, params=params, stages=[{"epochs": 1, "params": {"n": 1}}, {"epochs": 1}])
    assert codes(found) == ["PG560"]
    assert f"changes `{reached}`" in found.diagnostics.items[0].message
    assert codes(look(**own, params=params)) == [], "the same without the stage's value"


def test_a_mistake_that_only_a_stage_makes_names_it() -> None:
    crop = {
        "params": {"size": {"type": "int", "default": 100}},
        "transforms": [{"resize": {"size": 150}}, {"random_crop": {"size": "$size"}}],
    }
    assert codes(look(**crop)) == []
    found = look(**crop, stages=[{"epochs": 1, "params": {"size": 160}}, {"epochs": 1}])
    assert codes(found) == ["PG206"]
    (finding,) = found.diagnostics
    assert [label.text for label in finding.labels][-1] == "in stage 0"
    assert finding.labels[-1].path == "stages[0]"


def test_training_ends_as_evaluation_goes_on() -> None:
    found = look(stages=[{"epochs": 1}, {"epochs": 1, "params": {"size": 160}}])
    assert codes(found) == ["PG562"]
    assert "160×160×3 float32" in found.diagnostics.items[0].message
    assert found.spec is not None


def test_stages_are_of_training() -> None:
    assert "PG561" in codes(look(splits={"parts": {"validation": 0.5, "test": 0.5}}))


def test_the_hash_covers_what_stages_come_to() -> None:
    plain, staged = spec(), spec(stages=[{"epochs": 5, "params": {"size": 128}, "batch": 128}, {"epochs": 10, "params": {"size": 224}}])
    assert plain.hash == staged.hash, "a value that holds anyway"
    without = {key: value for key, value in BASE.items() if key != "stages"}
    alone = inspect(without).spec
    assert alone is not None
    others = [
        alone.hash,
        spec(stages=[{"epochs": 6, "params": {"size": 128}, "batch": 128}, {"epochs": 10}]).hash,
        spec(stages=[{"epochs": 5, "params": {"size": 128}}, {"epochs": 10}]).hash,
        spec(stages=[{"epochs": 5, "params": {"size": 128, "strength": 0.1}, "batch": 128}, {"epochs": 10}]).hash,
    ]
    assert len({plain.hash, *others}) == 5
    assert spec(runtime={"threads": 2}).hash == plain.hash


def test_a_difference_is_said_of_the_stage() -> None:
    a = meaning(spec().model)
    b = meaning(spec(stages=[{"epochs": 5, "params": {"size": 160}, "batch": 128}, {"epochs": 12}]).model)
    assert other_numbers(json.loads(json.dumps(a)), b) == [
        "stages[0].transforms.resize.size: 128 → 160",
        "stages[1].epochs: 10 → 12",
    ]
    changes, _ = meaning_changes(a, b)
    assert [(change.kind, change.path[:2], change.splits) for change in changes] == [
        ("numbers", ("stages", 0), "train"),
        ("numbers", ("stages", 1), "train"),
    ]


@pytest.mark.parametrize("sets", [{}, {"size": 192}, {"strength": 0.4}])
def test_what_show_prints_is_the_same_spec(sets: dict[str, Any]) -> None:
    found = inspect(BASE, params=sets)
    assert found.spec is not None
    again = inspect("shown.yaml", text=resolved_yaml(found.spec))
    assert again.spec is not None, list(again.diagnostics)
    assert again.spec.hash == found.spec.hash
    shown = resolved_json(found.spec)["spec"]
    assert (shown["transforms"][0]["resize"]["size"], shown["params"]["size"]["default"]) == ("$size", sets.get("size", 224))


def test_stages_in_words() -> None:
    model = spec().model
    assert stage_rows(model) == [
        ("stage 0", "epochs 0 to 4", "size 128, batch 128"),
        ("stage 1", "epochs 5 to 14", "as written"),
    ]
    assert "stage 1  epochs 5 to 14  as written\n\n" in stages_text(model)
    assert explain_json(model, {})["stages"][1] == {"initial_epoch": 5, "epochs": 10, "params": {}, "batch": None}
    assert stages_text(spec().stages[0].model) == ""
