"""The code around images and masks that `zip` joins: edited where that is sure, else left with its reason."""

from __future__ import annotations

import ast

import pytest

from pipegen.migrate.migration import Migration, migrate_code
from pipegen.migrate.reading import parse_code

HEAD = "from keras.preprocessing.image import ImageDataGenerator\ng = ImageDataGenerator()\n"
IMAGES = "images = g.flow_from_directory('images', class_mode=None, seed=1)\n"
MASKS = "masks = g.flow_from_directory('masks', class_mode=None, seed=1)\n"
BOTH = IMAGES + MASKS
FIT = "model.fit(zip(images, masks), steps_per_epoch=9)\n"


def migrated(code: str) -> Migration:
    return migrate_code(parse_code("train.py", (HEAD + code).encode()))


def reason(result: Migration) -> str:
    """Why code is not edited."""
    return " ".join(f.message for f in result.findings.items if f.code == "PG615")


@pytest.mark.parametrize(
    ("code", "after"),
    [
        (BOTH + FIT, "model.fit(pipe.train)"),
        (BOTH + "both = zip(images, masks)\nmodel.fit(both)\nmodel.fit(both, epochs=3)\n", "both = pipe.train\nmodel.fit(both)\n"),
        (BOTH + "model.fit(pair for pair in zip(images, masks))\n", "model.fit(pipe.train)"),
        (BOTH + "model.fit(((x, y) for x, y in zip(images, masks)), steps_per_epoch=9)\n", "model.fit(pipe.train)"),
        (BOTH + "both = (pair for pair in zip(images, masks))\nmodel.fit(both, steps_per_epoch=9)\n", "both = pipe.train\nmodel.fit(both)"),
        (BOTH + "model.fit(x=zip(images, masks), steps_per_epoch=images.n // images.batch_size)\n", "model.fit(pipe.train)"),
        (BOTH + "print(images.samples, len(masks))\n" + FIT, 'print(pipe.num_examples("train"), len(pipe.train))'),
        (BOTH + "for x, y in zip(images, masks):\n    model.train_on_batch(x, y)\n", "for x, y in pipe.train:"),
        (
            "def pairs():\n    " + BOTH.replace("\nmasks", "\n    masks") + "    for x, y in zip(images, masks):\n        yield x, y\n"
            "model.fit(pairs(), steps_per_epoch=9)\n",
            "    return pipe.train\nmodel.fit(pairs())",
        ),
    ],
)
def test_pairs_become_a_split(code: str, after: str) -> None:
    result = migrated(code)
    assert after in result.changed
    assert "zip" not in result.changed
    assert "flow_from_directory" not in result.changed
    ast.parse(result.changed)
    assert "PG615" not in {f.code for f in result.findings.items}


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (BOTH + "model.fit(zip(masks, images))\n", "the masks come first"),
        (BOTH + "kept = images\n" + FIT, "made or kept in a way that is not followed"),
        ("images, masks = g.flow_from_directory('images', class_mode=None, seed=1), " + MASKS[8:] + FIT, "made or kept in a way"),
        (BOTH + "show(next(images))\n" + FIT, "used alone in line 5"),
        (BOTH + "print(images.class_indices)\n" + FIT, "used alone in line 5"),
        (BOTH + "model.fit((x, y / 255) for x, y in zip(images, masks))\n", "in line 5, before the model gets them"),
        (BOTH + "model.fit((x, y) for x, y in zip(images, masks) if x.any())\n", "in line 5, before the model gets them"),
        (BOTH + "model.fit((y, x) for x, y in zip(images, masks))\n", "in line 5, before the model gets them"),
        (BOTH + "use(zip(images, masks))\n", "used in line 5 in a way that is not followed"),
        (BOTH + "both = zip(images, masks)\n", "its pairs are not used in this file"),
        (BOTH + "if x:\n    both = zip(images, masks)\n    x = next(both)\n", "not followed"),
        ("if x:\n    " + BOTH.replace("\nmasks", "\n    masks") + FIT, "made in a branch"),
        (
            "def pairs():\n    " + BOTH.replace("\nmasks", "\n    masks") + "    for x, y in zip(images, masks):\n        yield x, y > 0\n"
            "model.fit(pairs(), steps_per_epoch=9)\n",
            "code changes or selects the pairs",
        ),
        (
            "def pairs():\n    " + BOTH.replace("\nmasks", "\n    masks") + "    for x, y in zip(images, masks):\n        yield x, y\n",
            "its pairs are not used in this file",
        ),
    ],
)
def test_pairs_that_are_left_alone(code: str, why: str) -> None:
    result = migrated(code)
    assert result.changed == result.code.text
    assert why in reason(result)
    assert any("kind: mask" in text for text in result.specs.values())


def test_training_and_validation_pairs_are_one_spec() -> None:
    code = BOTH + BOTH.replace("images", "val_images").replace("masks", "val_masks").replace("'val_", "'val/")
    result = migrated(code + "model.fit(zip(images, masks), validation_data=zip(val_images, val_masks))\n")
    (text,) = result.specs.values()
    assert "    validation: {files:" in text
    assert "validation_masks: {type: path, default: val/masks}" in text
    assert "model.fit(pipe.train, validation_data=pipe.validation)" in result.changed
