"""`transforms` as a map: edits of a base's steps, which keep their draws, with every value where it stands."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from spec_helpers import codes, fixed, marked, only

from pipegen.cli.show import resolved_json, resolved_yaml
from pipegen.phases.specs import Spec
from pipegen.spec.json_schema import json_schema
from pipegen.spec.load import Loaded, load
from pipegen.spec.spec_hash import spec_hash
from pipegen.spec.step_list import every_id, ids_of

BASE = """\
pipegen: 1
params:
  size: {type: int, default: 224}
source: {image_folder: {path: data}}
transforms:
  - resize: {size: $size}
  - random_flip
  - random_flip: {axis: vertical}
  - one_of:
      id: tints
      steps:
        - random_hue: {degrees: 5}
        - random_hue: {degrees: 15}
        - random_saturation: {factor: 0.2}
  - random_rotation: {degrees: 5, id: turn}
  - rescale: {to: [0, 1]}
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.pipegen.yaml").write_text(BASE)
    return tmp_path


def over(edits: str, *, extends: str = "base", name: str = "mine", **kwargs: Any) -> Loaded:
    Path(f"{name}.pipegen.yaml").write_text(f"extends: {extends}.pipegen.yaml\ntransforms:\n{edits}")
    return load(f"{name}.pipegen.yaml", env={}, **kwargs)


def steps(loaded: Loaded) -> list[tuple[str, str]]:
    """The id and the word of each step, those inside steps too."""
    assert loaded.spec is not None, loaded.diagnostics.items
    return [(step_id, str(path[-1])) for path, step_id in every_id(loaded.spec.transforms)]


def ids(loaded: Loaded) -> list[str]:
    assert loaded.spec is not None, loaded.diagnostics.items
    return list(ids_of(loaded.spec.transforms))


def show(loaded: Loaded) -> Spec:
    assert loaded.spec is not None
    return Spec(loaded.spec, loaded, {}, loaded.diagnostics, {})


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ("  {}", "resize random_flip random_flip#2 tints turn rescale"),
        ("  remove: [random_flip]", "resize random_flip#2 tints turn rescale"),
        ("  remove: [turn, 'random_flip#2']", "resize random_flip tints rescale"),
        (
            "  before: {random_flip: [random_flip, grayscale]}",
            "resize random_flip#3 grayscale random_flip random_flip#2 tints turn rescale",
        ),
        ("  after: {resize: [random_flip]}\n  remove: [random_flip]", "resize random_flip random_flip#2 tints turn rescale"),
        ("  after: {random_flip: [grayscale]}\n  remove: [random_flip]", "resize grayscale random_flip#2 tints turn rescale"),
        ("  append: [random_flip, {random_flip: {id: last}}]", "resize random_flip random_flip#2 tints turn rescale random_flip#3 last"),
        ("  replace: {random_flip: {random_flip: {axis: both}}}", "resize random_flip random_flip#2 tints turn rescale"),
        ("  replace: {random_flip: {random_hue: {degrees: 5}}}", "resize random_hue random_flip#2 tints turn rescale"),
        ("  replace: {turn: {random_shear: {degrees: 5}}}", "resize random_flip random_flip#2 tints turn rescale"),
        ("  replace: {turn: {random_shear: {degrees: 5, id: own}}}", "resize random_flip random_flip#2 tints own rescale"),
        ("  set: {random_flip: {axis: both}, turn: {degrees: 3}}", "resize random_flip random_flip#2 tints turn rescale"),
        ("  set: {'random_flip#2': {axis: both}}\n  remove: [random_flip]", "resize random_flip#2 tints turn rescale"),
        ("  before: {turn: [random_grayscale]}\n  after: {turn: [grayscale]}", None),
    ],
)
def test_steps_that_stay_keep_their_ids(files: Path, edits: str, expected: str | None) -> None:
    wanted = expected or "resize random_flip random_flip#2 tints random_grayscale turn grayscale rescale"
    assert ids(over(edits)) == wanted.split()


def test_a_step_inside_a_step_is_edited_too(files: Path) -> None:
    loaded = over("  remove: [tints/random_hue]\n  after: {tints/random_saturation: [random_hue: {degrees: 3}]}")
    inner = [("tints/random_hue#2", "random_hue"), ("tints/random_saturation", "random_saturation"), ("tints/random_hue", "random_hue")]
    assert steps(loaded)[4:7] == inner
    assert [str(loaded.locate.origin(("transforms", 3, "one_of", "steps", i, "random_hue", "degrees"))) for i in (0, 2)] == [
        "base.pipegen.yaml:13:33",
        "mine.pipegen.yaml:4:59",
    ]


