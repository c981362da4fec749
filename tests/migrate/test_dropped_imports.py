"""Which imports go with the exchanged code: those that no code reads, wherever a comment or a text names them."""

from __future__ import annotations

import ast
import json

import pytest

from pipegen.migrate.migration import Migration, migrate_code
from pipegen.migrate.reading import parse_code

CLASS = "from keras.preprocessing.image import ImageDataGenerator"
USE = "model.fit(ImageDataGenerator(rescale=1 / 255).flow_from_directory('photos'))\n"


def migrated(code: str) -> Migration:
    result = migrate_code(parse_code("train.py", code.encode()))
    ast.parse(result.changed)
    assert "pipegen.build(" in result.changed
    return result


def imports(text: str) -> list[str]:
    """The import statements of a text, without the words around them."""
    return [ast.unparse(n) for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.Import, ast.ImportFrom))]


@pytest.mark.parametrize(
    "around",
    [
        f"{CLASS}\n# ImageDataGenerator of Keras\n{USE}",
        f"{CLASS}  # for ImageDataGenerator\n{USE}",
        f'"""Trains with an ImageDataGenerator."""\n{CLASS}\n{USE}',
        f"{CLASS}\n{USE}print('ImageDataGenerator is done', f'ImageDataGenerator {{x}}')\n",
        f"{CLASS}\n{CLASS}\n{USE}",
        f"{CLASS}\ndef f():\n    {CLASS}\n    {USE}f()\n",
        f"def f():\n    {CLASS}\n    {USE}f()\n",
        f"try:\n    {CLASS}\nexcept ImportError:\n    {CLASS.replace('keras', 'tensorflow.keras')}\n{USE}",
        f"import os; {CLASS}\n{USE}",
        f"x = 1; {CLASS}; y = 2\n{USE}",
        f"{CLASS} as G\n# G is ImageDataGenerator\n{USE.replace('ImageDataGenerator', 'G')}",
        f"import keras\nG = keras.preprocessing.image.ImageDataGenerator\n{USE.replace('ImageDataGenerator', 'G')}",
        f"{CLASS}, DirectoryIterator, random_shift\n{USE}",
        f"{CLASS}\nfrom keras_preprocessing.image import Iterator\n{USE}",
        f"import keras_preprocessing.image as im\n{USE.replace('ImageDataGenerator', 'im.ImageDataGenerator')}",
        f"from keras_preprocessing import image\n{USE.replace('ImageDataGenerator', 'image.ImageDataGenerator')}",
    ],
)
def test_an_import_that_no_code_reads_goes(around: str) -> None:
    result = migrated(around)
    code = "\n".join(ast.unparse(s) for s in ast.parse(result.changed).body if not isinstance(s, ast.Expr))
    assert "ImageDataGenerator" not in code
    assert not any("preprocessing" in line for line in imports(result.changed))
    assert imports(result.changed).count("import pipegen") == 1


@pytest.mark.parametrize(
    ("names", "use", "left"),
    [
        ("ImageDataGenerator, load_img", "load_img('a')", ["from keras.preprocessing.image import load_img", "import pipegen"]),
        ("load_img as l, ImageDataGenerator", "l('a')", ["from keras.preprocessing.image import load_img as l", "import pipegen"]),
        (
            "ImageDataGenerator, smart_resize",
            "smart_resize(x, y)",
            ["from keras.preprocessing.image import smart_resize", "import pipegen"],
        ),
        ("ImageDataGenerator, random_shift", "random_shift(x)", ["from pipegen.compat import random_shift", "import pipegen"]),
        (
            "ImageDataGenerator, Iterator, load_img",
            "isinstance(load_img(x), Iterator)",
            ["from keras.preprocessing.image import load_img", "from pipegen.compat import Iterator", "import pipegen"],
        ),
    ],
)
def test_what_code_still_reads_comes_from_where_keras_3_has_it(names: str, use: str, left: list[str]) -> None:
    assert imports(migrated(f"from keras.preprocessing.image import {names}\n{USE}{use}\n").changed) == left


@pytest.mark.parametrize("module", ["keras_preprocessing.image", "tensorflow.python.keras.preprocessing.image"])
def test_a_module_that_is_gone_gives_way(module: str) -> None:
    code = f"from {module} import ImageDataGenerator, load_img, smart_resize, random_zoom\n{USE}f(load_img, smart_resize, random_zoom)\n"
    assert imports(migrated(code).changed) == [
        "from keras.utils import load_img",
        "from keras.preprocessing.image import smart_resize",
        "from pipegen.compat import random_zoom",
        "import pipegen",
    ]


@pytest.mark.parametrize(("use", "home"), [("image.load_img(x)", "keras.preprocessing"), ("image.Iterator", "keras_preprocessing")])
def test_the_module_itself_gives_way_where_keras_3_has_what_code_takes_from_it(use: str, home: str) -> None:
    code = f"from keras_preprocessing import image\n{USE.replace('ImageDataGenerator', 'image.ImageDataGenerator')}{use}\n"
    assert f"from {home} import image" in imports(migrated(code).changed)


def test_a_function_for_the_exchanged_code_alone_goes_where_keras_3_lacks_it() -> None:
    head = f"{CLASS}\nfrom MODULE import VGG16, preprocess_input\n"
    code = f"{head}{USE.replace('rescale=1 / 255', 'preprocessing_function=preprocess_input')}VGG16()\n"
    old = migrated(code.replace("MODULE", "tensorflow.python.keras.applications.vgg16")).changed
    assert "import VGG16\n" in old
    assert "import VGG16, preprocess_input\n" in migrated(code.replace("MODULE", "keras.applications.vgg16")).changed


@pytest.mark.parametrize(
    "use",
    ["print(ImageDataGenerator)", "def f(g: ImageDataGenerator): pass", "__all__ = ['ImageDataGenerator']", "h = ImageDataGenerator()"],
)
def test_a_class_that_code_reads_comes_from_the_drop_in_package(use: str) -> None:
    result = migrated(f"{CLASS}\n{USE}{use}\n")
    assert imports(result.changed) == ["import pipegen", "from pipegen.compat import ImageDataGenerator"]


def test_an_import_from_elsewhere_is_left_alone() -> None:
    assert "from mine import ImageDataGenerator as M\n" in migrated(f"from mine import ImageDataGenerator as M\n{CLASS}\n{USE}").changed


@pytest.mark.parametrize(("line", "goes"), [("%time 3", True), ("%timeit ImageDataGenerator()", False), ("!ls", True)])
def test_a_line_of_a_notebook_that_is_not_python_may_use_the_class(line: str, goes: bool) -> None:
    cells = [f"{CLASS}\n", f"# ImageDataGenerator\n{line}\n{USE}"]
    data = json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]})
    result = migrate_code(parse_code("train.ipynb", data.encode()))
    assert CLASS not in result.changed
    assert ("from pipegen.compat import ImageDataGenerator" not in result.changed) == goes
