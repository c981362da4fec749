"""Arguments of the constructor that may be others at run time: params of the spec that `build` is given, with the meaning that they had."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from pipegen.migrate.migration import Migration, migrate_code
from pipegen.migrate.reading import parse_code
from pipegen.phases.compilation import inspect

HEAD = "import argparse\nfrom tensorflow.keras.preprocessing.image import ImageDataGenerator\n"
PARSER = "p = argparse.ArgumentParser()\np.add_argument('--v', type=float, default=DEFAULT)\nargs = p.parse_args()\n"
FLOW = """train = g.flow_from_directory('d', subset='training')
val = g.flow_from_directory('d', subset='validation')
model.fit(train, validation_data=val)
"""


def migrated(code: str) -> Migration:
    return migrate_code(parse_code("train.py", (HEAD + code).encode()))


def sections(text: str, params: dict[str, Any]) -> dict[str, Any]:
    """The steps and splits of a spec with values for its params, as plain data."""
    result = inspect("train.pipegen.yaml", text=text, params=params)
    assert [d.message for d in result.diagnostics if d.severity.value == "error"] == []
    assert result.loaded.spec is not None
    return {
        "steps": [step.model_dump(mode="json") for step in result.loaded.spec.transforms],
        "splits": result.loaded.spec.splits.model_dump(mode="json") if result.loaded.spec.splits is not None else None,
    }


def rounded(value: Any) -> Any:
    """Plain data with numbers to four digits, since specs hold six."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(inner) for inner in value]
    return round(value, 4) if isinstance(value, float) else value


def given(changed: str, names: dict[str, Any]) -> dict[str, Any]:
    """What the call of `build` gives for the params."""
    found = re.search(r"params=(\{.*?\})\)", changed)
    return eval(found[1], dict(names)) if found else {}


@pytest.mark.parametrize(
    ("arguments", "default", "value"),
    [
        ("rotation_range=args.v", 10.0, 35.0),
        ("rotation_range=args.v", 0.0, 35.0),
        ("shear_range=args.v", 5.0, 12.0),
        ("channel_shift_range=args.v", 20.0, 30.0),
        ("width_shift_range=args.v", 0.1, 0.25),
        ("height_shift_range=args.v, width_shift_range=0.3", 0.0, 0.25),
        ("zoom_range=args.v", 0.2, 0.5),
        ("zoom_range=args.v", 0.0, 0.5),
        ("zoom_range=[1 - args.v, 1 + args.v]", 0.2, 0.3),
        ("brightness_range=(args.v, 1.5)", 0.5, 0.75),
        ("rescale=args.v", 0.25, 0.5),
        ("horizontal_flip=args.v", True, False),
        ("horizontal_flip=args.v", False, True),
        ("vertical_flip=args.v, horizontal_flip=True", False, True),
        ("rotation_range=2 * args.v", 3.0, 4.0),
    ],
)
def test_a_param_means_what_the_argument_meant(arguments: str, default: object, value: object) -> None:
    option = PARSER.replace("DEFAULT", repr(default))
    if isinstance(default, bool):
        option = option.replace("type=float, default=False", "action='store_true'").replace(
            "type=float, default=True", "action='store_false'"
        )
    result = migrated(f"{option}g = ImageDataGenerator({arguments}, validation_split=0.25)\n{FLOW}")
    (text,) = result.specs.values()
    params = given(result.changed, {"args": SimpleNamespace(v=value)})
    assert params
    for number, chosen in ((default, {}), (value, params)):
        fixed = migrated(f"g = ImageDataGenerator({arguments.replace('args.v', repr(number))}, validation_split=0.25)\n{FLOW}")
        (plain,) = fixed.specs.values()
        steps = [s for s in rounded(sections(text, chosen))["steps"] if not _does_nothing(s)]
        assert steps == rounded(sections(plain, {}))["steps"] or _with_own_flips(steps) == _with_own_flips(
            rounded(sections(plain, {}))["steps"]
        )
    said = [f for f in result.findings.items if f.code == "PG613"]
    assert [f.help for f in said] == ["the call of `build` gives it; the spec alone has this default"]


def _does_nothing(step: dict[str, Any]) -> bool:
    """Whether a step draws nothing but zero, or never acts."""
    amounts = [step.get(key) for key in ("degrees", "delta") if step.get(key) is not None]
    still = step.get("x") in (0, 0.0, [0, 0], [1, 1], [1.0, 1.0], None) and step.get("y") in (0, 0.0, [0, 0], [1, 1], [1.0, 1.0], None)
    moves = "x" in step or "y" in step
    return step.get("probability") == 0 or amounts in ([0], [0.0]) or (moves and still)


def _with_own_flips(steps: list[dict[str, Any]]) -> list[str]:
    """Steps by name, where a flip along both axes is one along each of them; and how often, unless that is half of the time."""
    found = []
    for step in steps:
        axes = ["horizontal", "vertical"] if step.get("axis") == "both" else [str(step.get("axis", ""))]
        found += [f"{sorted(step)} {axis} {step.get('probability')}" for axis in axes]
    return found


