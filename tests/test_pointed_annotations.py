"""Keypoints and outlines of annotation files: the batches are those of the same data as arrays."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from pipes import batches
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pipegen
from pipegen.data.collect import collect
from pipegen.phases.compilation import inspect, load

pytestmark = pytest.mark.tf

COUNT, WIDTH, HEIGHT = 12, 64, 32
PLAIN = {"jit": "never", "cache": "none"}
CLASSES = ("cat", "dog")
NAMED = ("left_ear", "nose", "right_ear")
STEPS: list[Any] = [{"resize": {"size": [48, 80]}}, "flip", {"crop": {"size": [40, 60]}}]
Record = dict[str, Any]


def records() -> list[Record]:
    """Images with some boxes each, and a set of keypoints with every box, a few of them absent or hidden."""
    rng = np.random.default_rng(5)
    found = []
    for i in range(COUNT):
        n = i % 4
        corners = np.stack([rng.integers(0, WIDTH - 20, n), rng.integers(0, HEIGHT - 12, n)], -1)
        sizes = np.stack([rng.integers(4, 20, n), rng.integers(4, 12, n)], -1)
        places = np.stack([rng.integers(0, WIDTH, (n, 3)), rng.integers(0, HEIGHT, (n, 3))], -1)
        seen = rng.integers(0, 3, (n, 3, 1))
        points = np.concatenate([places * (seen > 0), seen], -1)
        picture = rng.integers(0, 256, (HEIGHT, WIDTH, 3)).astype(np.uint8)
        names = [CLASSES[(i + k) % 2] for k in range(n)]
        found.append({"image": picture, "boxes": np.concatenate([corners, corners + sizes], -1), "labels": names, "points": points})
    return found


def write_coco(folder: Path, held: list[Record]) -> dict[str, Any]:
    (folder / "photos").mkdir(parents=True)
    annotations: list[Any] = []
    for i, one in enumerate(held):
        Image.fromarray(one["image"]).save(folder / f"photos/{i:02d}.png")
        for box, name, points in zip(one["boxes"].tolist(), one["labels"], one["points"], strict=True):
            x0, y0, x1, y1 = box
            own = {"bbox": [x0, y0, x1 - x0, y1 - y0], "keypoints": points.ravel().tolist(), "num_keypoints": int((points[:, 2] > 0).sum())}
            if not own["num_keypoints"]:
                del own["keypoints"]
            annotations.append({"id": len(annotations), "image_id": i, "category_id": CLASSES.index(name), **own})
    images = [{"id": i, "file_name": f"{i:02d}.png", "width": WIDTH, "height": HEIGHT} for i in range(len(held))]
    categories = [{"id": i, "name": name, "keypoints": NAMED, "skeleton": []} for i, name in enumerate(CLASSES)]
    (folder / "boxes.json").write_text(json.dumps({"images": images, "categories": categories, "annotations": annotations}))
    return {"coco": {"images": str(folder / "photos"), "annotations": str(folder / "boxes.json"), "keypoints": "instances"}}


def write_yolo(folder: Path, held: list[Record], *, extra: str = "flip_idx: [2, 1, 0]") -> dict[str, Any]:
    """Places are fractions, from the corner of the image, where the first pixel's centre is at half a pixel."""
    (folder / "images").mkdir(parents=True)
    (folder / "labels").mkdir()
    for i, one in enumerate(held):
        Image.fromarray(one["image"]).save(folder / f"images/{i:02d}.png")
        lines = []
        for (x0, y0, x1, y1), name, points in zip(one["boxes"].tolist(), one["labels"], one["points"].tolist(), strict=True):
            box = [(x0 + x1) / 2 / WIDTH, (y0 + y1) / 2 / HEIGHT, (x1 - x0) / WIDTH, (y1 - y0) / HEIGHT]
            three = [number for x, y, seen in points for number in ((x + 0.5) / WIDTH, (y + 0.5) / HEIGHT, seen)]
            lines.append(" ".join(map(str, [CLASSES.index(name), *box, *(three if any(three[2::3]) else ())])))
        (folder / f"labels/{i:02d}.txt").write_text("\n".join(lines))
    about = f"names: {list(CLASSES)}\nkpt_shape: [3, 3]\nkpt_names: {{0: {list(NAMED)}}}\n{extra}\n"
    (folder / "data.yaml").write_text(about)
    return {"yolo": {"path": str(folder), "keypoints": "instances"}}


