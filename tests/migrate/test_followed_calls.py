"""Functions, methods and constructors of the file are followed with the arguments that they are called with; each call is one iterator."""

from __future__ import annotations

import re

import pytest

from pipegen.migrate.migration import Migration, migrate_code
from pipegen.migrate.reading import parse_code

HEAD = "import os\nfrom keras.preprocessing.image import ImageDataGenerator\n"


def migrated(code: str) -> Migration:
    return migrate_code(parse_code("train.py", (HEAD + code).encode()))


def folders(result: Migration) -> list[str]:
    """The folders that the specs name."""
    return [path for text in result.specs.values() for path in re.findall(r"type: path, default: (\S+)\}", text)]


MAKE = "def make(path, shuffle):\n    return ImageDataGenerator().flow_from_directory(path, shuffle=shuffle)\n"
MAIN = "def main():\n    train = make('a', True)\n    val = make('b', False)\n    model.fit(train, validation_data=val)\n"
INNER = "def inner(path):\n    return make(path, True)\n"
OUTER = "def main():\n    train = inner('a')\n    val = inner('b')\n    model.fit(train, validation_data=val)\n"


@pytest.mark.parametrize(
    "code",
    [
        MAKE + MAIN + "main()\n",
        MAKE + MAIN + "app.run(main)\n",
        MAKE + MAIN,
        MAIN + MAKE,
        MAKE + INNER + OUTER,
        OUTER + INNER + MAKE,
        "class T:\n    def go(self):\n        train = self.make('a')\n        val = self.make('b')\n"
        "        model.fit(train, validation_data=val)\n"
        "    def make(self, path):\n        return ImageDataGenerator().flow_from_directory(path)\n",
        "class T:\n    def make(self, path):\n        return ImageDataGenerator().flow_from_directory(path)\nt = T()\n"
        "train, val = t.make('a'), t.make('b')\nmodel.fit(train, validation_data=val)\n",
        "class T:\n    @staticmethod\n    def make(path):\n        return ImageDataGenerator().flow_from_directory(path)\n"
        "train, val = T.make('a'), T().make('b')\nmodel.fit(train, validation_data=val)\n",
    ],
)
def test_a_helper_has_the_arguments_of_its_calls_and_no_form_of_its_own(code: str) -> None:
    assert folders(migrated(code)) == ["a", "b"]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("Data('x').load()", "x/train"),
        ("Data(path='x').load()", "x/train"),
        ("data = Data('x')\ndata.load()", "x/train"),
        ("def main():\n    Data('x').load()", "x/train"),
        ("Data('x').load()\nData('y').load()", "x/train"),
        ("Data(x).load()", "path/to/data"),
        ("", "path/to/data"),
    ],
)
def test_what_a_constructor_is_given_is_followed_through_self(made: str, expected: str) -> None:
    code = (
        "class Data:\n    def __init__(self, path, size=64):\n        self.path = path\n        self.size = size\n"
        "    def load(self):\n        folder = os.path.join(self.path, 'train')\n"
        f"        self.train = ImageDataGenerator().flow_from_directory(folder, (self.size, self.size))\n{made}\n"
    )
    result = migrated(code)
    assert folders(result)[0] == expected
    assert all("size: {type: int, default: 64, min: 1}" in text for text in result.specs.values())
    if len(result.specs) == 1:
        assert 'params={"data": folder, "size": self.size}' in result.changed
        assert any(f.code == "PG613" and "unless the caller of `Data` says otherwise" in f.message for f in result.findings.items)


@pytest.mark.parametrize(
    ("body", "call", "rescales", "flips"),
    [
        ("    if flip:\n        g = IDG(horizontal_flip=True)\n    else:\n        g = IDG(rescale=0.5)\n", "make(True)", False, True),
        ("    if flip:\n        g = IDG(horizontal_flip=True)\n    else:\n        g = IDG(rescale=0.5)\n", "make(False)", True, False),
        ("    g = IDG(horizontal_flip=True) if flip else IDG(rescale=0.5)\n", "make(flip=False)", True, False),
        (
            "    g = None\n    if not flip:\n        g = IDG(rescale=0.5)\n    g = g or IDG(horizontal_flip=True)\n",
            "make(True)",
            False,
            True,
        ),
        ("    g = flip\n    if g is None:\n        g = IDG(rescale=0.5)\n", "make(None)", True, False),
        (
            "    if flip == 'yes':\n        return IDG(horizontal_flip=True).flow_from_directory('d')\n    g = IDG(rescale=0.5)\n",
            "make('yes')",
            False,
            True,
        ),
        (
            "    if flip == 'yes':\n        return IDG(horizontal_flip=True).flow_from_directory('d')\n    g = IDG(rescale=0.5)\n",
            "make('no')",
            True,
            False,
        ),
    ],
)
def test_a_call_takes_the_branches_that_its_arguments_choose(body: str, call: str, rescales: bool, flips: bool) -> None:
    code = f"IDG = ImageDataGenerator\ndef make(flip):\n{body}    return g.flow_from_directory('d')\ntrain = {call}\nmodel.fit(train)\n"
    result = migrated(code)
    (text,) = result.specs.values()
    assert ("rescale" in text, "random_flip" in text) == (rescales, flips)
    assert not [f for f in result.findings.items if f.code == "PG612"]


