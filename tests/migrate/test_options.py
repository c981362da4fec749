"""Arguments of the constructor that may be others at run time: the spec has their default, and the report says which line to change."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("arguments", "default"),
    [
        ("rotation_range=args.v", 10.0),
        ("shear_range=args.v", 5.0),
        ("channel_shift_range=args.v", 20.0),
        ("height_shift_range=args.v, width_shift_range=0.3", 0.0),
        ("zoom_range=args.v", 0.2),
        ("zoom_range=[1 - args.v, 1 + args.v]", 0.2),
        ("brightness_range=(args.v, 1.5)", 0.5),
        ("rescale=args.v", 0.25),
        ("horizontal_flip=args.v", True),
        ("vertical_flip=args.v, horizontal_flip=True", False),
        ("rotation_range=2 * args.v", 3.0),
        ("validation_split=args.v", 0.25),
    ],
)
def test_the_spec_has_the_default_of_an_option_and_the_report_says_so(arguments: str, default: object) -> None:
    option = PARSER.replace("DEFAULT", repr(default))
    option = option.replace("type=float, default=False", "action='store_true'").replace("type=float, default=True", "action='store_false'")
    split = "" if "validation_split" in arguments else ", validation_split=0.25"
    result = migrated(f"{option}g = ImageDataGenerator({arguments}{split})\n{FLOW}")
    plain = migrated(f"g = ImageDataGenerator({arguments.replace('args.v', repr(default))}{split})\n{FLOW}")
    assert result.specs == plain.specs
    assert [f.help for f in result.findings.items if f.code == "PG613"] == [
        "the spec has this value: if you run the code with another one, change it there"
    ]


@pytest.mark.parametrize(
    "argument", ["rotation_range", "zoom_range", "width_shift_range", "horizontal_flip", "brightness_range", "shear_range", "rescale"]
)
def test_a_value_of_another_module_is_left_to_the_user(argument: str) -> None:
    result = migrated(f"import config\ng = ImageDataGenerator({argument}=config.V, validation_split=0.25)\n{FLOW}")
    (text,) = result.specs.values()
    assert "transforms:\n  - resize" in text
    assert [d.message for d in inspect("train.pipegen.yaml", text=text).diagnostics if d.severity.value == "error"] == []
    (said,) = [f for f in result.findings.of("unresolved") if f.code == "PG610"]
    assert said.message == f"`{argument}` is not known: `config.V` is not in this file"
    assert said.help == "add its step by hand"


def test_a_name_of_another_module_is_no_truth() -> None:
    (text,) = migrated("import config\nit = ImageDataGenerator(samplewise_center=config.C).flow_from_directory('d')\n").specs.values()
    assert "standardize" not in text


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
    assert "random_rotation: {degrees: 30, fill: reflect}" in text
    said = {f.message.split("`")[1] for f in result.findings.items if f.code == "PG613"}
    assert said == {"rotation_range", "fill_mode"}
