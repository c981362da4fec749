"""The list of passes, and rule 9: a pass reads families and traits, never the name or the class of an op."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pipegen.passes
import pipegen.plan
from pipegen.ops.registry import sources, transforms
from pipegen.ops.transform import Transform
from pipegen.passes import PASSES

PASS_FILES = sorted(p for p in Path(pipegen.passes.__file__).parent.glob("*.py") if p.stem not in ("__init__", "plan_pass"))
READERS = [*PASS_FILES, Path(pipegen.passes.__file__).parent / "plan_pass.py", *sorted(Path(pipegen.plan.__file__).parent.glob("*.py"))]
"""What must not know an op: the passes, and the plan beneath them."""

NAMES = {*transforms(), *sources()}
CLASSES = {c.__name__ for c in (*transforms().values(), *sources().values())}


def code_of(path: Path) -> ast.Module:
    """A module without its docstrings, which may give examples."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [n for n in body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]  # type: ignore[attr-defined]
    return tree


def ops_known_to(tree: ast.Module) -> set[str]:
    """Names and classes of ops that a module reads: as strings, as names, as modules."""
    found: set[str] = set()
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}  # the stage `Decode` is no op
    own |= {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pipegen.ops.families")
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in NAMES - {"pad"}:  # which is a word of `remainder`, too
            found.add(str(node.value))
        elif isinstance(node, ast.Name) and node.id in CLASSES - own:
            found.add(node.id)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("pipegen.ops.transforms", "pipegen.ops.sources")):
            found.add(str(node.module))
    return found


def op_attributes(tree: ast.Module) -> list[int]:
    """Lines that read `.op`."""
    return [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "op"]


@pytest.mark.parametrize("path", PASS_FILES, ids=lambda p: p.stem)
def test_no_pass_reads_an_op_s_name(path: Path) -> None:
    tree = code_of(path)
    assert ops_known_to(tree) == set()
    assert op_attributes(tree) == []


@pytest.mark.parametrize("path", READERS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_nothing_in_the_plan_knows_a_certain_op(path: Path) -> None:
    known = ops_known_to(code_of(path))
    assert known <= ({"decode"} if path.parent.name == "plan" else set()), "`decode` alone is named: the step that need not be written"


def test_the_search_finds_what_it_looks_for() -> None:
    tree = ast.parse('from pipegen.ops.transforms.resize import Resize\nif step.op == "random_flip" or isinstance(step, Resize): ...')
    assert ops_known_to(tree) == {"pipegen.ops.transforms.resize", "random_flip", "Resize"}
    assert op_attributes(tree) == [2]
    assert len(NAMES) > 18
    assert all(issubclass(op, Transform) for op in transforms().values())


def test_one_pass_a_file_and_all_in_the_list() -> None:
    assert sorted(p.name for p in PASSES) == [p.stem for p in PASS_FILES]
    assert len({p.name for p in PASSES}) == len(PASSES)


def test_the_list_has_what_the_design_names_in_an_order_that_works() -> None:
    names = [p.name for p in PASSES]
    assert {
        "drop_identities", "fold_constants", "fuse_decode_crop", "shuffle_before_read", "shard_before_read", "defer_cast",
        "batch_early", "fuse_geometry", "fuse_colour", "form_kernels", "parallelise", "prefetch_last", "place_cache",
    } <= set(names)  # fmt: skip
    at = names.index
    assert at("shuffle_before_read") < at("shard_before_read"), "a shard is a block of the shuffled order"
    assert at("fuse_geometry") < at("defer_cast") < at("batch_early") < at("place_cache") < at("form_kernels")
    assert at("defer_cast") < at("fold_constants")
    assert names[-2:] == ["parallelise", "prefetch_last"]


@pytest.mark.parametrize("path", PASS_FILES, ids=lambda p: p.stem)
def test_each_pass_says_before_what_it_does(path: Path) -> None:
    """The first line of a pass shows what becomes of what; the record says why, and how far numbers may move."""
    first = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]
    assert "→" in first
    own = next(p for p in PASSES if p.name == path.stem)
    assert own.rewrite_class in ("E0", "E1")
    assert own.reason
    assert not own.reason.endswith(".")
