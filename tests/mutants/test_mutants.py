"""The tests of the day notice mistakes in the code; and what makes the mistakes makes the right ones."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import run
from mutate import Mutant, mutants_of

ROOT = Path(__file__).parents[2]
MEASURED = pytest.mark.skipif(find_spec("coverage") is None, reason="coverage is not installed")

CODE = '''\
"""A text: 1 < 2."""
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from x import y

LIMIT: int = 3

@cached(size=7)
class A(Base, frozen=True):
    def given(self, n: "int < 3", late: bool = False) -> Any:
        if self.known and not late:
            return [a for a in zip(n, n, strict=True)
                    if a < LIMIT]
        note(f"{n + 1}")
        raise NotImplementedError(1)
'''


def mutants(folder: Path, code: str) -> list[Mutant]:
    (folder / "pipegen" / "plan").mkdir(parents=True)
    path = Path("pipegen/plan/a.py")
    (folder / path).write_text(code, encoding="utf-8")
    return mutants_of(path, folder)


def test_what_is_made_and_what_is_left_alone(tmp_path: Path) -> None:
    found = {(m.line, m.before.split("\n")[0], m.after.split("\n")[0]): m for m in mutants(tmp_path, CODE)}
    assert sorted(found) == [
        (7, "3", "4"),
        (11, "False", "True"),
        (12, "not late", "bool(late)"),
        (12, "self.known and not late", "(self.known or not late)"),
        (13, "return [a for a in zip(n, n, strict=True)", "return None"),
        (14, "a < LIMIT", "a <= LIMIT"),
        (15, 'note(f"{n + 1}")', "pass"),
    ]
    lines = {line: set(mutant.lines) for (line, _, _), mutant in found.items()}
    assert lines[7] == {14}, "a number by name counts where the name stands"
    assert lines[11] == {12, 13, 14, 15, 16}, "a default counts in the function"
    assert lines[14] == {13, 14}


def test_every_mutant_of_pipegen_is_python_of_as_many_lines() -> None:
    """Of a part: the modules of passes."""
    count = 0
    for module in sorted((ROOT / "pipegen" / "passes").glob("*.py")):
        right = module.read_text(encoding="utf-8")
        tree = ast.dump(ast.parse(right))
        for mutant in mutants_of(module.relative_to(ROOT), ROOT)[::5]:
            wrong = mutant.text(right)
            assert ast.dump(ast.parse(wrong)) != tree, mutant
            assert wrong.count("\n") == right.count("\n"), mutant
            count += 1
    assert count > 50


@pytest.mark.nightly
def test_a_sample_is_stable_and_takes_folders_by_turns(tmp_path: Path) -> None:
    before = [m for m in mutants(tmp_path, CODE)]
    path = tmp_path / before[0].path
    path.write_text(f"# more\n{CODE}", encoding="utf-8")
    moved = mutants_of(before[0].path, tmp_path)
    assert [m.rank(0) for m in moved] == [m.rank(0) for m in before], "lines above change no order"
    assert [m.rank(0) for m in moved] != [m.rank(1) for m in before]
    twice = mutants_of(Path("pipegen/plan/followers.py"), ROOT)
    assert len({m.rank(0) for m in twice}) == len(twice), "numbers that stand twice in a function have places of their own"
    found = run.sample(ROOT, ["pipegen/plan", "pipegen/passes"], 0, 2)
    assert [m.path.parts[1] for m in found] == ["plan", "passes"] * 2


@pytest.mark.parametrize(
    ("found", "said", "right"),
    [
        ([True] * 17 + [False] * 3, "17 of 20 noticed, 85%, and at least 85% should be", True),
        ([True] * 16 + [False] * 4, "16 of 20 noticed, 80%, and at least 85% should be", False),
        ([True] * 19 + [None], "19 of 20 noticed, 95%, and at least 85% should be; there was no time for 1", False),
    ],
)
def test_each_folder_is_judged_by_all_of_its_sample(found: list[bool | None], said: str, right: bool) -> None:
    assert run.told("pipegen/plan", found, 0.85) == (f"pipegen/plan: {said}", right)


def test_tests_are_chosen_by_lines_and_time(tmp_path: Path) -> None:
    (mutant, *_) = (m for m in mutants(tmp_path, CODE) if m.line == 12)
    times = {
        "plan/a.py::own": 2.0,
        "b.py::quick": 0.5,
        "b.py::slow": 19.0,
        "b.py::slower": 20.0,
        "c.py::graph": 99.0,
        "d.py::elsewhere": 1.0,
    }
    tests = run.Tests(seconds={f"tests/{name}": seconds for name, seconds in times.items()}, needs_tf={"tests/c.py::graph"})
    tests.of_line["pipegen/plan/a.py", 12] = {name for name in tests.seconds if not name.endswith("::elsewhere")}
    assert tests.of(mutant, needs_tf=False) == ["tests/b.py::quick", "tests/plan/a.py::own", "tests/b.py::slow"]
    assert tests.of(mutant, needs_tf=True) == ["tests/c.py::graph"], "as much of it as there is time for"
    tests.of_line["pipegen/plan/a.py", 2] = tests.of_line.pop(("pipegen/plan/a.py", 12))
    assert tests.of(mutant, needs_tf=True) == ["tests/c.py::graph"], "no test runs the line after the import"


SMALL = {
    "pipegen/__init__.py": "",
    "pipegen/plan/__init__.py": "",
    "pipegen/plan/a.py": "def least(n):\n    if n < 3:\n        return 3\n    return n\n\n\ndef unseen(n):\n    return n + 1\n",
    "tests/test_a.py": "from pipegen.plan.a import least\n\n\ndef test_least():\n    assert [least(1), least(5)] == [3, 5]\n",
}


def told(*arguments: str) -> tuple[int, str]:
    """How the script ends, and what it prints."""
    command = [sys.executable, str(Path(run.__file__)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3500)
    return done.returncode, done.stdout + done.stderr


@MEASURED
@pytest.mark.nightly
def test_mistakes_that_no_test_notices_survive(tmp_path: Path) -> None:
    root = tmp_path / "small"
    for name, text in SMALL.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    code, text = told("pipegen/plan", "--root", str(root), "--processes", "1", "--minutes", "5", "--kept", str(tmp_path / "noted"))
    assert sorted(line for line in text.splitlines() if line.startswith("pipegen/plan/a.py")) == [
        "pipegen/plan/a.py:2:12: `3` -> `4`",  # no test asks for 3
        "pipegen/plan/a.py:2:8: `n < 3` -> `n <= 3`",  # which gives the same
        "pipegen/plan/a.py:8:12: `n + 1` -> `(n - 1)`",
        "pipegen/plan/a.py:8:16: `1` -> `2`",
        "pipegen/plan/a.py:8:5: `return n + 1` -> `return None`",
    ]
    assert text.splitlines()[-1] == "pipegen/plan: 3 of 8 noticed, 38%, and at least 85% should be"
    assert code == 1
    assert {name: (root / name).read_text(encoding="utf-8") for name in SMALL} == SMALL


@MEASURED
@pytest.mark.nightly
def test_mistakes_in_pipegen_are_noticed() -> None:
    code, text = told()
    assert code == 0, text
