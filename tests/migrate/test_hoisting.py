"""A function that makes an iterator and returns it goes with its calls: each call becomes a split, where nothing else is missed."""

from __future__ import annotations

import ast

import pytest

from pipegen.migrate.migration import Migration, migrate_code
from pipegen.migrate.reading import parse_code

HEAD = "import os, sys\nfrom tensorflow.keras.preprocessing.image import ImageDataGenerator\n"
FIT = "model.fit(train, validation_data=val)\n"
CALLS = f"train = make('a')\nval = make('b')\n{FIT}"
MAKE = "def make(path):\n    g = ImageDataGenerator(rescale=1 / 255)\n    return g.flow_from_directory(path)\n"
TWO = """def both(root):
    g = ImageDataGenerator()
    a = g.flow_from_directory(root + '/a')
    b = g.flow_from_directory(root + '/b')
"""
PAIRS = """class D:
    def __init__(self, root):
        self.root = root
    def pairs(self, split):
        a = ImageDataGenerator(horizontal_flip=True).flow_from_directory(self.root + split + '/images', class_mode=None, seed=1)
        b = ImageDataGenerator(horizontal_flip=True).flow_from_directory(self.root + split + '/masks', class_mode=None, seed=1)
        END
d = D('cells/')
train, val = d.pairs('train'), d.pairs('val')
model.fit(train, validation_data=val, steps_per_epoch=5)
"""


def migrated(code: str) -> Migration:
    return migrate_code(parse_code("train.py", (HEAD + code).encode()))


@pytest.mark.parametrize(
    "code",
    [
        MAKE + CALLS,
        MAKE.replace("    return", "    print(path)\n    assert path\n    return") + CALLS,
        "def left(p):\n    return ImageDataGenerator().flow_from_directory(p)\n"
        "def right(p):\n    return ImageDataGenerator().flow_from_directory(p)\n"
        f"train = left('a')\nval = right('b')\n{FIT}",
        f"{MAKE}def more(path):\n    return make(path)\ntrain = more('a')\nval = more('b')\n{FIT}",
        f"class D:\n    def make(self, p):\n        return ImageDataGenerator().flow_from_directory(p)\nd = D()\n"
        f"train = d.make('a')\nval = d.make('b')\n{FIT}",
        f"class D:\n    def __init__(self, root):\n        self.root = root\n        self.g = ImageDataGenerator()\n"
        "    def make(self, p):\n        return self.g.flow_from_directory(self.root + p)\nd = D('x')\n"
        f"train = d.make('a')\nval = d.make('b')\n{FIT}",
        f"{MAKE}def main():\n    " + CALLS.replace("\n", "\n    ").rstrip() + "\nmain()\n",
        f"g = ImageDataGenerator()\ndef make(path, own=None):\n    own = own or ImageDataGenerator(rescale=0.5)\n"
        f"    return own.flow_from_directory(path)\ntrain = make('a', g)\nval = make('b')\n{FIT}",
    ],
)
def test_calls_become_splits_and_what_only_made_them_goes(code: str) -> None:
    result = migrated(code)
    ast.parse(result.changed)
    for gone in ("ImageDataGenerator", "def make", "def left", "def more", "flow_from"):
        assert gone not in result.changed
    lines = [line.strip() for line in result.changed.splitlines()]
    at = lines.index('pipe = pipegen.build("train.pipegen.yaml")')
    assert lines[at + 1 : at + 4] == ["train = pipe.train", "val = pipe.validation", FIT.strip()]
    assert not result.findings.of("by hand")


@pytest.mark.parametrize(
    "code",
    [
        MAKE.replace("    return", "    os.makedirs(path)\n    return") + CALLS,
        MAKE.replace("    return", "    sizes[path] = 3\n    return") + CALLS,
        MAKE.replace("    return", "    it = g.flow_from_directory(path)\n    print(it.n)\n    return it\n    return") + CALLS,
        "class D:\n    def make(self, p):\n        self.last = p\n        return ImageDataGenerator().flow_from_directory(p)\nd = D()\n"
        f"train = d.make('a')\nval = d.make('b')\n{FIT}",
        "def make(path):\n    path = download(path)\n    return ImageDataGenerator().flow_from_directory(path)\n" + CALLS,
        "import tools\ndef make(path):\n    n = tools.unpack(path)\n    return ImageDataGenerator().flow_from_directory(path)\n" + CALLS,
        "def make(path):\n    n = tar.extractall(path)\n    return ImageDataGenerator().flow_from_directory(path)\n" + CALLS,
        "def make(path):\n    if prepare(path):\n        print(path)\n    return ImageDataGenerator().flow_from_directory(path)\n" + CALLS,
        "def make(path):\n    global last\n    last = path\n    return ImageDataGenerator().flow_from_directory(path)\n" + CALLS,
        "def make(path):\n    path = path + sys.argv[1]\n    return ImageDataGenerator().flow_from_directory(path)\n" + CALLS,
        "def make(x):\n    x = x / 255\n    return ImageDataGenerator().flow(x, y)\n" + CALLS,
        "def make(path):\n    return ImageDataGenerator().flow_from_directory(path + more)\ndef main(more):\n    train = make('a')\n"
        f"    val = make('b')\n    {FIT}main(3)\n",
        f"{MAKE}def both(p):\n    train = make(p)\n    model.fit(train)\nboth('a')\nboth('b')\n",
    ],
)
def test_a_function_that_does_more_stays_and_its_code_is_left_alone(code: str) -> None:
    result = migrated(code)
    assert result.changed == result.code.text
    assert any("this code is not edited: one line makes several of the iterators" in f.message for f in result.findings.of("by hand"))


def test_a_function_that_something_else_names_stays() -> None:
    result = migrated(f"{MAKE}{CALLS}tools = [make]\n")
    assert "def make(path):" in result.changed
    assert "train = pipe.train" in result.changed
    assert "from pipegen.compat import ImageDataGenerator" in result.changed


@pytest.mark.parametrize(
    "code",
    [
        "def make(path):\n    return ImageDataGenerator().flow_from_directory(path + sys.argv[1])\n" + CALLS,
        "def make(path, n):\n    return ImageDataGenerator().flow_from_directory(path, batch_size=n)\n"
        f"train = make('a', k)\nval = make('b', k)\n{FIT}",
        f"def make(x, y):\n    return ImageDataGenerator().flow(x, y)\ntrain = make(a, y[:9])\nval = make(b, y[9:])\n{FIT}",
        f"{TWO}    return a, b\ndef main():\n    train, val = both(sys.argv[1])\n    print(train.num_classes)\n    {FIT}main()\n",
        PAIRS.replace("END", "return zip(a, b)"),
        PAIRS.replace("END", "for x, y in zip(a, b):\n            yield x, y > 0"),
    ],
)
def test_a_function_whose_calls_would_have_to_pass_values_is_left_alone(code: str) -> None:
    result = migrated(code)
    assert result.changed == result.code.text
    (said,) = [f for f in result.findings.of("by hand") if "this code is not edited" in f.message]
    assert '`pipe = pipegen.build("train.pipegen.yaml"' in said.help


def test_pairs_that_a_function_joins_are_in_the_spec() -> None:
    (text,) = migrated(PAIRS.replace("END", "return zip(a, b)")).specs.values()
    for folder in ("cells/train/images", "cells/train/masks", "cells/val/images", "cells/val/masks"):
        assert f"default: {folder}}}" in text
