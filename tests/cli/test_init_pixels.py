"""`init` of tables whose columns hold pixels: the spec reads them, and the batches have them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from pipes import batches
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import pipegen
from pipegen.cli.commands import app

pytestmark = pytest.mark.tf

COUNT = 12
RNG = np.random.default_rng(2)


def write(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    with open(path, "w", newline="") as out:
        csv.writer(out).writerows([header, *rows])


def faces(pixels: Any) -> tuple[list[str], list[list[Any]]]:
    """Emotions, as Kaggle has them, with the split of each row."""
    text = [" ".join(map(str, own.ravel())) for own in pixels]
    return ["emotion", "pixels", "Usage"], [[i % 3, text[i], "Training" if i < 8 else "PublicTest"] for i in range(COUNT)]


def digits(pixels: Any) -> tuple[list[str], list[list[Any]]]:
    names = [f"pixel{i}" for i in range(pixels[0].size)]
    return ["label", *names], [[i % 4, *own.ravel()] for i, own in enumerate(pixels)]


TABLES: dict[str, tuple[Any, tuple[int, ...], str]] = {
    "faces": (faces, (48, 48, 1), "image: {kind: image, column: pixels, size: 48}\n      label: {kind: label, column: emotion}"),
    "digits": (
        digits,
        (28, 28, 1),
        "image: {kind: image, columns: ['pixel{0..783}'], size: 28}\n      label: {kind: label, column: label}",
    ),
    "colours": (digits, (10, 10, 3), "image: {kind: image, columns: ['pixel{0..299}'], size: 10, channels: 3}"),
}


@pytest.mark.parametrize("name", TABLES)
def test_images_in_a_table_are_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made, shape, lines = TABLES[name]
    pixels = RNG.integers(0, 256, (COUNT, *shape), np.uint8)
    write(tmp_path / "a.csv", *made(pixels))
    run = CliRunner().invoke(app, ["init", "a.csv"], prog_name="pipegen")
    assert run.exit_code == 0, run.output
    text = (tmp_path / "a.pipegen.yaml").read_text()
    assert lines in text
    assert f"# The pixels of images of {shape[0]}×{shape[1]}, {'gray' if shape[2] == 1 else 'RGB'}, are numbers in the table" in text
    pipe = pipegen.build(tmp_path / "a.pipegen.yaml", runtime={"jit": "never"})
    found = np.concatenate([images for split in pipe.splits for images, _ in batches(pipe.dataset(split))])
    every = {own.tobytes() for own in np.round(found * 255).astype(np.uint8)}
    assert every <= {own.tobytes() for own in pixels}
    assert len(every) > COUNT // 2


@pytest.mark.parametrize("count", [49, 785], ids=["too few", "no square"])
def test_other_numbers_are_no_images(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.csv", [f"x{i}" for i in range(count)], [[*RNG.integers(0, 256, count)] for _ in range(COUNT)])
    assert CliRunner().invoke(app, ["init", "a.csv"], prog_name="pipegen").exit_code == 0
    assert "kind: image" not in (tmp_path / "a.pipegen.yaml").read_text()


def test_a_column_of_json_with_the_boxes_is_not_offered_as_a_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    objects = [[{"bbox": [0, 0, 4, 3 + i % 2], "category": "cat"}] for i in range(COUNT)]
    rows = [{"pixels": RNG.integers(0, 256, 64).tolist(), "objects": own} for own in objects]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    run = CliRunner().invoke(app, ["init", "a.jsonl"], prog_name="pipegen")
    assert run.exit_code == 0, run.output
    text = (tmp_path / "a.pipegen.yaml").read_text()
    assert "column: objects.bbox" in text
    assert "# objects:" not in text
