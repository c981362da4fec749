"""A type checker in user code knows what pipegen has, and reports what it has not."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
USER = """\
import pipegen
from pipegen import compat

pipe = pipegen.build("flowers.pipegen.yaml")
pipe.trian
pipe.validate_on("x")
pipegen.biuld("x")
compat.ImageDataGenerater()
y: str = pipe.steps("train")
names: tuple[str, ...] = pipe.class_names
count: int = pipe.num_examples("train") + pipe.steps("train")
spec: pipegen.Spec = pipegen.load("flowers.pipegen.yaml")
pipe.stages[0].train
generator = compat.ImageDataGenerator(rescale=1 / 255)
"""
"""A file of a user, whose lines 5 to 9 have a mistake each."""
WRONG = {5: '"Pipeline" has no attribute "trian"', 6: '"Pipeline" has no attribute "validate_on"', 7: 'has no attribute "biuld"'} | {
    8: 'has no attribute "ImageDataGenerater"',
    9: 'expression has type "int", variable has type "str"',
}


def test_no_class_or_module_hides_its_names_from_type_checkers() -> None:
    """A `__getattr__` that a type checker sees has every name, typos too."""
    seen = []
    for path in sorted((ROOT / "pipegen").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "__getattr__" not in text:
            continue
        hidden = {
            inner
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.If) and ast.unparse(node.test) == "not TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        hidden_lines = {node.lineno for node in hidden if isinstance(node, ast.FunctionDef)}
        found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"]
        seen += [f"{path.name}:{node.lineno}" for node in found if node.lineno not in hidden_lines and path.name != "lazy.py"]
    assert seen == [], "`lazy.py` stands for TensorFlow, which has no types"


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "pipegen" / "py.typed").exists()


@pytest.mark.nightly
def test_mypy_finds_typos_in_user_code(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(USER, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n[mypy-tensorflow.*,keras.*,numpy.*]\nfollow_imports = skip\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", str(tmp_path / "cache"), "user.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = {int(line.split(":")[1]): line for line in done.stdout.splitlines() if line.startswith("user.py:") and ": error:" in line}
    assert set(found) == set(WRONG), done.stdout
    assert all(said in found[line] for line, said in WRONG.items()), done.stdout
