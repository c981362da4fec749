"""A patch always applies, by `patch` and by `git apply`, and changes nothing else: any line ends, encodings, notebooks and file names."""

from __future__ import annotations

import ast
import json
import random
import shutil
import subprocess
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from pipegen.migrate.migration import Migration, migrate
from pipegen.migrate.reading import plain_text

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = {"patch": ["patch", "-s", "-p1"], "git": ["git", "apply", "-"]}
LINES = (
    "import os  # dätä \x0b\x1c\x85\u2028 are characters of a line",
    "from keras.preprocessing.image import ImageDataGenerator, load_img",
    "",
    "\x0cg = ImageDataGenerator(rescale=1/255)",
    "TEXT = '''one",
    "two \x0c three'''",
    "def run(model):",
    "    it = g.flow_from_directory('dätä',",
    "                               batch_size=8)",
    "    print(it.class_indices)",
    "    model.fit_generator(it, epochs=3)",
    "",
    "# the end",
)
ENDS = ("\n", "\r\n", "\r", "\r\r\n", "\n\r\n", "\x0c\n")


def scripts() -> list[tuple[str, bytes]]:
    """Files by name: each kind of line end alone, and any mixture of them, each with and without a byte order mark and an end."""
    draw = random.Random(0)
    mixtures = [[end] * len(LINES) for end in ENDS] + [draw.choices(ENDS, k=len(LINES)) for _ in range(10)]
    texts = ["".join(line + end for line, end in zip(LINES, ends, strict=True)) for ends in mixtures]
    texts += [text.rstrip("\r\n\x0c") for text in texts]
    made = product(texts, (b"", b"\xef\xbb\xbf"))
    files = [(f"s{i}.py", mark + text.encode()) for i, (text, mark) in enumerate(made)]
    latin = "# coding: latin-1\r\n" + "\r\n".join(LINES).replace("\u2028", "")
    names = ["with space.py", "tab\there.py", 'quote"d.py', "back\\slash.py", "größe.py"]
    return [*files, ("latin.py", latin.encode("latin-1")), *((name, "\n".join(LINES).encode()) for name in names)]


def notebooks() -> list[tuple[str, bytes]]:
    """Files by name: each way to store a cell in each style of JSON."""
    code = [*LINES[:6], "%matplotlib inline", *LINES[6:]]
    files = []
    ends = ("\n", "\r\n", "\r", "\r\r\n")
    for i, (end, as_list, indent) in enumerate(product(ends, ("jupyter", "lines", "text"), (1, 2, None))):
        ascii_, mark = bool(i % 2), "\ufeff" if i % 4 > 1 else ""
        text = end.join(code)
        stored: Any = text
        if as_list != "text":
            stored = text.splitlines(keepends=True) if as_list == "jupyter" else [line + "\n" for line in text.split("\n")]
        cells = [
            {"cell_type": "markdown", "metadata": {}, "source": ["# ä\u2028ö\n"]},
            {"source": ["x = 1\n", "x"], "cell_type": "code", "outputs": [{"text": [["ä", {}], []]}], "metadata": {}},
            {"cell_type": "code", "execution_count": None, "metadata": {"a": [{}]}, "outputs": [], "source": stored},
        ]
        raw = json.dumps({"metadata": {"cells": [1]}, "cells": cells, "nbformat": 4}, indent=indent, ensure_ascii=ascii_)
        raw = raw.replace("\n", "\r\n") if end == "\r\n" else f"{raw}\n"
        files.append((f"n{i}.ipynb", (mark + raw).encode()))
    return files


@pytest.fixture(scope="module", params=[scripts, notebooks], ids=["scripts", "notebooks"])
def migrated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[bytes, Migration]]:
    folder = tmp_path_factory.mktemp("before")
    found = []
    for name, data in request.param():
        (folder / name).write_bytes(data)
        found.append((data, migrate(str(folder / name))))
    return found


@pytest.mark.parametrize("tool", [pytest.param(t, marks=pytest.mark.skipif(shutil.which(t) is None, reason=f"no {t}")) for t in TOOLS])
def test_a_patch_always_applies(migrated: list[tuple[bytes, Migration]], tool: str, tmp_path: Path) -> None:
    patch = b""
    for data, result in migrated:
        name = result.code.file.rpartition("/")[2]
        (tmp_path / name).write_bytes(data)
        patch += result.patch().encode(result.code.encoding)
    subprocess.run(TOOLS[tool], input=patch, check=True, cwd=tmp_path, capture_output=True)
    for data, result in migrated:
        name = result.code.file.rpartition("/")[2]
        after = (tmp_path / name).read_bytes()
        if name.endswith(".py"):
            check_script(data.decode(result.code.encoding), after.decode(result.code.encoding), result)
        else:
            check_notebook(data.decode(), after.decode())


def check_script(before: str, after: str, result: Migration) -> None:
    assert after.startswith("\ufeff") == before.startswith("\ufeff")
    text = plain_text(after.removeprefix("\ufeff"))
    assert text == result.changed
    ast.parse(text)
    assert "pipegen.build" in text
    assert "import ImageDataGenerator" not in text
    ends = [{end for end in ("\r\n", "\r", "\n") if end in t.replace("\r\n", "" if end != "\r\n" else "\r\n")} for t in (before, after)]
    assert ends[1] <= ends[0]
    assert before.endswith(("\r", "\n")) == after.endswith(("\r", "\n"))


def check_notebook(before: str, after: str) -> None:
    assert after.startswith("\ufeff") == before.startswith("\ufeff")
    old, new = (json.loads(text.removeprefix("\ufeff")) for text in (before, after))
    sources = [notebook["cells"][-1].pop("source") for notebook in (old, new)]
    assert old == new
    assert before.isascii() == after.isascii()
    assert type(sources[0]) is type(sources[1])
    code = [plain_text("".join(source)).split("\n") for source in sources]
    assert code[0].index("%matplotlib inline") > 0
    kept = [LINES[0], "%matplotlib inline", "# the end"]
    assert [line for line in code[1] if line in kept] == kept
    text = "\n".join(line for line in code[1] if not line.startswith("%"))
    ast.parse(text)
    assert "pipe = pipegen.build(" in text
    assert "import ImageDataGenerator" not in text


def test_nothing_to_change_is_no_patch(tmp_path: Path) -> None:
    file = tmp_path / "other.ipynb"
    file.write_text(json.dumps({"cells": [{"cell_type": "code", "source": "ImageDataGenerator = 1\r\n"}]}))
    assert migrate(str(file)).patch() == migrate(str(file)).diff() == ""
