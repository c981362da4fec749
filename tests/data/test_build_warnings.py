"""`build` logs what the listing warns of, and `print(pipe)` counts what was left out."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pipegen
from pipegen.data.collect import left_out, warning_lines
from pipegen.errors import SpecError
from pipegen.phases.compilation import collect_data, load

RESIZE = [{"resize": {"size": 8}}]
LOGGED = {"PG401", "PG405", "PG411"}


def photo(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((16, 16, 3), 90, np.uint8)).save(path)
    return path.name


def table(folder: Path, rows: int = 12, gone: int = 2) -> dict[str, Any]:
    """A table of which some rows have no file."""
    lines = [f"{name},{'cat' if i % 2 else 'dog'}\n" for i, name in enumerate(f"{i}.png" for i in range(rows))]
    for i in range(rows - gone):
        photo(folder / f"{i}.png")
    (folder / "t.csv").write_text(f"file,label\n{''.join(lines)}")
    features = {"image": {"kind": "image", "column": "file"}, "label": {"kind": "label", "column": "label"}}
    return {"csv": {"path": str(folder / "t.csv"), "features": features}}


def spec(source: dict[str, Any], **own: Any) -> dict[str, Any]:
    return {"pipegen": 1, "source": source, "transforms": RESIZE, "batch": {"size": 1}, "errors": {"missing": "drop"}} | own


def forms(folder: Path) -> dict[str, dict[str, Any]]:
    """Specs of which each drops two rows: alone, by split, as a part of a mix, and in stages."""
    source = table(folder)
    mix = {"mix": {"parts": {"a": {"source": source, "weight": 1}}, "epoch": 4}}
    stages = {"params": {"n": {"type": "int", "default": 1}}, "transforms": [{"resize": {"size": "$n"}}]}
    return {
        "alone": spec(source),
        "by split": spec({"by_split": {"train": source}}),
        "mix": spec(mix),
        "stages": spec(source) | stages | {"stages": [{"epochs": 1, "params": {"n": 4}}, {"epochs": 1, "params": {"n": 8}}]},
    }


@pytest.mark.tf
@pytest.mark.parametrize("form", ["alone", "by split", "mix", "stages"])
def test_a_build_logs_rows_that_were_dropped_once(form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="pipegen"):
        pipe = pipegen.build(forms(tmp_path)[form])
    (line,) = (record for record in caplog.records if record.getMessage().startswith("PG401"))
    assert line.levelno == logging.WARNING
    assert "t.csv:12 names" in line.getMessage()
    assert "2 of 12 rows lack a file" in line.getMessage()
    assert "left out: 2 rows that lack a file" in repr(pipe)
    assert "2 rows that lack a file" in pipe._repr_html_()


def test_many_findings_of_a_kind_are_one_line(tmp_path: Path) -> None:
    """A class that is in no part of a split is told of for each split; so it is with each kind."""
    for c in "abcdefgh":
        photo(tmp_path / "data" / c / "0.png")
    splits = {"parts": {"train": 0.25, "validation": 0.25, "test": 0.25, "rest": 0.25}}
    manifest = collect_data(load(spec({"image_folder": {"path": str(tmp_path / "data")}}, splits=splits)))
    (line,) = (line for line in warning_lines(manifest) if line.startswith("PG405"))
    assert line.endswith("(3 more like this)")


def test_a_comment_of_the_spec_silences_a_warning(tmp_path: Path) -> None:
    lines = json.dumps(spec(table(tmp_path)))
    (tmp_path / "s.yaml").write_text(lines)
    assert [*warning_lines(collect_data(load(tmp_path / "s.yaml")))]
    (tmp_path / "s.yaml").write_text(f"{lines} # pipegen: ignore[PG401]\n")
    assert not [*warning_lines(collect_data(load(tmp_path / "s.yaml")))]


def test_what_was_left_out_is_counted(tmp_path: Path) -> None:
    root = tmp_path / "data"
    for c in ("cat", "dog"):
        for i in range(10):
            photo(root / c / f"{i}.png")
    photo(root / "loose.png")
    for name in ("cat/notes.txt", "cat/more.txt", "cat/.hidden"):
        (root / name).write_text("x")
    (tmp_path / "bad.txt").write_text("cat/0.png\n")
    (tmp_path / "copies.txt").write_text("cat/1.png\ndog/1.png\n")
    parts = {"parts": {"train": 0.5, "validation": 0.3}, "exclude": str(tmp_path / "copies.txt")}
    manifest = collect_data(load(spec({"image_folder": {"path": str(root)}}, splits=parts, errors={"exclude": str(tmp_path / "bad.txt")})))
    listed = left_out(manifest)
    assert {"1 image outside every class folder", "2 files that are not images", "1 hidden entry", "1 excluded entry"} <= set(listed)
    copies = len(manifest.left_out)
    assert any("`splits.exclude` names" in text for text in listed) is (copies > 0)
    used = sum(manifest.num_examples(split) for split in manifest.splits)
    assert f"{19 - copies - used} examples that no part asks for" in listed


@pytest.mark.parametrize(("size", "severity"), [(30, "warning"), (60, "info")])
def test_parts_that_leave_most_examples_unused_are_a_warning(tmp_path: Path, size: int, severity: str) -> None:
    for i in range(100):
        photo(tmp_path / "data" / f"{i}.png")
    source = {"image_folder": {"path": str(tmp_path / "data"), "labels": "none"}}
    manifest = collect_data(load(spec(source, splits={"parts": {"train": size}})))
    (finding,) = (d for d in manifest.findings if d.code == "PG411")
    assert (finding.severity.value, "counts" in finding.help[0]) == (severity, True)


@pytest.mark.parametrize(("total", "warned"), [(100, []), (120, ["PG411"]), (548, ["PG411"])])
def test_counts_that_sum_to_100(tmp_path: Path, total: int, warned: list[str]) -> None:
    """A warning without data; with data none where there are 100 examples, else one that says what is unused."""
    for i in range(total):
        photo(tmp_path / "data" / f"{i}.png")
    source = {"image_folder": {"path": str(tmp_path / "data"), "labels": "none"}}
    loaded = load(spec(source, splits={"parts": {"train": 80, "validation": 20}}))
    (finding,) = (d for d in loaded.warnings if d.code == "PG626")
    assert finding.help[0] == "for per cent write `parts: {train: 0.8, validation: 0.2}`"
    findings = [d for d in collect_data(loaded).findings if d.code == "PG411"]
    assert [d.code for d in findings] == warned
    assert all(d.severity.value == "warning" and "train: 0.8, validation: 0.2" in d.help[0] for d in findings)


@pytest.mark.parametrize(
    "parts",
    [{"train": 80, "validation": 21}, {"train": 0.8, "validation": 0.2}, {"train": 1000}, {"train": 80}],
)
def test_other_sizes_do_not_read_as_per_cent(parts: dict[str, Any]) -> None:
    loaded = load(spec({"image_folder": {"path": "data", "labels": "none"}}, splits={"parts": parts}))
    assert "PG626" not in {d.code for d in loaded.warnings}


def test_counts_of_100_in_a_part_of_a_mix() -> None:
    part = {"source": {"image_folder": {"path": "a", "labels": "none"}}, "weight": 1, "splits": {"parts": {"train": 90, "test": 10}}}
    loaded = load(spec({"mix": {"parts": {"a": part}, "epoch": 8}}))
    (finding,) = (d for d in loaded.warnings if d.code == "PG626")
    assert finding.labels[0].path == "source.mix.parts.a.splits.parts"


def records(folder: Path, count: int) -> dict[str, Any]:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "r.h5", "w") as file:
        file["image"] = np.zeros((count, 8, 8, 3), np.uint8)
        file["label"] = np.arange(count) % 2
    features = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 2}}
    return {"hdf5": {"path": str(folder / "r.h5"), "features": features}}


@pytest.mark.parametrize(("count", "far"), [(40, True), (2000, False)])
def test_records_far_from_the_fractions_and_what_mends_it(tmp_path: Path, count: int, far: bool) -> None:
    source, parts = records(tmp_path, count), {"train": 0.8, "validation": 0.2}
    given = {"source": source, "splits": {"parts": parts, "seed": 0}}
    found = []
    for seed in range(8):
        manifest = collect_data(load(spec(source, splits={"parts": parts, "seed": seed})))
        off = abs(manifest.num_examples("validation") - 0.2 * count)
        warned = any(d.code == "PG627" for d in manifest.findings)
        assert warned is (off > 0.05 * count and off >= 2)
        found.append(warned)
        exact = collect_data(load(spec(source, splits={"parts": parts, "seed": seed, "method": "random"})))
        assert exact.num_examples("validation") == 0.2 * count
        assert "PG627" not in {d.code for d in exact.findings}
    assert any(found) is far, given


def test_groups_far_from_the_fractions(tmp_path: Path) -> None:
    for i in range(40):
        photo(tmp_path / "data" / f"site{i % 3}" / f"{i}.png")
    source = {"image_folder": {"path": str(tmp_path / "data"), "labels": "none"}}
    manifest = collect_data(load(spec(source, splits={"parts": {"train": 0.8, "validation": 0.2}, "group": {"path": "(site\\d)"}})))
    (finding,) = (d for d in manifest.findings if d.code == "PG627")
    assert finding.labels[0].path == "splits.parts.train", "the first of those that are far"
    assert "groups stay whole" in finding.message
    assert "method: random" not in finding.help[0]


def test_an_empty_part_says_how_many_groups_there_are(tmp_path: Path) -> None:
    for i in range(40):
        photo(tmp_path / "data" / f"site{i % 2}" / f"{i}.png")
    source = {"image_folder": {"path": str(tmp_path / "data"), "labels": "none"}}
    parts = {"train": 0.8, "validation": 0.1, "test": 0.1}
    with pytest.raises(SpecError) as caught:
        collect_data(load(spec(source, splits={"parts": parts, "group": {"path": "(site\\d)"}})))
    assert {d.code for d in caught.value.diagnostics} == {"PG404"}
    assert "there are 40 examples in 2 groups, which stay whole" in str(caught.value)
    assert str(caught.value).startswith("error[PG404]"), "in a log, too, the first line says something"
