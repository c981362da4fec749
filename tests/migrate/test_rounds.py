"""Iterators that are made in loops: a pipeline that each round builds draws the same numbers, so such code keeps the class."""

from __future__ import annotations

import ast

import pytest

from pipegen.migrate.migration import migrate_code
from pipegen.migrate.reading import parse_code

HEAD = "import numpy as np, pandas as pd\nfrom keras.preprocessing.image import ImageDataGenerator\n"
MADE = "g = ImageDataGenerator(rotation_range=10)\n"
COMPAT = "from pipegen.compat import ImageDataGenerator"
IN_LOOP = "in a loop"


def changed(code: str, made: str = MADE) -> tuple[str, list[str]]:
    result = migrate_code(parse_code("train.py", f"{HEAD}{made}{code}".encode()))
    ast.parse(result.changed)
    return result.changed, [f"{f.message}: {f.help}" for f in result.findings.items if f.code == "PG615"]


@pytest.mark.parametrize("code", [
    "for epoch in range(9):\n    it = g.flow(x, y)\n    model.fit(it)\n",
    "for epoch in range(9):\n    model.fit(g.flow(x, y), epochs=1)\n",
    "for epoch in range(9):\n    for a, b in g.flow(x, y):\n        model.train_on_batch(a, b)\n        break\n",
    "epoch = 0\nwhile epoch < 9:\n    model.fit(g.flow(x, y))\n    epoch += 1\n",
    "def train(model):\n    for epoch in range(9):\n        it = g.flow(x, y)\n        model.fit(it)\n",
    "def once(model):\n    for a, b in g.flow(x, y):\n        model.train_on_batch(a, b)\nfor epoch in range(9):\n    once(model)\n",
    "def once(model, epoch):\n    model.fit(g.flow(x, y))\nfor epoch in range(9):\n    once(model, epoch)\n",
    "for epoch in range(9):\n    i = g.flow_from_directory('d')\n    v = g.flow_from_directory('v')\n    m.fit(i, validation_data=v)\n",
    "for epoch in range(9):\n    it = g.flow_from_dataframe(df, 'd')\n    model.fit(it)\n",
    "for fold in folds:\n    for epoch in range(9):\n        model.fit(g.flow(x[fold], y[fold]))\n",
    "for i in range(9):\n    a, b = next(g.flow(x, y, batch_size=4, shuffle=False))\n",
])  # fmt: skip
def test_a_loop_over_epochs_keeps_the_class(code: str) -> None:
    text, by_hand = changed(code)
    assert text == f"{HEAD}{MADE}{code}"
    assert any(IN_LOOP in message and "draws the same numbers again" in message and COMPAT in message for message in by_hand)


@pytest.mark.parametrize("code", [
    "for tr, va in folds.split(x):\n    model = make()\n    model.fit(g.flow(x[tr], y[tr]), epochs=9)\n",
    "for tr, va in folds.split(x):\n    model.fit(g.flow(x[tr], y[tr]), epochs=9)\n",
    "for n in (32, 64):\n    model.fit(g.flow_from_directory('d', (n, n)), epochs=3)\n",
    "for epoch in range(9):\n    model.fit(g.flow(x, y, seed=3))\n",
    "it = g.flow(x, y)\nfor epoch in range(9):\n    model.fit(it)\n",
    "def train(model, x, y):\n    model.fit(g.flow(x, y), epochs=9)\nfor x, y in parts:\n    train(make(), x, y)\n",
])  # fmt: skip
def test_other_loops_are_migrated(code: str) -> None:
    text, by_hand = changed(code)
    assert "pipegen.build(" in text
    assert not any(IN_LOOP in message for message in by_hand)


def test_rounds_that_take_one_batch_each_take_those_that_keras_did() -> None:
    text, by_hand = changed("for i in range(9):\n    a, b = next(g.flow(x, y, batch_size=4))\n")
    assert "pipegen.build(" not in text
    assert any(IN_LOOP in message for message in by_hand), "another batch in each round"
    text, _ = changed("for i in range(9):\n    a, b = next(g.flow(x, y, batch_size=4, seed=3))\n")
    assert text.index("pipegen.build(") > text.index("for i in range(9)"), "the same batch, drawn alike, in each round"


