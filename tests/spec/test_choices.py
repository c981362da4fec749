"""Steps and sources: a word, or a single-key map."""

from __future__ import annotations

from typing import Any

import pytest
from spec_helpers import codes, fixed, marked, only, read

from pipegen.ops.model import field_docs
from pipegen.ops.registry import sources, transforms
from pipegen.spec.mismatch import _CLAUSE
from pipegen.spec.models import Errors, Runtime


@pytest.mark.parametrize(
    ("step", "code", "mark"),
    [
        ("rezise", "PG103", "rezise"),
        ("{rezise: {size: 3}}", "PG103", "rezise"),
        ("RandomFlip", "PG103", "RandomFlip"),
        ("resize", "PG105", "resize"),
        ("{random_rotation: {}}", "PG101", "random_rotation"),
        ("random_rotation", "PG101", "random_rotation"),
        ("{random_flip: ~}", "PG112", "random_flip"),
        ("{random_rotation: 20}", "PG112", "20"),
        ("{random_rotation: [20]}", "PG112", "[20]"),
        ("{}", "PG112", "{}"),
        ("[resize]", "PG112", "[resize]"),
        ("12", "PG112", "12"),
        ("~", "PG112", "~"),
        ("{resize: {size: 3}, random_flip: {}}", "PG112", "random_flip"),
    ],
)
def test_malformed_steps(step: str, code: str, mark: str) -> None:
    loaded = read(f"transforms:\n  - {step}\n")
    finding = only(loaded)
    assert finding.code == code
    assert marked(finding, loaded) == mark


def test_a_misspelt_step_is_mended() -> None:
    for step, right in (("rezise: {size: 3}", "resize: {size: 3}"), ("random_flp", "random_flip")):
        loaded = read(f"transforms:\n  - {step}\n")
        mended = fixed(only(loaded), loaded)
        assert mended.endswith(f"  - {right}\n")
        assert codes(read(mended, head="")) == []


def test_a_dangling_colon_is_mended() -> None:
    loaded = read("transforms:\n  - random_flip:\n  - resize: {size: 3}\n")
    mended = fixed(only(loaded), loaded)
    assert "  - random_flip\n" in mended
    assert codes(read(mended, head="")) == []


def test_arguments_beside_the_step_are_explained() -> None:
    finding = only(read("transforms:\n  - resize:\n    size: 224\n"))
    assert finding.code == "PG112"
    assert "indent the arguments" in finding.help[0]


def test_a_number_in_place_of_arguments_shows_how() -> None:
    assert "write `random_rotation: {degrees: 20}`" in only(read("transforms: [{random_rotation: 20}]")).help


@pytest.mark.parametrize("value", ["{resize: {size: 3}}", "resize", "3", "~"])
def test_transforms_are_a_list(value: str) -> None:
    assert codes(read(f"transforms: {value}")) == ["PG104"]


def test_a_missing_argument_says_what_it_is() -> None:
    finding = only(read("transforms: [random_rotation]"))
    assert finding.message == "`random_rotation` needs `degrees`"
    assert any("for example `random_rotation:" in line for line in finding.help)


@pytest.mark.by_day(46)
@pytest.mark.parametrize("op", sorted(transforms()))
def test_every_worked_example_of_every_step_is_accepted(op: str) -> None:
    for example in transforms()[op].examples:
        assert codes(read(f"transforms:\n  - {example.yaml}\n")) == []


@pytest.mark.by_day(46)
@pytest.mark.parametrize("op", sorted(transforms()))
def test_every_step_rejects_an_argument_that_it_has_not(op: str) -> None:
    finding = next(d for d in read(f"transforms: [{{{op}: {{zzzz: 1}}}}]").diagnostics if d.code == "PG102")
    assert f"`{op}` has no argument `zzzz`" in finding.message
    assert all(f"`{name}`" in finding.help[-1] for name in transforms()[op].model_fields)


def source(value: str) -> object:
    return read("", head=f"pipegen: 1\nsource: {value}\n")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("image_folder", ["PG101"]),
        ("{image_folder: {}}", ["PG101"]),
        ("{image_folder: photos}", ["PG112"]),
        ("{image_foldr: {path: x}}", ["PG103"]),
        ("{image_folder: {path: x}, by_split: {}}", ["PG112"]),
        ("photos/", ["PG103"]),
        ("3", ["PG112"]),
        ("{image_folder: {path: x, classes: [1, 2]}}", ["PG104", "PG104"]),
        ("{image_folder: {path: x, bits: 16}}", ["PG102"]),
        ("{csv: {path: x}}", ["PG101"]),
        ("tfds", ["PG101"]),
        ("{by_split: {train: {image_folder: {path: x}}, test: {image_folder: {path: y, labels: none}}}}", ["PG105"]),
        ("{by_split: {train: {image_folder: {pth: x}}, test: {image_foldr: {path: y}}}}", ["PG102", "PG103"]),
        ("{by_split: {train: {csv: {path: x}}, test: {image_folder: {path: y}}}}", ["PG101"]),
        ("{by_split: {1a: {image_folder: {path: x}}}}", ["PG105"]),
        ("{by_split: {}}", ["PG105"]),
        ("{by_split: {train: ~}}", ["PG112"]),
    ],
)
def test_malformed_sources(value: str, expected: list[str]) -> None:
    assert codes(source(value)) == expected  # type: ignore[arg-type]


def test_every_split_of_by_split_has_its_own_place(tmp_path: object) -> None:
    loaded = source("{by_split: {train: {image_folder: {path: a}}, test: {image_folder: {path: b}}}}")
    assert loaded.spec.split_names() == ("train", "test")  # type: ignore[attr-defined]
    assert [part.path.rsplit("/", 1)[1] for part in loaded.spec.source.parts.values()] == ["a", "b"]  # type: ignore[attr-defined]
    label = loaded.locate.label(("source", "by_split", "test", "image_folder", "path"))  # type: ignore[attr-defined]
    assert label.span.column == 83


@pytest.mark.parametrize("model", [*sources().values(), *transforms().values(), Runtime, Errors], ids=lambda model: model.__name__)
def test_the_help_for_a_missing_key_cuts_no_code(model: Any) -> None:
    for text in field_docs(model).values():
        clause = _CLAUSE.match(" ".join(text.split()))
        assert clause is not None
        assert clause[0].count("`") % 2 == 0, clause[0]
