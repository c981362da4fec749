"""`errors.missing`, on every source whose records name files: some that do not exist are an error, or dropped, all or up to a share."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from pipegen.cli.commands import app
from pipegen.data.collect import collect
from pipegen.diagnostics.diagnostic import Severity
from pipegen.errors import SpecError
from pipegen.ops.registry import sources
from pipegen.phases.compilation import collect_data, load
from pipegen.spec.spec_hash import spec_hash

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)

COUNT, GONE = 12, 3
SIDE = 16
FEATURES = {"image": {"kind": "image", "column": "file"}, "label": {"kind": "label", "column": "label"}}
NAMES = [f"{i}.png" for i in range(COUNT)]
LABELS = ["cat" if i % 2 else "dog" for i in range(COUNT)]


def photo(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((SIDE, SIDE, 3), 20 * (len(path.stem)), np.uint8)).save(path)


def photos(folder: Path) -> None:
    """All images but the last ones."""
    for name in NAMES[:-GONE]:
        photo(folder / name)


def csv(folder: Path) -> dict[str, Any]:
    photos(folder)
    (folder / "t.csv").write_text("file,label\n" + "".join(f"{n},{c}\n" for n, c in zip(NAMES, LABELS, strict=True)))
    return {"csv": {"path": "t.csv", "features": FEATURES}}


def parquet(folder: Path) -> dict[str, Any]:
    photos(folder)
    pq.write_table(pa.table({"file": NAMES, "label": LABELS}), folder / "t.parquet")
    return {"parquet": {"path": "t.parquet", "features": FEATURES}}


def jsonl(folder: Path) -> dict[str, Any]:
    photos(folder)
    rows = [{"file": n, "label": c} for n, c in zip(NAMES, LABELS, strict=True)]
    (folder / "t.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return {"jsonl": {"path": "t.jsonl", "features": FEATURES}}


def excel(folder: Path) -> dict[str, Any]:
    photos(folder)
    pd.DataFrame({"file": NAMES, "label": LABELS}).to_excel(folder / "t.xlsx", index=False)
    return {"excel": {"path": "t.xlsx", "features": FEATURES}}


def sql(folder: Path) -> dict[str, Any]:
    photos(folder)
    with sqlite3.connect(folder / "t.db") as base:
        base.execute("create table t (file text, label text)")
        base.executemany("insert into t values (?, ?)", zip(NAMES, LABELS, strict=True))
    features = FEATURES | {"image": FEATURES["image"] | {"root": str(folder)}}
    return {"sql": {"url": f"sqlite:///{folder}/t.db", "query": "select * from t order by rowid", "features": features}}


def joined(folder: Path) -> dict[str, Any]:
    """Paths that stand in the joined table."""
    photos(folder)
    (folder / "t.csv").write_text("id,label\n" + "".join(f"{i},{c}\n" for i, c in enumerate(LABELS)))
    (folder / "files.csv").write_text("id,file\n" + "".join(f"{i},{n}\n" for i, n in enumerate(NAMES)))
    return {"csv": {"path": "t.csv", "features": FEATURES, "join": {"table": {"csv": {"path": "files.csv"}}, "on": "id"}}}


def masks(folder: Path) -> dict[str, Any]:
    """Every image is there, and masks beside them are not."""
    for name in NAMES:
        photo(folder / name)
    for name in NAMES[:-GONE]:
        (folder / "masks").mkdir(exist_ok=True)
        Image.fromarray(np.zeros((SIDE, SIDE), np.uint8)).save(folder / "masks" / name)
    (folder / "t.csv").write_text("file,mask,label\n" + "".join(f"{n},masks/{n},{c}\n" for n, c in zip(NAMES, LABELS, strict=True)))
    return {"csv": {"path": "t.csv", "features": FEATURES | {"mask": {"kind": "mask", "column": "mask", "classes": 2}}}}


def empty_cells(folder: Path) -> dict[str, Any]:
    photos(folder)
    rows = "".join(f"{'' if i >= COUNT - GONE else n},{LABELS[i]}\n" for i, n in enumerate(NAMES))
    (folder / "t.csv").write_text(f"file,label\n{rows}")
    return {"csv": {"path": "t.csv", "features": FEATURES}}


def windows(folder: Path) -> dict[str, Any]:
    tifffile = pytest.importorskip("tifffile")
    for i, name in enumerate(NAMES[:-GONE]):
        tifffile.imwrite(folder / f"{name}.tif", np.full((SIDE, SIDE, 3), i, np.uint8))
    (folder / "t.csv").write_text("file,label\n" + "".join(f"{n}.tif,{c}\n" for n, c in zip(NAMES, LABELS, strict=True)))
    image = {"kind": "image", "column": "file", "format": {"geotiff": {"bands": [1, 2, 3], "window": [0, 0, SIDE, SIDE]}}}
    return {"csv": {"path": "t.csv", "features": FEATURES | {"image": image}}}


def files(folder: Path) -> dict[str, Any]:
    """Images without a mask, and a mask without an image."""
    for name in NAMES[:-1]:
        photo(folder / "photos" / name)
    for name in [*NAMES[:-GONE], NAMES[-1]]:
        (folder / "masks").mkdir(exist_ok=True)
        Image.fromarray(np.zeros((SIDE, SIDE), np.uint8)).save(folder / "masks" / name)
    features = {"image": {"kind": "image", "path": "photos"}, "mask": {"kind": "mask", "path": "masks", "classes": 2}}
    return {"files": {"features": features}}


def coco(folder: Path) -> dict[str, Any]:
    """Images that the file names and that are not there, and annotations of an image that it does not name."""
    photos(folder / "photos")
    photo(folder / "photos" / NAMES[-3])
    known = [{"id": i, "file_name": name, "width": SIDE, "height": SIDE} for i, name in enumerate(NAMES[:-1])]
    boxes = [{"id": i, "image_id": i, "category_id": 1, "bbox": [1, 1, 8, 8]} for i in range(COUNT)]
    Path(folder / "photos" / NAMES[-3]).unlink()
    (folder / "c.json").write_text(json.dumps({"images": known, "categories": [{"id": 1, "name": "cat"}], "annotations": boxes}))
    return {"coco": {"images": "photos", "annotations": "c.json"}}


def voc(folder: Path) -> dict[str, Any]:
    photos(folder / "JPEGImages")
    (folder / "Annotations").mkdir()
    thing = "<object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object>"
    for name in NAMES:
        (folder / "Annotations" / f"{Path(name).stem}.xml").write_text(f"<annotation>{thing}</annotation>")
    return {"voc": {"path": "."}}


def voc_lists(folder: Path) -> dict[str, Any]:
    source = voc(folder)
    (folder / "ImageSets/Main").mkdir(parents=True)
    (folder / "ImageSets/Main/all.txt").write_text("".join(f"{Path(name).stem}\n" for name in NAMES))
    return {"voc": source["voc"] | {"split": "all"}}


def yolo(folder: Path) -> dict[str, Any]:
    photos(folder / "images")
    (folder / "labels").mkdir()
    for name in NAMES:
        (folder / "labels" / f"{Path(name).stem}.txt").write_text("0 .5 .5 .25 .25\n")
    return {"yolo": {"path": "."}}


def yolo_beside(folder: Path) -> dict[str, Any]:
    """Text files beside their images, where others may lie as well."""
    photos(folder / "all")
    for name in NAMES:
        (folder / "all" / f"{Path(name).stem}.txt").write_text("0 .5 .5 .25 .25\n")
    (folder / "all" / "README.txt").write_text("Shot in May.\n")
    return {"yolo": {"path": "all"}}


def yolo_split(folder: Path) -> dict[str, Any]:
    """A split that is a folder, whose labels lie in the folder of the same name."""
    photos(folder / "images/train")
    (folder / "labels/train").mkdir(parents=True)
    for name in NAMES:
        (folder / "labels/train" / f"{Path(name).stem}.txt").write_text("0 .5 .5 .25 .25\n")
    return {"yolo": {"path": ".", "split": "train"}}


def yolo_list(folder: Path) -> dict[str, Any]:
    source = yolo(folder)
    (folder / "train.txt").write_text("".join(f"./images/{name}\n" for name in NAMES))
    (folder / "data.yaml").write_text("names: [cat]\ntrain: train.txt\n")
    return {"yolo": source["yolo"] | {"path": "data.yaml", "split": "train"}}


def labelme(folder: Path) -> dict[str, Any]:
    photos(folder / "drawn")
    for name in NAMES:
        shapes = [{"label": "cat", "shape_type": "rectangle", "points": [[1, 1], [8, 8]]}]
        (folder / "drawn" / f"{Path(name).stem}.json").write_text(json.dumps({"imagePath": name, "shapes": shapes}))
    return {"labelme": {"path": "drawn"}}


def by_split(folder: Path) -> dict[str, Any]:
    """Two tables, of which one has rows without a file."""
    source = csv(folder)["csv"]
    (folder / "v.csv").write_text("file,label\n0.png,cat\n1.png,dog\n")
    return {"by_split": {"train": {"csv": source}, "validation": {"csv": source | {"path": "v.csv"}}}}


def mix(folder: Path) -> dict[str, Any]:
    source = csv(folder)["csv"]
    (folder / "v.csv").write_text("file,label\n0.png,cat\n1.png,dog\n")
    parts = {"a": {"source": {"csv": source}, "weight": 1}, "b": {"source": {"csv": source | {"path": "v.csv"}}, "weight": 1}}
    return {"mix": {"parts": parts, "epoch": 8}}


FORMS: dict[str, tuple[Callable[[Path], dict[str, Any]], str, int]] = {
    "csv": (csv, "PG401", COUNT),
    "parquet": (parquet, "PG401", COUNT),
    "jsonl": (jsonl, "PG401", COUNT),
    "excel": (excel, "PG401", COUNT),
    "sql": (sql, "PG401", COUNT),
    "csv, joined": (joined, "PG401", COUNT),
    "csv, masks": (masks, "PG401", COUNT),
    "csv, empty cells": (empty_cells, "PG421", COUNT),
    "csv, windows": (windows, "PG401", COUNT),
    "files": (files, "PG424", COUNT),
    "coco": (coco, "PG476", COUNT),
    "voc": (voc, "PG476", COUNT),
    "voc, lists": (voc_lists, "PG578", COUNT),
    "yolo": (yolo, "PG476", COUNT),
    "yolo, beside": (yolo_beside, "PG476", COUNT),
    "yolo, split": (yolo_split, "PG476", COUNT),
    "yolo, list": (yolo_list, "PG578", COUNT),
    "labelme": (labelme, "PG476", COUNT),
    "by_split": (by_split, "PG401", COUNT + 2),
    "mix": (mix, "PG401", COUNT),  # each part by itself
}
"""For each form what writes it, the code of the finding, and the records that there would be."""
WITHOUT_FILES = {
    **dict.fromkeys(("audio_folder", "image_folder"), "every file that is found is a record"),
    "series": "rows of one file",
    **dict.fromkeys(("array_record", "arrow", "hdf5", "lmdb", "mds", "prepared", "sqlite", "tfds", "tfrecord", "webdataset", "zarr", "zip"),
                    "records hold their bytes"),
    "arrays": "rows of arrays",
    "dataframe": "as the other tables, tested with data below",
    "huggingface": "Arrow holds bytes, and Parquet is read as by `parquet`",
}  # fmt: skip
OUTPUTS = {"boxes": {"x": "image", "y": {"boxes": "boxes"}}, "mask": {"x": "image", "y": "mask"}, "": {"x": "image", "y": "label"}}


def test_every_source_is_here_or_names_no_files() -> None:
    assert {form.partition(",")[0] for form in FORMS} | set(WITHOUT_FILES) == set(sources())


def spec_of(form: str, folder: Path, **own: Any) -> dict[str, Any]:
    source = FORMS[form][0](folder)
    op = next(iter(source))
    of = "boxes" if op in ("coco", "voc", "yolo", "labelme") else "mask" if op == "files" or form == "csv, masks" else ""
    spec: dict[str, Any] = {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": 8}}], "output": OUTPUTS[of]}
    return spec | {"batch": {"size": 1}} | own


def found(spec: dict[str, Any], folder: Path) -> Any:
    (folder / "s.pipegen.yaml").write_text(json.dumps(spec))
    return collect(load(folder / "s.pipegen.yaml").model, base=folder)


@pytest.mark.parametrize("form", FORMS)
def test_records_without_a_file(form: str, tmp_path: Path) -> None:
    code, total = FORMS[form][1:]
    spec = spec_of(form, tmp_path)
    raised = found(spec, tmp_path)
    assert raised.manifest is None
    assert [d.code for d in raised.diagnostics if d.severity is Severity.ERROR] == [code] * len(raised.lost), raised.diagnostics
    assert len(raised.missing) == GONE
    helps = [line for d in raised.lost for line in d.help]
    assert any("`errors: {missing: drop}`" in line for line in helps)

    dropped = found(spec | {"errors": {"missing": "drop"}}, tmp_path)
    assert dropped.manifest is not None, dropped.diagnostics
    assert {d.code for d in dropped.lost} == {code}
    assert all(d.severity is Severity.WARNING and "left out" in d.message for d in dropped.lost)
    records = sum(part.total for part in dropped.manifest.by_part().values())
    assert records == total - GONE + (2 if form == "mix" else 0)

    header = "# Files that cannot be read, for `errors: {exclude: FILE}`. Written by `pipegen validate --data --write-exclude`.\n"
    (tmp_path / "out.txt").write_text(header + "\n".join(raised.missing))
    excluded = found(spec | {"errors": {"exclude": "out.txt"}}, tmp_path)
    assert excluded.manifest is not None, excluded.diagnostics
    assert not excluded.lost
    assert list(excluded.manifest.all_ids) == list(dropped.manifest.all_ids), "dropping is the same as excluding what lacks a file"
    assert excluded.manifest.fingerprint == dropped.manifest.fingerprint

    total -= 2 if form == "by_split" else 0  # those of the other split
    enough, few = GONE / total + 1e-9, GONE / total - 0.01
    assert found(spec | {"errors": {"missing": {"max_fraction": enough}}}, tmp_path).manifest is not None
    over = found(spec | {"errors": {"missing": {"max_fraction": few}}}, tmp_path)
    assert over.manifest is None
    assert all(f"{GONE} of {total} is more than `max_fraction: {few:g}` allows" in d.message for d in over.lost)


@pytest.mark.nightly
@pytest.mark.parametrize("form", [form if form == "csv" else pytest.param(form, marks=pytest.mark.nightly) for form in FORMS])
@pytest.mark.tf
def test_the_list_that_validate_writes_leaves_them_out(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The advice, followed, works; and damaged files come to the same list."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(json.dumps(spec_of(form, tmp_path)))
    run = CliRunner().invoke(app, ["validate", "s.yaml", "--data=all", "--write-exclude", "out.txt"])
    assert run.exit_code == 1, run.output
    listed = [line for line in (tmp_path / "out.txt").read_text().splitlines() if not line.startswith("#")]
    assert len(listed) == GONE
    spec = json.loads((tmp_path / "s.yaml").read_text()) | {"errors": {"exclude": "out.txt"}}
    (tmp_path / "s.yaml").write_text(json.dumps(spec))
    run = CliRunner().invoke(app, ["validate", "s.yaml", "--data=all", "--write-exclude", "out.txt"])
    assert run.exit_code == 0, run.output
    assert [line for line in (tmp_path / "out.txt").read_text().splitlines() if not line.startswith("#")] == listed


@pytest.mark.tf
def test_missing_and_damaged_files_come_to_one_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(json.dumps(spec_of("csv", tmp_path)))
    (tmp_path / "0.png").write_bytes((tmp_path / "0.png").read_bytes()[:40])
    run = CliRunner().invoke(app, ["validate", "s.yaml", "--data=all", "--write-exclude", "out.txt"])
    assert "PG401" in run.output
    assert "PG406" in run.output
    assert {"0.png", NAMES[-1]} < set((tmp_path / "out.txt").read_text().splitlines())


def test_a_table_in_memory(tmp_path: Path) -> None:
    photos(tmp_path)
    image = FEATURES["image"] | {"root": str(tmp_path)}
    spec = {"pipegen": 1, "source": {"dataframe": {"features": FEATURES | {"image": image}}}, "transforms": [{"resize": {"size": 8}}]}
    data: Any = pd.DataFrame({"file": NAMES, "label": LABELS})
    with pytest.raises(SpecError, match="3 of 12 rows lack a file"):
        collect_data(load(spec | {"batch": {"size": 1}}), None, data)
    kept = collect_data(load(spec | {"batch": {"size": 1}, "errors": {"missing": "drop"}}), None, data)
    assert kept.total == COUNT - GONE
    late = collect_data(load(spec | {"batch": {"size": 1}}), None, data, late_files=True)
    assert late.total == COUNT


def test_what_is_left_out_by_other_rules_does_not_count(tmp_path: Path) -> None:
    """`where`, `ignore` and `exclude` come first, and files that no record names are no records."""
    spec = spec_of("csv", tmp_path)
    (tmp_path / "foreign.png").write_bytes(b"x")
    rows = "".join(f"{n},{'unknown' if i >= COUNT - GONE else LABELS[i]}\n" for i, n in enumerate(NAMES))
    (tmp_path / "t.csv").write_text(f"file,label\n{rows}")
    source = spec["source"]["csv"]
    ignored = source | {"features": FEATURES | {"label": FEATURES["label"] | {"ignore": ["unknown"]}}}
    for changed in (ignored, source | {"where": "label != 'unknown'"}):
        listed = found(spec | {"source": {"csv": changed}}, tmp_path)
        assert (listed.manifest.total, listed.lost) == (COUNT - GONE, ())
    (tmp_path / "out.txt").write_text(NAMES[-1])
    limited = {"exclude": "out.txt", "missing": {"max_fraction": 2 / 11}}
    assert found(spec | {"errors": limited}, tmp_path).manifest.total == COUNT - GONE
    assert found(spec | {"errors": limited | {"missing": {"max_fraction": 0.18}}}, tmp_path).manifest is None


def test_the_share_counts_in_each_split_of_its_own(tmp_path: Path) -> None:
    """A small split that lacks most of its files is not hidden by a large one that has all."""
    spec = spec_of("csv", tmp_path)
    source = spec["source"]["csv"]
    rows = [f"{name},{label}\n" for name, label in zip(NAMES, LABELS, strict=True)]
    (tmp_path / "large.csv").write_text("file,label\n" + "".join(rows[:-GONE] * 20))
    (tmp_path / "small.csv").write_text("file,label\n" + "".join(rows[-GONE - 1 :]))
    parts = {"train": {"csv": source | {"path": "large.csv"}}, "validation": {"csv": source | {"path": "small.csv"}}}
    split = {key: value for key, value in spec.items() if key != "splits"} | {"source": {"by_split": parts}}
    few = found(split | {"errors": {"missing": {"max_fraction": 0.05}}}, tmp_path)
    assert few.manifest is None
    (finding,) = [d for d in few.diagnostics if d.code == "PG401"]
    assert f"{GONE} of {GONE + 1} rows lack a file" in finding.message
    assert "is more than `max_fraction: 0.05` allows" in finding.message
    enough = found(split | {"errors": {"missing": {"max_fraction": GONE / (GONE + 1)}}}, tmp_path)
    assert enough.manifest is not None


def test_nothing_left_is_an_error_whatever_the_spec_says(tmp_path: Path) -> None:
    spec = spec_of("csv", tmp_path)
    for name in NAMES[:-GONE]:
        (tmp_path / name).unlink()
    listed = found(spec | {"errors": {"missing": "drop"}}, tmp_path)
    assert listed.manifest is None
    (finding,) = listed.diagnostics
    assert finding.severity is Severity.ERROR
    assert "leaving them out, as `errors.missing` asks, would leave no record" in finding.message
    assert finding.help == ("the paths must be relative to `root`",)


def test_a_split_of_which_nothing_is_left_is_an_error_that_says_so(tmp_path: Path) -> None:
    photos(tmp_path)
    for split, names in {"train": NAMES[:-GONE], "test": [f"gone-{name}" for name in NAMES]}.items():
        (tmp_path / f"{split}.csv").write_text("file,label\n" + "".join(f"{name},a\n" for name in names))
    features = {"image": {"kind": "image", "column": "file"}, "label": {"kind": "label"}}
    parts = {split: {"csv": {"path": f"{split}.csv", "features": features}} for split in ("train", "test")}
    spec = {"pipegen": 1, "source": {"by_split": parts}, "transforms": [{"resize": {"size": 8}}], "batch": {"size": 1}}
    listed = found(spec | {"errors": {"missing": "drop"}}, tmp_path)
    assert [(d.code, d.severity) for d in listed.diagnostics] == [("PG401", Severity.ERROR)]
    (finding,) = listed.diagnostics
    assert "would leave no record of a split" in finding.message
    assert "`test`" in finding.message


def test_it_is_meaning_and_the_default_is_none() -> None:
    def made(**errors: Any) -> Any:
        return load(
            {"pipegen": 1, "source": {"image_folder": {"path": "x"}}, "transforms": [{"resize": {"size": 8}}], "errors": errors}
        ).model

    assert spec_hash(made()) == spec_hash(made(missing="raise"))
    hashes = {spec_hash(made(missing=choice)) for choice in ("raise", "drop", {"max_fraction": 0.05}, {"max_fraction": 0.1})}
    assert len(hashes) == 4


def test_half_of_the_images_of_coco_under_other_names(tmp_path: Path) -> None:
    """`file_name` relative to another folder: half of the data was lost without a word."""
    for name in NAMES:
        photo(tmp_path / "photos" / name)
    images = [{"id": i, "file_name": f"train2017/{name}" if i % 2 else name} for i, name in enumerate(NAMES)]
    boxes = [{"id": i, "image_id": i, "category_id": 1, "bbox": [1, 1, 8, 8]} for i in range(COUNT)]
    (tmp_path / "half.json").write_text(json.dumps({"images": images, "categories": [{"id": 1, "name": "cat"}], "annotations": boxes}))
    spec = {"pipegen": 1, "source": {"coco": {"images": "photos", "annotations": "half.json"}}, "transforms": [{"resize": {"size": 8}}]}
    listed = found(spec | {"output": OUTPUTS["boxes"], "batch": {"size": 1}}, tmp_path)
    (finding,) = listed.diagnostics
    assert (finding.code, finding.severity, "6 of 12 images lack a file" in finding.message) == ("PG476", Severity.ERROR, True)
    assert "'1.png' lies directly in it, and the file says 'train2017/1.png'" in finding.help
