"""The same photos with the same boxes, stored as COCO, Pascal VOC, YOLO and LabelMe: whatever reads them gives the same batches."""

from __future__ import annotations

import json
from pathlib import Path
from pipes import at
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pipegen

pytestmark = pytest.mark.tf

COUNT = 10
NAMES = ("cat", "dog", "eel")
NIGHTLY = [pytest.param(name, marks=pytest.mark.nightly) for name in ("voc", "yolo", "labelme")]


def sides(i: int) -> tuple[int, int]:
    """Width and height of a photo: each has its own, a multiple of 8."""
    return 64 + 8 * (i % 3), 48 + 8 * (i % 2)


def boxes_on(i: int) -> list[tuple[str, int, int, int, int]]:
    """The class and the edges of none to three boxes, at multiples of 8."""
    return [(NAMES[(i + k) % 3], 8 * k, 8 * (i % 3), 8 * k + 24, 40) for k in range(i % 4)]


def write(folder: Path, op: str, keys: range = range(COUNT)) -> dict[str, Any]:
    """Writes photos and annotations, and returns the source."""
    images = folder / {"coco": "photos", "voc": "JPEGImages", "yolo": "images", "labelme": "drawn"}[op]
    for one in (images, folder / "Annotations", folder / "labels"):
        one.mkdir(parents=True)
    for i in keys:
        width, height = sides(i)
        own = boxes_on(i)
        Image.fromarray(np.full((height, width, 3), 20 * i, np.uint8)).save(images / f"{i}.png")
        things = [
            f"<object><name>{name}</name><bndbox><xmin>{x0 + 1}</xmin><ymin>{y0 + 1}</ymin>"
            f"<xmax>{x1}</xmax><ymax>{y1}</ymax></bndbox></object>"
            for name, x0, y0, x1, y1 in own
        ]
        size = f"<size><width>{width}</width><height>{height}</height></size>"
        lines = [
            f"{NAMES.index(name)} {(x0 + x1) / 2 / width} {(y0 + y1) / 2 / height} {(x1 - x0) / width} {(y1 - y0) / height}"
            for name, x0, y0, x1, y1 in own
        ]
        shapes = [{"label": name, "shape_type": "rectangle", "points": [[x0, y0], [x1, y1]]} for name, x0, y0, x1, y1 in own]
        if op == "voc":
            (folder / "Annotations" / f"{i}.xml").write_text(f"<annotation>{size}{''.join(things)}</annotation>")
        elif op == "yolo":
            (folder / "labels" / f"{i}.txt").write_text("\n".join(lines))
        elif op == "labelme":
            about = {"imagePath": f"{i}.png", "imageWidth": width, "imageHeight": height, "shapes": shapes}
            (images / f"{i}.json").write_text(json.dumps(about))
    if op == "yolo":
        (folder / "data.yaml").write_text(json.dumps({"names": NAMES}))
    if op == "coco":
        every = [(i, box) for i in keys for box in boxes_on(i)]
        content = {
            "images": [{"id": i, "file_name": f"{i}.png", "width": sides(i)[0], "height": sides(i)[1]} for i in keys],
            "categories": [{"id": 5 + i, "name": name} for i, name in enumerate(NAMES)],
            "annotations": [
                {"id": k, "image_id": i, "category_id": 5 + NAMES.index(name), "bbox": [x0, y0, x1 - x0, y1 - y0]}
                for k, (i, (name, x0, y0, x1, y1)) in enumerate(every)
            ],
        }
        (folder / "boxes.json").write_text(json.dumps(content))
        return {"coco": {"images": str(images), "annotations": str(folder / "boxes.json")}}
    return {op: {"path": str(images if op == "labelme" else folder)}}


