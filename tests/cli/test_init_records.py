"""`pipegen init` on files of records looks into one and writes its features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from record_files import WRITERS, jpeg
from typer.testing import CliRunner

from pipegen.cli.commands import app
from pipegen.phases.compilation import inspect

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLE: dict[str, Any] = {"image/encoded": jpeg("24x16"), "image/class/label": 2, "box": [0.5, 1.0]}
MEMBERS: dict[str, Any] = {"jpg": jpeg("24x16"), "cls": 2, "json": "{}"}


IN_ARCHIVE = {"image": {"kind": "image", "key": "jpg"}, "label": {"kind": "label", "key": "cls", "classes": 3}}
IN_EXAMPLE = {"image": {"kind": "image", "key": "image/encoded"}, "label": {"kind": "label", "key": "image/class/label", "classes": 3}}


@pytest.mark.parametrize(
    ("op", "file", "record", "features"),
    [
        ("tfrecord", "a.tfrecord", EXAMPLE, IN_EXAMPLE),
        ("webdataset", "a.tar", MEMBERS, IN_ARCHIVE),
        ("zip", "a.zip", MEMBERS, IN_ARCHIVE),
    ],
)
@pytest.mark.parametrize("whole", [False, True], ids=["a file", "a folder"])
def test_a_spec_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, op: str, file: str, record: dict[str, Any], features: dict[str, Any], whole: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    label = next(key for key in record if key in ("cls", "image/class/label"))
    WRITERS[op](tmp_path / "d" / file, [record | {label: i % 3} for i in range(9)])
    result = CliRunner().invoke(app, ["init", "d" if whole else f"d/{file}", "-o", "a.pipegen.yaml"], prog_name="pipegen")
    assert result.exit_code == 0, result.output
    spec = yaml.safe_load((tmp_path / "a.pipegen.yaml").read_text())
    assert spec["source"] == {op: {"path": "d" if whole else f"d/{file}", "features": features}}
    assert not inspect("a.pipegen.yaml").diagnostics.has_errors


def test_labels_that_count_from_one_and_names_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, labels in (("one", [1, 2, 3]), ("named", ["cat", "dog", "cat"])):
        WRITERS["tfrecord"](tmp_path / f"{name}.tfrecord", [{"image": jpeg("24x16"), "label": label} for label in labels])
        assert CliRunner().invoke(app, ["init", f"{name}.tfrecord"], prog_name="pipegen").exit_code == 0
    found = [yaml.safe_load((tmp_path / f"{name}.pipegen.yaml").read_text()) for name in ("one", "named")]
    assert [one["source"]["tfrecord"]["features"]["label"] for one in found] == [
        {"kind": "label", "classes": 3, "offset": 1},
        {"kind": "label", "classes": ["cat", "dog"]},
    ]


def test_what_holds_no_image_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    WRITERS["tfrecord"](tmp_path / "a.tfrecord", [{"label": 1}])
    (tmp_path / "b.tfrecord").write_bytes(b"junk")
    for file, said in (("a", "holds no image"), ("b", "no TFRecord file, or a compressed one")):
        result = CliRunner().invoke(app, ["init", f"{file}.tfrecord"], prog_name="pipegen")
        assert result.exit_code != 0
        assert said in result.output + str(result.exception)
