"""Boxes, keypoints and values with them in every source of records: the batches are those of the same data as arrays."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from pipes import batches
from typing import Any

import numpy as np
import pytest
import record_files as files
from field_writers import COUNT, FULL, KINDS, SIDE, Record, flat, keyed
from field_writers import WRITERS as WRITTEN
from field_writers import as_arrays as as_columns
from field_writers import records as every_kind

import pipegen
from pipegen.errors import DataError
from pipegen.ops.registry import sources
from pipegen.ops.sources.records.source import DescribedRecords, RecordSource

pytestmark = pytest.mark.tf

PLAIN = {"jit": "never", "cache": "none"}
FEATURES = {name: KINDS[name] for name in ("image", "boxes", "name", "score", "parts")}


@cache
def records(least: int = 0) -> tuple[Record, ...]:
    """Records with some boxes each, from `least` on."""
    return tuple({name: record[name] for name in FEATURES} for record in every_kind(least))


def in_json(record: Record) -> Record:
    """All but the image in one text."""
    return {"image": record["image"], "json": json.dumps({k: v for k, v in record.items() if k != "image"}).encode()}


def write(op: str, path: Path, held: Sequence[Record]) -> Mapping[str, Any]:
    path.mkdir(parents=True, exist_ok=True)
    return WRITTEN[op](path, held, FEATURES)[0]


OPS = [op for op in WRITTEN if issubclass(sources()[op], DescribedRecords)]
STEPS: list[Any] = [{"resize": {"size": [24, 24]}}, "flip", {"crop": {"size": [20, 20]}}]


def spec_of(source: Mapping[str, Any], **own: Any) -> dict[str, Any]:
    output = {"x": "image", "y": [*list(FEATURES)[1:], "boxes_valid"]}
    said = {"transforms": STEPS, "shuffle": "none", "batch": {"size": 5, "remainder": "keep"}, "output": output}
    return {"pipegen": 1, "source": source, **said, **own}


@cache
def as_arrays(least: int) -> list[tuple[Any, ...]]:
    """The batches of the records as arrays."""
    data = as_columns(records(least), [*FEATURES])
    pipe = pipegen.build(spec_of({"arrays": {"features": FEATURES}}), data=data, runtime=PLAIN)
    return batches(pipe.train)


def equal(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.nightly
@pytest.mark.parametrize("cache_", ["none", "memory", "disk"])
@pytest.mark.parametrize("op", OPS)
def test_batches_are_those_of_arrays(op: str, cache_: str, tmp_path: Path) -> None:
    least = 2 if op in FULL else 0
    source = write(op, tmp_path, records(least))
    runtime = {"jit": "never", "cache": {"disk": str(tmp_path / "cache")} if cache_ == "disk" else cache_}
    pipe = pipegen.build(spec_of({op: source}), runtime=runtime, allow_write=[str(tmp_path)])
    for _ in range(2):
        equal(batches(pipe.train), as_arrays(least))


@pytest.mark.nightly
@pytest.mark.parametrize("op", ["tfrecord", "webdataset"])
def test_the_items_of_a_split_are_those_of_its_records(op: str, tmp_path: Path) -> None:
    """Also after another start, from what was kept, and in another share."""
    source = {op: write(op, tmp_path, records())}
    spec = spec_of(source, splits={"parts": {"train": 7, "validation": 5}, "method": "random"})
    whole = {}
    for batch in as_arrays(0):
        for row, image in enumerate(batch[0]):
            whole[image.tobytes()] = [part[row] for part in batch[1:]]
    runtime = {"jit": "never"}

    def seen(read: Callable[[Any], Any]) -> int:
        count = 0
        for batch in batches(read(pipegen.build(spec, runtime=runtime, allow_write=[str(tmp_path)]))):
            for row, image in enumerate(batch[0]):
                for part, due in zip(batch[1:], whole[image.tobytes()], strict=True):
                    np.testing.assert_array_equal(part[row], due)
                count += 1
        return count

    assert seen(lambda pipe: pipe.train) == 7
    stored = sources()[op].stored  # type: ignore[attr-defined]  # a source of records

    def not_again(source: RecordSource, form: str, *about: Any) -> Any:
        assert form != "list", "kept items are not read again"
        return stored(source, form, *about)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources()[op], "stored", not_again)
        assert seen(lambda pipe: pipe.validation) == 5


@pytest.mark.nightly
def test_parts_of_files_and_of_splits(tmp_path: Path) -> None:
    tfds = dict(write("tfds", tmp_path, records()))
    expected = [part for batch in as_arrays(0) for part in batch[1]]
    for split, rows in (("train[3:7]", range(3, 7)), ("train[50%:]", range(6, 12))):
        pipe = pipegen.build(spec_of({"tfds": {**tfds, "split": split}}), runtime=PLAIN)
        found = [part for batch in batches(pipe.train) for part in batch[1]]
        np.testing.assert_array_equal(found, [expected[row] for row in rows])
    two = {"train": {"tfrecord": write("tfrecord", tmp_path / "one", records()[:8])}}
    two["validation"] = {"tfrecord": write("tfrecord", tmp_path / "two", records()[8:])}
    pipe = pipegen.build(spec_of({"by_split": two}), runtime=PLAIN)
    for split, rows in (("train", range(8)), ("validation", range(8, 12))):
        found = [part for batch in batches(pipe[split] if hasattr(pipe, "__getitem__") else getattr(pipe, split)) for part in batch[1]]
        np.testing.assert_array_equal(found, [expected[row] for row in rows])


def test_tfds_boxes_have_the_format_of_the_library(tmp_path: Path) -> None:
    source = write("tfds", tmp_path, records())
    file = tmp_path / "pets" / "1.0.0" / "features.json"
    about = json.loads(file.read_text())
    about["featuresDict"]["features"]["boxes"] = {"sequence": {"feature": {"pythonClassName": "tensorflow_datasets.BBoxFeature"}}}
    file.write_text(json.dumps(about))
    features = {**source["features"], "boxes": {"kind": "boxes"}}
    with pytest.raises(pipegen.SpecError, match=r"`rel_yxyx`|parts of the image"):
        pipegen.build(spec_of({"tfds": {**source, "features": features}}))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no multiple of 4": ({"boxes": [1.0] * 6}, r"a-0.tfrecord#1 cannot be `boxes`: it has 6 numbers, which is no multiple of 4"),
    "a label too many": ({"name": ["cat"] * 3}, r"a-0.tfrecord#1 has 3 items of `name` and 1 of `boxes`"),
    "an unknown class": ({"name": ["emu"]}, r"item 0 of .*a-0.tfrecord#1"),
    "points": ({"parts": [1.0] * 5}, r"a-0.tfrecord#1 cannot be `parts`: it has 5 numbers for 2 points, which have 2 or 3 each"),
    "below 0": ({"boxes": [3.0, 3.0, -2.0, 2.0]}, r"a-0.tfrecord#1: box 0 is"),
    "missing": ({"boxes": None}, r"a-0.tfrecord#1 has no list 'boxes'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named_with_its_record(case: str, tmp_path: Path) -> None:
    changed, message = WRONG[case]
    held = [flat(r) for r in records()]
    held[1] = {k: v for k, v in {**held[1], **changed}.items() if v is not None}
    files.write_tfrecord(tmp_path / "a-0.tfrecord", held)
    with pytest.raises((pipegen.SpecError, DataError), match=message):
        pipegen.build(spec_of({"tfrecord": {"path": str(tmp_path / "a-0.tfrecord"), "features": FEATURES}}))


def test_a_plan_says_that_items_are_held_in_memory(tmp_path: Path) -> None:
    pipe = pipegen.build(spec_of({"tfrecord": write("tfrecord", tmp_path, records())}))
    assert "`boxes` and `name` and `score` and `parts` of all records are read once and held in memory" in str(pipe.explain())


def split_up(record: Record) -> Record:
    """With a list for each of the four numbers of the boxes."""
    return {**flat(record), **{f"bbox/{side}": [box[i] for box in record["boxes"]] for i, side in enumerate("xywh")}}


@pytest.mark.nightly
@pytest.mark.parametrize("op", ["tfrecord", "webdataset"])
def test_the_four_numbers_of_a_box_may_have_a_key_each(op: str, tmp_path: Path) -> None:
    held = [split_up(r) for r in records()]
    of = "json." if op == "webdataset" else ""
    boxes = {"kind": "boxes", "format": "xywh", "keys": [f"{of}bbox/{side}" for side in "xywh"]}
    if op == "webdataset":
        rest = [{"parts": r["parts"]} for r in records()]  # a list of lists
        files.write_tar(tmp_path / "a.tar", [in_json({**r, **own}) for r, own in zip(held, rest, strict=True)])
        features = {**keyed(FEATURES, of), "boxes": boxes}
    else:
        files.write_tfrecord(tmp_path / "a.tar", held)
        features = {**FEATURES, "boxes": boxes}
    pipe = pipegen.build(spec_of({op: {"path": str(tmp_path / "a.tar"), "features": features}}), runtime=PLAIN)
    equal(batches(pipe.train), as_arrays(0))


def test_the_four_lists_have_one_length(tmp_path: Path) -> None:
    held = [split_up(r) for r in records()]
    held[1]["bbox/x"] = [1.0, 2.0]
    files.write_tfrecord(tmp_path / "a.tfrecord", held)
    features = {**FEATURES, "boxes": {"kind": "boxes", "format": "xywh", "keys": [f"bbox/{side}" for side in "xywh"]}}
    with pytest.raises(pipegen.SpecError, match=r"a.tfrecord#1 cannot be `boxes`: it has lists of "):
        pipegen.build(spec_of({"tfrecord": {"path": str(tmp_path / "a.tfrecord"), "features": features}}))


@pytest.mark.parametrize("op", ["tfrecord", "webdataset", "arrow"])
def test_photos_that_are_turned_by_their_exif_are_reported(op: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No size in records tells on which image their boxes were drawn."""
    import io

    from PIL import Image

    held = [dict(r) for r in records()]
    exif, stream = Image.Exif(), io.BytesIO()
    exif[0x112] = 6
    Image.new("RGB", (SIDE, SIDE)).save(stream, "JPEG", exif=exif)
    held[1]["image"] = stream.getvalue()
    (tmp_path / "a").mkdir()
    spec = spec_of({op: write(op, tmp_path / "a", held)})
    pipegen.build(spec)
    assert caplog.text.count("PG661") == 1
    assert "1 image has an EXIF orientation, such as " in caplog.text
    assert "#1 (6), but no image size shows if `boxes` and `parts` were drawn so; assumed: on the upright images" in caplog.text
    pipegen.build({**spec, "transforms": [{"decode": {"exif": "ignore"}}, *STEPS]})
    assert "assumed: on the images as they are stored" in caplog.text