def build(source: dict[str, Any], *steps: Any, **own: Any) -> pipegen.Pipeline:
    spec = {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": [96, 128]}}, *steps], "shuffle": "none"}
    output = {"x": "image", "y": {"boxes": "boxes", "labels": "labels", "there": "boxes_valid"}}
    return pipegen.build(spec | {"output": output, "batch": {"size": 4, "remainder": "keep"}} | own)


def seen(batches: Any, names: tuple[str, ...] = NAMES) -> list[tuple[int, list[tuple[str, float, float, float, float]]]]:
    """By the colour of each photo its number, and the boxes on it with their classes."""
    found = []
    for x, y in batches:
        for image, boxes, labels, there in zip(x.numpy(), *(y[name].numpy() for name in ("boxes", "labels", "there")), strict=True):
            own = [(names[label], *box) for label, box in zip(labels[there].tolist(), boxes[there].tolist(), strict=True)]
            found.append((round(float(image[0, 0, 0]) / 20), own))
    return found


def expected(i: int, *, mirrored: bool = False) -> list[tuple[str, float, float, float, float]]:
    """The boxes on a photo that was made 96×128."""
    width, height = sides(i)
    found = []
    for name, x0, y0, x1, y1 in boxes_on(i):
        left, right = (128 * (width - x1) / width, 128 * (width - x0) / width) if mirrored else (128 * x0 / width, 128 * x1 / width)
        found.append((name, left, 96 * y0 / height, right, 96 * y1 / height))
    return found


def check(found: list[Any], records: range | list[int], *, mirrored: bool = False) -> None:
    assert [i for i, _ in found] == list(records)
    for i, own in found:
        there = expected(i, mirrored=mirrored)
        assert [name for name, *_ in own] == [name for name, *_ in there]
        np.testing.assert_allclose([box for _, *box in own], [box for _, *box in there], atol=1 / 64)


@pytest.mark.nightly
@pytest.mark.parametrize("op", ["coco", *NIGHTLY])
def test_boxes_follow_their_photo_from_every_format(op: str, tmp_path: Path) -> None:
    pipe = build(write(tmp_path, op), {"random_flip": {"probability": 1}}, splits={"parts": {"train": 0.7, "validation": 0.3}})
    train, validation = (seen(pipe.dataset(split)) for split in ("train", "validation"))
    for i, own in train:
        check([(i, own)], [i], mirrored=True)
    check(validation, [i for i, _ in validation])
    assert sorted(i for i, _ in train + validation) == list(range(COUNT))
    assert seen(at(pipe, step=1)) == train[4:]


@pytest.mark.nightly
def test_splits_of_places_of_their_own(tmp_path: Path) -> None:
    """The split for validation has more boxes on an image than the one for training, and counts its classes otherwise."""
    train, other = write(tmp_path / "a", "coco", range(3)), write(tmp_path / "b", "coco")
    content = json.loads((tmp_path / "b/boxes.json").read_text())
    for category in content["categories"]:
        category["id"] = 90 - category["id"]
    for annotation in content["annotations"]:
        annotation["category_id"] = 90 - annotation["category_id"]
    (tmp_path / "b/boxes.json").write_text(json.dumps(content))
    pipe = build({"by_split": {"train": train, "validation": other}})
    check(seen(pipe.train), range(3))
    check(seen(pipe.validation), range(COUNT))


@pytest.mark.nightly
@pytest.mark.parametrize("runtime", [{"cache": "memory"}, {"cache": {"disk": "kept"}}, {"jit": "always"}, {"jit": "never"}], ids=str)
def test_every_plan_gives_the_same_boxes(runtime: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pipe = build(write(tmp_path, "yolo"), {"random_flip": {"probability": 1}}, runtime=runtime)
    for _ in range(2):
        check(seen(at(pipe)), range(COUNT), mirrored=True)


@pytest.mark.nightly
def test_formats_can_be_mixed(tmp_path: Path) -> None:
    """Photos of the second part have more boxes than any of the first."""
    first = {"weight": 1, "source": write(tmp_path / "a", "labelme", range(2)), "splits": {"parts": {"train": 1, "validation": 1}}}
    second = {"weight": 1, "source": write(tmp_path / "b", "voc"), "splits": {"parts": {"train": 8, "validation": 2}}}
    pipe = build({"mix": {"epoch": 8, "parts": {"a": first, "b": second}}}, shuffle="global")
    assert pipe.class_names == ("dog", "cat", "eel")
    found = seen(pipe.train, pipe.class_names)
    assert len(found) == 8
    for i, own in found:
        check([(i, own)], [i])


@pytest.mark.nightly
def test_it_is_drawn_exported_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pipe = build(write(tmp_path, "voc"))
    drawn = np.asarray(pipe.preview("train", rows=4, draws=1))
    assert len(np.unique(drawn.reshape(-1, 3), axis=0)) > 30, "boxes and names on plain photos"
    rows = [json.loads(line) for line in pipe.export("out").table.read_text().splitlines()]
    assert [row["labels"] for row in rows] == [[name for name, *_ in boxes_on(i)] for i in range(COUNT)]


def test_whoever_asks_for_a_label_is_told_of_those_of_the_boxes(tmp_path: Path) -> None:
    with pytest.raises(pipegen.SpecError, match="did you mean `labels`"):
        pipegen.build({"pipegen": 1, "source": write(tmp_path, "coco"), "output": {"x": "image", "y": "label"}})


def painted(folder: Path, keys: range) -> None:
    """Adds Pascal VOC's masks to some photos: a palette PNG each, of objects and of classes, with a line around that is left open."""
    for name in ("SegmentationObject", "SegmentationClass"):
        (folder / name).mkdir()
        for i in keys:
            width, height = sides(i)
            plane = np.zeros((height, width), np.uint8)
            for k, (kind, x0, y0, x1, y1) in enumerate(boxes_on(i)):
                plane[y0:y1, x0:x1] = 255
                plane[y0 + 1 : y1 - 1, x0 + 1 : x1 - 1] = k + 1 if name == "SegmentationObject" else NAMES.index(kind) + 8
            picture = Image.fromarray(plane).convert("P")
            picture.putpalette(list(range(256)) * 3)
            picture.save(folder / name / f"{i}.png")


@pytest.mark.nightly
def test_voc_s_masks_number_the_boxes_that_are_left(tmp_path: Path) -> None:
    source = write(tmp_path, "voc")
    painted(tmp_path, range(1, 8))
    asked = {"voc": {**source["voc"], "masks": "instances", "classes": ["dog", "eel"]}}
    output = {"dtype": "uint8", "y": {"boxes": "boxes", "labels": "labels", "there": "boxes_valid", "mask": "mask"}}
    spec = {"pipegen": 1, "source": asked, "transforms": [{"pad": {"size": [64, 88]}}], "output": output, "batch": {"size": 7}}
    pipe = pipegen.build({**spec, "shuffle": "none"}, runtime={"jit": "never"})
    assert pipe.num_examples("train") == 7
    said = [note.message for note in pipe._manifest.listing.notes]
    assert any("3 images of 10 left out: no mask below" in message for message in said)
    (_, y), *_ = list(pipe.dataset("train", epoch=0))
    seen = 0
    for i, (boxes, labels, there, mask) in enumerate(
        zip(*(y[name].numpy() for name in ("boxes", "labels", "there", "mask")), strict=True), 1
    ):
        kept = [box for box in boxes_on(i) if box[0] != "cat"]
        assert [NAMES[label + 1] for label in labels[there]] == [name for name, *_ in kept]
        for k, box in enumerate(boxes[there].astype(int)):
            left, top, right, bottom = box
            inside = mask[top + 1 : bottom - 1, left + 1 : right - 1, 0]
            assert {*np.unique(inside)} <= {0, *range(k + 1, there.sum() + 1), 255}, "later objects may lie upon it"
            assert (inside == k + 1).any()
            seen += 1
        assert int(np.setdiff1d(np.unique(mask), [255]).max()) == there.sum()
    assert seen == sum(box[0] != "cat" for i in range(1, 8) for box in boxes_on(i))
    classes = pipegen.build({**spec, "source": {"voc": {**source["voc"], "masks": "classes"}}, "shuffle": "none"}, runtime={"jit": "never"})
    (_, other), *_ = list(classes.dataset("train", epoch=0))
    for i, mask in enumerate(other["mask"].numpy(), 1):
        assert {*np.unique(mask).tolist()} - {0, 255} == {NAMES.index(name) + 8 for name, *_ in boxes_on(i)}


def test_voc_s_masks_have_lists_of_their_own(tmp_path: Path) -> None:
    source = write(tmp_path, "voc")
    painted(tmp_path, range(8))
    for folder, ids in (("Main", range(10)), ("Segmentation", range(2, 6))):
        (tmp_path / "ImageSets" / folder).mkdir(parents=True)
        (tmp_path / "ImageSets" / folder / "train.txt").write_text("\n".join(map(str, ids)))
    spec = {"pipegen": 1, "transforms": [{"resize": {"size": 32}}], "output": {"y": "mask"}, "batch": {"size": 2}}
    with_masks = pipegen.load({**spec, "source": {"voc": {**source["voc"], "split": "train", "masks": "instances"}}})
    assert pipegen.build(with_masks, runtime={"jit": "never"}).num_examples("train") == 4
    (tmp_path / "SegmentationObject").rename(tmp_path / "elsewhere")
    with pytest.raises(pipegen.SpecError, match="SegmentationObject"):
        pipegen.build(with_masks)


@pytest.mark.nightly
def test_labelme_s_outlines_are_drawn_as_it_draws_them(tmp_path: Path) -> None:
    """By Pillow, in their order; a class that is left out leaves no pixel, and an image without a file is none."""
    from PIL import ImageDraw

    at = tmp_path / "drawn"
    at.mkdir()
    star = [[8, 4], [40, 10], [30, 30], [12, 36]]
    shapes = [
        {"label": "cat", "shape_type": "polygon", "points": star},
        {"label": "dog", "shape_type": "rectangle", "points": [[50, 40], [30, 20]]},
        {"label": "eel", "shape_type": "point", "points": [[3, 3]]},
        {"label": "eel", "shape_type": "circle", "points": [[20, 40], [26, 40]]},
    ]
    for i in range(3):
        Image.fromarray(np.full((48, 64, 3), 50 * i, np.uint8)).save(at / f"{i}.png")
        about = {"imagePath": f"{i}.png", "imageWidth": 64, "imageHeight": 48, "shapes": shapes[: 2 + i]}
        (at / f"{i}.json").write_text(json.dumps(about)) if i else None
    plane = Image.new("L", (64, 48))
    pen = ImageDraw.Draw(plane)
    pen.polygon([tuple(point) for point in star], fill=1, outline=1)
    pen.rectangle((30, 20, 50, 40), fill=2, outline=2)
    expected = [np.asarray(plane).copy()]
    pen.ellipse((14, 34, 26, 46), fill=3, outline=3)
    expected.append(np.asarray(plane).copy())
    spec = {
        "pipegen": 1,
        "source": {"labelme": {"path": str(at), "masks": "instances"}},
        "transforms": [{"pad": {"size": [48, 64]}}],
        "shuffle": "none",
        "batch": {"size": 2},
        "output": {"dtype": "uint8", "y": {"boxes": "boxes", "labels": "labels", "there": "boxes_valid", "mask": "mask"}},
    }
    pipe = pipegen.build(spec, runtime={"jit": "never"})
    assert "only in this process: the position, the cache, columns of the data, `decode`" in str(pipe.explain(physical=True))
    (_, y), *_ = list(pipe.dataset("train", epoch=0))
    assert y["there"].numpy().sum(1).tolist() == [2, 3]
    for found, due, many in zip(y["mask"].numpy()[..., 0], [expected[0], expected[1]], (2, 3), strict=True):
        np.testing.assert_array_equal(found, due if many == 3 else np.where(due == 3, 0, due))
    chosen = {**spec, "source": {"labelme": {"path": str(at), "masks": "instances", "classes": ["dog", "eel"]}}}
    (_, y), *_ = list(pipegen.build(chosen, runtime={"jit": "never"}).dataset("train", epoch=0))
    table = np.array([0, 0, 1, 2], np.uint8)
    np.testing.assert_array_equal(y["mask"].numpy()[1, ..., 0], table[expected[1]])
    (at / "1.json").write_text((at / "1.json").read_text().replace('"imageWidth": 64, ', ""))
    with pytest.raises(pipegen.DataError, match="has no size of its image"):
        list(pipegen.build(spec, runtime={"jit": "never"}).train)


@pytest.mark.nightly
@pytest.mark.parametrize("op", ["voc", pytest.param("labelme", marks=pytest.mark.nightly)])
def test_an_image_as_long_as_what_its_mask_is_read_from_is_not_empty(op: str, tmp_path: Path) -> None:
    """The bytes of a record are those of all its files."""
    source = write(tmp_path, op)
    source[op]["masks"] = "instances"
    image = next(tmp_path.rglob("3.png"))
    if op == "labelme":
        outlines = image.with_suffix(".json")
        outlines.write_text(outlines.read_text().ljust(image.stat().st_size))
        size = len(outlines.read_bytes())
        image.write_bytes(image.read_bytes().ljust(size, b"\0"))
    else:
        masks = tmp_path / "SegmentationObject"
        masks.mkdir()
        for i in range(COUNT):
            Image.fromarray(np.zeros(sides(i)[::-1], np.uint8), "P").save(masks / f"{i}.png")
        mask = masks / "3.png"
        size = max(mask.stat().st_size, image.stat().st_size)
        for file in (mask, image):
            file.write_bytes(file.read_bytes().ljust(size, b"\0"))
    output = {"y": {"boxes": "boxes", "mask": "mask"}}
    steps = [{"resize": {"size": 24}}]
    pipe = pipegen.build({"pipegen": 1, "source": source, "transforms": steps, "output": output, "batch": {"size": 5}})
    assert "10 examples" in repr(pipe)
