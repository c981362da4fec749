"""What holds for every migration: sound values, no crash on any Python, patches that apply, mistakes with their lines."""

from __future__ import annotations

import ast
import itertools
import json
import random
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from pipegen.migrate.migration import Migration, migrate, migrate_code
from pipegen.migrate.reading import parse_code
from pipegen.migrate.signatures import CONSTRUCTOR, FLOWS
from pipegen.phases.compilation import inspect

IMPORT = "from keras.preprocessing.image import ImageDataGenerator\n"


def migrated(code: str) -> Migration:
    return migrate_code(parse_code("train.py", (IMPORT + code).encode()))


def spec(code: str) -> str:
    """The only spec of some code."""
    (text,) = migrated(code).specs.values()
    return text


def codes(result: Migration) -> list[str]:
    return [f"{f.code}:{f.line}" for f in result.findings.items]


def size_of(code: str) -> str:
    """The target size that is found where `SIZE` is what the code gives it."""
    text = spec(f"{code}\nit = ImageDataGenerator().flow_from_directory('d', target_size=(SIZE, SIZE))\n")
    return next(line for line in text.splitlines() if line.startswith("  size:"))


@pytest.mark.parametrize(
    "code",
    [
        "SIZE = 96",
        "A = 48\nSIZE = A * 2",
        "SIZE = int(192 / 2)",
        "SHAPE = (96, 96, 3)\nSIZE = SHAPE[0]",
        "SIZE, B = 96, 2",
        "SIZE = {'size': 96}['size']",
        "SIZE = 10\nSIZE = 96",
        "class Config:\n    SIZE = 96\nSIZE = Config.SIZE",
        "def size():\n    return 96\nSIZE = size()",
        "def size(n, factor=2):\n    return n * factor\nSIZE = size(factor=3, n=32)",
        "with open('f') as f:\n    SIZE = 96",
        "SIZE = 96 if True else 32",
        "SIZE = len([1, 2, 3]) * 32",
        "import math\nSIZE = math.ceil(95.5)",
        "d = {'s': 96}\nSIZE = d['s']\nd['s'] = 1",
        "d = {'s': 64}\nd['s'] = 96\nSIZE = d['s']",
        "d = {'s': 64}\ne = d\ne['s'] = 96\nSIZE = d['s']",
        "d = {'s': 64}\nd.update(s=96)\nSIZE = d['s']",
        "d = {'t': 64}\nd.update({'s': 96})\nSIZE = d['s']",
        "L = [32]\nL.append(96)\nSIZE = L[-1]",
        "DEBUG = False\nif DEBUG:\n    SIZE = 32\nelse:\n    SIZE = 96",
        "SIZE = None or 96",
        "def size(n=None):\n    if n is None:\n        n = 96\n    return n\nSIZE = size()",
        "def size(big):\n    if big:\n        return 96\n    return 32\nSIZE = size(True)",
        "class C:\n    def __init__(self, n, factor=2):\n        self.n = n * factor\n"
        "    def size(self):\n        return self.n\nSIZE = C(48).size()",
        "class C:\n    @staticmethod\n    def size(n):\n        return n\nSIZE = C().size(96)",
        "d = {'s': 96}\ne = dict(d, t=1)\ndel d['s']\nSIZE = e['s']",
        "d = {'s': 96}\ne = d.copy()\nd.clear()\nSIZE = e['s']",
        "SIZE = 96\ndef f(SIZE):\n    SIZE.append(1)\nf([])",
    ],
)
def test_values_are_followed(code: str) -> None:
    assert "default: 96" in size_of(code)


