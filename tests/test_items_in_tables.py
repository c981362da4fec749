"""Boxes, keypoints and values with them in every source of tables: the batches are those of the same data as arrays."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from pipes import batches
from typing import Any

import numpy as np
import pytest
import test_items_in_records as same
from PIL import Image

import pipegen
from pipegen.errors import DataError
from pipegen.ops.registry import sources
from pipegen.ops.sources.tables.source import TableSource
from pipegen.phases.compilation import collect_data

pytestmark = pytest.mark.tf

FEATURES: dict[str, dict[str, Any]] = {**same.FEATURES, "image": {"kind": "image", "column": "file"}}
Row = dict[str, Any]
Written = tuple[Mapping[str, Any], Any]
"""The arguments of a source, and what is given as `data`."""


def rows(path: Path) -> list[Row]:
    """The records, with their images in files."""
    found = []
    for i, record in enumerate(same.records()):
        (path / f"{i}.png").write_bytes(record["image"])
        found.append({"file": f"{i}.png", **{key: value for key, value in record.items() if key != "image"}})
    return found


def texts(row: Row) -> Row:
    return {key: value if key == "file" else json.dumps(value) for key, value in row.items()}


def write_text(path: Path, held: list[Row]) -> Written:
    with open(path / "t.csv", "w", newline="") as out:
        writer = csv.DictWriter(out, list(held[0]))
        writer.writeheader()
        writer.writerows(map(texts, held))
    return {"path": str(path / "t.csv"), "features": FEATURES}, None


def write_jsonl(path: Path, held: list[Row]) -> Written:
    """Objects in a list, as annotation tools write them."""
    names = [key for key in held[0] if key != "file"]
    lines = [
        {"file": row["file"], "objects": [dict(zip(names, one, strict=True)) for one in zip(*(row[n] for n in names), strict=True)]}
        for row in held
    ]
    (path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    keys = {name: {**feature, "column": f"objects.{name}"} for name, feature in FEATURES.items() if name != "image"}
    return {"path": str(path / "t.jsonl"), "features": {"image": FEATURES["image"], **keys}}, None


def write_parquet(path: Path, held: list[Row]) -> Written:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist(held), path / "t.parquet", row_group_size=5)
    return {"path": str(path / "t.parquet"), "features": FEATURES}, None


def as_frame(path: Path, held: list[Row]) -> Written:
    pandas = pytest.importorskip("pandas")
    return {"features": {**FEATURES, "image": {**FEATURES["image"], "root": str(path)}}}, pandas.DataFrame(held)


def write_excel(path: Path, held: list[Row]) -> Written:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    pandas.DataFrame(list(map(texts, held))).to_excel(path / "t.xlsx", index=False)
    return {"path": str(path / "t.xlsx"), "features": FEATURES}, None


def write_sql(path: Path, held: list[Row]) -> Written:
    with sqlite3.connect(path / "t.db") as base:
        base.execute(f"create table t ({', '.join(held[0])})")
        base.executemany(f"insert into t values ({', '.join('?' * len(held[0]))})", [list(texts(row).values()) for row in held])
    image = {**FEATURES["image"], "root": str(path)}
    return {"url": f"sqlite:///{path}/t.db", "query": "select * from t", "features": {**FEATURES, "image": image}}, None


WRITERS: dict[str, Callable[[Path, list[Row]], Written]] = {
    "csv": write_text,
    "dataframe": as_frame,
    "excel": write_excel,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
    "sql": write_sql,
}


def a_row_each(held: list[Row]) -> list[Row]:
    """A row for each item: first those of the first item of every record, or without one, then those of the second ones, …"""
    found = []
    for i in range(max(len(row["boxes"]) for row in held)):
        of_item = ({key: value if key in ("file", "image") else value[i : i + 1] for key, value in row.items()} for row in held)
        found += [one for one, row in zip(of_item, held, strict=True) if i < max(len(row["boxes"]), 1)]
    return found


def test_every_source_of_tables_is_tried() -> None:
    assert {name for name, source in sources().items() if issubclass(source, TableSource)} == set(WRITERS)


@pytest.mark.nightly
@pytest.mark.parametrize("cache", ["none", "memory", "disk"])
@pytest.mark.parametrize("op", WRITERS)
def test_batches_are_those_of_arrays(op: str, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where what a database answered is kept
    source, data = WRITERS[op](tmp_path, rows(tmp_path))
    runtime = {"jit": "never", "cache": {"disk": str(tmp_path / "cache")} if cache == "disk" else cache}
    pipe = pipegen.build(same.spec_of({op: source}), data=data, runtime=runtime, allow_write=[str(tmp_path)])
    for _ in range(2):
        same.equal(batches(pipe.train), same.as_arrays(0))


@pytest.mark.by_day(1)
@pytest.mark.parametrize("cache", ["none", "memory"])
@pytest.mark.parametrize("op", WRITERS)
def test_rows_of_one_example_are_those_of_arrays(op: str, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source, data = WRITERS[op](tmp_path, a_row_each(rows(tmp_path)))
    spec = same.spec_of({op: {**source, "group": "file"}})
    pipe = pipegen.build(spec, data=data, runtime={"jit": "never", "cache": cache}, allow_write=[str(tmp_path)])
    same.equal(batches(pipe.train), same.as_arrays(0))
    assert len({*pipe.files("train")}) == len(same.records())


@pytest.mark.nightly
def test_rows_of_one_example_hold_its_bytes(tmp_path: Path) -> None:
    held = a_row_each([dict(record) for record in same.records()])
    for number, record in enumerate(same.records()):
        for row in held:
            row |= {"id": number} if row["image"] == record["image"] else {}
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist(held), tmp_path / "t.parquet", row_group_size=5)
    source = {"path": str(tmp_path / "t.parquet"), "group": "id", "features": same.FEATURES}
    same.equal(batches(pipegen.build(same.spec_of({"parquet": source}), runtime=same.PLAIN).train), same.as_arrays(0))


GROUPED = """file,site,x0,y0,x1,y1,name
0.png,a,1,2,9,8,cat
1.png,b,,,,,
0.png,a,3,3,5.5,6,dog
2.png,b,3,3,5.5,6,dog
2.png,b,1,1,4,4,cat
"""


def grouped(path: Path, text: str = GROUPED, **own: Any) -> dict[str, Any]:
    """A spec of a table with a row for each box."""
    rows(path)
    (path / "t.csv").write_text(text)
    boxes: dict[str, Any] = {"kind": "boxes", "columns": ["x0", "y0", "x1", "y1"]}
    features = {"image": FEATURES["image"], "boxes": boxes, "name": {"kind": "label", "with": "boxes", "classes": ["cat", "dog"]}}
    source = {"path": str(path / "t.csv"), "group": "file", "features": features, **own}
    output = {"x": "image", "y": ["boxes", "name", "boxes_valid"]}
    return same.spec_of({"csv": source}, transforms=[{"resize": {"size": [16, 16]}}], output=output)


def test_a_table_with_a_row_for_each_box(tmp_path: Path) -> None:
    spec = grouped(tmp_path)
    pipe = pipegen.build(spec)
    ((_, boxes, names, valid),) = batches(pipe.train)
    np.testing.assert_array_equal(valid, [[1, 1], [0, 0], [1, 1]])
    np.testing.assert_array_equal(boxes[0], [[1, 2, 9, 8], [3, 3, 5.5, 6]])
    assert names.tolist() == [[0, 1], [0, 0], [1, 0]]
    dogs = grouped(tmp_path, where="name == 'dog'")
    ((_, boxes, _, _),) = batches(pipegen.build(dogs).train)
    np.testing.assert_array_equal(boxes[:, 0], [[3, 3, 5.5, 6]] * 2)
    every, some = (collect_data(pipegen.load(one)) for one in (spec, dogs))
    assert [*some.keys("train")] == ["0.png", "2.png"], "an example keeps its name, whichever of its rows are left out"
    assert some.ids("train").tolist() == every.ids("train")[[0, 2]].tolist()
    of_sites = {"splits": {"parts": {"train": {"site": ["b"]}, "test": {"site": ["a"]}}}}
    assert [*collect_data(pipegen.load({**spec, **of_sites})).keys("train")] == ["1.png", "2.png"]


def test_rows_of_one_example_have_to_agree(tmp_path: Path) -> None:
    features = grouped(tmp_path)["source"]["csv"]["features"]
    site = {"features": {**features, "site": {"kind": "label"}}}
    pipegen.build(grouped(tmp_path, **site))
    text = GROUPED.replace("0.png,a,3", "0.png,c,3")
    pipegen.build(grouped(tmp_path, text))  # what nothing reads may differ
    with pytest.raises(pipegen.SpecError, match=r"t.csv:2 and .*t.csv:4 are one example, but hold 'a' and 'c' in the column 'site'"):
        pipegen.build(grouped(tmp_path, text, **site))
    with pytest.raises(pipegen.SpecError, match=r"t.csv:3 has no value in the column 'x0', by which rows are grouped"):
        pipegen.build(grouped(tmp_path, group="x0"))
    numbers = GROUPED.replace(",a,", ",1.0,").replace("0.png,1.0,3", "0.png,1,3").replace(",b,", ",2,")
    pipe = pipegen.build({**grouped(tmp_path, numbers, **site), "output": {"x": "image", "y": "site"}})
    assert np.concatenate([y for _, y in batches(pipe.train)]).tolist() == [1, 2, 2]
    several = {"features": {**features, "site": {"kind": "label", "separator": "|"}}}
    pipe = pipegen.build({**grouped(tmp_path, text, **several), "output": {"x": "image", "y": "site"}})
    assert np.concatenate([y for _, y in batches(pipe.train)]).tolist() == [[1, 0, 1], [0, 1, 0], [0, 1, 0]]


def test_an_item_of_one_row_never_meets_the_value_of_another(tmp_path: Path) -> None:
    """A box without a class, and a class without a box, of one image."""
    text = GROUPED.replace("9,8,cat", "9,8,").replace("3,3,5.5,6,dog", ",,,,dog", 1)
    with pytest.raises(pipegen.SpecError, match=r"t.csv:2 has 0 items of `name` and 1 of `boxes`"):
        pipegen.build(grouped(tmp_path, text))
    with pytest.raises(pipegen.SpecError, match=r"t.csv:2 cannot be `boxes`"):
        pipegen.build(grouped(tmp_path, GROUPED.replace("1,2,9,8", "1,2,,")))  # half a box


def test_a_file_in_several_rows_is_advised_to_be_one_example(tmp_path: Path) -> None:
    spec = grouped(tmp_path)
    del spec["source"]["csv"]["group"]
    (found,) = collect_data(pipegen.load(spec)).listing.notes
    assert (found.code, found.help) == ("PG422", "if a file has several rows for its boxes, make them one example: `group: file`")
    assert not collect_data(pipegen.load(grouped(tmp_path))).listing.notes


@pytest.mark.nightly
def test_rows_that_are_chosen_and_joined_keep_their_items(tmp_path: Path) -> None:
    held = rows(tmp_path)
    left = [{"file": row["file"], "number": i} for i, row in enumerate(held)]
    right = [{"number": i, **{key: row[key] for key in row if key != "file"}} for i, row in reversed([*enumerate(held)])]
    (tmp_path / "left.jsonl").write_text("\n".join(map(json.dumps, left)))
    (tmp_path / "right.jsonl").write_text("\n".join(map(json.dumps, right)))
    join = {"table": {"jsonl": {"path": str(tmp_path / "right.jsonl")}}, "on": "number"}
    source = {"path": str(tmp_path / "left.jsonl"), "join": join, "where": "number >= 3 and number < 9", "features": FEATURES}
    pipe = pipegen.build(same.spec_of({"jsonl": source}), runtime=same.PLAIN)
    expected = [part for batch in same.as_arrays(0) for part in zip(*batch, strict=True)][3:9]
    found = [part for batch in batches(pipe.train) for part in zip(*batch, strict=True)]
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b[: len(a)] if a.shape != b.shape else b)


def instances() -> list[Any]:
    """A mask of each record: each box is filled with its number, the first in front."""
    found = []
    for record in same.records():
        mask: Any = np.zeros((same.SIDE, same.SIDE), np.uint8)
        for number, (x, y, width, height) in reversed([*enumerate(record["boxes"], 1)]):
            mask[int(y) : int(y + height), int(x) : int(x + width)] = number
        found.append(mask)
    return found


def as_png(mask: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(mask).save(stream, "PNG")
    return stream.getvalue()


def with_masks(op: str, path: Path, masks: list[Any]) -> dict[str, Any]:
    """A source whose records have a mask of instances, as bytes or as files."""
    mask, held = {"kind": "mask", "with": "boxes"}, same.records()
    own = [{**record, "mask": as_png(mask)} for record, mask in zip(held, masks, strict=True)]
    if op == "csv":
        written, _ = write_text(path, rows(path))
        for i, record in enumerate(own):
            (path / f"mask-{i}.png").write_bytes(record["mask"])
        lines = (path / "t.csv").read_text().splitlines()
        named = ["mask", *(f"mask-{i}.png" for i in range(len(own)))]
        (path / "t.csv").write_text("\n".join(f"{line},{name}" for line, name in zip(lines, named, strict=True)))
        return {"csv": {**written, "features": {**FEATURES, "mask": mask}}}
    if op == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist(own), path / "t.parquet", row_group_size=5)
        return {"parquet": {"path": str(path / "t.parquet"), "features": {**same.FEATURES, "mask": mask}}}
    if op == "tfrecord":
        same.files.write_tfrecord(path / "a", map(same.flat, own))
        return {"tfrecord": {"path": str(path / "a"), "features": {**same.FEATURES, "mask": mask}}}
    same.files.write_zip(path / "a.zip", [{**same.in_json(r), "png": m["mask"]} for r, m in zip(held, own, strict=True)])
    keys = {**same.keyed(same.FEATURES, "json."), "mask": {**mask, "key": "png"}}
    return {"zip": {"path": str(path / "a.zip"), "features": keys}}


@pytest.mark.nightly
@pytest.mark.parametrize("cache", ["none", "memory"])
@pytest.mark.parametrize("op", ["csv", "parquet", "tfrecord", "zip"])
def test_masks_of_instances_are_those_of_arrays(op: str, cache: str, tmp_path: Path) -> None:
    masks, held = instances(), same.records()
    images = np.stack([np.asarray(Image.open(io.BytesIO(record["image"]))) for record in held])
    data: dict[str, Any] = {"image": images, "mask": np.stack(masks)}
    for key, empty in (("boxes", (0, 4)), ("name", (0,)), ("score", (0,)), ("parts", (0, 2, 3))):
        data[key] = [np.array(r[key]) if r[key] else np.zeros(empty) for r in held]
    output = {"x": "image", "y": ["boxes", "name", "mask", "boxes_valid"]}
    arrays = {"arrays": {"features": {**same.FEATURES, "mask": {"kind": "mask", "with": "boxes"}}}}
    expected = batches(pipegen.build(same.spec_of(arrays, output=output), data=data, runtime=same.PLAIN).train)
    source = with_masks(op, tmp_path, masks)
    found = batches(pipegen.build(same.spec_of(source, output=output), runtime={"jit": "never", "cache": cache}).train)
    same.equal(found, expected)


@pytest.mark.parametrize("op", ["csv", "parquet", "tfrecord"])
def test_a_mask_of_an_unknown_item_is_an_error(op: str, tmp_path: Path) -> None:
    masks = instances()
    masks[2][0, 0] = 9
    with pytest.raises((pipegen.SpecError, DataError), match=r"`mask` of .* holds 9, but the image has 2 of `boxes`"):
        pipegen.build(same.spec_of(with_masks(op, tmp_path, masks), output={"x": "image", "y": ["boxes", "mask"]}))


@pytest.mark.nightly
def test_a_row_may_be_a_box(tmp_path: Path) -> None:
    """As tables of annotations have it: four columns of numbers, and empty ones where there is no box."""
    rows(tmp_path)
    (tmp_path / "t.csv").write_text("file,x0,y0,x1,y1,name\n0.png,1,2,9,8,cat\n1.png,,,,,\n2.png,3,3,5.5,6,two words\n")
    sides = ["x0", "y0", "x1", "y1"]
    features = {"image": FEATURES["image"], "boxes": {"kind": "boxes", "columns": sides}, "name": {"kind": "label", "with": "boxes"}}
    spec = same.spec_of({"csv": {"path": str(tmp_path / "t.csv"), "features": features}}, transforms=[{"resize": {"size": [16, 16]}}])
    ((_, boxes, names, valid),) = batches(pipegen.build({**spec, "output": {"x": "image", "y": ["boxes", "name", "boxes_valid"]}}).train)
    np.testing.assert_array_equal(valid[:, 0], [1, 0, 1])
    np.testing.assert_array_equal(boxes[[0, 2], 0], [[1, 2, 9, 8], [3, 3, 5.5, 6]])
    assert names[[0, 2], 0].tolist() == [0, 1]


def test_points_in_columns_are_those_of_arrays(tmp_path: Path) -> None:
    """Facial keypoints as Kaggle has them: x and y of each name, empty where a point is absent."""
    names = ["left_eye", "right_eye", "nose"]
    rng = np.random.default_rng(5)
    points = np.concatenate([rng.uniform(1, 14, (3, 3, 2)).round(2), np.full((3, 3, 1), 2.0)], -1)
    points[1, 2] = 0.0
    held = rows(tmp_path)[:3]
    columns = [f"{name}_{side}" for name in names for side in "xy"]
    cells = [["" if not point[2] else f"{value}" for point in row for value in point[:2]] for row in points.tolist()]
    lines = [["file", *columns], *([row["file"], *own] for row, own in zip(held, cells, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(map(",".join, lines)))
    face = {"kind": "keypoints", "names": names, "mirror_pairs": [["left_eye", "right_eye"]]}
    output = {"x": "image", "y": ["face", "face_valid"]}
    told = {"image": FEATURES["image"], "face": {**face, "columns": columns}}
    spec = same.spec_of({"csv": {"path": str(tmp_path / "t.csv"), "features": told}}, output=output)
    found = batches(pipegen.build(spec, runtime=same.PLAIN).train)
    images = np.stack([np.asarray(Image.open(io.BytesIO(record["image"]))) for record in same.records()[:3]])
    arrays = {"arrays": {"features": {"image": {"kind": "image"}, "face": face}}}
    expected = batches(
        pipegen.build(same.spec_of(arrays, output=output), data={"image": images, "face": list(points)}, runtime=same.PLAIN).train
    )
    same.equal(found, expected)
    (tmp_path / "t.csv").write_text("\n".join(map(",".join, [lines[0], [lines[1][0], "", *lines[1][2:]]])))
    with pytest.raises((pipegen.SpecError, DataError), match=r"t.csv:2 has an empty cell for one number of a point"):
        pipegen.build(spec)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no multiple of 4": ({"boxes": "1 2 3 4 5 6"}, r"t.csv:3 cannot be `boxes`: it has 6 numbers, which is no multiple of 4"),
    "a label too many": ({"name": '["cat", "cat", "cat"]'}, r"t.csv:3 has 3 items of `name` and 1 of `boxes`"),
    "an unknown class": ({"name": "emu"}, r"item 0 of .*t.csv:3"),
    "half a list": ({"boxes": "[[1, 2, 3"}, r"the cell in .*t.csv:3 begins with '\[\[1, 2, 3', which is not a list"),
    "words": ({"boxes": "none at all"}, r"t.csv:3 cannot be `boxes`: it holds 'none at all', not numbers"),
    "below 0": ({"boxes": "3, 3, -2, 2"}, r"t.csv:3: box 0 is"),
    "a missing value in a list": ({"boxes": "[[1, 2, null, 4]]"}, r"t.csv:3"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named_with_its_line(case: str, tmp_path: Path) -> None:
    changed, message = WRONG[case]
    held = [texts(row) for row in rows(tmp_path)]
    held[1] |= changed
    with open(tmp_path / "t.csv", "w", newline="") as out:
        writer = csv.DictWriter(out, list(held[0]))
        writer.writeheader()
        writer.writerows(held)
    with pytest.raises((pipegen.SpecError, DataError), match=message):
        pipegen.build(same.spec_of({"csv": {"path": str(tmp_path / "t.csv"), "features": FEATURES}}))


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        ({"kind": "boxes", "columns": ["a", "b"]}, "boxes need 4 `columns`, in the order of their `format`"),
        ({"kind": "boxes", "format": "npy"}, "`npy` is a format of files, and this is `kind: boxes`"),
        ({"kind": "image", "format": "xywh"}, "`xywh` is a format of boxes, and this is `kind: image`"),
        ({"kind": "keypoints", "columns": ["a", "b"]}, "there are no `names`"),
        ({"kind": "keypoints", "columns": ["a", "b", "c"], "names": ["p", "q"]}, "there are 3 for 2 names"),
        ({"kind": "label", "with": "boxes", "map": {"a": "b"}}, "map` is for labels of whole examples, and this is `with: boxes`"),
        ({"kind": "label", "with": "image"}, "which has no items\n(.*\n)*.*name a feature of `kind: boxes` or `kind: events`"),
    ],
)
def test_what_a_feature_may_not_say(feature: dict[str, Any], message: str) -> None:
    features = {"image": {"kind": "image"}, "boxes": {"kind": "boxes"}, "x": feature}
    with pytest.raises(pipegen.SpecError, match=message):
        pipegen.load(same.spec_of({"csv": {"path": "t.csv", "features": features}}, output={"x": "image"}))