def test_data_that_is_neither_shuffled_nor_augmented_is_the_same_in_each_round() -> None:
    text, _ = changed("for i in range(9):\n    model.evaluate(g.flow(x, y, shuffle=False))\n", "g = ImageDataGenerator(rescale=1 / 255)\n")
    assert "pipegen.build(" in text


TABLE = "df = pd.read_csv('train.csv')\n"


@pytest.mark.parametrize(("code", "given"), [
    ("x = df.drop('label', axis=1).values.reshape(-1, 28, 28, 1)\n", "x"),
    ("x = df.drop('label', axis=1)\nx = x.to_numpy()\nx = x.reshape(-1, 28, 28, 1)\n", "x"),
    ("x = np.array(df.iloc[:, 1:]).reshape(-1, 28, 28, 1)\n", "x"),
    ("x = df.values[:, 1:].reshape(-1, 28, 28, 1)\n", "x"),
    ("from sklearn.model_selection import train_test_split\nx = df.values.reshape(-1, 28, 28, 1)\n"
     "x, xv, y, yv = train_test_split(x, y)\n", "x"),
    ("x = df.drop('label', axis=1).values\n", "x.reshape(-1, 28, 28, 1)"),
    ("x = np.expand_dims(df.values.reshape(-1, 28, 28), -1)\n", "x[:100]"),
])  # fmt: skip
def test_whole_numbers_of_a_table_are_cast(code: str, given: str) -> None:
    text, _ = changed(f"{TABLE}{code}model.fit(g.flow({given}, y), epochs=2)\n")
    assert f'"image": {given}.astype("float32")' in text


@pytest.mark.parametrize("code", [
    "x = df.values.reshape(-1, 28, 28, 1) / 255.0\n",
    "x = df.values.reshape(-1, 28, 28, 1).astype('uint8')\n",
    "x = df.values.astype('float32').reshape(-1, 28, 28, 1)\n",
    "x = np.array(df.values, dtype='uint8').reshape(-1, 28, 28, 1)\n",
    "x = df.values.reshape(-1, 28, 28, 1)\nx = x / 255\n",
    "x = np.load('x.npy')\n",
    "(x, y), _ = mnist.load_data()\n",
])  # fmt: skip
def test_other_arrays_stay_as_they_are(code: str) -> None:
    text, _ = changed(f"{TABLE}{code}model.fit(g.flow(x, y), epochs=2)\n")
    assert '"image": x' in text
    assert "float32" not in text.split("pipegen.build(")[1]


@pytest.mark.parametrize(("function", "how"), [
    ("from keras.applications.resnet50 import preprocess_input as f\n", "values are normalised twice"),
    ("def f(x):\n    return x\n", "values may be normalised twice"),
])  # fmt: skip
def test_only_a_known_function_is_said_to_normalise(function: str, how: str) -> None:
    code = f"{HEAD}{function}g = ImageDataGenerator(rescale=1 / 255, preprocessing_function=f)\nmodel.fit(g.flow_from_directory('d'))\n"
    result = migrate_code(parse_code("train.py", code.encode()))
    assert any(f.message.startswith(how) for f in result.findings.items if f.code == "PG648")


def test_data_without_labels_of_code_that_is_not_edited_is_named() -> None:
    code = "for epoch in range(9):\n    it = g.flow_from_directory('d')\n    t = g.flow_from_directory('t', class_mode=None)\n"
    _, by_hand = changed(f"{code}    model.fit(it)\n    model.predict(t)\n")
    assert any("the test data of line 6 is not in a spec, since it has no labels" in message for message in by_hand)


@pytest.mark.tf
@pytest.mark.nightly
def test_the_class_draws_other_numbers_in_each_round() -> None:
    import numpy as np

    from pipegen.compat import ImageDataGenerator

    x = np.arange(16 * 12 * 12 * 3).reshape(16, 12, 12, 3).astype("uint8")
    g = ImageDataGenerator(rotation_range=40)
    first = [next(iter(g.flow(x, np.arange(16), batch_size=16, shuffle=False)))[0] for _ in range(2)]
    assert not np.array_equal(*first)