@pytest.mark.parametrize(
    "code",
    [
        "SIZE = input()",
        "if x:\n    SIZE = 96\nelse:\n    SIZE = 64",
        "SIZE = 96\nfor SIZE in (1, 2):\n    pass",
        "SIZE = 96\nSIZE += 1",
        "SIZES = [96]\nSIZES.append(64)\nSIZES.sort()\nSIZE = SIZES[0]",
        "SIZE = 96\ndef f():\n    global SIZE\n    SIZE = 32\nf()",
        "def size():\n    if x:\n        return 96\n    return 32\nSIZE = size()",
        "SIZE = SIZE",
        "import os\nSIZE = int(os.environ['SIZE'])",
        "SIZE = 10 ** 10 ** 10",
        "def f():\n    global SIZE\n    SIZE = 32\nSIZE = 96\nf()",
        "def f():\n    SIZES.append(1)\nSIZES = [96]\nf()\nSIZE = SIZES[0]",
        "class A:\n    def f(self):\n        d['s'] = 1\nd = {'s': 96}\nA().f()\nSIZE = d['s']",
        "def f(x):\n    x['s'] = 1\nd = {'s': 96}\nf(d)\nSIZE = d['s']",
        "def g(y):\n    f(y)\ndef f(x):\n    x['s'] = 1\nd = {'s': 96}\ng(y=d)\nSIZE = d['s']",
        "d = {'s': 96}\ndef f(x=d):\n    x['s'] = 1\nf()\nSIZE = d['s']",
        "d = {'s': 96}\ne = d\nif x:\n    e['s'] = 1\nSIZE = d['s']",
        "d = {'s': 96}\nfor k in x:\n    d[k] = 1\nSIZE = d['s']",
        "d = {'s': 96}\nfor i in (1, 2):\n    SIZE = d['s']\n    d['s'] = 64",
        "d = {'s': 96}\nd.update(x)\nSIZE = d['s']",
        "d = {'s': 96}\nfor k in ('s', 't'):\n    if k in x:\n        break\n    d[k] = 64\nSIZE = d['s']",
        "d = {'s': {'t': 96}}\nd['s']['t'] = 1\nSIZE = d['s']['t']",
        "d = {'s': [96]}\nd['s'].insert(0, 1)\nSIZE = d['s'][0]",
        "class C:\n    SIZE = 96\nC.SIZE = 1\nSIZE = C.SIZE",
        "try:\n    SIZE = 96\nexcept ValueError:\n    SIZE = 64",
    ],
)
def test_what_is_not_certain_is_said(code: str) -> None:
    result = migrated(f"{code}\nit = ImageDataGenerator().flow_from_directory('d', target_size=(SIZE, SIZE))\n")
    assert "default: 224" in next(iter(result.specs.values()))
    assert any("`target_size` is not known" in f.message for f in result.findings.items)


@pytest.mark.parametrize(
    "statement",
    [
        "from keras.preprocessing.image import ImageDataGenerator as G",
        "from tensorflow.keras.preprocessing.image import ImageDataGenerator as G",
        "import keras\nG = keras.preprocessing.image.ImageDataGenerator",
        "import tensorflow as tf\nG = tf.keras.preprocessing.image.ImageDataGenerator",
        "from keras_preprocessing import image as im\nG = im.ImageDataGenerator",
        "import keras.preprocessing.image as im\nG = im.ImageDataGenerator",
        "try:\n    from keras.preprocessing.image import ImageDataGenerator as G\nexcept ImportError:\n    G = None\n"
        "from tensorflow.python.keras.preprocessing.image import ImageDataGenerator as G",
    ],
)
def test_every_way_to_import(statement: str) -> None:
    result = migrate_code(parse_code("t.py", f"{statement}\nit = G(rescale=1/255).flow_from_directory('d')\n".encode()))
    assert "rescale: {to: [0, 1]}" in next(iter(result.specs.values()))