def write_labelme(folder: Path, held: list[Record]) -> dict[str, Any]:
    """Points are in the group of their box; absent ones are not drawn. All others are visible."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, one in enumerate(held):
        Image.fromarray(one["image"]).save(folder / f"{i:02d}.png")
        shapes: list[Any] = []
        for k, ((x0, y0, x1, y1), name, points) in enumerate(
            zip(one["boxes"].tolist(), one["labels"], one["points"].tolist(), strict=True)
        ):
            drawn = [(label, x, y) for label, (x, y, seen) in zip(NAMED, points, strict=True) if seen]
            shapes += [{"label": n, "shape_type": "point", "points": [[x + 0.5, y + 0.5]], "group_id": k} for n, x, y in drawn[:1]]
            shapes.append({"label": name, "shape_type": "rectangle", "points": [[x0, y0], [x1, y1]], "group_id": k})
            shapes += [{"label": n, "shape_type": "point", "points": [[x + 0.5, y + 0.5]], "group_id": k} for n, x, y in drawn[1:]]
        about = {"imagePath": f"{i:02d}.png", "imageWidth": WIDTH, "imageHeight": HEIGHT, "shapes": shapes}
        (folder / f"{i:02d}.json").write_text(json.dumps(about))
    return {"labelme": {"path": str(folder), "keypoints": "instances"}}


WRITERS: dict[str, Callable[[Path, list[Record]], dict[str, Any]]] = {"coco": write_coco, "yolo": write_yolo, "labelme": write_labelme}


def spec_of(source: dict[str, Any], **own: Any) -> dict[str, Any]:
    output = {"x": "image", "y": ["boxes", "labels", "keypoints", "boxes_valid"]}
    said = {"transforms": STEPS, "shuffle": "none", "batch": {"size": 5, "remainder": "keep"}, "output": output}
    return {"pipegen": 1, "source": source, **said, **own}


def arrays_of(held: list[Record], *, relative: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The source of the records as arrays, and its data; `relative` boxes are fractions of the image, as in files of YOLO."""
    features = {
        "image": {"kind": "image"},
        "boxes": {"kind": "boxes", "format": "rel_xyxy" if relative else "xyxy"},
        "labels": {"kind": "label", "with": "boxes", "classes": [*CLASSES]},
        "keypoints": {"kind": "keypoints", "with": "boxes", "names": [*NAMED], "mirror_pairs": [["left_ear", "right_ear"]]},
    }
    sides = np.array([WIDTH, HEIGHT] * 2) if relative else 1
    data = {
        "image": np.stack([one["image"] for one in held]),
        "boxes": [one["boxes"] / sides for one in held],
        "labels": [one["labels"] for one in held],
        "keypoints": [one["points"].astype(np.float32) for one in held],
    }
    return {"arrays": {"features": features}}, data


@cache
def as_arrays(op: str) -> list[tuple[Any, ...]]:
    held = records()
    if op == "labelme":  # has no visibility
        held = [{**one, "points": np.where([False, False, True], 2 * (one["points"] > 0), one["points"])} for one in held]
    source, data = arrays_of(held, relative=op == "yolo")
    return batches(pipegen.build(spec_of(source), data=data, runtime=PLAIN).train)