@pytest.mark.nightly
def test_a_mix_of_two_formats_has_the_items_of_both(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one = {"source": {"tfrecord": write("tfrecord", tmp_path / "one", records()[:8])}, "weight": 2}
    two = {"source": {"webdataset": write("webdataset", tmp_path / "two", records()[8:])}, "weight": 1}
    spec = spec_of({"mix": {"epoch": "longest", "parts": {"one": one, "two": two}}})
    whole = {image.tobytes(): [part[row] for part in batch[1:]] for batch in as_arrays(0) for row, image in enumerate(batch[0])}
    seen = 0
    for batch in batches(pipegen.build(spec, runtime=PLAIN).train):
        for row, image in enumerate(batch[0]):
            for part, due in zip(batch[1:], whole[image.tobytes()], strict=True):
                np.testing.assert_array_equal(part[row], due)
            seen += 1
    assert seen == COUNT


@pytest.mark.nightly
@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "text"])
def test_items_whose_kept_file_is_damaged_are_read_again(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    spec = spec_of({"tfrecord": write("tfrecord", tmp_path, records())})
    pipegen.build(spec)
    kept = [file for file in (tmp_path / "home").rglob("*") if "-items." in file.name]
    assert len(kept) == 4, "one of each feature"
    for file in kept:
        content = file.read_bytes()
        half = len(content) // 2
        flipped = bytes([*content[:half], content[half] ^ 255, *content[half + 1 :]])
        file.write_bytes({"cut": content[:half], "empty": b"", "flipped": flipped, "text": b"no archive"}[damage])
    equal(batches(pipegen.build(spec, runtime=PLAIN).train), as_arrays(0))


@pytest.mark.nightly
def test_two_tables_of_a_file_are_kept_apart(tmp_path: Path) -> None:
    """Labels and boxes: the file, the keys and the number of records are the same."""
    import sqlite3

    with sqlite3.connect(tmp_path / "a.db") as opened:
        for table, names, width in (("one", "xy", 3.0), ("two", "xz", 4.0)):
            opened.execute(f"CREATE TABLE {table} (image BLOB, label TEXT, boxes TEXT)")
            rows = [(r["image"], names[i % 2], json.dumps([[float(i), 1.0, width, 2.0]])) for i, r in enumerate(records())]
            opened.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)
    opened.close()
    features = {"image": {"kind": "image"}, "label": {"kind": "label"}, "boxes": {"kind": "boxes", "format": "xywh"}}
    output = {"x": "image", "y": ["boxes"]}
    for table, names, width in (("one", ("x", "y"), 3.0), ("two", ("x", "z"), 4.0)):
        source = {"sqlite": {"path": str(tmp_path / "a.db"), "table": table, "features": features}}
        pipe = pipegen.build(spec_of(source, output=output, transforms=[{"resize": {"size": [SIDE, SIDE]}}]), runtime=PLAIN)
        assert pipe.class_names == names
        boxes = np.concatenate([batch[1][:, 0] for batch in batches(pipe.train)])
        np.testing.assert_array_equal(boxes[:, 2] - boxes[:, 0], np.full(COUNT, width))