@pytest.mark.parametrize(
    ("argument", "step"),
    [
        ("zoom_range=0.2", "random_zoom: {x: [0.833333, 1.25], y: [0.833333, 1.25], fill: nearest}"),
        ("zoom_range=[0.5, 1]", "random_zoom: {x: [1, 2], y: [1, 2], fill: nearest}"),
        ("width_shift_range=0.25", "random_translation: {x: 0.25, fill: nearest}"),
        ("height_shift_range=25.6", "random_translation: {y: 0.1, fill: nearest}"),
        ("height_shift_range=33", "random_translation: {y: 0.125, fill: nearest}"),
        ("shear_range=10", "random_shear: {degrees: 10, fill: nearest}"),
        ("rotation_range=30, fill_mode='reflect'", "random_rotation: {degrees: 30, fill: reflect}"),
        ("rotation_range=30, fill_mode='constant', cval=9", "random_rotation: {degrees: 30, fill: {constant: 9}}"),
        ("channel_shift_range=30", "random_channel_shift: {delta: 30}"),
        ("brightness_range=(0.5, 1.5)", "random_brightness: {factor: [0.5, 1.5]}"),
        ("horizontal_flip=True, vertical_flip=True", "random_flip: {axis: both}"),
        ("vertical_flip=True", "random_flip: {axis: vertical}"),
        ("rescale=1/127.5", "rescale: {scale: 0.00784313725490196}"),
        ("samplewise_center=True", "standardize: {statistics: samplewise, scale: false}"),
        ("samplewise_std_normalization=True", "standardize: {statistics: samplewise}"),
    ],
)
def test_arguments_become_steps(argument: str, step: str) -> None:
    text = spec(f"it = ImageDataGenerator({argument}).flow_from_directory('d')\n")
    assert f"  - {step}" in text


def test_steps_come_in_the_order_of_keras() -> None:
    arguments = "rescale=1/255, vertical_flip=True, brightness_range=[.5, 1], channel_shift_range=9, zoom_range=.1, shear_range=9, "
    text = spec(f"it = ImageDataGenerator({arguments} width_shift_range=.1, rotation_range=9).flow_from_directory('d')\n")
    names = [line.split(":")[0].removeprefix("  - ") for line in text.splitlines() if line.startswith("  - ")]
    assert names == [
        "resize", "random_rotation", "random_translation", "random_shear", "random_zoom", "random_flip", "random_channel_shift",
        "random_brightness", "rescale",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        "self.size, self.b = 96, 2",
        "self.size: int = 96",
        "self.size = 96\n        self.other = self.size",
    ],
)
def test_attributes_are_followed(body: str) -> None:
    code = f"class T:\n    def __init__(self):\n        {body}\n    def go(self):\n"
    text = spec(code + "        return ImageDataGenerator().flow_from_directory('d', target_size=(self.size, self.size))\nT().go()\n")
    assert "size: {type: int, default: 96" in text


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("self.size = 96\n        self.size += 1", ""),
        ("self.size = 96", "t.size = 2\n"),
        ("self.size, *self.b = 96, 2", ""),
        ("for self.size in (96, 2): pass", ""),
        ("self.size = 96", "class U(T):\n    size = 3\n"),
    ],
)
def test_attributes_that_are_not_certain(body: str, after: str) -> None:
    code = f"class T:\n    size = 96\n    def __init__(self):\n        {body}\n    def go(self):\n"
    code += "        return ImageDataGenerator().flow_from_directory('d', target_size=(self.size, self.size))\nt = T()\n"
    assert "size: {type: int, default: 224" in spec(code + after + "t.go()\n")


def test_an_import_in_a_branch_is_not_certain_and_the_last_of_several_counts() -> None:
    one, other = (f"from keras.applications.{m} import preprocess_input\n" for m in ("vgg16", "xception"))
    use = "def f():\n    return ImageDataGenerator(preprocessing_function=preprocess_input).flow_from_directory('d')\nf()\n"
    assert "preset: xception" in spec(one + other + use)
    assert "preset" not in spec(f"if x:\n    {one}else:\n    {other}{use}")
    same = "from tensorflow.keras.applications.vgg16 import preprocess_input\n"
    assert "preset: vgg16" in spec(f"try:\n    {one}except ImportError:\n    {same}{use}")


