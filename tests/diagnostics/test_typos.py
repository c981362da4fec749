"""Every key and word of the language, misspelt in four ways at its place in a spec, and what is suggested there."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pipegen.ops.registry import datatests, transforms
from pipegen.phases.compilation import inspect
from pipegen.spec.models import PipelineSpec

SPEC: dict[str, Any] = {
    "pipegen": 1,
    "name": "flowers",
    "description": "for a test",
    "params": {"size": {"type": "int", "default": 64, "min": 1, "max": 99, "env": "NOBODY_SET_THIS", "description": "the side"}},
    "source": {"image_folder": {"path": "x", "classes": ["a", "b"], "labels": "folder", "pattern": "*.jpg", "follow_links": False}},
    "splits": {"parts": {"train": 0.8, "test": 0.1}, "method": "random", "stratify": "label", "group": {"path": "(.*)/"}, "seed": 1},
    "transforms": [{"resize": {"size": "$size"}}, {"random_flip": {"when": ["train"]}}],
    "seed": 1,
    "shuffle": {"window": "1MiB"},
    "epoch": {"steps": 3},
    "batch": {"size": 4, "remainder": {"train": "keep", "test": "pad"}},
    "output": {"x": "image", "y": "label", "encode": {"label": "one_hot"}, "dtype": "float16", "channels": "first"},
    "stages": [{"epochs": 2, "params": {"size": 32}, "batch": 8}, {"epochs": 3}],
    "errors": {"decode": {"skip": {"max_fraction": 0.1, "report": "r"}}, "exclude": "e"},
    "tests": [{"range": {"feature": "image", "within": [0, 1], "sample": 9, "severity": "warning"}}, {"no_leak": {"by": "near"}}],
    "runtime": {"cache": "memory", "shard": {"index": 0, "count": 2}, "prefetch": {"device": "auto"}, "threads": 2, "ram_budget": "1GiB"},
}
_FEATURES = {"image": {"kind": "image", "column": "file"}, "label": {"kind": "label"}, "loss": {"kind": "tensor"}}
_TABLE: dict[str, Any] = {
    "pipegen": 1,
    "source": {"csv": {"path": "x.csv", "features": _FEATURES}},
    "transforms": [{"resize": {"size": 8}}],
}
ALONE: dict[str, dict[str, Any]] = {
    "order": _TABLE | {"order": {"by": "loss", "from": "high", "pace": {"linear": {"from": 0.1, "to": 1, "epochs": [0, 9]}}}},
    "sampling": _TABLE
    | {
        "sampling": {
            "repeat_factor": {"feature": "label", "threshold": 0.1},
            "subset": {"fraction": 0.5, "where": "loss < 3", "stratify": "label", "seed": 1},
        },
        "output": {"x": ["image", "loss"]},
    },
    "views": _TABLE | {"views": {"far": {"count": 2, "transforms": ["random_flip"], "when": "train"}}},
}
"""Specs for sections that do not go with all of the others."""
WORDS: list[tuple[tuple[str | int, ...], list[str]]] = [
    (("shuffle",), ["global", "none"]),
    (("splits", "method"), ["random", "hash", "folder", "keras", "keras_utility"]),
    (("splits", "stratify"), ["label"]),
    (("params", "size", "type"), ["float", "bool", "path", "choice"]),
    (("source", "image_folder", "labels"), ["folder", "none"]),
    (("batch", "remainder", "train"), ["drop", "keep"]),
    (("output", "x"), ["image"]),
    (("output", "encode", "label"), ["one_hot", "binary", "multi_hot"]),
    (("output", "dtype"), ["float32", "float16", "bfloat16", "uint8"]),
    (("output", "channels"), ["last", "first"]),
    (("errors", "decode"), ["raise"]),
    (("runtime", "cache"), ["auto", "memory", "none"]),
    (("runtime", "jit"), ["auto", "always", "never"]),
    (("transforms", 1, "random_flip", "when"), ["train", "eval"]),
    (("transforms", 1, "random_flip", "axis"), ["horizontal", "vertical", "both"]),
    (("transforms", 1, "random_flip", "fill"), ["reflect", "nearest", "wrap"]),
    (("transforms", 0, "resize", "method"), ["nearest", "bilinear", "bicubic", "area", "lanczos3"]),
    (("transforms", 0, "resize", "mode"), ["stretch", "crop"]),
    (("tests", 1, "no_leak", "by"), ["exact", "near"]),
]


def typos(word: str) -> list[str]:
    """A letter lost, doubled, swapped with its neighbour, and hit beside."""
    middle = len(word) // 2
    beside = chr((ord(word[middle]) - ord("a") + 1) % 26 + ord("a"))
    made = {
        word[:middle] + word[middle + 1 :],
        word[:middle] + word[middle] + word[middle:],
        word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :],
        word[:middle] + beside + word[middle + 1 :],
    }
    return sorted(t for t in made if t != word and re.fullmatch(r"[A-Za-z]\w*", t))


def holder(spec: dict[str, Any], path: tuple[str | int, ...]) -> Any:
    value: Any = spec
    for part in path:
        value = value[part]
    return value


def maps(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every key of the language in a spec, with the path of its map."""
    names = (("params",), ("splits", "parts"), ("batch", "remainder"), ("output", "encode"))
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(key, str) and path not in names and len(key) >= 4:
            yield path, key
        yield from maps(inner, (*path, key))


