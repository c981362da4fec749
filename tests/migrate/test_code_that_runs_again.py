"""Loops, folds and branches: the call of `build` stands where the iterators were made, and has the arrays and tables of that round."""

from __future__ import annotations

import ast

import pytest

from pipegen.migrate.migration import Migration, migrate_code
from pipegen.migrate.reading import parse_code

HEAD = "from tensorflow.keras.preprocessing.image import ImageDataGenerator\nimport pandas as pd\ng = ImageDataGenerator(rescale=1 / 255)\n"
FIT = "model.fit(train, validation_data=val)"


def migrated(code: str) -> Migration:
    result = migrate_code(parse_code("train.py", (HEAD + code).encode()))
    ast.parse(result.changed)
    return result


def build(code: str) -> str:
    """The only call of `build` in the changed code, with its indentation."""
    (line,) = [line for line in migrated(code).changed.splitlines() if "pipegen.build" in line]
    return line


@pytest.mark.parametrize(
    ("code", "data"),
    [
        (
            "df = pd.read_csv('a.csv')\nfor a, b in folds.split(df):\n    x, y = df.iloc[a], df.iloc[b]\n"
            f"    train = g.flow_from_dataframe(x)\n    val = g.flow_from_dataframe(y)\n    {FIT}\n",
            '    pipe = pipegen.build("train.pipegen.yaml", data={"train": x, "validation": y})',
        ),
        (
            f"for a, b in folds.split(x):\n    train = g.flow(x[a], y[a])\n    val = g.flow(x[b], y[b])\n    {FIT}\n",
            '    pipe = pipegen.build("train.pipegen.yaml", data={"train": {"image": x[a], "target": y[a]}, '
            '"validation": {"image": x[b], "target": y[b]}})',
        ),
        (
            f"for n in sizes:\n    train = g.flow_from_directory('a', (n, n))\n    val = g.flow_from_directory('b', (n, n))\n    {FIT}\n",
            '    pipe = pipegen.build("train.pipegen.yaml", params={"size": n})',
        ),
        (
            f"if x:\n    train = g.flow_from_directory('a')\n    val = g.flow_from_directory('b')\n    {FIT}\n",
            '    pipe = pipegen.build("train.pipegen.yaml")',
        ),
        (
            f"try:\n    train = g.flow_from_directory('a')\n    val = g.flow_from_directory('b')\n    {FIT}\nexcept OSError:\n    pass\n",
            '    pipe = pipegen.build("train.pipegen.yaml")',
        ),
    ],
)
def test_the_call_stands_where_the_iterators_were_made(code: str, data: str) -> None:
    assert build(code) == data


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("if x:\n    train = g.flow_from_directory('a')\nelse:\n    train = 3\nmodel.fit(train)\n", "made in a branch"),
        ("if x:\n    train = g.flow_from_directory('a')\nprint(train.n)\n", "made in a branch"),
        (f"val = 3\nif x:\n    train = g.flow_from_directory('a')\n    val = g.flow_from_directory('b')\n    {FIT}\n", "made in a branch"),
        (
            f"for i in x:\n    train = g.flow_from_directory('a')\nval = g.flow_from_directory('b')\n{FIT}\n",
            "made in a loop",
        ),
        ("x = [g.flow_from_directory(d) for d in folders]\nmodel.fit(x[0])\n", "made in a loop"),
    ],
)
def test_what_is_used_elsewhere_is_left_alone(code: str, why: str) -> None:
    result = migrated(code)
    assert result.changed == result.code.text
    assert any(why in f.message for f in result.findings.of("by hand"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    if stop(batch):\n        break\n", "for batch in pipe.train.repeat().as_numpy_iterator():"),
        ("    print(batch)\n", "for batch in pipe.train.as_numpy_iterator():"),
    ],
)
def test_a_loop_over_batches_ends_as_it_did_or_after_one_pass(body: str, expected: str) -> None:
    for loop in ("it = g.flow_from_directory('d')\nfor batch in it:\n", "for batch in g.flow_from_directory('d'):\n"):
        result = migrated(loop + body)
        assert expected.replace("pipe.train", "it" if loop.startswith("it") else "pipe.train") in result.changed
        assert any("was infinite" in f.message for f in result.findings.of("meaning")) == ("repeat" not in expected)


