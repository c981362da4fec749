"""Splits checked without data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from pipegen.data.split_checks import check_splits
from pipegen.diagnostics.diagnostic import Severity
from pipegen.ops.sources.by_split import BySplit
from pipegen.ops.sources.class_folders import ImageFolder
from pipegen.ops.transform import Transform
from pipegen.phases.compilation import inspect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipegen.spec.models import PipelineSpec

    MakeSpec = Callable[..., PipelineSpec]

TWO = {"train": 0.8, "validation": 0.2}
FOLDS = {"count": 5, "fold": 0}
FOLDERS = {"train": "train", "validation": "val"}


def found(spec: PipelineSpec) -> list[tuple[str, str]]:
    return [(d.code, d.labels[0].path) for d in check_splits(spec)]


@pytest.mark.parametrize(
    ("splits", "expected"),
    [
        ({"parts": TWO}, []),
        ({"parts": {"train": 0.7, "validation": 0.2}}, []),
        ({"parts": {"train": 0.9, "validation": 0.2}}, [("PG301", "splits.parts")]),
        ({"parts": {"a": 0.1, "b": 0.2, "c": 0.7}}, []),
        ({"parts": {"train": 0.8, "validation": 100}}, [("PG301", "splits.parts.validation")]),
        ({"parts": {"train": "train", "validation": 0.2}}, [("PG301", "splits.parts.train")]),
        ({"parts": {"train": 10, "validation": 2}, "method": "hash"}, [("PG301", "splits.parts.train")]),
        ({"parts": {"train": 10, "validation": 2}, "method": "keras"}, [("PG301", "splits.parts.train")]),
        ({"parts": {"train": 0.7, "validation": 0.2}, "method": "keras"}, [("PG301", "splits.parts")]),
        ({"parts": {"train": 0.7, "validation": 0.2, "test": 0.1}, "method": "keras"}, [("PG301", "splits.parts")]),
        ({"parts": {"a": 0.8, "b": 0.2}, "method": "keras"}, [("PG301", "splits.parts")]),
        ({"parts": TWO, "method": "keras"}, []),
        ({"parts": TWO, "method": "keras_utility", "seed": 2**32 - 1}, []),
        ({"parts": TWO, "method": "keras_utility", "seed": 2**32}, [("PG302", "splits.seed")]),
        ({"parts": {"train": 10, "validation": 2}, "method": "keras_utility"}, [("PG301", "splits.parts.train")]),
        ({"parts": {"train": 0.7, "validation": 0.2}, "method": "keras_utility"}, [("PG301", "splits.parts")]),
        ({"parts": {"a": 0.8, "b": 0.2}, "method": "keras_utility"}, [("PG301", "splits.parts")]),
        ({"parts": TWO, "method": "keras_utility", "stratify": "label"}, [("PG302", "splits.stratify")]),
        ({"parts": TWO, "method": "keras_utility", "group": {"path": "."}}, [("PG302", "splits.group")]),
        ({"parts": {"test": 0.1}, "folds": FOLDS, "method": "keras_utility"}, [("PG301", "splits.parts"), ("PG302", "splits.folds")]),
        ({"parts": FOLDERS, "method": "folder"}, []),
        ({"parts": TWO, "method": "folder"}, [("PG301", "splits.parts.train"), ("PG301", "splits.parts.validation")]),
        ({"parts": {"train": "a", "validation": "a/b"}, "method": "folder"}, [("PG301", "splits.parts.validation")]),
        ({"parts": {"train": "a", "validation": "a/"}, "method": "folder"}, [("PG301", "splits.parts.validation")]),
        ({"parts": {"train": "a", "validation": "../b"}, "method": "folder"}, [("PG301", "splits.parts.validation")]),
        ({"parts": TWO, "method": "hash", "stratify": "label"}, [("PG302", "splits.stratify")]),
        ({"parts": TWO, "method": "keras", "stratify": "label"}, [("PG302", "splits.stratify")]),
        ({"parts": TWO, "method": "keras", "group": {"path": "."}}, [("PG302", "splits.group")]),
        ({"parts": FOLDERS, "method": "folder", "stratify": "label"}, [("PG302", "splits.stratify")]),
        ({"parts": FOLDERS, "method": "folder", "group": {"path": "."}}, []),
        ({"parts": TWO, "method": "hash", "group": {"path": "."}}, []),
        ({"parts": TWO, "stratify": "label", "group": {"path": "."}}, []),
        ({"parts": {"test": 0.1}, "folds": FOLDS, "method": "hash"}, [("PG302", "splits.folds")]),
        ({"folds": FOLDS}, []),
        ({"parts": {"test": 0.1}, "folds": FOLDS}, []),
        ({"parts": {"train": 0.1}, "folds": FOLDS}, [("PG302", "splits.parts.train")]),
        ({"parts": {"test": 0.6, "other": 0.4}, "folds": FOLDS}, [("PG301", "splits.parts")]),
        ({"folds": {"count": 5, "fold": 5}}, [("PG303", "splits.folds.fold")]),
        ({"stratify": "label"}, [("PG302", "splits.stratify"), ("PG509", "splits")]),
        ({"parts": TWO, "group": {"path": "("}}, [("PG105", "splits.group.path")]),
        ({"parts": TWO, "group": "patient"}, [("PG302", "splits.group")]),
        ({"parts": FOLDERS, "method": {"column": "part"}}, [("PG302", "splits.method")]),
        ({}, [("PG509", "splits")]),
        ({"parts": {"train": 0.8}}, [("PG509", "splits")]),
    ],
)
def test_the_section_splits(make_spec: MakeSpec, splits: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert found(make_spec(splits=splits)) == expected


def test_fractions_above_one_name_the_fraction_that_would_fit(make_spec: MakeSpec) -> None:
    (finding,) = check_splits(make_spec(splits={"parts": {"train": 0.8, "validation": 0.2, "test": 0.1}}))
    assert finding.message == "the fractions sum to 1.1, which is more than all the data"
    assert finding.help == ("with `train: 0.7` they sum to 1",)


def test_stratification_needs_labels(make_spec: MakeSpec) -> None:
    spec = make_spec(source={"labels": "none"}, splits={"parts": TWO, "stratify": "label"})
    assert found(spec) == [("PG304", "splits.stratify")]


def test_a_source_that_knows_its_splits_takes_no_other(make_spec: MakeSpec) -> None:
    source = BySplit(parts={"train": ImageFolder(path="a"), "test": ImageFolder(path="b")})
    assert found(make_spec(source=source)) == []
    assert found(make_spec(source=source, splits={"group": {"path": "."}, "seed": 3})) == []
    both = make_spec(source=source, splits={"parts": TWO, "stratify": "label"})
    assert found(both) == [("PG302", "splits.parts"), ("PG302", "splits.stratify")]


class _Step(Transform):
    op = "step"


def test_names_of_splits_that_do_not_exist(make_spec: MakeSpec) -> None:
    spec = make_spec(
        splits={"parts": TWO},
        batch={"remainder": {"validaton": "keep"}},
        transforms=(_Step(), _Step(when=["train", "test"])),
    )
    assert found(spec) == [("PG220", "batch.remainder.validaton"), ("PG220", "transforms[1].step.when[1]")]
    first = next(iter(check_splits(spec)))
    assert first.help == ("did you mean `validation`?",)


@pytest.mark.parametrize(
    ("batch", "source", "expected"),
    [
        ({"remainder": "drop"}, {}, [("PG508", "batch.remainder")]),
        ({"remainder": {"validation": "drop"}}, {}, [("PG508", "batch.remainder.validation")]),
        ({"remainder": {"train": "drop"}}, {}, []),
        ({"remainder": "keep"}, {}, []),
        ({}, {}, []),
    ],
)
def test_dropping_evaluation_examples_is_unwise(make_spec: MakeSpec, batch: Any, source: Any, expected: list[tuple[str, str]]) -> None:
    assert found(make_spec(source=source, splits={"parts": TWO}, batch=batch)) == expected


def test_data_for_prediction_needs_no_validation_and_all_its_rows(make_spec: MakeSpec) -> None:
    assert found(make_spec(source={"labels": "none"})) == []
    assert found(make_spec(source={"labels": "none"}, batch={"remainder": "drop"})) == [("PG508", "batch.remainder")]


def test_a_plain_function_serves_as_locator(make_spec: MakeSpec) -> None:
    from pipegen.diagnostics.diagnostic import Label

    (finding,) = check_splits(make_spec(), lambda path, text="", key=False: Label(None, text, f"{path} {key}"))
    assert finding.labels[0].path == "('splits',) False"


@pytest.mark.parametrize(
    "source",
    [
        {"csv": {"path": "x.csv", "features": {"image": {"kind": "image", "column": "file"}, "label": {"kind": "label"}}}},
        {"tfrecord": {"path": "x.tfrecord", "features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}},
        {"arrays": {"features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}},
    ],
    ids=lambda source: next(iter(source)),
)
def test_the_utility_of_keras_knows_folders_alone(source: dict[str, Any]) -> None:
    spec = {"pipegen": 1, "source": source, "splits": {"parts": TWO, "method": "keras_utility"}, "transforms": [{"resize": {"size": 8}}]}
    (finding,) = [d for d in inspect("x.yaml", text=yaml.safe_dump(spec)).diagnostics.items if d.severity is Severity.ERROR]
    assert (finding.code, finding.labels[0].path) == ("PG302", "splits.method")
    assert next(iter(source)) in finding.message


def test_a_split_with_the_name_of_another_library_is_shown_at_its_key(tmp_path: Path) -> None:
    text = "pipegen: 1\nsource: {image_folder: {path: photos/}}\nsplits:\n  parts:\n    train: 0.8\n    val: 0.2\n"
    (tmp_path / "a.pipegen.yaml").write_text(f"{text}transforms: [{{resize: {{size: 8}}}}]\n", encoding="utf-8")
    (finding,) = (d for d in inspect(tmp_path / "a.pipegen.yaml").diagnostics if d.code == "PG523")
    span = finding.labels[0].span
    assert span is not None
    assert (span.line, span.column) == (6, 5), "at `val`, not at its share"
    assert finding.help[0].startswith("name it `validation`")
