"""The page on moving from `ImageDataGenerator` is complete, its YAML loads, and the tests that it names exist."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import pipegen
from pipegen import compat
from pipegen.compat import ImageDataGenerator
from pipegen.compat.flow_specs import ENCODINGS
from pipegen.compat.frames import CLASS_MODES
from pipegen.ops import registry
from pipegen.spec.models import PipelineSpec

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "imagedatagenerator.md").read_text(encoding="utf-8")
SIGNATURES = {
    "constructor": "__init__",
    "flow": "flow",
    "flow_from_directory": "flow_from_directory",
    "flow_from_dataframe": "flow_from_dataframe",
}
ARGUMENTS_OF_STEPS = {"axis", "column", "columns", "method"}
"""Keys that stand in a cell by themselves, since the steps that take them stand beside."""


@functools.cache
def table(name: str) -> list[list[str]]:
    """The rows below a mark, as cells."""
    _, _, rest = PAGE.partition(f"<!-- table: {name} -->\n")
    lines = rest.partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def spans(cell: str) -> list[str]:
    """What stands between backticks."""
    return re.findall(r"`([^`]+)`", cell)


def arguments(name: str) -> list[str]:
    """The arguments that a table has rows for; pipegen's own stand in the third column."""
    found: list[str] = []
    for old, _, ours, _ in table(name):
        for span in spans(old) or spans(ours)[:1]:
            found += re.findall(r"(?:^|, )([a-z_]+)(?:=|$)", span)
    return found


@pytest.mark.parametrize("name", [*SIGNATURES, "class modes", "iterators", "classes"])
def test_every_row_is_whole(name: str) -> None:
    assert table(name)
    for row in table(name):
        assert len(row) == 4, row
        assert all(row), row
        assert "–" in row[3] or "::" in row[3], row


@pytest.mark.parametrize("name", SIGNATURES)
def test_every_argument_has_a_row(name: str) -> None:
    signature = set(inspect.signature(getattr(ImageDataGenerator, SIGNATURES[name])).parameters) - {"self"}
    assert set(arguments(name)) == signature


def test_every_class_mode_has_a_row() -> None:
    modes = {ast.literal_eval(spans(old)[0]) for old, *_ in table("class modes")}
    assert modes - {"other"} == set(CLASS_MODES)
    assert set(ENCODINGS) < modes


def members() -> set[str]:
    """What the iterators define that is not private, read from their source, since importing them imports TensorFlow."""
    files = sorted(Path(compat.__file__).parent.glob("*iterator*.py"))
    assert len(files) == 2
    found = set()
    for kind in (node for file in files for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)):
        for node in ast.walk(kind):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
                found.add(node.attr if node.value.id == "self" else "_")
        found |= {node.name for node in kind.body if isinstance(node, ast.FunctionDef)}
        found |= {node.target.id for node in kind.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    of_datasets = {"cardinality", "element_spec"}
    return {name for name in found if not re.match(r"_[^_]|_$|__init__", name)} - of_datasets


def test_every_member_of_the_iterators_has_a_row() -> None:
    there: set[str] = set()
    missing: set[str] = set()
    for old, _, ours, _ in table("iterators"):
        names = re.findall(r"\bit\.(\w+)", " ".join(spans(old) or spans(ours)[:1]))
        (missing if ours.startswith("not there") else there).update(names)
    assert there == members()
    assert not missing & members()


def test_every_function_and_method_has_a_row() -> None:
    rows = table("functions")
    assert all(len(row) == 3 and all(row) and "::" in row[2] for row in rows)
    named = {span for old, *_ in rows for span in spans(old)}
    functions = {name for name in compat.__all__ if name[0].islower() and "_dataset_from_" not in name}  # those have pages of their own
    methods = {name for name, value in inspect.getmembers(ImageDataGenerator, callable) if not name.startswith("_")}
    assert named == functions | methods | {"mean", "std", "zca_whitening_matrix"}


def test_every_class_has_a_row() -> None:
    rows = {old for old, *_ in table("classes")}
    for name in dir(compat):
        if name.endswith("Iterator"):
            assert any(re.search(rf"\b{name}\(|, {name}\)", old) for old in rows), name


@functools.cache
def defined_in(file: Path) -> frozenset[str]:
    """The names of a file's tests."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_test_that_is_named_exists() -> None:
    named = set(re.findall(r"`([\w/.]+::\w+)`", PAGE)) - {"file::test"}
    assert len(named) > 50
    for span in named:
        file, name = span.split("::")
        path = ROOT / file if "/" in file else Path(__file__).parent / file
        assert path.is_file(), span
        assert name in defined_in(path), span


def snippets(cell: str) -> list[tuple[str, Any]]:
    """The steps and sections of a cell, by name."""
    found: list[tuple[str, Any]] = []
    for span in spans(cell):
        if re.match(r"[a-z_]+: ", span):
            ((name, value),) = yaml.safe_load(span).items()
            assert name in registry.transforms() or name in PipelineSpec.model_fields or name in ARGUMENTS_OF_STEPS, span
            found.append((name, value))
    return [(name, value) for name, value in found if name not in ARGUMENTS_OF_STEPS]


CELLS = sorted({row[1] for name in (*SIGNATURES, "class modes", "iterators", "classes") for row in table(name) if snippets(row[1])})


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: spans(cell)[0][:40])
def test_the_yaml_of_a_cell_loads(cell: str) -> None:
    found = snippets(cell)
    steps = [{name: value} for name, value in found if name in registry.transforms()]
    resized = any("resize" in step for step in steps)
    reading = [step for step in steps if "decode" in step]
    transforms = [*reading, *([] if resized else [{"resize": {"size": [40, 60]}}]), *(step for step in steps if step not in reading)]
    sections = {name: value for name, value in found if name in PipelineSpec.model_fields}
    sources = [value for name, value in found if name == "source"] or [{"image_folder": {"path": "photos"}}]
    for source in sources:
        pipegen.load({"pipegen": 1, **sections, "source": source, "transforms": transforms})


def test_the_whole_spec_is_the_code_below_it() -> None:
    spec = re.search(r"<!-- example: whole -->\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    code = re.search(r"It is this code:\n\n```python\n(datagen = .*?\n\))", PAGE, re.DOTALL)
    assert spec is not None
    assert code is not None
    given = {k.arg: k.value for k in ast.walk(ast.parse(code[1])) if isinstance(k, ast.keyword)}
    constructor: dict[str, Any] = {str(k): 1 / 255 if k == "rescale" else ast.literal_eval(v) for k, v in given.items()}
    datagen = ImageDataGenerator(**constructor)
    written, expected = yaml.safe_load(spec[1]), datagen.to_spec("photos", target_size=(224, 224))
    pipegen.load(written)
    assert written["transforms"][-1] == {"rescale": {"to": [0, 1]}}
    for ours, theirs in zip(written["transforms"][:-1], expected["transforms"][:-1], strict=True):
        assert _rounded(ours) == _rounded(theirs)
    assert [written[name] for name in ("source", "splits", "batch")] == [expected[name] for name in ("source", "splits", "batch")]
    assert written["output"]["encode"] == expected["output"]["encode"]


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    return round(value, 5) if isinstance(value, float) else value
