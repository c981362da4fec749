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
    assert result.changed.replace(", epochs=10", "").endswith("model.fit(train, validation_data=val)\n")
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


@pytest.mark.parametrize(
    ("steps", "passes"),
    [
        ("train.samples", "8 passes"),
        ("train.n * 2", "16 passes"),
        ("len(train.filenames)", "8 passes"),
        ("len(names)", "8 passes"),
        ("x.shape[0]", "8 passes"),
        ("2 * len(train)", "2 passes"),
        ("int(np.ceil(train.samples / a.bs)) * 5", "5 passes"),
        ("train.samples // BS", "0.5 of a pass"),
        ("len(train) // 4", "0.25 of a pass"),
        ("len(names) * 10 // train.batch_size", "10 passes"),
        ("ROWS", "8 passes"),
        ("max(1, train.n)", "8 passes"),
    ],
)
def test_steps_that_are_several_passes_are_said_with_their_number(steps: str, passes: str) -> None:
    result = migrated(f"steps_per_epoch={steps}, epochs=10, validation_steps={steps}".replace("ROWS", "train.samples"))
    first, second = [f for f in result.findings.items if f.code == "PG625"]
    assert first.message.endswith(f": an epoch was {passes} over the data; now it is one")
    assert second.message.endswith(f": each validation was {passes} over the data; now it is one")
    more = 10 * float(passes.split()[0])
    assert (f"`epochs={more:.0f}` takes as many steps as before" in first.help) == (more == round(more))
    assert not any("`steps_per_epoch" in f.message for f in result.findings.items if f.code == "PG622")


def test_steps_in_a_function_are_as_many_passes_as_its_batches_have_examples() -> None:
    code = (
        "from keras.preprocessing.image import ImageDataGenerator\ndef run(model, batch_size):\n"
        "    it = ImageDataGenerator().flow_from_directory('d', batch_size=batch_size)\n    steps = it.samples\n"
        "    model.fit(it, steps_per_epoch=steps)\n    model.fit(it, steps_per_epoch=it.n // batch_size)\n"
    )
    (said,) = [f for f in migrate_code(parse_code("train.py", code.encode())).findings.items if f.code == "PG625"]
    assert "counts examples, but a step takes a batch: an epoch was as many passes as a batch has examples" in said.message


@pytest.mark.parametrize("steps", ["rounds(train)", "config.steps", "train.n + val.n"])
def test_steps_that_are_not_known_are_said_too(steps: str) -> None:
    (said,) = [f for f in migrated(f"steps_per_epoch={steps}").findings.items if f.message.startswith("`steps_per_epoch")]
    assert said.code == "PG622"
    assert "`epoch: {steps: N}`" in said.help


@pytest.mark.parametrize(
    "steps",
    [
        "train.n // train.batch_size",
        "number // 8",
        "math.ceil(train.samples / a.bs)",
        "len(names) // 8 + 1",
        "int(x.shape[0] / a.bs)",
        "max(1, len(train))",
    ],
)
def test_one_pass_is_not_said(steps: str) -> None:
    assert {f.code for f in migrated(f"steps_per_epoch={steps}").findings.items} <= {"PG613", "PG622", "PG623"}
    assert not any("steps_per_epoch" in f.message for f in migrated(f"steps_per_epoch={steps}").findings.items)


def test_examples_of_keras_1_are_one_pass() -> None:
    code = f"{HEAD}model.fit_generator(train, samples_per_epoch=train.samples, nb_epoch=3)\n"
    result = migrate_code(parse_code("train.py", code.encode()))
    assert not any("per_epoch" in f.message for f in result.findings.items)