def test_featurewise_statistics_are_those_that_were_fitted() -> None:
    code = "g = ImageDataGenerator(featurewise_center=True, featurewise_std_normalization={std})\n{fit}it = g.flow_from_directory('d')\n"
    fitted = spec(code.format(std=True, fit="g.fit(x)\n"))
    assert "  - standardize: {statistics: featurewise}\n" in fitted
    assert "  - standardize: {statistics: featurewise, scale: false}\n" in spec(code.format(std=False, fit="g.fit(x)\n"))
    never = migrated(code.format(std=True, fit=""))
    assert "standardize" not in next(iter(never.specs.values()))
    assert "PG643:2" in codes(never)


def test_validation_arrays_that_miss_the_rescaling() -> None:
    code = "g = ImageDataGenerator(rescale=1/255)\nmodel.fit(g.flow(x, y), validation_data=(a, b))\n"
    assert "PG654:3" in codes(migrated(code))


def test_a_batch_in_a_loop_is_not_drawn_anew_each_time() -> None:
    code = "it = ImageDataGenerator().flow_from_directory('d')\nfor i in range(9):\n    x = it.next()\n"
    result = migrated(code)
    assert "it = pipe.train.repeat().as_numpy_iterator()\n" in result.changed
    assert "    x = next(it)\n" in result.changed
    assert not [c for c in codes(result) if c.startswith("PG615")]
    fitted = migrated(code + "model.fit(it)\n")
    assert "it = pipe.train\nfor i in range(9):\n    x = it.next()\nmodel.fit(it)\n" in fitted.changed
    (said,) = [f for f in fitted.findings.items if f.code == "PG615"]
    assert "make one iterator, `batches = iter(it.repeat())`, and write `next(batches)` here" in said.help


@pytest.mark.parametrize("use", ["print(g)", "g += 1", "other = g", "def f():\n    return g.mean", "del g"])
def test_a_generator_that_other_code_reads_stays(use: str) -> None:
    code = f"g = ImageDataGenerator()\nit = g.flow_from_directory('d')\nmodel.fit(it)\n{use}\n"
    result = migrated(code)
    assert "it = pipe.train\n" in result.changed
    assert "import pipegen\nfrom pipegen.compat import ImageDataGenerator\ng = ImageDataGenerator()\n" in result.changed
    assert "g = " not in migrated(code.replace(use, "g = 3")).changed.replace("g = 3", "")


def test_pairs_of_iterators_are_left_alone() -> None:
    code = "g = ImageDataGenerator()\na = g.flow_from_directory('a', class_mode=None)\nb = g.flow_from_directory('b', class_mode=None)\n"
    result = migrated(code + "model.fit_generator(zip(a, b), 9)\n")
    assert result.changed == result.code.text
    assert "PG657:5" in codes(result)


ODD = ["{}", "[0.1, 'x']", "'x'", "-1", "1e400", "f(x)"]


@pytest.mark.parametrize("odd", [ODD, *(pytest.param([one], marks=pytest.mark.nightly) for one in ODD)], ids=str)
def test_odd_values_of_any_argument_do_not_crash_it(odd: list[str]) -> None:
    """By day the values take turns among the arguments."""
    values = itertools.cycle(odd)
    lines = [f"model.fit(ImageDataGenerator({name}={next(values)}).flow_from_directory('d'))\n" for name in CONSTRUCTOR]
    lines += [
        f"model.fit(ImageDataGenerator(validation_split=.2).{method}({name}={next(values)}))\n"
        for method, names in FLOWS.items()
        for name in names
    ]
    result = migrated("".join(lines))
    assert len(result.specs) > len(CONSTRUCTOR) // 2
    ast.parse(result.changed)
    for name, text in result.specs.items():
        assert [d.message for d in inspect(name, text=text).diagnostics if d.severity.value == "error"] == []


