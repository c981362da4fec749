"""`pipegen migrate` and `pipegen steps` on the command line: what they print and write, and their exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from cli_helpers import Cli

CODE = """\
from keras.preprocessing.image import ImageDataGenerator
it = ImageDataGenerator(rescale=1 / 255).flow_from_directory("photos", target_size=(32, 32))
model.fit_generator(it)
"""


def test_it_prints_the_spec_the_changes_and_the_report(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CODE)
    result = cli("migrate", "train.py")
    assert result.exit_code == 0, result.output
    assert "=== train.pipegen.yaml" in result.stdout
    assert "+model.fit(it)" in result.stdout
    assert "changes in meaning" in result.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["train.py"]


def test_it_writes_beside_the_script_and_never_over_a_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text(CODE)
    assert cli("migrate", "code/train.py", "--write").exit_code == 0
    assert sorted(p.name for p in (tmp_path / "code").iterdir()) == ["train.migration.patch", "train.pipegen.yaml", "train.py"]
    assert cli("validate", "code/train.pipegen.yaml").exit_code == 0
    again = cli("migrate", "code/train.py", "--write")
    assert again.exit_code == 2
    assert "exists already, and is unchanged" in again.stderr


def test_a_broken_file_is_1_and_the_others_are_migrated(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("print 'ImageDataGenerator'\n")
    (tmp_path / "train.py").write_text(CODE)
    result = cli("migrate", "old.py", "train.py")
    assert result.exit_code == 1
    assert "this is Python 2" in result.stdout
    assert "=== train.pipegen.yaml" in result.stdout


def test_files_that_are_not_there_or_no_code(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "other.py").write_text("x = 1\n")
    assert cli("migrate", "nowhere.py").exit_code == 2
    assert cli("migrate", "notes.txt").exit_code == 2
    result = cli("migrate", "other.py")
    assert (result.exit_code, "nothing to migrate" in result.stdout) == (0, True)


SAVED: dict[str, Any] = {
    "__version__": "2.0.8",
    "transform": {
        "__class_fullname__": "Compose",
        "p": 1.0,
        "transforms": [{"__class_fullname__": "HorizontalFlip", "p": 0.3}, {"__class_fullname__": "Normalize", "p": 1.0}],
        "bbox_params": {"format": "coco", "min_visibility": 0.2, "min_area": 0.0},
    },
}
FROM_SAVED = """\
# `bbox_params`: boxes are a feature of the source, which has their `format` and `min_visibility: 0.2`
transforms:
  - random_flip: {probability: 0.3}
  - rescale: {to: [0, 1]}
  - normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}
"""


@pytest.mark.parametrize("written", [json.dumps, yaml.safe_dump])
def test_what_albumentations_saved_becomes_steps(written: Any, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "saved").write_text(written(SAVED), encoding="utf-8")
    result = cli("steps", "saved")
    assert result.exit_code == 0
    assert result.stdout == FROM_SAVED


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (None, 2, "cannot read saved"),
        ("{", 2, "neither JSON nor YAML"),
        ("pipegen: 1", 2, "not what Albumentations saves"),
        ('{"transform": {"__class_fullname__": "Compose", "transforms": [3]}}', 2, "`transforms` of `Compose` is not a list of maps"),
        ("[1, 2]", 2, "not what Albumentations saves"),
        ('{"transform": {"__class_fullname__": "SomeOf", "n": "two", "transforms": []}}', 1, "`n` of `SomeOf`"),
        ('{"transform": {"__class_fullname__": "OneOf", "transforms": [{"__class_fullname__": "NoOp", "p": null}]}}', 1, "`p` of"),
        ('{"transform": {"__class_fullname__": "albumentations.core.Nothing"}}', 1, "no form of `Nothing`"),
        ('{"transform": {"__class_fullname__": "RandomRain"}}', 1, "pipegen has no form of `RandomRain`"),
        ('{"transform": {"__class_fullname__": "GaussNoise", "var_limit": [10, 50]}}', 1, "no form of `var_limit` of `GaussNoise`"),
        ('{"transform": {"__class_fullname__": "mine.Flip", "p": 1}}', 1, "code of your own"),
    ],
)
def test_what_cannot_become_steps_is_said(text: str | None, code: int, said: str, cli: Cli, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "saved").write_text(text, encoding="utf-8")
    result = cli("steps", "saved")
    assert result.exit_code == code
    assert said in result.output
