"""Batches that code takes one by one come from one iterator, so that each round sees other batches and other draws."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import numpy as np
import pytest

from pipegen.migrate.migration import Migration, migrate_code
from pipegen.migrate.reading import parse_code

HEAD = """from tensorflow.keras.preprocessing.image import ImageDataGenerator
g = ImageDataGenerator(rotation_range=20)
"""
MAKE = "it = g.flow_from_directory('d', batch_size=8)\n"
KEPT = "it = pipe.train\nbatches = it.repeat().as_numpy_iterator()\n"
FIT = "model.fit(it)\n"


def migrated(code: str) -> Migration:
    result = migrate_code(parse_code("train.py", (HEAD + code).encode()))
    ast.parse(result.changed)
    assert "pipegen.build" in result.changed
    return result


@pytest.mark.parametrize(
    ("code", "after"),
    [
        ("for i in range(3):\n    x = next(it)\n", "    x = next(batches)\n"),
        ("for i in range(3):\n    x, y = it.next()\n", "    x, y = next(batches)\n"),
        ("while f():\n    x, y = it.__next__()\n", "    x, y = next(batches)\n"),
        ("xs = [next(it)[0] for i in range(5)]\n", "xs = [next(batches)[0] for i in range(5)]\n"),
        ("xs = {i: next(it) for i in range(5)}\n", "xs = {i: next(batches) for i in range(5)}\n"),
        ("xs = [it[0][0][0] for i in range(5)]\n", "xs = [next(batches)[0][0] for i in range(5)]\n"),
        ("for i in range(5):\n    show(it[0][0][0])\n", "    show(next(batches)[0][0])\n"),
        ("for i in range(5):\n    x, y = it[0]\n", "    x, y = next(batches)\n"),
        ("while f():\n    show(it[0][0][0])\n", "    show(next(batches)[0][0])\n"),
        ("def f():\n    return it[0][0]\n", "    return next(batches)[0]\n"),
        ("def f():\n    def h():\n        return next(it)\n    return h\n", "        return next(batches)\n"),
        ("x = next(it)\ny = next(it)\n", "x = next(batches)\ny = next(batches)\n"),
    ],
)
def test_one_iterator_goes_on_beside_the_dataset(code: str, after: str) -> None:
    result = migrated(MAKE + code + FIT)
    assert KEPT in result.changed
    assert after in result.changed
    assert result.changed.endswith("model.fit(it)\n")
    assert not result.findings.of("by hand")


@pytest.mark.parametrize(
    ("code", "after"),
    [
        (
            "for i in range(9):\n    show(it[0][0][i], it[0][1][i])\n",
            'next(iter(pipe.numpy("train")))[0][i], next(iter(pipe.numpy("train")))[1][i]',
        ),
        ("x = it[0][0]\ny = it[0][1]\n", 'x = next(iter(pipe.numpy("train")))[0]\ny = next(iter(pipe.numpy("train")))[1]\n'),
        ("x = next(it)\n", 'x = next(iter(pipe.numpy("train")))\n'),
    ],
)
def test_parts_of_one_batch_stay_together(code: str, after: str) -> None:
    changed = migrated(MAKE + code + FIT).changed
    assert after in changed
    assert "batches" not in changed


def test_several_uses_in_a_round_share_its_batch() -> None:
    changed = migrated(f"{MAKE}for i in range(3):\n    show(it[0][0][0])\n    title(it[0][1][0])\n{FIT}").changed
    assert "    batch = next(batches)\n    show(batch[0][0])\n    title(batch[1][0])\n" in changed


def test_a_function_that_is_given_the_iterator_has_one_that_goes_on() -> None:
    changed = migrated(f'{MAKE}def f(gen):\n    """Shows."""\n    for i in range(3):\n        x = next(gen)\nf(it)\n{FIT}').changed
    assert (
        '    """Shows."""\n    batches = gen.repeat().as_numpy_iterator()\n    for i in range(3):\n        x = next(batches)\n' in changed
    )


def test_a_method_takes_batches_from_an_attribute() -> None:
    code = "class T:\n    def f(self):\n        self.it = g.flow_from_directory('d')\n        model.fit(self.it)\n"
    code += "    def h(self):\n        return [next(self.it) for _ in range(3)]\nT().f()\n"
    changed = migrated(code).changed
    assert "        self.it = self.pipe.train\n        self.batches = self.it.repeat().as_numpy_iterator()\n" in changed.replace(
        "= pipe", "= self.pipe"
    )
    assert "[next(self.batches) for _ in range(3)]" in changed


@pytest.mark.parametrize("draw", ["next(g.flow(x, batch_size=1))", "g.flow(x, batch_size=1).next()", "g.flow(x, batch_size=1)[0]"])
def test_an_iterator_made_in_each_round_is_made_once(draw: str) -> None:
    result = migrated(f"for i in range(3):\n    show({draw})\n")
    made = 'pipe = pipegen.build("train.pipegen.yaml", data={"train": {"image": x}})\nbatches = pipe.train.repeat().as_numpy_iterator()\n'
    assert f"{made}for i in range(3):\n    show(next(batches))\n" in result.changed
    assert not any(f.code == "PG621" for f in result.findings.items)


@pytest.mark.parametrize("draw", ["next(g.flow(x, batch_size=1))", "g.flow(x, batch_size=1).next()"])
def test_an_iterator_of_other_data_in_each_round_is_left_to_the_compat_class(draw: str) -> None:
    result = migrate_code(parse_code("train.py", f"{HEAD}for i in range(3):\n    x = load(i)\n    show({draw})\n".encode()))
    assert "from pipegen.compat import ImageDataGenerator\n" in result.changed
    assert f"    show({draw})\n" in result.changed
    assert any(f.code == "PG615" and "draw the same numbers" in f.message for f in result.findings.items)


def test_what_is_only_drawn_from_becomes_batches_without_an_end() -> None:
    changed = migrated(f"{MAKE}for i in range(3):\n    x = next(it)\nprint(it.n, it.samples, len(it), it.batch_size)\nit.reset()\n").changed
    assert "it = pipe.train.repeat().as_numpy_iterator()\n" in changed
    assert changed.endswith('print(pipe.num_examples("train"), pipe.num_examples("train"), pipe.steps("train"), 8)\n')


@pytest.mark.parametrize(
    ("member", "after"),
    [
        ("it.n", 'pipe.num_examples("train")'),
        ("it.samples", 'pipe.num_examples("train")'),
        ("it.batch_size", "8"),
        ("it.class_indices", "{name: i for i, name in enumerate(pipe.class_names)}"),
        ("it.classes", 'pipe.labels("train")'),
        ("it.filenames", "[os.path.relpath(f, 'd') for f in pipe.files(\"train\")]"),
        ("it.filepaths", 'list(pipe.files("train"))'),
        ("it.image_shape", "tuple(pipe.train.element_spec[0].shape[1:])"),
        ("it.target_size", "(256, 256)"),
        ("it.class_mode", "'categorical'"),
        ("it.color_mode", "'rgb'"),
        ("it.num_classes", "len(pipe.class_names)"),
        ("len(it)", "len(it)"),
    ],
)
@pytest.mark.parametrize("where", ["print({})\n", "for i in range({}):\n    pass\n", "x = f'{{{}}}'\n"])
def test_members_of_an_iterator_have_an_expression(member: str, after: str, where: str) -> None:
    if where.startswith("x") and "'" in after:
        where = 'x = f"""{{{}}}"""\n'
    result = migrated(MAKE + where.format(member) + FIT)
    assert where.format(after) in result.changed
    assert not result.findings.of("by hand")


@pytest.mark.nightly
@pytest.mark.tf
def test_augmented_views_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        f"{HEAD}it = g.flow(x, y, batch_size=2)\n"
        "views = [it[0][0][0] for i in range(5)]\nrounds = []\nfor i in range(4):\n    rounds.append(next(it)[0])\n"
        "for i in range(3):\n    rounds.append(g.flow(x[:1], batch_size=1)[0])\nn, size, shape = it.n, it.batch_size, it.image_shape\n"
        "fed = [b[0] for b in list_of(it)]\n"
    )
    result = migrate_code(parse_code("train.py", code.encode()))
    for name, text in result.specs.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(0).integers(0, 255, (6, 16, 16, 3)).astype("uint8")
    names = {"x": images, "y": np.arange(6), "list_of": lambda it: list(it.as_numpy_iterator()), "os": os}
    exec(result.changed, names)
    for drawn in (names["views"], names["rounds"][:4], names["rounds"][4:]):
        assert len({np.asarray(view).tobytes() for view in drawn}) == len(drawn) > 2
    assert (names["n"], names["size"], names["shape"]) == (6, 2, (16, 16, 3))
    assert len(names["fed"]) == 3
