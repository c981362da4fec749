"""One run finds all that is wrong with the data, as far as one mistake does not follow from another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipegen import SpecError
from pipegen.data.collect import collect
from pipegen.phases.compilation import collect_data, load


def found(folder: Path, spec: dict[str, Any]) -> list[tuple[str, str]]:
    loaded = load({"pipegen": 1, **spec})
    return sorted((d.code, d.labels[0].path) for d in collect(loaded.model, base=folder).diagnostics.items if d.severity.value == "error")


FEATURES: dict[str, Any] = {
    "image": {"kind": "image", "column": "file"},
    "label": {"kind": "label", "column": "breeed"},
    "age": {"kind": "tensor", "column": "age"},
    "weight": {"kind": "weight", "column": "weight"},
    "size": {"kind": "tensor", "columns": ["width", "heigth", "depth"]},
}
TABLE = """file,breed,age,weight,width,height,depth
a.jpg,pug,3,1,1,1,x
gone.jpg,pug,old,1,1,1,1
,pug,4,-2,1,1,1
b.jpg,pug,,1,1,1,1
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TABLE)
    for name in "ab":
        (tmp_path / f"{name}.jpg").write_bytes(b"\xff\xd8\xff")
    return tmp_path


def test_a_table(table: Path) -> None:
    spec = {
        "source": {"csv": {"path": "t.csv", "features": FEATURES}},
        "splits": {"parts": {"train": 0.5, "validation": 0.5}, "group": "ownr"},
        "errors": {"exclude": "gone.txt"},
        "transforms": [{"resize": {"size": 8}}],
        "output": {"x": "image", "y": ["age", "size"], "sample_weight": "weight"},
    }
    at = "source.csv.features"
    assert found(table, spec) == sorted(
        [
            ("PG401", f"{at}.image.column"),  # gone.jpg
            ("PG421", f"{at}.image.column"),  # no name
            ("PG421", f"{at}.label.column"),
            ("PG423", f"{at}.age.column"),
            ("PG423", f"{at}.weight.column"),
            ("PG421", f"{at}.size.columns.1"),
            ("PG423", f"{at}.size.columns.2"),
            ("PG421", "splits.group"),
            ("PG413", "errors.exclude"),
        ]
    )


def test_wrong_cells_of_a_column_are_counted(table: Path) -> None:
    loaded = load(
        {"pipegen": 1, "source": {"csv": {"path": "t.csv", "features": {"age": FEATURES["age"]}}}, "output": {"x": "age", "y": None}}
    )
    (finding,) = (d for d in collect(loaded.model, base=table).diagnostics if d.code == "PG423")
    assert "t.csv:3" in finding.message
    assert "1 more row is wrong" in finding.message


def test_all_is_well_with_the_table_once_it_is_mended(table: Path) -> None:
    (table / "t.csv").write_text(
        TABLE.replace("x\n", "1\n").replace("old", "5").replace(",,1", ",6,1").replace("-2", "2").replace("\n,", "\nb.jpg,")
    )
    (table / "gone.jpg").write_bytes(b"\xff\xd8\xff")
    features = {**FEATURES, "label": {"kind": "label", "column": "breed"}, "size": {"kind": "tensor", "columns": ["width", "height"]}}
    assert (
        found(
            table,
            {"source": {"csv": {"path": "t.csv", "features": features}}, "batch": {"size": 2}, "transforms": [{"resize": {"size": 8}}]},
        )
        == []
    )


def test_features_of_files_and_splits_of_by_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    features = {"image": {"kind": "image", "path": "a"}, "mask": {"kind": "mask", "path": "b", "values": {"0": 0}}}
    files = {"source": {"files": {"features": features}}, "transforms": [{"resize": {"size": 8}}], "output": {"x": "image", "y": "mask"}}
    assert [place for _, place in found(tmp_path, files)] == ["source.files.features.image.path", "source.files.features.mask.path"]
    parts = {name: {"image_folder": {"path": name}} for name in ("train", "test")}
    found_parts = found(tmp_path, {"source": {"by_split": parts}, "transforms": [{"resize": {"size": 8}}]})
    assert [place for _, place in found_parts] == ["source.by_split.test.image_folder.path", "source.by_split.train.image_folder.path"]


def test_splits_and_steps_are_judged_with_the_data_together(tmp_path: Path) -> None:
    for name in ("x", "y", "z"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        (tmp_path / "photos" / name / "1.jpg").write_bytes(b"\xff\xd8\xff")
    spec = load(
        {
            "pipegen": 1,
            "source": {"image_folder": {"path": str(tmp_path / "photos")}},
            "splits": {"parts": {"train": 2, "validation": 1}},
            "transforms": [{"resize": {"size": 8}}],
            "output": {"encode": {"label": "binary"}},
        }
    )
    with pytest.raises(SpecError) as raised:
        collect_data(spec)
    codes = {d.code for d in raised.value.diagnostics if d.severity.value == "error"}
    assert "PG407" in codes, "a batch is larger than the split"
    assert any(d.labels[0].path.startswith("output") for d in raised.value.diagnostics), "three classes are not two"


@pytest.mark.tf
def test_damaged_files_are_found_beside_a_split_that_is_too_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from typer.testing import CliRunner

    from pipegen.cli.commands import app

    for name in ("x", "y"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        (tmp_path / "photos" / name / "1.jpg").write_bytes(b"\xff\xd8\xff\xe0 damaged")
    spec = "pipegen: 1\nsource: {image_folder: {path: photos}}\ntransforms: [{resize: {size: 8}}]\nruntime: {jit: never}\n"
    (tmp_path / "s.pipegen.yaml").write_text(spec)
    result = CliRunner().invoke(app, ["validate", str(tmp_path / "s.pipegen.yaml"), "--data=all", "--format", "json"])
    codes = {d["code"] for d in json.loads(result.stdout)["diagnostics"]}
    assert {"PG406", "PG407"} <= codes
