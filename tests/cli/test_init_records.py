"""`pipegen init` on files of records looks into one and writes its features."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from record_files import WRITERS, jpeg
from typer.testing import CliRunner

import pipegen
from pipegen.cli.commands import app
from pipegen.ops.registry import sources
from pipegen.phases.compilation import collect_data, inspect

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
    (tmp_path / "d").mkdir()
    WRITERS[op](tmp_path / "d" / file, [record | {label: i % 3} for i in range(9)])
    result = CliRunner().invoke(app, ["init", "d" if whole else f"d/{file}", "-o", "a.pipegen.yaml"], prog_name="pipegen")
    assert result.exit_code == 0, result.output
    spec = yaml.safe_load((tmp_path / "a.pipegen.yaml").read_text())
    assert spec["source"] == {op: {"path": "d" if whole else f"d/{file}", "features": features}}
    assert spec["transforms"][0] == {"resize": {"size": [16, 24]}}, "all pictures have that height and width"
    assert "JPEG; 24 pixels wide, 16 high" in (tmp_path / "a.pipegen.yaml").read_text()
    assert not inspect("a.pipegen.yaml").diagnostics.has_errors


PLAIN: dict[str, Any] = {"image": jpeg("24x16"), "label": 2}
NAMED = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 3}}
BY_NUMBER = {
    "image": {"kind": "image", "key": "image-*"},
    "label": {"kind": "label", "key": "label-*", "classes": 3},
}


@pytest.mark.parametrize(
    ("op", "file", "library", "source"),
    [
        ("array_record", "a.array_record", "array_record", {"features": NAMED}),
        ("hdf5", "a.h5", "h5py", {"features": NAMED}),
        ("lmdb", "a.lmdb", "lmdb", {"features": BY_NUMBER}),
        ("sqlite", "a.sqlite", "sqlite3", {"table": "examples", "features": NAMED}),
    ],
)
def test_files_that_a_library_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, op: str, file: str, library: str, source: dict[str, Any]
) -> None:
    pytest.importorskip(library, exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    WRITERS[op](tmp_path / file, [PLAIN | {"label": i % 3} for i in range(40)])
    assert init(file) == {op: {"path": file, **source}}
    assert yaml.safe_load(Path(f"{file}.pipegen.yaml").read_text())["transforms"][0] == {"resize": {"size": [16, 24]}}


def test_folders_of_classes_in_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("pets.zip", "w") as archive:
        for row in range(40):
            archive.writestr(f"data/train/{('cat', 'dog')[row % 2]}/{row}.jpg", jpeg("24x16"))
    assert init("pets.zip") == {"image_folder": {"path": "pets.zip/data/train"}}
    assert not inspect("pets.zip.pipegen.yaml").diagnostics.items  # also none that there is no such folder


def test_an_lmdb_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lmdb = pytest.importorskip("lmdb", exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    opened = lmdb.open("pets", map_size=1 << 24)
    with opened.begin(write=True) as transaction:
        for row in range(40):
            transaction.put(f"image-{row:04}".encode(), jpeg("24x16"))
            transaction.put(f"label-{row:04}".encode(), str(row % 3).encode())
    opened.close()
    assert init("pets") == {"lmdb": {"path": "pets", "features": BY_NUMBER}}


def test_arrow_and_gzipped_hdf5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa, h5py = (pytest.importorskip(name, exc_type=ImportError) for name in ("pyarrow", "h5py"))
    monkeypatch.chdir(tmp_path)
    table = pa.table({"photo": [jpeg("24x16")] * 40, "class": ["pug", "chow"] * 20})
    with pa.OSFile("a.arrow", "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    with h5py.File("b.h5", "w") as file:
        file.create_dataset("train/image", data=np.zeros((40, 8, 6, 3), np.uint8), chunks=(5, 8, 6, 3), compression="gzip")
        file["train/label"] = np.arange(40) % 4
    image, label = {"kind": "image", "key": "photo"}, {"kind": "label", "key": "class", "classes": ["chow", "pug"]}
    assert init("a.arrow") == {"arrow": {"path": "a.arrow", "features": {"image": image, "label": label}}}
    image, label = {"kind": "image", "key": "train/image"}, {"kind": "label", "key": "train/label", "classes": 4}
    assert init("b.h5") == {"hdf5": {"path": "b.h5", "features": {"image": image, "label": label}}}


@pytest.mark.parametrize("saved", [False, True])
def test_folders_of_hugging_face(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: bool) -> None:
    pa, pq = (pytest.importorskip(name, exc_type=ImportError) for name in ("pyarrow", "pyarrow.parquet"))
    monkeypatch.chdir(tmp_path)
    features = {"img": {"_type": "Image"}, "fine": {"names": ["a", "b"], "_type": "ClassLabel"}}
    for split in ("train", "test"):
        table = pa.table({"img": [{"bytes": jpeg("24x16"), "path": None}] * 40, "fine": [0, 1] * 20})
        folder = tmp_path / "pets" / (split if saved else "data")
        folder.mkdir(parents=True, exist_ok=True)
        if saved:
            with pa.OSFile(str(folder / "data.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
                writer.write_table(table)
            (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
            (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
            (tmp_path / "pets" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
        else:
            about = {"huggingface": json.dumps({"info": {"features": features}})}
            pq.write_table(table.replace_schema_metadata(about), folder / f"{split}-00000-of-00001.parquet")
    keys = {"image": {"kind": "image", "key": "img"}, "label": {"kind": "label", "key": "fine"}}
    assert init("pets") == {"huggingface": {"path": "pets", "split": {"train": "train", "validation": "test"}, "features": keys}}


def init(path: str) -> Any:
    """Writes the spec of a path, which has no findings and whose data can be listed: its source."""
    result = CliRunner().invoke(app, ["init", path, "-o", f"{path}.pipegen.yaml"], prog_name="pipegen")
    assert result.exit_code == 0, result.output
    assert not inspect(f"{path}.pipegen.yaml").diagnostics.has_errors
    assert collect_data(pipegen.load(f"{path}.pipegen.yaml")).num_examples("train")
    return yaml.safe_load(Path(f"{path}.pipegen.yaml").read_text(encoding="utf-8"))["source"]


@pytest.mark.parametrize("op", ["tfrecord", "array_record"])
def test_splits_are_told_by_the_names_of_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    for name in ("train-00000-of-00002", "train-00001-of-00002", "val-00000-of-00001"):
        WRITERS[op](tmp_path / "d" / f"{name}.{op}", [EXAMPLE | {"image/class/label": i % 3} for i in range(6)])
    result = CliRunner().invoke(app, ["init", "d"], prog_name="pipegen")
    assert result.exit_code == 0, result.output
    spec = yaml.safe_load((tmp_path / "d.pipegen.yaml").read_text())
    parts = {"train": f"d/train-*.{op}", "validation": f"d/val-*.{op}"}
    assert spec["source"] == {"by_split": {split: {op: {"path": path, "features": IN_EXAMPLE}} for split, path in parts.items()}}
    assert "splits" not in spec
    assert not inspect("d.pipegen.yaml").diagnostics.has_errors


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
    for file, said in (("a", "the first record has no image"), ("b", "it is not a TFRecord file")):
        result = CliRunner().invoke(app, ["init", f"{file}.tfrecord"], prog_name="pipegen")
        assert result.exit_code != 0
        assert said in result.output + str(result.exception)


@pytest.mark.parametrize(
    ("op", "file"),
    [
        ("tfrecord", "a.tfrecord"),
        pytest.param("sqlite", "a.sqlite", marks=pytest.mark.nightly),
    ],
)
def test_what_is_chosen_among_several_keys_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, op: str, file: str) -> None:
    """An id is in each record another, and a species in many; the picture called so is before the thumbnail."""
    monkeypatch.chdir(tmp_path)
    names = ("pug", "chow", "husky")
    record = {"thumb": jpeg("8x6"), "photo": jpeg("24x16")}
    WRITERS[op](tmp_path / file, [record | {"id": i, "species": names[i % 3], "site": i % 2} for i in range(24)])
    features = {"image": {"kind": "image", "key": "photo"}, "label": {"kind": "label", "key": "species", "classes": sorted(names)}}
    assert init(file)[op]["features"] == features
    text = Path(f"{file}.pipegen.yaml").read_text(encoding="utf-8")
    assert "# `image` reads `photo`; `thumb` is an image, too: `thumb: {kind: image, key: thumb}` adds one" in text
    assert "# `label` reads `species`, which has 3 values in 24 records; no key has a usual name of labels\n" in text
    assert "# `site` may be labels, too; choose one with `key`\n" in text


SIDES = ("xmin", "ymin", "xmax", "ymax")
IN_KEYS = {f"image/object/bbox/{side}": [0.25 * (i + 1), 0.1 * (i + 1)] for i, side in enumerate(SIDES)}
DETECTION: dict[str, Any] = {"image/encoded": jpeg("24x16"), **IN_KEYS, "image/object/class/text": [b"a", b"b"]}
BOXED = [
    (
        DETECTION,
        lambda i: {"image/object/class/label": [1 + i % 3, 3]},
        {"kind": "boxes", "format": "rel_xyxy", "keys": [f"image/object/bbox/{side}" for side in SIDES]},
        {"kind": "label", "with": "boxes", "key": "image/object/class/label", "classes": 3, "offset": 1},
    ),
    (
        {"image/encoded": jpeg("24x16"), "objects/bbox": [9.0, 8.0, 4.0, 5.0, 1.0, 2.0, 3.0, 4.0]},
        lambda i: {"objects/label": [i % 3, 0]},
        {"kind": "boxes", "format": "xywh", "key": "objects/bbox"},
        {"kind": "label", "with": "boxes", "key": "objects/label"},
    ),
    (
        {"image/encoded": jpeg("24x16"), "bounding_box": [1.0, 2.0, 3.0, 4.0]},
        lambda _: {},
        {"kind": "boxes", "format": "xyxy", "key": "bounding_box"},
        None,
    ),
]


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize(("record", "own", "boxes", "labels"), BOXED, ids=["object detection", "a list of each", "boxes alone"])
def test_boxes_are_found_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: dict[str, Any], own: Any, boxes: dict[str, Any], labels: dict[str, Any] | None
) -> None:
    """A batch has them, in pixels of the image that a model sees."""
    monkeypatch.chdir(tmp_path)
    WRITERS["tfrecord"](tmp_path / "a.tfrecord", [record | own(i) for i in range(9)])
    result = CliRunner().invoke(app, ["init", "a.tfrecord", "-o", "a.pipegen.yaml"], prog_name="pipegen")
    assert result.exit_code == 0, result.output
    source = yaml.safe_load((tmp_path / "a.pipegen.yaml").read_text())["source"]["tfrecord"]
    assert source.get("layout") == ("object_detection" if "keys" in boxes else None)
    features = sources()["tfrecord"].written_out(source)["features"]
    expected = {"image": {"kind": "image", "key": "image/encoded"}, "boxes": boxes, **({"labels": labels} if labels is not None else {})}
    assert features == expected
    x, y = next(iter(pipegen.build("a.pipegen.yaml", runtime={"jit": "never"}).train))
    assert set(y) == {"boxes", "there"} | ({"labels"} if labels is not None else set())
    assert y["there"].numpy().any()
    assert float(y["boxes"].numpy().max()) <= max(x.shape[1:3])


def objects(row: int) -> list[dict[str, Any]]:
    return [{"bbox": [10.0 + k, 8.0, 5.0, 6.0], "category": ("cat", "dog", "owl")[(row + k) % 3]} for k in range(1 + row % 3)]


def in_one_list(row: int) -> dict[str, Any]:
    return {"boxes": json.dumps([one["bbox"] for one in objects(row)]), "labels": json.dumps([one["category"] for one in objects(row)])}


def in_four_columns(row: int) -> dict[str, Any]:
    left, top, width, height = objects(row)[0]["bbox"]
    return {"xmin": left, "ymin": top, "xmax": left + width, "ymax": top + height, "class": objects(row)[0]["category"]}


LABELS = {"kind": "label", "with": "boxes"}
IN_TABLES = {
    "lists.csv": (in_one_list, {"boxes": {"kind": "boxes", "format": "xywh"}, "labels": LABELS}),
    "columns.csv": (
        in_four_columns,
        {"boxes": {"kind": "boxes", "format": "xyxy", "columns": list(SIDES)}, "labels": {**LABELS, "column": "class"}},
    ),
    "objects.jsonl": (
        lambda row: {"objects": objects(row)},
        {"boxes": {"kind": "boxes", "format": "xywh", "column": "objects.bbox"}, "labels": {**LABELS, "column": "objects.category"}},
    ),
    "json.csv": (
        lambda row: {"about": json.dumps({"objects": objects(row)})},
        {
            "boxes": {"kind": "boxes", "format": "xywh", "column": "about.objects.bbox"},
            "labels": {**LABELS, "column": "about.objects.category"},
        },
    ),
    "points.csv": (
        lambda row: {"left_x": 3 + row, "left_y": 4, "right_x": 9, "right_y": 5},
        {
            "points": {
                "kind": "keypoints",
                "columns": ["left_x", "left_y", "right_x", "right_y"],
                "names": ["left", "right"],
                "mirror_pairs": [["left", "right"]],
            }
        },
    ),
}


@pytest.mark.parametrize("file", IN_TABLES)
def test_boxes_and_points_in_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    monkeypatch.chdir(tmp_path)
    made, expected = IN_TABLES[file]
    for row in range(12):
        Path(f"{row}.jpg").write_bytes(jpeg("24x16"))
    rows = [{"file": f"{row}.jpg", **made(row)} for row in range(12)]
    if file.endswith(".csv"):
        with open(file, "w", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        Path(file).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    ((_, source),) = init(file).items()
    assert source["features"] == {"image": {"kind": "image", "column": "file"}, **expected}
    text = Path(f"{file}.pipegen.yaml").read_text(encoding="utf-8")
    assert ("output: {x: image, y: points}" if file == "points.csv" else "output: {x: image, y: {boxes: boxes, labels: labels,") in text


def test_labels_of_a_list_are_not_those_of_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first record has one object, others have more, one lacks the list, and the last shard has a class of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    for shard in range(2):
        rows = [{**DETECTION, "image/object/class/label": [1 + (i + shard) % (2 + shard)] * (1 + i % 2)} for i in range(9)]
        for i, row in enumerate(rows):
            count = 1 + i % 2
            row |= {key: value[:count] for key, value in IN_KEYS.items()} | {"image/object/class/text": [b"x"] * count}
        WRITERS["tfrecord"](tmp_path / "d" / f"{shard}.tfrecord", rows)
    assert init("d") == {"tfrecord": {"path": "d", "layout": "object_detection", "features": {"labels": {"kind": "label", "classes": 3}}}}
    rows[4].pop("image/object/bbox/xmin")
    WRITERS["tfrecord"](tmp_path / "b.tfrecord", rows)
    assert init("b.tfrecord")["tfrecord"]["features"] == {"image": {"kind": "image", "key": "image/encoded"}}
    text = Path("b.tfrecord.pipegen.yaml").read_text(encoding="utf-8")
    assert "# The boxes are not read: " in text
    assert "b.tfrecord#4 has no list 'image/object/bbox/xmin'" in text
    whole = (tmp_path / "d" / "0.tfrecord").read_bytes()
    Path("cut.tfrecord").write_bytes(whole[: len(whole) // 2])
    CliRunner().invoke(app, ["init", "cut.tfrecord"], prog_name="pipegen")
    assert "cut.tfrecord' is damaged at byte" in Path("cut.pipegen.yaml").read_text(encoding="utf-8")