def misspelt(every: int = 1) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What was meant, what was written, and the spec that it was written in; of so many the first."""
    count = itertools.count()

    def chosen(word: str) -> list[str]:
        return [typo for typo in typos(word) if next(count) % every == 0]

    for path, key in maps(SPEC):
        for typo in chosen(key):
            spec = copy.deepcopy(SPEC)
            inside = holder(spec, path)
            renamed = {typo if k == key else k: v for k, v in inside.items()}
            inside.clear()
            inside.update(renamed)
            yield key, typo, spec
    for section, whole in ALONE.items():
        for path, key in maps({section: whole[section]}):
            for typo in chosen(key):
                spec = copy.deepcopy(whole)
                inside = holder(spec, path)
                inside[typo] = inside.pop(key)
                yield key, typo, spec
    for path, words in WORDS:
        for word in words:
            for typo in chosen(word):
                spec = copy.deepcopy(SPEC)
                holder(spec, path[:-1])[path[-1]] = typo
                yield word, typo, spec
    for name, cls in transforms().items():
        for typo in chosen(name):
            yield name, typo, {**SPEC, "transforms": [typo]}
        for argument in (a for a in cls.model_fields if len(a) >= 4):
            for typo in chosen(argument):
                yield argument, typo, {**SPEC, "transforms": [{name: {typo: 1}}]}
    for name in (op for op in datatests() if len(op) >= 4):
        for typo in chosen(name):
            yield name, typo, {**SPEC, "tests": [typo]}


@pytest.mark.nightly
@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.nightly)])
def test_at_least_95_percent_of_typos_get_the_right_suggestion(every: int) -> None:
    """By day one in 11, which is prime to the four ways of misspelling."""
    total, wrong, silent = 0, [], []
    for meant, written, spec in misspelt(every):
        found = [d for d in inspect(spec).diagnostics if f"`{written}`" in d.message]
        total += 1
        if not found:
            silent.append((meant, written))
        elif not any(f"did you mean `{meant}`?" in d.help or f"write `{meant}`" in d.help for d in found):
            wrong.append((meant, written, [d.help for d in found]))
    assert silent == [], "every typo is a finding that names it"
    assert total > 1500 // every
    assert len(wrong) <= 0.05 * total, wrong


def test_the_spec_that_is_misspelt_has_every_section_and_no_error() -> None:
    assert set(PipelineSpec.model_fields) == {*SPEC, *ALONE}
    assert not any(inspect(spec).diagnostics.has_errors for spec in (SPEC, *ALONE.values()))