def equal(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.nightly
@pytest.mark.parametrize("cache_", ["none", "memory", "disk"])
@pytest.mark.parametrize("op", WRITERS)
def test_batches_are_those_of_arrays(op: str, cache_: str, tmp_path: Path) -> None:
    runtime = {"jit": "never", "cache": {"disk": str(tmp_path / "cache")} if cache_ == "disk" else cache_}
    pipe = pipegen.build(spec_of(WRITERS[op](tmp_path, records())), runtime=runtime, allow_write=[str(tmp_path)])
    expected = as_arrays(op)
    assert sum(len(np.unique(batch[3])) for batch in expected) > 20
    for _ in range(2):
        equal(batches(pipe.train), expected)


def rows_of(found: Sequence[Sequence[Any]]) -> dict[bytes, list[Any]]:
    """By its image, the items of each example, without padding."""
    return {
        image.tobytes(): [part[row][batch[-1][row]] for part in batch[1:]] for batch in found for row, image in enumerate(batch[0])
    }  # fmt: skip


def same_rows(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]], many: int) -> None:
    one, other = rows_of(found), rows_of(expected)
    assert len(one) == many
    for image, parts in one.items():
        for a, b in zip(parts, other[image], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.nightly
@pytest.mark.parametrize("op", WRITERS)
def test_splits_and_several_sources(op: str, tmp_path: Path) -> None:
    """Splits by hash, a place for each split, and a mix of two places."""
    held, expected, runtime = records(), as_arrays(op), {"jit": "never"}
    source, first, second = (WRITERS[op](tmp_path / str(i), some) for i, some in enumerate((held, held[:8], held[8:])))
    pipe = pipegen.build(spec_of(source, splits={"parts": {"train": 7, "validation": 5}, "method": "random"}), runtime=runtime)
    same_rows(batches(pipe.train), expected, 7)
    same_rows(batches(pipe.validation), expected, 5)
    pipe = pipegen.build(spec_of({"by_split": {"train": first, "validation": second}}), runtime=runtime)
    same_rows(batches(pipe.train), expected, 8)
    same_rows(batches(pipe.validation), expected, 4)
    parts = {
        name: {"weight": 1, "source": one, "splits": {"parts": {"train": 3, "validation": 1}, "method": "random"}, "transforms": STEPS[:1]}
        for name, one in (("a", first), ("b", second))
    }
    mixed = spec_of({"mix": {"epoch": 12, "parts": parts}}, transforms=STEPS[1:], shuffle="global")
    found = rows_of(batches(pipegen.build(mixed, runtime=runtime).train))
    due = rows_of(expected)
    assert len(found) > 4
    for image, parts_ in found.items():
        for a, b in zip(parts_, due[image], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.nightly
@pytest.mark.parametrize("op", WRITERS)
def test_a_store_a_picture_and_a_table(op: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = spec_of(WRITERS[op](tmp_path / "data", records()), splits={"parts": {"train": 11, "validation": 1}, "method": "random"})
    found = [*inspect(spec).diagnostics.items, *collect(load(spec).model).diagnostics, *pipegen.report(spec).diagnostics]
    assert not [d for d in found if d.severity.value == "error"]
    pipe = pipegen.build(spec, runtime=PLAIN)
    assert len(np.unique(np.asarray(pipe.preview("train", rows=4, draws=1)))) > 30
    rows = [json.loads(line) for line in pipe.export("out").table.read_text().splitlines()]
    due = batches(pipe.train)
    assert [{*one} for row in rows for one in row["keypoints"]] == [{*NAMED}] * sum(int(batch[-1].sum()) for batch in due)
    store = pipegen.prepare(spec, tmp_path / "store")
    same_rows(batches(pipegen.build(store.spec, runtime=PLAIN).train), due, 11)


POINT_FORMS: dict[str, dict[str, Any]] = {
    "one of each": {"names": [*NAMED]},
    "any number": {},
}


@pytest.mark.by_day(1)
@pytest.mark.parametrize("boxes", [True, False])
@pytest.mark.parametrize("form", POINT_FORMS)
def test_points_of_an_image_in_labelme(form: str, boxes: bool, tmp_path: Path) -> None:
    """One of each name, or any number with their labels; images without boxes as well."""
    rng = np.random.default_rng(7)
    named = bool(POINT_FORMS[form])
    held, points = records()[:6], []
    for i, one in enumerate(held):
        Image.fromarray(one["image"]).save(tmp_path / f"{i}.png")
        own = [(n, int(rng.integers(0, WIDTH)), int(rng.integers(0, HEIGHT))) for n in NAMED * (1 if named else i % 3) if i != 4]
        shapes = [{"label": n, "shape_type": "point", "points": [[x + 0.5, y + 0.5]], "group_id": None} for n, x, y in own]
        shapes += [{"label": "cat", "shape_type": "rectangle", "points": [[1, 2], [9, 9]]}] if boxes else []
        about = {"imagePath": f"{i}.png", "imageWidth": WIDTH, "imageHeight": HEIGHT, "shapes": shapes}
        (tmp_path / f"{i}.json").write_text(json.dumps(about))
        points.append(own)
    data: dict[str, Any] = {"image": np.stack([one["image"] for one in held])}
    data["keypoints"] = [np.array([(x, y, 2) for _, x, y in own] or np.zeros((3 if named else 0, 3)), np.float32) for own in points]
    features: dict[str, Any] = {"image": {"kind": "image"}, "keypoints": {"kind": "keypoints", **POINT_FORMS[form]}}
    features["keypoints"] |= {"mirror_pairs": [["left_ear", "right_ear"]]} if named else {}
    y: Any = ["keypoints"]
    if not named:
        features["point_labels"] = {"kind": "label", "with": "keypoints", "classes": [*NAMED]}
        data["point_labels"] = [[n for n, *_ in own] for own in points]
        y = ["keypoints", "point_labels", "keypoints_valid"]
    output = {"x": "image", "y": y}
    source = {"labelme": {"path": str(tmp_path), "keypoints": "image", **POINT_FORMS[form]}}
    found = batches(pipegen.build(spec_of(source, output=output), runtime=PLAIN).train)
    due = pipegen.build(spec_of({"arrays": {"features": features}}, output=output), data=data, runtime=PLAIN)
    equal(found, batches(due.train))


def damaged_coco(folder: Path, **changes: Any) -> dict[str, Any]:
    source = write_coco(folder, records())
    file = folder / "boxes.json"
    content = json.loads(file.read_text())
    one = next(a for a in content["annotations"] if "keypoints" in a)
    one.update(changes.pop("annotation", {}))
    for category in content["categories"]:
        category.update(changes.pop("category", {}))
    file.write_text(json.dumps(content))
    source["coco"].update(changes)
    return source


def damaged_yolo(folder: Path, line: str = "", about: str = "flip_idx: [2, 1, 0]", **changes: Any) -> dict[str, Any]:
    source = write_yolo(folder, records(), extra=about)
    if line:
        (folder / "labels/00.txt").write_text(line)
    source["yolo"].update(changes)
    return source


def damaged_labelme(folder: Path, *shapes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    source = write_labelme(folder, records())
    file = folder / "00.json"
    content = json.loads(file.read_text())
    content["shapes"] = shapes or content["shapes"]
    file.write_text(json.dumps(content))
    source["labelme"].update(changes)
    return source


def shape(label: str, *points: list[float], kind: str = "point", group: Any = 1) -> dict[str, Any]:
    return {"label": label, "shape_type": kind, "points": [*points], "group_id": group}


BOX = shape("cat", [1, 1], [9, 9], kind="rectangle")
DAMAGED: dict[str, tuple[Callable[[Path], dict[str, Any]], str]] = {
    "coco: numbers": (
        lambda at: damaged_coco(at, annotation={"keypoints": [1, 2]}),
        r"`annotations\[\d+\]` \(`id` \d+\) has 2 numbers in `keypoints`; 3 keypoints need 9",
    ),
    "coco: text": (lambda at: damaged_coco(at, annotation={"keypoints": ["a"] * 9}), "needs `keypoints` as a list of numbers"),
    "coco: visibility": (
        lambda at: damaged_coco(at, annotation={"keypoints": [1, 2, 3] * 3}),
        r"the annotation \d+ of .*boxes.json has the keypoint \[1, 2, 3\]",
    ),
    "coco: infinite": (lambda at: damaged_coco(at, annotation={"keypoints": [1e999, 2, 2] * 3}), "is not a JSON number|has the keypoint"),
    "coco: no names": (lambda at: damaged_coco(at, category={"keypoints": None}), "its category 'cat' lists no names|lists their names"),
    "coco: twice": (lambda at: damaged_coco(at, category={"keypoints": ["a", "a", "b"]}), r"`categories\[0\]` has a name .* twice"),
    "coco: other names": (
        lambda at: damaged_coco(at, names=["t"], mirror_pairs=[["t", "ear"]]),
        "has `ear`, which is not in `names`",
    ),
    "coco: pairs": (lambda at: damaged_coco(at, mirror_pairs=[["nose", "ear"]]), "has `ear`, which is not in `names`"),
    "coco: true": (lambda at: damaged_coco(at, keypoints=True), "`coco.keypoints` is .*instances"),
    "coco: not asked": (lambda at: damaged_coco(at, keypoints=None, names=["nose"]), r"names` is for keypoints"),
    "yolo: numbers": (lambda at: damaged_yolo(at, "0 .5 .5 .1 .1 .5 .5 2 .5"), "00.txt:1 has 9 numbers, but `kpt_shape` asks for 14"),
    "yolo: visibility": (lambda at: damaged_yolo(at, "0 .5 .5 .1 .1" + " .5 .5 7" * 3), r"00.txt:1 has the keypoint \[0.5, 0.5, 7\]"),
    "yolo: pixels": (lambda at: damaged_yolo(at, "0 .5 .5 .1 .1" + " 50 20 2" * 3), "00.txt:1 has keypoints in pixels"),
    "yolo: flip": (lambda at: damaged_yolo(at, about="flip_idx: [1, 2, 0]"), "data.yaml: `flip_idx` says that 0 becomes 1"),
    "yolo: short flip": (lambda at: damaged_yolo(at, about="flip_idx: [1, 0]"), "`flip_idx` must hold each of the numbers 0 to 2 once"),
    "labelme: twice": (
        lambda at: damaged_labelme(at, BOX, shape("nose", [2, 2]), shape("nose", [3, 3])),
        r"00.json: `shapes\[2\]` is a second 'nose' of the group 1",
    ),
    "labelme: whose": (lambda at: damaged_labelme(at, BOX, BOX, shape("nose", [2, 2])), r"`shapes\[1\]` is in the group 1, as is"),
    "labelme: group": (lambda at: damaged_labelme(at, BOX, shape("nose", [2, 2], group=[1])), r"`shapes\[1\]` has the invalid `group_id`"),
    "labelme: pair": (lambda at: damaged_labelme(at, BOX, shape("nose", [2, 2], [3, 3])), r"`shapes\[1\]` is a point whose `points`"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_what_is_damaged_is_named_with_its_place(case: str, tmp_path: Path) -> None:
    make, message = DAMAGED[case]
    with pytest.raises(pipegen.SpecError, match=message):
        pipegen.build(spec_of(make(tmp_path)))


@pytest.mark.nightly
@pytest.mark.parametrize("orientation", [5, 6])
@pytest.mark.parametrize("op", WRITERS)
def test_points_are_turned_with_their_image(op: str, orientation: int, tmp_path: Path) -> None:
    """The colour at a point is the same; 5 mirrors, so that the names of both sides change places. Only YOLO says no size."""
    held = records()
    source = WRITERS[op](tmp_path, held)
    exif = Image.Exif()
    exif[0x0112] = orientation
    drawn_on_stored = op != "yolo"
    for file in tmp_path.rglob("*.png"):
        picture = np.asarray(Image.open(file))
        stored = picture if drawn_on_stored else np.rot90(picture, 1) if orientation == 6 else picture.swapaxes(0, 1)
        Image.fromarray(np.ascontiguousarray(stored)).save(file, exif=exif)
    size = [WIDTH, HEIGHT] if drawn_on_stored else [HEIGHT, WIDTH]
    steps = [{"resize": {"size": size}}]
    order = [2, 1, 0] if drawn_on_stored and orientation == 5 else [0, 1, 2]
    (batch,) = batches(pipegen.build(spec_of(source, transforms=steps, batch={"size": COUNT}), runtime=PLAIN).train)
    seen = 0
    for one, image, sets, there in zip(held, batch[0], batch[3], batch[-1], strict=True):
        assert there.sum() == len(one["points"])
        for points, annotated in zip(sets[there].astype(int), one["points"][:, order], strict=True):
            assert (points[:, 2] > 0).tolist() == (annotated[:, 2] > 0).tolist()
            for (x, y, is_there), (x0, y0, _) in zip(points.tolist(), annotated.tolist(), strict=True):
                if is_there:
                    np.testing.assert_array_equal(image[y, x], one["image"][y0, x0])
                    seen += 1
    assert seen > 20


@pytest.mark.by_day(1)
@pytest.mark.parametrize("masks", ["instances", "classes"])
def test_outlines_of_yolo_are_those_of_coco(masks: str, tmp_path: Path) -> None:
    """The same polygons as fractions of the image; lines with a box alone have no outline."""
    held = records()
    rng = np.random.default_rng(2)
    coco = write_coco(tmp_path / "a", held)["coco"]
    yolo = write_yolo(tmp_path / "b", held)["yolo"]
    del coco["keypoints"], yolo["keypoints"]
    (tmp_path / "b/data.yaml").write_text(f"names: {list(CLASSES)}")
    file = tmp_path / "a/boxes.json"
    content = json.loads(file.read_text())
    lines: dict[int, list[str]] = {i: [] for i in range(COUNT)}
    for own in content["annotations"]:
        x, y, width, height = own["bbox"]
        polygon = np.array([[x, y], [x + width, y], [x + width, y + height], [x, y + height]], float)
        polygon[0] += [rng.integers(0, width), 0]
        left, top = polygon.min(0).tolist()
        right, bottom = polygon.max(0).tolist()
        own["bbox"] = [left, top, right - left, bottom - top]
        own["segmentation"] = [polygon.ravel().tolist()]
        numbers = (polygon / [WIDTH, HEIGHT]).ravel().tolist()
        if own["id"] == 3:
            del own["segmentation"]
            numbers = [(left + right) / 2 / WIDTH, (top + bottom) / 2 / HEIGHT, (right - left) / WIDTH, (bottom - top) / HEIGHT]
        lines[own["image_id"]].append(" ".join(map(str, [own["category_id"], *numbers])))
    file.write_text(json.dumps(content))
    for i, own_lines in lines.items():
        (tmp_path / f"b/labels/{i:02d}.txt").write_text("\n".join(own_lines))
    output = {"x": "image", "y": ["boxes", "labels", "mask", "boxes_valid"]}
    found, due = (
        batches(pipegen.build(spec_of({op: {**own, "masks": masks}}, output=output), runtime=PLAIN).train)
        for op, own in (("yolo", yolo), ("coco", coco))
    )
    assert any(len(np.unique(batch[3])) > 2 for batch in due)
    equal(found, due)


def test_splits_with_other_names_or_formats_are_errors(tmp_path: Path) -> None:
    held = records()
    first, second = write_coco(tmp_path / "a", held[:8]), write_coco(tmp_path / "b", held[8:])
    file = tmp_path / "b/boxes.json"
    file.write_text(file.read_text().replace("nose", "tail"))
    with pytest.raises(pipegen.SpecError, match=r"PG210.*`keypoints` has other names or mirror pairs than in `train`"):
        pipegen.build(spec_of({"by_split": {"train": first, "validation": second}}))
    own = {"train": write_labelme(tmp_path / "c", held), "validation": write_yolo(tmp_path / "d", held)}
    said = [d.message for d in inspect(spec_of({"by_split": own})).diagnostics.items]
    assert any("`boxes` of `validation` has another `format`, rel_xyxy, than in `train`" in message for message in said), said


@pytest.mark.by_day(1)
@pytest.mark.parametrize("op", WRITERS)
def test_names_choose_and_order_points(op: str, tmp_path: Path) -> None:
    source = WRITERS[op](tmp_path, records())
    whole = batches(pipegen.build(spec_of(source), runtime=PLAIN).train)
    source[op] |= {"names": ["right_ear", "left_ear", "chin"]}
    pipe = pipegen.build(spec_of(source), runtime=PLAIN)
    said = {note.code: note.message for note in pipe._manifest.listing.notes}
    assert "lists 'chin', which the annotations lack" in said["PG403"]
    assert said["PG411"].endswith("keypoints of names that `names` does not list: 'nose'")
    for found, due in zip(batches(pipe.train), whole, strict=True):
        np.testing.assert_array_equal(found[3][:, :, :2], due[3][:, :, [2, 0]])
        assert not found[3][:, :, 2].any()
