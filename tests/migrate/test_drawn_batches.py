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
FIT = "model.fit(it)\n"


def migrated(code: str) -> Migration:
    result = migrate_code(parse_code("train.py", (HEAD + code).encode()))
    ast.parse(result.changed)
    assert "pipegen.build" in result.changed
    return result


@pytest.mark.parametrize(
    "code",
    [
        "for i in range(3):\n    x = next(it)\n",
        "for i in range(3):\n    x, y = it.next()\n",
        "while f():\n    x, y = it.__next__()\n",
        "xs = [next(it)[0] for i in range(5)]\n",
        "xs = [it[0][0][0] for i in range(5)]\n",
        "for i in range(5):\n    show(it[0][0][0])\n",
        "while f():\n    show(it[0][0][0])\n",
        "def f():\n    return it[0][0]\n",
        "def f():\n    def h():\n        return next(it)\n    return h\n",
        "def f(gen):\n    x = next(gen)\nf(it)\n",
    ],
)
def test_batches_of_several_rounds_beside_fit_are_left_with_their_line(code: str) -> None:
    result = migrated(MAKE + code + FIT)
    assert result.changed.endswith(f"it = pipe.train\n{code}{FIT}")
    (said,) = result.findings.of("by hand")
    assert "repeat())`, and write `next(batches)` here" in said.help


@pytest.mark.parametrize(
    ("code", "after"),
    [
        ("x = it[0][0]\ny = it[0][1]\n", 'x = next(iter(pipe.numpy("train")))[0]\ny = next(iter(pipe.numpy("train")))[1]\n'),
        ("x = next(it)\n", 'x = next(iter(pipe.numpy("train")))\n'),
    ],
)
def test_parts_of_one_batch_stay_together(code: str, after: str) -> None:
    changed = migrated(MAKE + code + FIT).changed
    assert after in changed
    assert "batches" not in changed


@pytest.mark.parametrize("draw", ["next(g.flow(x, batch_size=1))", "g.flow(x, batch_size=1).next()", "g.flow(x, batch_size=1)[0]"])
@pytest.mark.parametrize("load", ["", "    x = load(i)\n"])
def test_an_iterator_that_is_made_in_each_round_is_left_alone(draw: str, load: str) -> None:
    result = migrate_code(parse_code("train.py", f"{HEAD}for i in range(3):\n{load}    show({draw})\n".encode()))
    assert result.changed == result.code.text
    (said,) = [f for f in result.findings.items if f.code == "PG615"]
    assert "in a loop" in said.message
    assert "from pipegen.compat import ImageDataGenerator" in said.help


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
        f"{HEAD}it = g.flow(x, y, batch_size=2)\nrounds = []\nfor i in range(4):\n    rounds.append(next(it)[0])\n"
        "n, size, shape = it.n, it.batch_size, it.image_shape\n"
    )
    result = migrate_code(parse_code("train.py", code.encode()))
    for name, text in result.specs.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(0).integers(0, 255, (6, 16, 16, 3)).astype("uint8")
    names = {"x": images, "y": np.arange(6), "os": os}
    exec(result.changed, names)
    assert len({np.asarray(view).tobytes() for view in names["rounds"]}) == 4
    assert (names["n"], names["size"], names["shape"]) == (6, 2, (16, 16, 3))