def test_a_loop_that_hands_batches_on_goes_on_without_an_end() -> None:
    code = "def batches():\n    for x, y in g.flow_from_directory('d'):\n        yield x * 2, y\n"
    code += "model.fit_generator(batches(), steps_per_epoch=5)\n"
    result = migrated(code)
    assert "    for x, y in pipe.train.repeat().as_numpy_iterator():\n        yield" in result.changed
    (said,) = [f for f in result.findings.of("by hand") if "fit_generator" in f.message]
    assert "its argument is a Python generator" in said.message
    assert "keep `steps_per_epoch`" in said.help


@pytest.mark.parametrize(
    ("table", "data"),
    [
        ("df = pd.read_csv('a.csv')\ndf['f'] = df['id'] + '.png'\n", "data=df)"),
        ("df = pd.DataFrame(rows)\n", "data=df)"),
        ("df = pd.read_csv('a.csv')\ndf = df[df.n > 3]\n", "data=df)"),
        ("df = load()\n", "data=df)"),
        ("df = pd.read_csv('a.csv')\ndf['other'] = 3\n", 'pipegen.build("train.pipegen.yaml")'),
        ("df = pd.read_csv('a.csv').sample(frac=1)\n", 'pipegen.build("train.pipegen.yaml")'),
    ],
)
def test_a_table_that_code_makes_is_given_to_the_call(table: str, data: str) -> None:
    code = f"{table}train = g.flow_from_dataframe(df, x_col='f', y_col='c', subset='training')\nmodel.fit(train)\n"
    result = migrated(code.replace(", subset='training'", ""))
    (line,) = [line for line in result.changed.splitlines() if "pipegen.build" in line]
    assert line.endswith(data)
    (text,) = result.specs.values()
    assert ("dataframe:" in text) == ("data=" in line)
    assert any("the table is made by code" in f.message for f in result.findings.of("unresolved")) == ("data=" in line)


def test_rows_without_labels_have_a_spec_of_their_own() -> None:
    code = (
        "df = load()\ntrain = g.flow_from_dataframe(df[:9])\nval = g.flow_from_dataframe(df[9:])\n"
        f"test = g.flow_from_dataframe(load_test(), class_mode=None, shuffle=False)\n{FIT}\nmodel.predict(test)\n"
    )
    result = migrated(code)
    assert len(result.specs) == 2
    assert 'pipe = pipegen.build("train.pipegen.yaml", data={"train": df[:9], "validation": df[9:]})' in result.changed
    assert 'pipe2 = pipegen.build("train-2.pipegen.yaml", data={"test": load_test()})' in result.changed


@pytest.mark.parametrize(
    ("labels", "given"),
    [
        ("y = to_categorical(z)\n", '"label": y.argmax(axis=1)'),
        ("y = to_categorical(z)[:9]\n", '"label": y.argmax(axis=1)'),
        ("y = to_categorical(z).astype('uint8').copy()\n", '"label": y.argmax(axis=1)'),
        ("y = np.concatenate([to_categorical(z), to_categorical(w)])\n", '"label": y.argmax(axis=1)'),
        ("x, x2, y, y2 = train_test_split(x, to_categorical(z), test_size=0.2)\n", '"label": y.argmax(axis=1)'),
        ("x, y = shuffle(x, to_categorical(z))\n", '"label": y.argmax(axis=1)'),
        ("y = LabelEncoder().fit_transform(z)\n", '"label": y}'),
        ("e = LabelEncoder()\ny = e.fit_transform(z)\n", '"label": y}'),
        ("y = to_categorical(z)[:, 1]\n", '"target": y}'),
        ("y = np.concatenate([to_categorical(z), w])\n", '"target": y}'),
        ("y = np.repeat(to_categorical(z), 2)\n", '"target": y}'),
        ("y = OneHotEncoder().fit_transform(z)\n", '"target": y}'),
        ("y = load()\n", '"target": y}'),
    ],
)
def test_labels_are_followed_or_given_as_they_are(labels: str, given: str) -> None:
    imports = (
        "import numpy as np\nfrom sklearn.model_selection import train_test_split\nfrom sklearn.utils import shuffle\n"
        "from sklearn.preprocessing import LabelEncoder, OneHotEncoder\nfrom keras.utils import to_categorical\n"
    )
    result = migrated(f"{imports}{labels}model.fit(g.flow(x, y))\n")
    assert given in result.changed
    (text,) = result.specs.values()
    assert ("output: {y: target}" in text) == ("target" in given)
    assert any("gets them unchanged" in f.message for f in result.findings.of("unresolved")) == ("target" in given)