def test_a_branch_that_is_decided_at_run_time_is_said() -> None:
    code = "def make(flip):\n    if x:\n        g = ImageDataGenerator()\n    else:\n        g = ImageDataGenerator(rescale=0.5)\n"
    result = migrated(code + "    return g.flow_from_directory('d')\ntrain = make(True)\n")
    assert any("`g` is assigned 2 times" in f.message for f in result.findings.of("unresolved"))


@pytest.mark.parametrize(
    ("classes", "methods"),
    [
        ("class A(ImageDataGenerator):\n    def standardize(self, x):\n        return x\nclass B(A):\n    pass\n", "`standardize`"),
        (
            "class A(ImageDataGenerator):\n    pass\nclass M(A):\n    def random_transform(self, x, seed=None):\n        return x\n"
            "class B(M):\n    def standardize(self, x):\n        return x\n",
            "`standardize`, `random_transform`",
        ),
    ],
)
def test_a_subclass_of_a_subclass_is_seen_with_its_methods(classes: str, methods: str) -> None:
    result = migrated(f"{classes}it = B(rescale=0.5).flow_from_directory('d')\nmodel.fit(it)\n")
    (said,) = [f for f in result.findings.items if f.code == "PG612"]
    assert said.message == f"`B` is a subclass of ImageDataGenerator with {methods} of its own"
    assert "rescale: {scale: 0.5}" in next(iter(result.specs.values()))
    assert result.changed == result.code.text


def test_a_constructor_between_a_subclass_and_the_class_is_not_followed() -> None:
    classes = "class A(ImageDataGenerator):\n    def __init__(self, x):\n        super().__init__(rescale=x)\nclass B(A):\n    pass\n"
    result = migrated(f"{classes}it = B(0.5).flow_from_directory('d')\nmodel.fit(it)\n")
    assert any("`B` is a subclass of ImageDataGenerator with a constructor of its own" in f.message for f in result.findings.items)


def test_a_default_of_a_function_that_nothing_calls_is_one_that_its_caller_may_replace() -> None:
    result = migrated("def make(path='a', size=48):\n    model.fit(ImageDataGenerator().flow_from_directory(path, (size, size)))\n")
    assert 'params={"data": path, "size": size}' in result.changed
    (text,) = result.specs.values()
    assert "data: {type: path, default: a}" in text
    assert "size: {type: int, default: 48, min: 1}" in text


def test_an_attribute_that_several_calls_assign_is_not_taken_for_that_of_the_first() -> None:
    code = (
        "class T:\n    def setup(self, size):\n        self.size = size\n    def load(self):\n"
        "        model.fit(ImageDataGenerator().flow_from_directory('d', (self.size, self.size)))\n"
        "t = T()\nt.setup(32)\nt.load()\n"
    )
    assert "size: {type: int, default: 32" in next(iter(migrated(code).specs.values()))
    assert "size: {type: int, default: 32" not in next(iter(migrated(code + "t.setup(64)\nt.load()\n").specs.values()))


@pytest.mark.parametrize(
    ("below", "known"),
    [
        ("", True),
        ("class B(A):\n    pass\nclass C(B):\n    def size(self):\n        return 48\n", False),
        ("class B(A):\n    pass\nclass C(B):\n    side = 48\n", True),
        ("class B(A):\n    def size(self):\n        return 48\n", False),
        ("class B(A):\n    def other(self):\n        return 48\n", True),
    ],
)
def test_a_method_that_a_class_further_down_has_too_may_be_that_one(below: str, known: bool) -> None:
    code = (
        "class A:\n    def size(self):\n        return 64\n    def load(self):\n        n = self.size()\n"
        f"        model.fit(ImageDataGenerator().flow_from_directory('d', (n, n)))\n{below}"
    )
    (text,) = migrated(code).specs.values()
    assert ("size: {type: int, default: 64" in text) == known


def test_what_a_constructor_calls_comes_before_what_is_asked_of_the_object() -> None:
    code = (
        "class T:\n    def __init__(self, d):\n        self.d = d\n        self.load()\n    def load(self):\n"
        "        self.it = ImageDataGenerator().flow_from_directory(self.d)\n"
        "    def run(self):\n        return self.it.samples, self.it.filenames\nprint(T('a').run())\n"
    )
    result = migrated(code)
    assert folders(result) == ["a"]
    assert 'self.pipe.num_examples("train")' in result.changed