def test_every_value_stands_where_it_was_written(files: Path) -> None:
    loaded = over("  remove: [random_flip]\n  replace: {resize: {resize: {size: $size, method: nearest}}}\n  append: [grayscale]")
    origins = resolved_json(show(loaded))["origins"]
    assert origins["transforms[0].resize.method"] == "mine.pipegen.yaml:4:52"
    assert origins["transforms[0].resize.size"] == "base.pipegen.yaml:3:30", "the param's default"
    assert origins["transforms[1].random_flip.axis"] == "base.pipegen.yaml:8:25"
    assert origins["transforms[1].random_flip.id"] == "base.pipegen.yaml:8:5", "the step that it was counted for"
    assert origins["transforms[3].random_rotation.degrees"] == "base.pipegen.yaml:15:32"
    again = load("again", text=resolved_yaml(show(loaded)), env={})
    assert again.spec is not None
    assert loaded.spec is not None
    assert spec_hash(again.spec) == spec_hash(loaded.spec)
    assert "id: 'random_flip#2'" in resolved_yaml(show(loaded))


def test_findings_about_steps_that_moved_point_to_their_files(files: Path) -> None:
    Path("base.pipegen.yaml").write_text(BASE.replace("axis: vertical", "axis: upwards"))
    loaded = over("  remove: [random_flip]\n  append: [{resize: {siz: 3}}]")
    assert [(d.code, str(d.span)) for d in loaded.diagnostics] == [
        ("PG105", "base.pipegen.yaml:8:25"),
        ("PG102", "mine.pipegen.yaml:4:22"),
    ]


def test_levels_edit_what_is_below_them(files: Path) -> None:
    over("  remove: [random_flip]\n  append: [{random_hue: {degrees: 4}}]", name="mid")
    loaded = over("  replace: {random_hue: {random_hue: {degrees: 9}}}\n  remove: ['random_flip#2']", extends="mid")
    assert ids(loaded) == ["resize", "tints", "turn", "rescale", "random_hue"]
    unknown = over("  remove: [random_flip]", extends="mid", name="wrong")
    assert only(unknown).code == "PG121", "the level in between has removed it"
    listed = over("  - resize: {size: 24}", extends="mid", name="list")
    assert ids(listed) == ["resize"], "a list still replaces all"


def test_edits_of_their_own_file_go_over_any_base(files: Path) -> None:
    Path("colour.pipegen.yaml").write_text("transforms: {remove: [random_flip], append: [random_grayscale]}\n")
    Path("mine.pipegen.yaml").write_text("extends: [base.pipegen.yaml, colour.pipegen.yaml]\ntransforms: {remove: [tints]}\n")
    assert ids(load("mine.pipegen.yaml", env={})) == ["resize", "random_flip#2", "turn", "rescale", "random_grayscale"]
    Path("mine.pipegen.yaml").write_text("extends: [base.pipegen.yaml, missing.yaml]\ntransforms: {remove: [theirs]}\n")
    assert codes(load("mine.pipegen.yaml", env={})) == ["PG110"], "the step may be that of the base that is not there"


def test_values_from_outside_reach_edited_steps(files: Path) -> None:
    loaded = over("  remove: [random_flip]", overrides={"transforms.random_flip#2.axis": "both", "size": "48"}, overrides_from="--set")
    assert loaded.spec is not None
    assert loaded.spec.transforms[1].axis == "both"  # type: ignore[attr-defined]
    assert loaded.spec.transforms[0].size == 48  # type: ignore[attr-defined]