@pytest.mark.by_day(1)
@pytest.mark.parametrize("op", ["tfrecord", "arrays"])
def test_no_record_may_have_an_item(op: str, tmp_path: Path) -> None:
    if op == "arrays":
        empty = {"boxes": np.zeros((0, 4)), "name": np.zeros(0, int), "score": np.zeros(0), "parts": np.zeros((0, 2, 3))}
        data: Any = {"image": np.zeros((COUNT, SIDE, SIDE, 3), np.uint8), **{name: [value] * COUNT for name, value in empty.items()}}
        pipe = pipegen.build(spec_of({"arrays": {"features": FEATURES}}), data=data, runtime=PLAIN)
    else:
        bare = [{**r, "boxes": [], "name": [], "score": [], "parts": []} for r in records()]
        pipe = pipegen.build(spec_of({"tfrecord": write("tfrecord", tmp_path, bare)}), runtime=PLAIN)
    found = batches(pipe.train)
    assert sum(len(batch[0]) for batch in found) == COUNT
    assert not any(part.any() for batch in found for part in batch[1:])


def expect(pipe: pipegen.Pipeline, split: str, count: int) -> None:
    """The examples of a split are those of the arrays, up to the number of places for items."""
    whole = {image.tobytes(): [part[row] for part in batch[1:]] for batch in as_arrays(0) for row, image in enumerate(batch[0])}
    seen = 0
    for batch in batches(getattr(pipe, split)):
        for row, image in enumerate(batch[0]):
            seen += 1
            for part, due in zip(batch[1:], whole[image.tobytes()], strict=True):
                places = min(len(part[row]), len(due))
                np.testing.assert_array_equal(part[row][:places], due[:places])
                assert not part[row][places:].any()
                assert not due[places:].any()
    assert seen == count