def test_members_that_other_methods_ask_for_are_those_of_a_pipeline_that_the_object_has() -> None:
    code = (
        "class T:\n    def __init__(self):\n        self.load()\n    def load(self):\n        self.it = g.flow_from_directory('d')\n"
        "    def run(self, model):\n        print(self.it.samples)\n        model.fit(self.it)\nT().run(model)\n"
    )
    changed = migrated(code).changed
    assert '        self.pipe = pipegen.build("train.pipegen.yaml")\n        self.it = self.pipe.train\n' in changed
    assert 'print(self.pipe.num_examples("train"))' in changed


def test_members_in_a_function_of_an_iterator_of_another_function_are_left_alone() -> None:
    code = "def make():\n    it = g.flow_from_directory('d')\n    use(it)\ndef use(it):\n    print(it.samples)\nmake()\n"
    result = migrated(code)
    assert result.changed == result.code.text
    (told,) = (f for f in result.findings.of("by hand") if "its members are used in another function" in f.message)
    assert "return the pipeline as well: `pipe = pipegen.build(" in told.help
    assert "from pipegen.compat import ImageDataGenerator" in told.help


def test_advice_about_a_loop_names_the_arrays_of_the_code() -> None:
    """A variable `x` of the code may hold other rows."""
    code = (
        "for e in range(2):\n    for i, b in enumerate(g.flow(x_train, y_train)):\n        if i > 3:\n            break\n        use(b)\n"
    )
    (told,) = (f.help for f in migrated(code).findings.of("by hand"))
    assert 'data={"train": {"image": x_train, "target": y_train}}' in told


def test_predictions_again_and_again_are_test_time_augmentation() -> None:
    code = (
        "h = ImageDataGenerator(horizontal_flip=True)\ntest = h.flow_from_directory('test', class_mode=None, shuffle=False)\n"
        "for i in range(5):\n    total += model.predict(test)\n"
    )
    (said,) = [f for f in migrated(code).findings.items if f.code == "PG640"]
    assert "`when: [test]`" in said.help


def test_steps_that_a_variable_holds_round_down_too() -> None:
    code = "val = g.flow_from_directory('val')\nsteps = val.n // val.batch_size\n"
    code += "model.fit(g.flow_from_directory('t'), validation_data=val, validation_steps=steps)\n"
    assert any(f.code == "PG649" for f in migrated(code).findings.items)


EXTRACT = """def extract(folder, side=64):
    batches = g.flow_from_directory(folder, (side, side), shuffle=SHUFFLE)
    for x, y in batches:
        use(x, y)
        if done():
            break
extract('a')
extract('b', 32)
"""


@pytest.mark.parametrize("shuffled", ["True", "side == 64"])
def test_a_function_that_is_called_for_several_folders_is_left_alone(shuffled: str) -> None:
    result = migrated(EXTRACT.replace("SHUFFLE", shuffled))
    assert result.changed == result.code.text
    assert any("one line makes several of the iterators" in f.message for f in result.findings.of("by hand"))


@pytest.mark.parametrize(
    ("loop", "params"),
    [
        ("for d in ('a', 'b'):\n    model.fit(g.flow_from_directory(d))\n", '{"data": d}'),
        ("for d, n in (('a', 8), ('b', 9)):\n    model.fit(g.flow_from_directory(d, (n, n)))\n", '{"data": d, "size": n}'),
    ],
)
def test_a_loop_over_names_that_trains_in_each_round_builds_in_each_round(loop: str, params: str) -> None:
    result = migrated(loop)
    (text,) = result.specs.values()
    assert "default: path/to/data}" in text
    assert f"params={params})" in result.changed
    assert not [f for f in result.findings.of("by hand") if "not edited" in f.message]