def test_arguments_are_set_and_the_others_stay(files: Path) -> None:
    """Of a word, of a step with arguments, and of one inside another; a base of a base may set them, too."""
    loaded = over("  set: {random_flip: {probability: 0.1}, turn: {fill: nearest}, tints/random_hue: {degrees: $size}}")
    assert loaded.spec is not None
    _, flip, _, _, turn, _ = (step.model_dump() for step in loaded.spec.transforms)
    assert (flip["axis"], flip["probability"]) == ("horizontal", 0.1)
    assert (turn["degrees"], turn["fill"], turn["id"]) == (5, "nearest", "turn")
    assert [step.degrees for step in loaded.spec.transforms[3].steps[:2]] == [224, 15]  # type: ignore[attr-defined]
    origins = resolved_json(show(loaded))["origins"]
    assert origins["transforms[1].random_flip.probability"] == "mine.pipegen.yaml:3:36"
    assert origins["transforms[4].random_rotation.degrees"] == "base.pipegen.yaml:15:32"
    Path("mine.pipegen.yaml").rename("base2.pipegen.yaml")
    twice = over("  set: {turn: {degrees: 9}}", extends="base2", name="last")
    assert twice.spec is not None
    assert twice.spec.transforms[4].model_dump() == turn | {"degrees": 9}
    sets = load("base.pipegen.yaml", env={}, overrides={"transforms.set": "{turn: {degrees: 9}}"}, overrides_from="--set")
    assert sets.spec is not None
    assert sets.spec.transforms[4].degrees == 9  # type: ignore[attr-defined]


def test_a_wrong_value_of_a_word_stands_where_it_was_set(files: Path) -> None:
    loaded = over("  set: {random_flip: {axis: up}}")
    assert (only(loaded).code, marked(only(loaded), loaded)) == ("PG105", "up")


def test_edits_from_outside(files: Path) -> None:
    sets = {"transforms.random_flip#2.axis": "both", "transforms.remove": "[random_flip]", "transforms.append": "[grayscale]"}
    loaded = load("base.pipegen.yaml", env={}, overrides=sets, overrides_from="--set")
    assert ids(loaded) == ["resize", "random_flip#2", "tints", "turn", "rescale", "grayscale"]
    assert loaded.locate.origin(("transforms", 1, "random_flip", "axis")) == "--set transforms.random_flip#2.axis=both"
    assert loaded.locate.origin(("transforms", 5)) == "--set transforms.append=[grayscale]"
    python = load("base.pipegen.yaml", env={}, overrides={"transforms": {"remove": ["turns"]}})
    assert only(python).message.startswith("overrides={'transforms': {'remove': ['turns']}}: the base has no step with the id `turns`")


def test_a_map_of_python_edits_a_file(files: Path) -> None:
    loaded = load({"extends": "base.pipegen.yaml", "transforms": {"remove": ("random_flip",)}}, env={})
    assert ids(loaded)[1] == "random_flip#2"


@pytest.mark.parametrize(
    ("edits", "code", "at", "helps"),
    [
        ("  remove: [random_flp]", "PG121", "random_flp", "did you mean `random_flip`?"),
        ("  replace: {turn#2: grayscale}", "PG121", "turn#2", "did you mean `turn`?"),
        ("  before: {xyz: [grayscale]}", "PG121", "xyz", "it has `resize`, `random_flip`, `random_flip#2`, `tints`, `tints/random_hue`"),
        ("  insert: {turn: [grayscale]}", "PG102", "insert", "the edits are `set`, `replace`, `remove`, `before`, `after` and `append`"),
        ("  remov: [turn]", "PG102", "remov", "did you mean `remove`?"),
        ("  remove: turn", "PG104", "turn", "such as `remove: [turn]`"),
        ("  remove: [3]", "PG104", "[3]", "such as `remove: [resize]`"),
        ("  replace: [turn]", "PG104", "[turn]", "such as `replace: {resize: {random_flip: {axis: both}}}`"),
        ("  before: {turn: grayscale}", "PG104", "grayscale", "begin each step with a dash"),
        ("  append: grayscale", "PG104", "grayscale", "begin each step with a dash"),
        ("  remove: [turn, turn]", "PG122", "turn", "keep one of the two"),
        ("  remove: [turn]\n  replace: {turn: grayscale}", "PG122", "turn", "keep one of the two"),
        ("  set: {turn: 3}", "PG104", "3", "such as `{turn: {probability: 0.5}}`"),
        ("  set: [turn]", "PG104", "[turn]", "such as `set: {resize: {probability: 0.5}}`"),
        ("  set: {turn: {id: other}}", "PG104", "id", "it keys the draws of the step"),
        ("  set: {tints: {steps: []}}", "PG104", "steps", "the steps inside have ids of their own"),
        ("  set: {turn: {degrees: 3}}\n  remove: [turn]", "PG122", "turn", "keep one of the two"),
        ("  set: {turn: {degrees: 3}}\n  replace: {turn: grayscale}", "PG122", "turn", "keep one of the two"),
        ("  set: {turn: {degreez: 3}}", "PG102", "degreez", "`random_rotation` takes `degrees`"),
        ("  append: [grayscal]", "PG103", "grayscal", "did you mean `grayscale`?"),
    ],
)
def test_wrong_edits(files: Path, edits: str, code: str, at: str, helps: str) -> None:
    loaded = over(edits)
    finding = only(loaded)
    assert finding.code == code
    assert marked(finding, loaded) == at
    assert any(str(line).startswith(helps) for line in finding.help), finding.help