@pytest.mark.nightly
def test_left_out_classes_files_and_records(tmp_path: Path) -> None:
    """What leaves records out leaves out their items."""
    classed = [{**flat(r), "kind": "abc"[i % 3]} for i, r in enumerate(records())]
    files.write_tfrecord(tmp_path / "c.tfrecord", classed)
    features = {**FEATURES, "label": {"kind": "label", "key": "kind", "ignore": ["b"]}}
    chosen = {"tfrecord": {"path": str(tmp_path / "c.tfrecord"), "features": features}}
    splits = {"parts": {"train": 0.5, "validation": 0.5}, "method": "random", "stratify": "label"}
    expect(pipegen.build(spec_of(chosen, splits=splits), runtime=PLAIN), "train", 4)
    source = {"tfrecord": write("tfrecord", tmp_path, records())}
    (tmp_path / "files.txt").write_text("a-0.tfrecord\n")
    expect(pipegen.build(spec_of(source, errors={"exclude": str(tmp_path / "files.txt")}), runtime=PLAIN), "train", 7)
    (tmp_path / "records.txt").write_text("a-0.tfrecord#1\na-1.tfrecord#0\n")
    without = {"parts": {"train": 0.5, "validation": 0.5}, "method": "random", "exclude": str(tmp_path / "records.txt")}
    pipe = pipegen.build(spec_of(source, splits=without), runtime=PLAIN)
    expect(pipe, "train", 4)
    expect(pipe, "validation", 6)