def test_the_share_of_validation_is_two_params_that_sum_to_one() -> None:
    result = migrated(f"{PARSER.replace('DEFAULT', '0.25')}g = ImageDataGenerator(validation_split=args.v)\n{FLOW}")
    (text,) = result.specs.values()
    params = given(result.changed, {"args": SimpleNamespace(v=0.1)})
    assert params == {"train_share": 0.9, "validation_share": 0.1}
    assert sections(text, {})["splits"]["parts"] == {"train": 0.75, "validation": 0.25}
    assert sections(text, params)["splits"]["parts"] == {"train": 0.9, "validation": 0.1}


@pytest.mark.parametrize(
    ("arguments", "params"),
    [
        ("rotation_range=config.R", {"rotation_range": 30}),
        ("zoom_range=config.Z", {"zoom_low": 1 / 1.5, "zoom_high": 2.0}),
        ("width_shift_range=config.W", {"width_shift_range": 0.2}),
        ("horizontal_flip=config.F", {"horizontal_flip": 0.5}),
        ("brightness_range=config.B", {"brightness_low": 0.5, "brightness_high": 1.5}),
        ("shear_range=config.R, channel_shift_range=config.R", {"shear_range": 30, "channel_shift_range": 30}),
        ("validation_split=config.W", {"train_share": 0.8, "validation_share": 0.2}),
        ("rescale=config.W", {"rescale": 0.2}),
    ],
)
def test_what_another_module_has_is_given_by_the_call(arguments: str, params: dict[str, float]) -> None:
    split = "" if "validation_split" in arguments else ", validation_split=0.25"
    result = migrated(f"import config\ng = ImageDataGenerator({arguments}{split})\n{FLOW}")
    config = SimpleNamespace(R=30, Z=0.5, W=0.2, F=True, B=(0.5, 1.5))
    assert given(result.changed, {"config": config}) == pytest.approx(params)
    (text,) = result.specs.values()
    sections(text, params)
    unknown = [f for f in result.findings.of("unresolved") if f.code == "PG610"]
    assert unknown
    assert all(f.help.startswith("the call of `build` gives it") for f in unknown)


def test_a_name_of_another_module_is_no_truth() -> None:
    (text,) = migrated("import config\nit = ImageDataGenerator(samplewise_center=config.C).flow_from_directory('d')\n").specs.values()
    assert "standardize" not in text


@pytest.mark.parametrize(
    "code",
    [
        "import config\ndef make():\n    r = config.R\n    return ImageDataGenerator(rotation_range=r)\ng = make()\n",
        "import config\nr = config.R\ng = ImageDataGenerator(rotation_range=r)\nr = 3\n",
        "import config\ng = ImageDataGenerator(rotation_range=config.R)\nconfig.R = 5\n",
    ],
)
def test_what_is_another_where_the_call_stands_is_not_handed_over(code: str) -> None:
    result = migrated(code + FLOW)
    assert "rotation_range" not in result.changed.split("pipegen.build")[1].split("\n")[0]
    assert any("`rotation_range` is not passed on" in f.message for f in result.findings.of("by hand"))


def test_a_size_that_is_not_known_is_two_sides() -> None:
    result = migrated("import config\ng = ImageDataGenerator()\nmodel.fit(g.flow_from_directory('d', target_size=config.SIZE))\n")
    assert 'params={"height": config.SIZE[0], "width": config.SIZE[1]}' in result.changed


@pytest.mark.parametrize(
    ("own", "help_"),
    [
        ("rotation_range=args.v", "so it does not have this value"),
        ("samplewise_center=args.v", "the spec has one value for every split, that of line 6"),
    ],
)
def test_what_the_spec_does_not_have_is_not_said_to_be_in_it(own: str, help_: str) -> None:
    code = f"{PARSER.replace('DEFAULT', '0.25')}g = ImageDataGenerator()\nh = ImageDataGenerator({own})\n"
    flows = "train = g.flow_from_directory('a')\nval = h.flow_from_directory('b')\nmodel.fit(train, validation_data=val)\n"
    (said,) = [f for f in migrated(code + flows).findings.items if f.code == "PG613"]
    assert help_ in said.help


def test_a_dict_that_an_option_chooses_is_that_of_its_default_and_said() -> None:
    code = (
        "LEVELS = {'light': dict(rotation_range=5), 'heavy': dict(rotation_range=30, fill_mode='reflect')}\n"
        "p = argparse.ArgumentParser()\np.add_argument('--level', default='heavy')\na = p.parse_args()\n"
        "g = ImageDataGenerator(validation_split=0.25, **LEVELS[a.level])\n"
    )
    result = migrated(code + FLOW)
    (text,) = result.specs.values()
    assert "random_rotation: {degrees: $rotation_range, fill: reflect}" in text
    assert "rotation_range: {type: float, default: 30, min: 0}" in text
    assert "LEVELS" not in result.changed.split("pipegen.build")[1].split("\n")[0]
    said = {f.message.split("`")[1] for f in result.findings.items if f.code == "PG613"}
    assert said == {"rotation_range", "fill_mode"}
    assert any("`rotation_range` is not passed on" in f.message for f in result.findings.of("by hand"))
