"""Scripts and notebooks in the styles that people write, and what `pipegen migrate` makes of them, to the letter.

Each file of `golden/migrate/` holds the code (cells of a notebook are separated by `# %%`) and everything that is printed.
"""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
import yaml

from pipegen.migrate.migration import migrate_code
from pipegen.migrate.reading import parse_code
from pipegen.phases.compilation import inspect

if TYPE_CHECKING:
    from pipegen.migrate.migration import Migration
    from pipegen.phases.compilation import Inspection

GOLDEN = Path(__file__).parents[1] / "golden" / "migrate"
CASES = sorted(GOLDEN.glob("*.md"))
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def notebook(text: str) -> str:
    """A notebook as Jupyter stores it, with the cells of a text."""
    cells = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": cell.strip("\n").splitlines(keepends=True)}
        for cell in text.split("# %%\n")
    ]
    cells.insert(0, {"cell_type": "markdown", "metadata": {}, "source": ["# Größe\n"]})
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False) + "\n"


@cache
def migration(path: Path) -> Migration:
    """What a case is migrated to, once for all tests."""
    kind, code = _FENCE.findall(path.read_text(encoding="utf-8"))[0]
    if kind == "notebook":
        return migrate_code(parse_code(f"{path.stem}.ipynb", notebook(code).encode()))
    return migrate_code(parse_code(f"{path.stem}.py", code.encode()))


@cache
def inspected(name: str, text: str) -> Inspection:
    """What is found of a spec that was written, once for all tests."""
    return inspect(name, text=text)


def printed(result: Migration) -> str:
    parts = [f"=== {name}\n{text}" for name, text in result.specs.items()]
    diff = result.diff()
    return "\n".join([*parts, *([f"=== changes\n{diff}"] if diff else []), f"=== report\n{result.report()}"])


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_a_migration_reads_as_its_file_shows(path: Path, update_golden: bool) -> None:
    text = path.read_text(encoding="utf-8")
    head, _, _ = text.partition("\n```text\n")
    fresh = f"{head}\n```text\n{printed(migration(path)).rstrip()}\n```\n"
    if update_golden:
        path.write_text(fresh, encoding="utf-8")
    assert fresh == text or update_golden, (
        f"{path.name} is out of date; look at the difference and run pytest with --update-golden\n{fresh}"
    )


@pytest.mark.by_day(33)
@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_every_spec_is_valid_and_every_change_is_python(path: Path) -> None:
    result = migration(path)
    for name, text in result.specs.items():
        found = inspected(name, text)
        assert [d.message for d in found.diagnostics if d.severity.value == "error"] == []
        assert found.plans
    if result.changed:
        ast.parse(result.changed)


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_the_changed_code_names_splits_that_the_spec_has(path: Path) -> None:
    result = migration(path)
    for pipe, name in re.findall(r'(\w+) = pipegen\.build\("([^"]+)"', result.changed):
        used = re.findall(rf"\b{pipe}\.(train|validation|test)\b", result.changed)
        used += re.findall(rf'\b{pipe}(?:\.\w+\(|\[)"(\w+)"', result.changed)
        assert used
        assert set(used) <= set(inspected(name, result.specs[name]).plans)


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_the_changed_code_gives_params_that_the_spec_has(path: Path) -> None:
    result = migration(path)
    for call in ast.walk(ast.parse(result.changed)):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "build":
            name = cast("ast.Constant", call.args[0]).value
            given = next((k.value for k in call.keywords if k.arg == "params"), None)
            keys = [cast("ast.Constant", key).value for key in given.keys] if isinstance(given, ast.Dict) else []
            assert set(keys) <= set(yaml.safe_load(result.specs[str(name)]).get("params", {}))


def test_there_are_many_cases_and_two_notebooks() -> None:
    assert len(CASES) >= 25
    assert sum("```notebook" in path.read_text(encoding="utf-8") for path in CASES) >= 2
