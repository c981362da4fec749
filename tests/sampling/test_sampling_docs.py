"""The guides to rare classes, to easy examples first and to several views: their code runs, and prints what they say."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from fnmatch import fnmatchcase
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.tf

DOCS = Path(__file__).parents[2] / "docs" / "how-to"


def write(path: Path, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 255, (40, 40, 3), np.uint8)).save(path)


def birds(folder: Path) -> None:
    for number, (name, count) in enumerate((("owl", 15), ("sparrow", 80), ("wryneck", 5))):
        for i in range(count):
            write(folder / "birds" / name / f"{i:02}.png", 100 * number + i)


def digits(folder: Path) -> None:
    lines = ["file,label,loss"]
    for i in range(80):
        write(folder / f"{i:02}.png", i)
        lines.append(f"{i:02}.png,{i % 4},{(i * 37) % 80 / 10}")
    (folder / "digits.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.nightly
@pytest.mark.parametrize(("page", "make"), [("rare-classes.md", birds), ("curriculum.md", digits), ("views.md", birds)])
def test_the_guide_prints_what_it_shows(page: str, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    known: dict[str, Any] = {}
    printed = ""
    for language, text in blocks:
        if language == "yaml":
            name = re.match(r"# (\S+)", text)
            assert name is not None
            (tmp_path / name[1]).write_text(text)
        elif language == "python":
            with redirect_stdout(StringIO()) as said:
                exec(compile(text, page, "exec"), known)
            printed = said.getvalue()
        elif language == "text":
            pattern = re.sub(r"^\.\.\.$", "*", text.replace("[", "[[]"), flags=re.MULTILINE)
            assert fnmatchcase(printed, pattern), printed
