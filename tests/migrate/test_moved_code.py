"""What the call of `build` reads is there before it, and is the same there; else the code is not edited, or it is not handed over."""

from __future__ import annotations

import pytest

from pipegen.migrate.migration import Migration, migrate_code
from pipegen.migrate.reading import parse_code

HEAD = """import os, sys
from keras.preprocessing.image import ImageDataGenerator
from keras.datasets import mnist
from keras.utils import to_categorical
(a, b), (c, d) = mnist.load_data()
g = ImageDataGenerator()
"""
FIT = "model.fit(train, validation_data=val)\n"


def migrated(code: str) -> Migration:
    return migrate_code(parse_code("train.py", code.encode()))


@pytest.mark.parametrize(
    "code",
    [
        f"x, y = a, b\ntrain = g.flow(x, y)\nx, y = c, d\nval = g.flow(x, y)\n{FIT}",
        f"train = g.flow(a, b)\na /= 255\nc /= 255\nval = g.flow(c, d)\n{FIT}",
        f"train = g.flow(a, b)\nshuffle(a)\nx_val = c[:9]\nval = g.flow(x_val, d)\n{FIT}",
        f"train = g.flow(a, b)\nc /= 255\nprint(train.n)\nval = g.flow(c, d)\n{FIT}",
        f"train = other = g.flow(a, b)\nc /= 255\nval = g.flow(c, d)\n{FIT}",
        f"train = g.flow(load(a), b)\nc /= 255\nval = g.flow(c, d)\n{FIT}",
        f"def show():\n    print(train.n)\ntrain = g.flow(a, b)\nshow()\nc /= 255\nval = g.flow(c, d)\n{FIT}",
        "class T:\n    def f(self, model):\n        self.x = a\n        train = g.flow(self.x, b)\n        self.x = c\n"
        f"        val = g.flow(self.x, d)\n        {FIT}",
        f"train = g.flow(a, b)\nx_val = c[:9]\nval = g.flow(x_val, d[:9])\n{FIT}",
        f"train = g.flow(a, b)\nc /= 255\nval = g.flow(c, d)\n{FIT}",
        f"train = g.flow(a, b)\nshuffle(c)\nval = g.flow(c, d)\n{FIT}",
        f"train = g.flow(a, b, sample_weight=a)\nc = more(c)\nval = g.flow(c, d, sample_weight=weights(c))\n{FIT}",
        f"train = g.flow(a, b)\nval = g.flow(load(c), d)\n{FIT}",
        "class T:\n    def more(self):\n        self.x = c\n    def f(self, model):\n        train = g.flow(a, b)\n        self.more()\n"
        f"        val = g.flow(self.x, d)\n        {FIT}",
    ],
)
def test_arrays_that_are_others_before_the_call_are_not_moved(code: str) -> None:
    result = migrated(HEAD + code)
    assert result.changed == result.code.text
    (found,) = [f for f in result.findings.of("by hand") if "the arrays of line" in f.message]
    assert "where all its arrays are there" in found.help


@pytest.mark.parametrize(
    ("code", "data"),
    [
        (f"train = g.flow(a, b)\nval = g.flow(c, d)\n{FIT}", '{"image": c, "label": d}'),
        (f"train = g.flow(a, b)\nval = g.flow(c[:, ..., None] / -255, d)\n{FIT}", '{"image": c[:, ..., None] / -255, "label": d}'),
        (f"train = g.flow(load(a), b)\nval = g.flow(c.astype('float32'), d)\n{FIT}", '{"image": c.astype(\'float32\'), "label": d}'),
        (
            "x = a\nx = g.flow(x, to_categorical(b))\nval = g.flow(c, to_categorical(d))\nmodel.fit(x, validation_data=val)\n",
            "to_categorical(d).argmax(axis=1)",
        ),
        (
            "class T:\n    def __init__(self):\n        self.x = c\n    def f(self, model):\n        train = self.g().flow(a, b)\n"
            f"        val = self.g().flow(self.x, d)\n        {FIT}    def g(self):\n        return ImageDataGenerator()\n",
            '{"image": self.x, "label": d}',
        ),
    ],
)
def test_arrays_that_are_there_are_handed_over(code: str, data: str) -> None:
    assert data in migrated(HEAD + code).changed


OF_SELF = """class Data:
    def __init__(self, root):
        self.root = root
        self.other = os.path.join(root, "val")
    def move(self):
        MOVED
    def load(self, model):
        self.folder = os.path.join(self.root, "train")
        train = g.flow_from_directory(self.folder)
        BETWEEN
        val = g.flow_from_directory(self.FOLDER)
        model.fit(train, validation_data=val)
Data(sys.argv[1]).load(model)
"""


@pytest.mark.parametrize(
    ("between", "folder", "moved", "handed"),
    [
        ("self.folder = os.path.join(self.root, 'val')", "folder", "pass", False),
        ("self.move()", "other", "self.other = 3", False),
        ("setattr(self, 'other', 3)", "other", "pass", False),
        ("self.move()", "other", "pass", True),
        ("self.folder = 3", "other", "pass", True),
    ],
)
def test_attributes_that_are_assigned_in_between_are_not_handed_over(between: str, folder: str, moved: str, handed: bool) -> None:
    code = OF_SELF.replace("BETWEEN", between).replace("FOLDER", folder).replace("MOVED", moved)
    result = migrated(HEAD + code)
    assert '"train": self.folder' in result.changed
    assert (f'"validation": self.{folder}' in result.changed) == handed
    assert any(f.code == "PG610" and "folder is not known" in f.message for f in result.findings.items)
