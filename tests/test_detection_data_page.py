"""What `docs/detection-data.md` shows is what happens: other libraries write the data, `init` the spec, and a batch has the boxes."""

from __future__ import annotations

import os
import re
import shlex
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import pipegen
from pipegen.cli.commands import app

pytestmark = pytest.mark.tf

PAGE = Path(__file__).parents[1] / "docs" / "detection-data.md"
WRITTEN = Path(__file__).parent / "written"
"""What the libraries wrote by the page, for where they are not installed: `PIPEGEN_WRITE=1` writes it again."""
FENCE = re.compile(r"^```(python|bash|yaml)(?: title=\"([^\"\n]+)\")? *\n(.*?)^```", re.MULTILINE | re.DOTALL)
START, *_REST = re.split(r"^## (.+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
SECTIONS = {name: FENCE.findall(text) for name, text in zip(_REST[::2], _REST[1::2], strict=True)}
FACES, ROWS = "Facial keypoints in a table", "A row for each box"
LIBRARIES = {
    "TensorFlow's Object Detection records": "tensorflow",
    "TensorFlow Datasets": "tensorflow_datasets",
    "Hugging Face": "datasets",
    "WebDataset": "webdataset",
    "MosaicML Streaming": "streaming",
    "Parquet": "pyarrow",
    ROWS: "csv",
    FACES: "csv",
}


HERE = {"tensorflow", "pyarrow", "csv"}
"""Libraries that are installed where the tests run."""


def test_every_section_is_tried() -> None:
    assert {name for name, blocks in SECTIONS.items() if blocks} == set(LIBRARIES)
    assert {path.stem for path in WRITTEN.glob("*.zip")} == set(LIBRARIES.values()) - HERE


def is_installed(library: str) -> bool:
    try:
        import_module(library)
    except ImportError:
        return False
    return True


def write(section: str, code: str, known: dict[str, Any]) -> None:
    """Runs the writer of a section, or unpacks what it wrote elsewhere."""
    library = LIBRARIES[section]
    stored = WRITTEN / f"{library}.zip"
    if not is_installed(library):
        with zipfile.ZipFile(stored) as archive:
            archive.extractall(".")
        return
    exec(compile(code, f"{PAGE.name}: {section}", "exec"), known)
    if library not in HERE and os.environ.get("PIPEGEN_WRITE"):
        stored.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(stored, "w") as archive:
            for file in sorted(path for path in Path().rglob("*") if path.is_file()):
                archive.writestr(zipfile.ZipInfo(str(file)), file.read_bytes(), zipfile.ZIP_DEFLATED, 9)


def run(command: str) -> None:
    result = CliRunner().invoke(app, shlex.split(command)[1:], prog_name="pipegen")
    assert result.exit_code == 0, result.output


def boxes_of(spec: str) -> list[list[tuple[Any, ...]]]:
    """The boxes of every photo of all splits, each with its class; in no order."""
    pipe = pipegen.build(spec, runtime={"jit": "never"})
    found = []
    for split in pipe.splits:
        for _, y in pipe.dataset(split, epoch=0).as_numpy_iterator():
            for boxes, labels, there in zip(y["boxes"], y["labels"], y["there"], strict=True):
                kept = zip(np.rint(boxes[there]).astype(int).tolist(), labels[there].tolist(), strict=True)
                found.append([(label, *box) for box, label in kept])
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("section", LIBRARIES)
def test_a_section_is_true(section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {"__name__": "farm"}
    exec(compile(FENCE.findall(START)[0][2], PAGE.name, "exec"), known)
    (_, _, writer), (_, _, command), (_, name, spec) = SECTIONS[section]
    write(section, writer, known)
    run(command)
    written = Path(name).read_text(encoding="utf-8")
    if section == FACES:  # whose long line is folded on the page
        assert yaml.safe_load(written) == yaml.safe_load(spec)
    else:
        assert written == spec
    run(f"pipegen validate {name} --data=all")
    if section == FACES:
        points = [y.numpy() for _, y in pipegen.build(name, runtime={"jit": "never"}).train]
        assert {*np.unique(np.concatenate(points)[..., 2])} <= {0.0, 2.0}
        np.testing.assert_array_equal(points[0][0, :2], [[30.5, 40.0, 2.0], [64.0, 40.5, 2.0]])
        return
    whole = spec.replace("batch: {", "batch: {remainder: keep, ").replace("size: 224", "size: [48, 64]")  # that of the photos
    Path(name).write_text(whole, encoding="utf-8")
    due = [[(k, x, y, x + w, y + h) for k, (x, y, w, h) in zip(labels, boxes, strict=True)] for _, boxes, labels in known["photos"]]
    assert sorted(boxes_of(name)) == sorted(due)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("section", [name for name, blocks in SECTIONS.items() if blocks and "format: xywh" in blocks[2][2]])
def test_a_wrong_format_is_a_finding_whose_advice_works(section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {"__name__": "farm"}
    exec(compile(FENCE.findall(START)[0][2], PAGE.name, "exec"), known)
    (_, _, writer), _, (_, name, spec) = SECTIONS[section]
    write(section, writer, known)

    def said(form: str) -> Any:
        Path(name).write_text(spec.replace("format: xywh", f"format: {form}"), encoding="utf-8")
        return CliRunner().invoke(app, ["validate", name, "--data"], prog_name="pipegen")

    found = said("rel_xyxy").output
    assert "PG250" in found
    advised = re.findall(r"`(\w+)`", re.findall(r"could be (.+)", found)[0])
    assert "xywh" in advised
    for form in advised:
        assert said(form).exit_code == 0
