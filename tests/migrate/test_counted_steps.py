"""Steps that are counted by hand, and go, are said with their number, wherever it comes from."""

from __future__ import annotations

import pytest

from pipegen.migrate.migration import Migration, migrate_code
from pipegen.migrate.reading import parse_code

HEAD = """import argparse
from keras.preprocessing.image import ImageDataGenerator
p = argparse.ArgumentParser()
p.add_argument("--steps", type=int, default=300)
p.add_argument("--bs", type=int, default=8)
a = p.parse_args()
BS, N = 16, 2001
train = ImageDataGenerator().flow_from_directory("t", batch_size=a.bs)
val = ImageDataGenerator().flow_from_directory("v", batch_size=a.bs)
"""


def migrated(arguments: str) -> Migration:
    code = f"{HEAD}model.fit(train, validation_data=val, {arguments})\n"
    result = migrate_code(parse_code("train.py", code.encode()))
    assert result.changed.endswith("model.fit(train, validation_data=val)\n")
    return result


@pytest.mark.parametrize(
    ("steps", "shown", "number"),
    [
        ("300", "`steps_per_epoch=300` counted steps", "300"),
        ("a.steps", "`steps_per_epoch=a.steps`, which is 300 by default, counted steps", "300"),
        ("N // BS", "`steps_per_epoch=N // BS`, which is 125, counted steps", "125"),
        ("2000 // a.bs", "`steps_per_epoch=2000 // a.bs`, which is 250 by default, counted steps", "250"),
    ],
)
def test_a_known_number_of_steps_is_said(steps: str, shown: str, number: str) -> None:
    (found,) = [f for f in migrated(f"steps_per_epoch={steps}").findings.items if "counted" in f.message]
    assert found.code == "PG622"
    assert found.message.startswith(shown)
    assert f"`epoch: {{steps: {number}}}`" in found.help


@pytest.mark.parametrize("steps", ["train.samples // a.bs", "len(train)", "len(names) // 8", "None"])
def test_a_pass_over_the_data_is_no_number(steps: str) -> None:
    assert not any("counted" in f.message for f in migrated(f"steps_per_epoch={steps}").findings.items)


@pytest.mark.parametrize(
    ("steps", "counted", "leaves"),
    [
        ("a.steps // 10", True, False),
        ("N // BS", True, True),
        ("2000 // BS", True, False),
        ("val.samples // a.bs", False, True),
        ("val.samples // 8", False, True),
        ("len(val)", False, False),
    ],
)
def test_steps_of_validation_that_leave_out_examples(steps: str, counted: bool, leaves: bool) -> None:
    found = migrated(f"validation_steps={steps}").findings.items
    assert any("counted" in f.message for f in found) == counted
    assert any(f.code == "PG649" for f in found) == leaves