@pytest.mark.parametrize(
    ("one", "other", "image"),
    [
        ("photos", "masks", "photos"),
        ("gt", "x", "x"),
        ("low", "length", ""),
        ("mask_a", "mask_b", ""),
        ("x/labels", "x/images", "x/images"),
    ],
)
def test_images_and_their_masks_are_one_source(one: str, other: str, image: str) -> None:
    flows = [f"ImageDataGenerator().flow_from_directory('{folder}', class_mode=None, seed=1)" for folder in (one, other)]
    result = migrated(f"model.fit(zip({flows[0]}, {flows[1]}), steps_per_epoch=9)\n")
    assert len(result.specs) == (1 if image else 2)
    text = result.specs["train.pipegen.yaml"]
    assert ("kind: mask" in text) == bool(image)
    assert f"images: {{type: path, default: {image}}}" in text or not image


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"print 'x'\nImageDataGenerator\n", "PG602"),
        (b"def f(:\n", "PG602"),
        (b"x = '\xff\xfe'\n", "PG601"),
        (b"# coding: nonsense\n", "PG601"),
        (b"x = 1\0\n", "PG60"),
        (b"(" * 3000, "PG60"),
    ],
)
def test_broken_scripts_are_findings(data: bytes, code: str) -> None:
    result = migrate_code(parse_code("broken.py", data))
    assert result.broken
    assert all(f.code.startswith(code) for f in result.findings.items)


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"cells": 3}',
        b'{"cells": [1, {"cell_type": "code"}]}',
        b'{"cells": [{"cell_type": "code", "source": 4}]}',
        b"\xff",
    ],
)
def test_broken_notebooks_are_findings(data: bytes) -> None:
    assert migrate_code(parse_code("broken.ipynb", data)).broken


@pytest.mark.nightly
def test_no_python_file_that_is_installed_crashes_it() -> None:
    """A sample, the same in every run of an environment; walked through as if each had to do with generators."""
    files = sorted(Path(sysconfig.get_paths()["purelib"]).glob("*/*.py"))
    sample = random.Random(0).sample(files, min(30, len(files)))
    for file in sample:
        if file.stat().st_size < 40_000:
            assert not migrate_code(parse_code(file.name, file.read_bytes()), always=True).concerned, file


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the program patch")
@pytest.mark.parametrize("kind", ["py", "ipynb"])
def test_the_patch_applies(tmp_path: Path, kind: str) -> None:
    code = "gén = ImageDataGenerator(rescale=1/255)\nit = gén.flow_from_directory('dätä')  # ä\nmodel.fit_generator(it, epochs=3)\n"
    file = tmp_path / f"train.{kind}"
    if kind == "py":
        file.write_text(IMPORT + code, encoding="utf-8")
    else:
        cells: list[dict[str, Any]] = [{"cell_type": "markdown", "metadata": {}, "source": ["ü\n"]}]
        cells += [{"cell_type": "code", "metadata": {}, "source": text.splitlines(keepends=True)} for text in (IMPORT, "%time 1\n" + code)]
        file.write_text(json.dumps({"cells": cells, "nbformat": 4}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    result = migrate(str(file))
    subprocess.run(["patch", "-s", str(file)], input=result.patch().encode(), check=True, cwd=tmp_path)
    text = file.read_text(encoding="utf-8")
    if kind == "ipynb":
        *_, last = json.loads(text)["cells"]
        assert last["source"][0] == "%time 1\n"
        text = "".join(last["source"])[8:]
    ast.parse(text)
    assert "it = pipe.train  # ä" in text
    assert "model.fit(it, epochs=3)" in text


@pytest.mark.parametrize(("zoom", "odd"), [(0.99, False), (1, True), (1.2, True), (-0.5, False), (-1, True)])
def test_a_zoom_that_reaches_nothing_is_odd(zoom: float, odd: bool) -> None:
    found = migrated(f"it = ImageDataGenerator(zoom_range={zoom}).flow_from_directory('d')\n")
    assert ("PG651:2" in codes(found)) == odd