def test_the_suggested_id_is_right(files: Path) -> None:
    loaded = over("  remove: [random_flp]")
    Path("mine.pipegen.yaml").write_text(fixed(only(loaded), loaded))
    assert codes(load("mine.pipegen.yaml", env={})) == []


def test_a_map_needs_a_base_with_steps(files: Path) -> None:
    alone = load("spec.yaml", text="pipegen: 1\nsource: {image_folder: {path: x}}\ntransforms: {append: [grayscale]}\n", env={})
    assert (only(alone).code, marked(only(alone), alone)) == ("PG120", "transforms")
    Path("bare.pipegen.yaml").write_text("pipegen: 1\nsource: {image_folder: {path: x}}\n")
    assert only(over("  append: [grayscale]", extends="bare")).code == "PG120"
    assert codes(over("  append: [grayscale]", extends="missing")) == ["PG110"], "of a base that is not there nothing is known"
    steps_as_map = over("  resize: {size: 24}\n  random_flip: {}")
    assert codes(steps_as_map) == ["PG107", "PG104"], "the list of steps is replaced, and is none"


def test_editors_know_the_map() -> None:
    schema = jsonschema.Draft202012Validator(json_schema())
    head = "extends: base.yaml\ntransforms: "
    good = "{replace: {a: random_flip}, remove: [b], before: {c: [random_flip]}, after: {d: []}, append: [{resize: {size: 3}}]}"
    assert schema.is_valid(yaml.safe_load(head + good))
    for bad in (
        "{insert: {}}",
        "{remove: a}",
        "{append: [random_flp]}",
        "{before: {a: random_flip}}",
        "{replace: {a: {resize: {siz: 3}}}}",
    ):
        assert not schema.is_valid(yaml.safe_load(head + bad)), bad
    assert not schema.is_valid(yaml.safe_load("pipegen: 1\nsource: {image_folder: {path: x}}\ntransforms: {append: [random_flip]}"))


def test_any_edits_do_what_a_plain_list_would(files: Path) -> None:
    """Against the plainest reading of the words: each step that stays has its id, its arguments and its turn."""
    dice = random.Random(5)
    whole = {"random_flip": 1, "random_flip#2": 2, "random_flip#3": 3, "a": 4, "random_hue": 5}
    lines = [f"  - {name.partition('#')[0] if name != 'a' else 'random_flip'}: " for name in whole]
    arguments = [{"probability": 0.1 * i} | ({"id": "a"} if n == "a" else {}) for n, i in whole.items()]
    arguments[4] = {"degrees": 5}
    text = "".join(line + yaml.safe_dump(given, default_flow_style=True) for line, given in zip(lines, arguments, strict=True))
    Path("base.pipegen.yaml").write_text(f"pipegen: 1\nsource: {{image_folder: {{path: x}}}}\ntransforms:\n{text}")
    for _ in range(30):
        removed = dice.sample(sorted(whole), dice.randrange(4))
        beside = {key: {name: ["random_flip"] * dice.randrange(3) for name in dice.sample(sorted(whole), 2)} for key in ("before", "after")}
        edits = {"remove": removed, **beside, "append": ["random_flip"] * dice.randrange(3)}
        loaded = load({"extends": "base.pipegen.yaml", "transforms": edits}, env={})
        assert loaded.spec is not None
        expected: list[str | None] = []
        for name in whole:
            expected += [None] * len(edits["before"].get(name, ()))
            expected += [name] * (name not in removed)
            expected += [None] * len(edits["after"].get(name, ()))
        expected += [None] * len(edits["append"])
        found = ids_of(loaded.spec.transforms)
        assert [name if name in whole and name not in removed else None for name in found] == [
            got if want is None and got not in removed and got in whole else want for want, got in zip(expected, found, strict=True)
        ]
        assert len(set(found)) == len(found)
        given = {
            name: step.model_dump()["probability"]
            for name, step in zip(found, loaded.spec.transforms, strict=True)
            if step.op != "random_hue"
        }
        for name in set(whole) - set(removed) - {"random_hue"}:
            assert given[name] == pytest.approx(0.1 * whole[name])
