"""The JSON Schema: what the loader accepts it accepts, and typos it rejects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import BaseModel
from spec_helpers import HEAD, codes, read
from test_sections import FULL

from pipegen.diagnostics.diagnostic import Diagnostics
from pipegen.ops.registry import sources, transforms
from pipegen.ops.sources.listing.base import Source
from pipegen.ops.transform import Transform
from pipegen.spec.compose import compose
from pipegen.spec.expect import field_type, shape, words_of
from pipegen.spec.json_schema import json_schema
from pipegen.spec.load import load
from pipegen.spec.models import PipelineSpec

SCHEMA = json_schema()
CHECK = jsonschema.Draft202012Validator(SCHEMA)

GOOD = [
    FULL,
    HEAD,
    HEAD + "shuffle: {window: 1GiB}\nepoch: {steps: 10}\nbatch: {size: 3, remainder: {train: keep, test: pad}}\n",
    HEAD + "splits: {parts: {train: 10, test: 0.5}, method: hash, group: {path: '(.*)/'}, folds: {count: 5, fold: 0}}\n",
    HEAD + "output: {x: [image], y: ~, dtype: uint8, channels: first}\nerrors: {decode: {skip: {report: a.jsonl}}, exclude: b.txt}\n",
    HEAD + "runtime: {cache: memory, shard: {index: 0, count: 2}, prefetch: {device: auto}, threads: 3, jit: never}\n",
    HEAD + "transforms: [{random_rotation: {degrees: [-5, 20], fill: {constant: 0}, when: [train, test]}}]\n",
    "pipegen: 1\nsource: {by_split: {train: {image_folder: {path: a}}, test: {image_folder: {path: b}}}}\n",
    "params: {names: {type: list, default: [a, b]}}\npipegen: 1\nsource: {image_folder: {path: x, classes: $names}}\n",
    "pipegen: 1\nsource: {by_split: {common: {image_folder: {labels: none}}, train: {image_folder: {path: a}}}}\n",
    "params: {n: {type: int, default: 3}, b: {type: bool, default: true}}\n"
    "pipegen: 1\nsource: {image_folder: {path: x, follow_links: $b}}\nseed: $n\nbatch: {size: '${n}'}\n",
]

BAD = [
    HEAD + "bacth: {size: 3}\n",
    HEAD + "batch: {sise: 3}\n",
    HEAD + "batch: {size: 0}\n",
    HEAD + "batch: {size: big}\n",
    HEAD + "shuffle: globl\n",
    HEAD + "shuffle: {window: lots}\n",
    HEAD + "splits: {parts: {1a: 0.5}}\n",
    HEAD + "splits: {parts: {train: 1.5}}\n",
    HEAD + "transforms: [rezise]\n",
    HEAD + "transforms: [random_rotation]\n",
    HEAD + "transforms: [{resize: {siz: 3}}]\n",
    HEAD + "transforms: [{resize: {size: 3}, random_flip: {}}]\n",
    HEAD + "transforms: {resize: {size: 3}}\n",
    HEAD + "params: {n: {type: itn}}\n",
    HEAD + "params: {a-b: {type: int}}\n",
    "pipegen: 2\nsource: {image_folder: {path: x}}\n",
    "source: {image_folder: {path: x}}\n",
    "pipegen: 1\n",
    "pipegen: 1\nsource: {image_foldr: {path: x}}\n",
    "pipegen: 1\nsource: {image_folder: {}}\n",
]


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"].endswith("2020-12/schema")


@pytest.mark.parametrize("text", GOOD)
def test_good_specs(text: str) -> None:
    assert [e.message for e in CHECK.iter_errors(yaml.safe_load(text))] == []
    assert codes(read("", head=text)) == []


@pytest.mark.parametrize("text", BAD)
def test_bad_specs(text: str) -> None:
    assert not CHECK.is_valid(yaml.safe_load(text))
    assert read("", head=text).spec is None


@pytest.mark.parametrize("op", sorted(transforms()))
def test_every_worked_example(op: str) -> None:
    for example in transforms()[op].examples:
        assert CHECK.is_valid(yaml.safe_load(HEAD + f"transforms:\n  - {example.yaml}\n"))


def test_a_file_of_classes() -> None:
    for classes, fits in (({"file": "names.txt"}, True), ({"file": 3}, False), ({"files": "names.txt"}, False)):
        assert CHECK.is_valid(yaml.safe_load(HEAD) | {"source": {"image_folder": {"path": "x", "classes": classes}}}) is fits


def test_a_spec_that_extends_needs_nothing_else() -> None:
    assert CHECK.is_valid({"extends": "base.yaml"})


def _fields(node: Any) -> list[dict[str, Any]]:
    found = [p for p in node.get("properties", {}).values()] if isinstance(node, dict) else []
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        found += _fields(inner)
    return found


def test_every_field_is_documented() -> None:
    fields = _fields(SCHEMA)
    assert len(fields) > 100
    assert [f for f in fields if not f.get("description")] == []


def test_generated_titles_and_internal_names_stay_out() -> None:
    assert "title" not in SCHEMA["$defs"]["Batch"]["properties"]["size"]
    assert SCHEMA["$defs"]["Batch"]["properties"]["size"]["default"] == 32
    assert SCHEMA["$defs"]["Batch"]["additionalProperties"] is False


def test_it_is_the_same_every_time() -> None:
    assert json_schema() == SCHEMA


def _both(spec: Any) -> tuple[bool, bool]:
    """Whether the schema and whether the loader accepts a spec."""
    return CHECK.is_valid(spec), not load(spec, env={}).diagnostics.has_errors


def _with(value: Any, path: tuple[str | int, ...], word: Any) -> Any:
    """A copy of a value with a word at a path, maps made where there are none."""
    if not path:
        return word
    if isinstance(value, list):
        return [_with(inner, path[1:], word) if i == path[0] else inner for i, inner in enumerate(value)]
    value = value if isinstance(value, dict) else {}
    return {**value, path[0]: _with(value.get(path[0]), path[1:], word)}


SECTIONS: dict[str, Any] = {
    "pipegen": 1,
    "source": {"image_folder": {"path": "x"}},
    "splits": {"parts": {"train": 0.8, "validation": 0.2}},
    "batch": {"remainder": {"train": "drop"}},
    "output": {"encode": {"label": "int"}},
}


def _models(model: type[BaseModel], path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every place below a model that takes words, with each of them."""
    for name in model.model_fields:
        annotation = field_type(model, name)
        at = (*path, name)
        members = shape(annotation).items if shape(annotation).kind == "union" else (annotation,)
        for member in members:
            inner = shape(member)
            yield from ((at, word) for word in inner.items if inner.kind == "literal")
            if inner.kind == "model" and inner.annotation not in (Transform, Source):
                yield from _models(inner.annotation, at)


