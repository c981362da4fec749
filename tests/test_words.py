"""Docstrings open with a verb that says what a thing does, and what people read has the field's words."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = sorted({str(p.parent.relative_to(ROOT)) for p in (ROOT / "pipegen").rglob("*.py")})
CLAUSES = ("What", "Whether", "Where", "Which", "How")
"""Words that open a clause, and no sentence."""
MAYBE = re.compile(rf"""["'](\\\n|\s)*({"|".join(CLAUSES)})\b""")
"""Where a text opens with one; other files need not be parsed."""
OLD_WORDS = re.compile(
    r"\b(that|which) there (is|are) not\b|\bliv(es|e|ing) on (it|the|an|another|none|that|this)\b|\bdealt out\b|\bimages a second\b"
)
"""Ours for `unknown`, `aligned with`, `assigned to splits` and `images/s`."""


def clauses(folder: str) -> list[str]:
    """Docstrings of a folder that open with a clause."""
    found = []
    for path in sorted((ROOT / folder).glob("*.py")):
        code = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(code)) if MAYBE.search(code) else ():
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                text = ast.get_docstring(node) or "-"
                if text.split()[0].rstrip(",:;.") in CLAUSES:
                    found.append(f"{path.name}: {text.splitlines()[0]}")
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_open_with_a_verb(folder: str) -> None:
    assert not clauses(folder)


def test_what_people_read_has_the_words_of_the_field() -> None:
    """The docstrings of steps and sections are read by people too, in the reference."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "pipegen").rglob("*.md"), *(ROOT / "pipegen").rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in pages
        if path.relative_to(ROOT).parts[:2] != ("pipegen", "migrate")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if OLD_WORDS.search(line)
    ]
    assert not found