@pytest.mark.nightly
def test_splits_of_other_files_have_room_for_the_most_items(tmp_path: Path) -> None:
    few, many = [records()[i] for i in (0, 1, 4, 5)], [records()[i] for i in (3, 7, 2)]
    parts = {name: {"tfrecord": write("tfrecord", tmp_path / name, held)} for name, held in (("train", few), ("validation", many))}
    pipe = pipegen.build(spec_of({"by_split": parts}), runtime=PLAIN)
    expect(pipe, "train", 4)
    expect(pipe, "validation", 3)


@pytest.mark.nightly
@pytest.mark.parametrize("fetch", ["blocks", "whole"])
@pytest.mark.parametrize("op", ["tfrecord", pytest.param("webdataset", marks=pytest.mark.nightly)])
def test_items_of_remote_files(op: str, fetch: str, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    (tmp_path / "here").mkdir()
    source = write(op, tmp_path / "here", records())
    for file in (tmp_path / "here").iterdir():
        fsspec.filesystem("memory").pipe_file(f"/items-{op}-{fetch}/{file.name}", file.read_bytes())
    name = "a-*.tfrecord" if op == "tfrecord" else "a.tar"
    remote = {"path": str(tmp_path / "cache"), "fetch": fetch}
    spec = spec_of({op: {**source, "path": f"memory://items-{op}-{fetch}/{name}"}})
    pipe = pipegen.build(spec, runtime={"jit": "never", "cache": "none", "remote_cache": remote}, allow_write=[str(tmp_path)])
    expect(pipe, "train", COUNT)


@pytest.mark.nightly
def test_a_renamed_feature_of_a_mix_has_its_items(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one = {"source": {"tfrecord": write("tfrecord", tmp_path / "one", records()[:8])}, "weight": 2}
    source = dict(write("mds", tmp_path / "two", records()[8:]))
    own = {("frames" if name == "boxes" else name): dict(feature) for name, feature in source["features"].items()}
    for feature in own.values():
        if "with" in feature:
            feature["with"] = "frames"
    two = {"source": {"mds": {**source, "features": own}}, "weight": 1, "features": {"boxes": "frames"}}
    spec = spec_of({"mix": {"epoch": "longest", "parts": {"one": one, "two": two}}})
    expect(pipegen.build(spec, runtime=PLAIN), "train", COUNT)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("op", ["tfrecord", "webdataset", "csv"])
def test_points_one_after_another_have_a_shape(op: str, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of points, without names, as numbers: x, y, x, y, …, or with the visibility."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    rng = np.random.default_rng(7)
    points = [np.concatenate([rng.integers(0, 15, (i % 4, 2)), np.full((i % 4, 1), 2)], 1)[:, :width].astype(float) for i in range(COUNT)]
    held = [{"image": r["image"], "parts": np.ravel(own).tolist()} for r, own in zip(records(), points, strict=True)]
    features: dict[str, dict[str, Any]] = {"image": {"kind": "image"}, "parts": {"kind": "keypoints", "shape": [width]}}
    path = tmp_path / "a.csv"
    if op == "csv":
        (tmp_path / "i").mkdir()
        for i, record in enumerate(held):
            (tmp_path / "i" / f"{i}.png").write_bytes(record["image"])
        path.write_text("image,parts\n" + "".join(f"i/{i}.png,{' '.join(map(str, r['parts']))}\n" for i, r in enumerate(held)))
    elif op == "tfrecord":
        files.write_tfrecord(path, held)
    else:
        files.write_tar(path, map(in_json, held))
        features = {"image": {"kind": "image", "key": "image"}, "parts": {**features["parts"], "key": "json.parts"}}
    own = {"output": {"x": "image", "y": ["parts", "parts_valid"]}}
    found = pipegen.build(spec_of({op: {"path": str(path), "features": features}}, **own), runtime=PLAIN)
    import io

    from PIL import Image

    images = np.stack([np.asarray(Image.open(io.BytesIO(r["image"]))) for r in held])
    plain = {"arrays": {"features": {"image": {"kind": "image"}, "parts": {"kind": "keypoints"}}}}
    expected = pipegen.build(spec_of(plain, **own), data={"image": images, "parts": points}, runtime=PLAIN)
    equal(batches(found.train), batches(expected.train))
    for shape, message in (([5 - width], "multiple of|visibility"), ([4], r"is `\[2\]`, x and y"), (None, r"need `shape: \[2\]`")):
        wrong = {**features, "parts": {**features["parts"], "shape": shape}}
        wrong["parts"] = {key: value for key, value in wrong["parts"].items() if value is not None}
        with pytest.raises((pipegen.SpecError, DataError), match=message):
            pipegen.build(spec_of({op: {"path": str(path), "features": wrong}}, **own))


@pytest.mark.tf
def test_records_that_where_leaves_out_have_no_say(tmp_path: Path) -> None:
    """Neither the room for items nor their classes are those of such records, and what is wrong in them is no error."""
    rows = [
        {"image": files.png(i, i, i), "boxes": [[0.0, 0.0, 4.0, 4.0]] * n, "names": names, "n": i} for i, (n, names) in enumerate(LEFT_OUT)
    ]
    stored = [{**row, "boxes": np.ravel(row["boxes"]).tolist()} for row in rows]
    files.write_tfrecord(tmp_path / "a.tfrecord", stored)
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    features = {"image": {"kind": "image"}, "boxes": {"kind": "boxes"}, "names": {"kind": "label", "with": "boxes"}}
    own: dict[str, Any] = {"shuffle": "none", "output": {"x": "image", "y": ["boxes", "names", "boxes_valid"]}, "batch": {"size": 2}}
    own["transforms"] = [{"resize": {"size": [8, 8]}}]
    found = []
    for op in ("tfrecord", "parquet"):
        source = {op: {"path": str(tmp_path / f"a.{op}"), "features": features, "where": "n in [0, 2]"}}
        pipe = pipegen.build({"pipegen": 1, "source": source, **own}, runtime=PLAIN)
        (_, (boxes, names, there)) = next(iter(pipe.train))
        found.append((boxes.numpy().tolist(), names.numpy().tolist(), there.numpy().tolist()))
    assert found[0] == found[1]
    assert np.shape(found[0][0]) == (2, 2, 4)


LEFT_OUT = [(1, ["owl"]), (3, ["ant", "ant", "bee"]), (2, ["cat", "owl"]), (2, ["cat"])]
"""The number of boxes of each record, and their names; the last has one name too few."""