def _choices() -> Iterator[tuple[str, Any]]:
    """Every word of every choice in a spec of its own: of the sections, the sources and the steps."""
    for section in ("shuffle", "epoch", "splits", "batch", "output", "errors", "runtime"):
        annotation = field_type(PipelineSpec, section)
        yield from ((section, {**SECTIONS, section: word}) for word in words_of(annotation))
        if shape(annotation).kind == "model":
            for path, word in _models(shape(annotation).annotation, (section,)):
                sizes = [8, 9] if word == "length" else [[8, 8], [6, 9]]
                sized = _with(SECTIONS, ("batch", "buckets", "sizes"), sizes) if "buckets" in path else SECTIONS
                spec = _with(sized, path, word)
                yield f"{path} {word}", spec
    for word in ("drop", "keep", "pad"):
        yield f"remainder {word}", _with(SECTIONS, ("batch", "remainder", "train"), word)
    for word in ("int", "one_hot", "binary", "multi_hot"):
        yield f"encode {word}", _with(SECTIONS, ("output", "encode", "label"), word)
    for op, cls in transforms().items():
        for path, word in _models(cls, (op,)):
            for example in cls.examples:
                step = yaml.safe_load(example.yaml)
                step = {step: {}} if isinstance(step, str) else step
                yield f"{path} {word}", {**SECTIONS, "transforms": [_with(step, path, word)]}


def test_a_bare_word_of_the_schema_validates_and_a_map_without_arguments_too() -> None:
    wrong = []
    for form in (lambda op: op, lambda op: {op: {}}):
        wrong += [op for op in transforms() if len(set(_both({**SECTIONS, "transforms": [form(op)]}))) > 1]
        wrong += [op for op in sources() if len(set(_both({**SECTIONS, "source": form(op)}))) > 1]
    assert wrong == []
    assert _both({**SECTIONS, "transforms": ["random_flip"]}) == (True, True)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_every_word_of_every_choice_validates_where_the_schema_offers_it(every: bool) -> None:
    """A word may clash with a neighbour, as `mode: crop` with `shorter_side`: one worked example of the step takes it. By day the others
    are not tried any more."""
    taken: dict[str, bool] = {}
    for where, spec in _choices():
        if taken.get(where) and not every:
            continue
        schema, loader = _both(spec)
        assert schema or not loader, f"the loader takes {where} and the schema does not"
        taken[where] = taken.get(where, False) or (schema and loader)
    assert len(taken) > 200
    assert sorted(where for where, fine in taken.items() if not fine) == []


def _corpus() -> Iterator[tuple[str, str]]:
    """Every spec in the repository's examples, pages, golden files and tests."""
    root = Path(__file__).parents[2]
    for path in [*root.glob("examples/**/*.pipegen.yaml"), *root.glob("tests/tasks/*.pipegen.yaml")]:
        yield path.name, path.read_text(encoding="utf-8")
    for path in [
        *root.glob("docs/*.md"),
        root / "README.md",
        *root.glob("pipegen/diagnostics/rules/*.md"),
        *root.glob("tests/golden/*/**/*.md"),
    ]:
        for block in re.findall(r"^```yaml\b[^\n]*\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            yield path.name, block


@pytest.mark.nightly
def test_what_the_loader_accepts_the_schema_accepts() -> None:
    refused, seen = [], 0
    for name, text in _corpus():
        if "pipegen:" not in text:
            continue  # a part of a spec, which is not loaded
        loaded = load("spec.yaml", text=text, env={})
        if loaded.spec is None or "extends:" in text:
            continue
        seen += 1
        value: Any = loaded.raw
        if "params" in text:  # whose values are put in there
            tree = compose(text, "spec.yaml", Diagnostics())
            assert tree is not None
            value = tree.value
        if errors := [e.message for e in CHECK.iter_errors(value)]:
            refused.append((name, errors))
    assert seen > 150
    assert refused == []
