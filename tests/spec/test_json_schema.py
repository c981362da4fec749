"""The JSON Schema: what the loader accepts it accepts, and typos it rejects."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import yaml
from spec_helpers import HEAD, codes, read
from test_sections import FULL

from pipegen.ops.registry import transforms
from pipegen.spec.json_schema import json_schema

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