@pytest.mark.parametrize(
    ("code", "keeps"),
    [
        ("x = next(g.flow_from_directory('d'))\n", True),
        ("for x in g.flow_from_directory('d'):\n    use(x)\n    break\n", True),
        ("it = g.flow_from_directory('d')\nprint(next(it))\nmodel.fit(it)\n", False),
        ("model.fit(g.flow_from_directory('d'))\n", False),
    ],
)
def test_batches_that_code_takes_itself_are_all_there(code: str, keeps: bool) -> None:
    result = migrated(code)
    (text,) = result.specs.values()
    assert ("remainder: keep" in text) == keeps
    assert any("an incomplete last batch" in f.message for f in result.findings.items) != keeps


@pytest.mark.parametrize("use", ["x = it[i]", "x = it.index_array"])
def test_batches_by_number_stay_with_the_drop_in_class(use: str) -> None:
    result = migrated(f"it = g.flow_from_directory('d')\n{use}\nmodel.fit(it)\n")
    assert result.changed == result.code.text
    (said,) = [f for f in result.findings.of("by hand") if "line 5 takes batches by number" in f.message]
    assert "pipegen.compat" in said.help


@pytest.mark.parametrize(
    ("given", "later", "known"),
    [
        ("'a'", "", True),
        ("self.root + '/a'", "", False),
        ("self.root + '/a'", "self.root = 3", False),
        ("more + '/a'", "", False),
        ("self.root[0]", "", False),
    ],
)
def test_names_of_files_in_another_method_are_relative_to_a_known_folder(given: str, later: str, known: bool) -> None:
    code = (
        f"class T:\n    def __init__(self, root):\n        self.root = root\n    def load(self, more):\n        {later or 'pass'}\n"
        f"        self.it = g.flow_from_directory({given})\n"
        "    def run(self, model):\n        print(self.it.filenames)\n        model.fit(self.it)\nt = T(x)\nt.load(y)\nt.run(model)\n"
    )
    result = migrated(code)
    text = "[os.path.relpath(f, 'a') for f in self.pipe.files(\"train\")]"
    assert (text in result.changed) == known
    assert any("`.filenames` are relative" in f.message for f in result.findings.of("by hand")) != known


def test_a_generator_for_single_arrays_stays_with_the_drop_in_class() -> None:
    result = migrated("h = ImageDataGenerator(rotation_range=9)\ndef batches():\n    yield h.random_transform(x)\n")
    (said,) = [f for f in result.findings.items if f.code == "PG612" and "random_transform" in f.help]
    assert "pipegen.compat" in said.help


@pytest.mark.parametrize(("given", "help_"), [("h.mean", "so this line can be removed"), ("[1, 2, 3]", "normalize:")])
def test_a_statistic_that_is_assigned_has_the_help_that_fits(given: str, help_: str) -> None:
    code = f"h = ImageDataGenerator(featurewise_center=True)\nh.fit(x)\ng.mean = {given}\n"
    code += "model.fit(h.flow(x, y), validation_data=g.flow(z, w))\n"
    (said,) = [f for f in migrated(code).findings.items if "`mean` is assigned" in f.message]
    assert help_ in said.help


def test_what_is_deleted_at_the_end_of_a_round_is_what_it_was_before() -> None:
    code = (
        "for i in range(5):\n    train = g.flow_from_directory(f'{i}/a')\n    val = g.flow_from_directory(f'{i}/b')\n"
        f"    {FIT}\n    print(val.classes)\n    del train, val\n"
    )
    result = migrated(code)
    assert 'print(pipe.labels("validation"))' in result.changed
    assert not result.findings.of("by hand")


def test_arrays_that_are_deleted_in_between_are_not_waited_for() -> None:
    code = f"train = g.flow(a, b)\ndel a\nc = more()\nval = g.flow(c, d)\n{FIT}\n"
    result = migrated(code)
    assert result.changed == result.code.text


def test_a_generator_that_may_be_the_one_is_not_said_to_have_no_iterator() -> None:
    code = "if x:\n    h = ImageDataGenerator()\nelse:\n    h = ImageDataGenerator(rescale=0.5)\nmodel.fit(h.flow_from_directory('d'))\n"
    said = [f for f in migrated(code).findings.items if f.code == "PG612" and f.line in (5, 7)]
    assert len(said) == 2
    assert all("line 8 makes an iterator, but it is not certain" in f.message for f in said)
