"""The sources whose images have boxes: what annotation files of each format come to, and what is said of those that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from pipegen.errors import OpError
from pipegen.ops.registry import sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.ops.sources.listing.base import Listing

SIDES = (40, 30)
"""Width and height of each image."""


def photo(path: Path, sides: tuple[int, int] = SIDES, **saved: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", sides).save(path, **saved)


def listed(op: str, base: Path, **arguments: Any) -> Listing:
    return sources()[op].model_validate(arguments).list(base)


def error_of(op: str, base: Path, **arguments: Any) -> OpError:
    with pytest.raises(OpError) as raised:
        listed(op, base, **arguments)
    return raised.value


def boxes_of(listing: Listing, *names: str) -> dict[str, list[Any]]:
    """By the key of each image, what is known of its boxes."""
    found: dict[str, list[Any]] = {}
    for i, key in enumerate(listing.keys):
        rows = [listing.columns[name][np.array([i])].values.tolist() for name in names or ("boxes", "labels")]
        found[key] = [tuple(row) for row in zip(*rows, strict=True)]
    return found


def codes(listing: Listing) -> list[str]:
    return [note.code for note in listing.notes]


# COCO


def coco(folder: Path, annotated: Sequence[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """Writes images and a file; its categories have ids with gaps, in another order than the file's."""
    for i in range(3):
        photo(folder / "photos" / f"{i}.png")
    known = [{"id": 10 + i, "file_name": f"{i}.png", "width": SIDES[0], "height": SIDES[1]} for i in range(3)]
    categories = [{"id": 7, "name": "dog"}, {"id": 3, "name": "person"}, {"id": 90, "name": "brush"}]
    content = {"info": {}, "images": known, "categories": categories, "annotations": [{"id": i, **a} for i, a in enumerate(annotated)]}
    (folder / "instances.json").write_text(json.dumps(content | changes))
    return {"images": "photos", "annotations": "instances.json"}


def a(image: int, category: int, *box: float, **more: Any) -> dict[str, Any]:
    return {"image_id": 10 + image, "category_id": category, "bbox": list(box), **more}


def missing(found: Listing) -> list[tuple[str, list[str]]]:
    """The code and the keys of each group of records that lack a file."""
    return [(group.code, [*group.keys]) for group in found.missing]


def test_coco_counts_categories_by_their_ids(tmp_path: Path) -> None:
    given = [a(2, 90, 0, 0, 5, 5), a(0, 7, 1.5, 2, 10, 20, iscrowd=1), a(2, 3, 3, 4, 5, 6, segmentation=[[0, 0, 1, 1]])]
    source = coco(tmp_path, given)
    found = listed("coco", tmp_path, **source)
    assert found.classes["labels"] == ("person", "dog", "brush")
    assert boxes_of(found) == {
        "0.png": [([1.5, 2, 11.5, 22], 1)],
        "1.png": [],
        "2.png": [([0, 0, 5, 5], 2), ([3, 4, 8, 10], 0)],
    }
    assert boxes_of(found, "crowd")["0.png"] == [(1,)]
    assert not found.notes
    dropped = listed("coco", tmp_path, **source, empty="drop")
    assert list(dropped.keys) == ["0.png", "2.png"]
    assert boxes_of(dropped)["2.png"] == boxes_of(found)["2.png"]


def test_classes_are_chosen_ordered_renamed_and_left_out(tmp_path: Path) -> None:
    source = coco(tmp_path, [a(0, 3, 0, 0, 5, 5), a(0, 7, 1, 1, 5, 5), a(1, 90, 2, 2, 5, 5)])
    found = listed("coco", tmp_path, **source, classes=["dog", "person"])
    assert boxes_of(found)["0.png"] == [([0, 0, 5, 5], 1), ([1, 1, 6, 6], 0)]
    assert [(n.code, n.message) for n in found.notes] == [("PG411", "ignored: 1 box of classes that `classes` does not list: 'brush'")]
    found = listed("coco", tmp_path, **source, map={"dog": "being", "person": "being"}, ignore=["brush"])
    assert found.classes["labels"] == ("being",)
    assert boxes_of(found)["1.png"] == []
    assert codes(listed("coco", tmp_path, **source, map={"dgo": "being"})) == ["PG451"]
    assert codes(listed("coco", tmp_path, **source, classes=["dog", "person", "brush", "cat"])) == ["PG403"]
    assert error_of("coco", tmp_path, **source, classes=["dgo"]).help == "is 'dog' meant?"
    assert error_of("coco", tmp_path, **source, classes=2).code == "PG478"


def test_boxes_without_an_area_and_beside_their_image_are_told_of(tmp_path: Path) -> None:
    given = [a(0, 3, 5, 5, 0, 4), a(0, 3, 5, 5, 4, -1), a(0, 3, 50, 5, 4, 4), a(0, 3, 30, 20, 20, 20), a(0, 7, 39.5, 29.5, 1, 1)]
    found = listed("coco", tmp_path, **coco(tmp_path, given))
    assert boxes_of(found)["0.png"] == [([30, 20, 40, 30], 0), ([39.5, 29.5, 40, 30], 1)]
    assert codes(found) == ["PG477"] * 3
    flat, beside, over = (note.message for note in found.notes)
    assert f"the annotation 0 of {tmp_path}/instances.json has no area: its edges are 5, 5, 5, 9; the image has 40×30" in flat
    assert flat.endswith("2 such boxes of 5 are left out")
    assert "the annotation 2" in beside
    assert over.endswith("1 such box of 5 is clipped to it")


def test_images_and_annotations_without_each_other(tmp_path: Path) -> None:
    source = coco(tmp_path, [a(0, 3, 0, 0, 5, 5), a(2, 3, 0, 0, 5, 5), {**a(0, 3, 0, 0, 1, 1), "image_id": "gone"}])
    (tmp_path / "photos/2.png").unlink()
    found = listed("coco", tmp_path, **source)
    assert list(found.keys) == ["0.png", "1.png", "2.png"]
    assert missing(found) == [("PG476", ["2.png"]), ("PG476", ["image_id gone"])]
    assert missing(listed("coco", tmp_path, **source, empty="drop"))[0] == ("PG476", ["2.png"])
    (tmp_path / "photos/deep").mkdir()
    for i in (0, 1):
        (tmp_path / f"photos/{i}.png").rename(tmp_path / f"photos/deep/{i}.png")
    wrong = error_of("coco", tmp_path, **source)
    assert (wrong.code, wrong.help) == ("PG402", "'0.png' lies in 'deep' below it: is that the folder?")
    assert boxes_of(listed("coco", tmp_path, **source | {"images": "photos/deep"}))["0.png"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"images": None}, "needs the lists `images`, `annotations` and `categories`"),
        ({"images": [{"id": 1}]}, "`images[0]` lacks a valid `id` or `file_name`"),
        ({"images": [{"id": 1, "file_name": "../x.png"}]}, "lies outside the folder"),
        ({"images": [{"id": 1, "file_name": "0.png"}, {"id": 2, "file_name": "./0.png"}]}, "repeats the `id` 2 or the `file_name` '0.png'"),
        ({"categories": [{"id": 3, "name": "a"}, {"id": 3, "name": "b"}]}, "`categories[1]` repeats the `id` 3"),
        ({"categories": [{"id": True, "name": "a"}]}, "`categories[0]` lacks a valid `id`"),
        ({"annotations": [{"image_id": 10}]}, "`annotations[0]` lacks an `image_id`"),
        ({"annotations": [a(0, 4, 0, 0, 1, 1)]}, "has the unknown `category_id` 4; the file has '3', '7', '90'"),
        ({"annotations": [a(0, 3, 0, 0, 1)]}, "needs a `bbox` of four numbers"),
        ({"annotations": [a(0, 3, 0, 0, 1, True)]}, "needs a `bbox` of four numbers"),
        ({"annotations": [{**a(0, 3, 0, 0, 1, 1), "category_id": []}]}, "has the unknown `category_id` None"),
        ({"annotations": [{**a(0, 3, 0, 0, 1, 1), "image_id": {}}]}, "`annotations[0]`"),
    ],
)
def test_a_file_of_coco_that_is_wrong_is_an_error_with_its_place(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    wrong = error_of("coco", tmp_path, **coco(tmp_path, [a(0, 3, 0, 0, 5, 5)], **changes))
    assert (wrong.code, wrong.field) == ("PG475", "annotations")
    assert said in wrong.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"images": [\n  }', ":2:3 is not JSON"),
        ("[" * 200_000, "nested too deep"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": ' + "9" * 5000 + "}", "is no"),
        (b"\xff{}", "is not UTF-8"),
        ("", ":1:1 is not JSON"),
        ("[]", "is not a COCO annotation file"),
    ],
)
def test_what_is_no_json_is_an_error_with_its_place(text: str | bytes, said: str, tmp_path: Path) -> None:
    source = coco(tmp_path, [])
    (tmp_path / "instances.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    wrong = error_of("coco", tmp_path, **source)
    assert wrong.code == "PG475"
    assert said in wrong.message


def test_images_of_another_size_than_annotated_are_told_of(tmp_path: Path) -> None:
    source = coco(tmp_path, [a(0, 3, 0, 0, 5, 5)])
    photo(tmp_path / "photos/1.png", (80, 60))
    assert codes(listed("coco", tmp_path, **source)) == ["PG479"]
    exif = Image.Exif()
    exif[0x0112] = 6
    for i in range(3):
        photo(tmp_path / f"photos/{i}.png", format="JPEG", exif=exif)
    assert not listed("coco", tmp_path, **source).notes, "as it is stored is a size that it has"


# Pascal VOC

VOC = """<annotation>
  <filename>anything.jpg</filename><size><width>40</width><height>30</height><depth>3</depth></size>{}
</annotation>"""


def thing(name: str, *corners: float, difficult: int = 0) -> str:
    sides = "".join(f"<{s}>{c}</{s}>" for s, c in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True))
    part = "<part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part>"
    return f"<object><name>{name}</name><difficult>{difficult}</difficult>{part}<bndbox>{sides}</bndbox></object>"


def voc(folder: Path, *contents: str | None) -> dict[str, Any]:
    for i, content in enumerate(contents):
        photo(folder / "JPEGImages" / f"{i}.jpg")
        if content is not None:
            (folder / "Annotations").mkdir(exist_ok=True)
            (folder / "Annotations" / f"{i}.xml").write_text(VOC.format(content))
    return {"path": "."}


def test_voc_counts_pixels_from_one(tmp_path: Path) -> None:
    source = voc(tmp_path, thing("dog", 1, 1, 40, 30) + thing("cat", 2, 3, 4, 5, difficult=1), None, "")
    found = listed("voc", tmp_path, **source)
    assert found.classes["labels"] == ("cat", "dog")
    assert boxes_of(found, "boxes", "labels", "difficult") == {
        "0.jpg": [([0, 0, 40, 30], 1, 0), ([1, 2, 4, 5], 0, 1)],
        "1.jpg": [],
        "2.jpg": [],
    }
    assert boxes_of(listed("voc", tmp_path, **source, corners="edges"))["0.jpg"][1] == ([2, 3, 4, 5], 0)


def test_lists_of_voc_are_splits(tmp_path: Path) -> None:
    source = voc(tmp_path, *[thing("dog", 1, 1, 9, 9)] * 5)
    lists = tmp_path / "ImageSets/Main"
    lists.mkdir(parents=True)
    for name, text in {"train": "3\n0\n", "val": "1\n", "dog_test": "2  1\n4 -1\n", "lost": "7\n", "none": "\n"}.items():
        (lists / f"{name}.txt").write_text(text)
    found = listed("voc", tmp_path, **source, split={"train": "train", "validation": "val", "test": "dog_test"})
    assert found.parts is not None
    assert dict(zip(found.keys, found.parts, strict=True)) == {"0.jpg": "train", "1.jpg": "validation", "2.jpg": "test", "3.jpg": "train"}
    assert list(listed("voc", tmp_path, **source, split="train").keys) == ["0.jpg", "3.jpg"]
    (lists / "partly.txt").write_text("0\n7\n")
    assert missing(listed("voc", tmp_path, **source, split="partly")) == [("PG578", ["7"])]
    for split, code, said in (
        ("trian", "PG578", "the list trian.txt is missing"),
        ("lost", "PG578", "names 1 image of 1 that"),
        ("none", "PG578", "is empty"),
        ({"train": "train", "test": "train"}, "PG448", "is in both `train` and `test`"),
    ):
        wrong = error_of("voc", tmp_path, **source, split=split)
        assert (wrong.code, said in wrong.message) == (code, True), wrong.message


def test_files_beside_images_are_found(tmp_path: Path) -> None:
    for name in ("train/a", "train/b"):
        photo(tmp_path / f"{name}.jpg")
        (tmp_path / f"{name}.xml").write_text(VOC.format(thing("dog", 1, 1, 9, 9)))
    (tmp_path / "train/lost.xml").write_text(VOC.format(""))
    found = listed("voc", tmp_path, path=".")
    assert list(found.keys) == ["train/a.jpg", "train/b.jpg"]
    assert missing(found) == [("PG476", ["train/lost.xml"])]
    photo(tmp_path / "train/a.png")
    assert error_of("voc", tmp_path, path=".").code == "PG424"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<!DOCTYPE a [<!ENTITY b "c">]><annotation>&b;</annotation>', ":1 declares a document type"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><annotation/>', ":1 declares a document type"),
        ("<annotation>\n<object></annotation>", ":2:11 is not XML: mismatched tag"),
        ("<a>" * 5000, "is nested too deep"),
        ("<annotation>&b;</annotation>", "is not XML: undefined entity"),
        ('<?xml version="1.0" encoding="utf-99"?><a/>', "is not XML"),
        ("", "is not XML"),
        ("<annotation><object><bndbox/></object></annotation>", "object 1 has no `name`"),
        (VOC.format(thing("dog", 1, 1, 9, 9).replace("<xmax>9", "<xmax>nan")), "object 1 needs a `bndbox`"),
        (VOC.format("<object><name>dog</name></object>"), "object 1 needs a `bndbox`"),
    ],
)
def test_xml_that_is_wrong_is_an_error_with_its_place(text: str, said: str, tmp_path: Path) -> None:
    source = voc(tmp_path, thing("dog", 1, 1, 9, 9), "")
    (tmp_path / "Annotations/1.xml").write_text(text)
    wrong = error_of("voc", tmp_path, **source)
    assert (wrong.code, wrong.field) == ("PG475", "path")
    assert said in wrong.message
    assert "1.xml" in wrong.message


# YOLO


def yolo(folder: Path, texts: dict[str, str | None], names: str | None = "names: [cat, dog]\n") -> dict[str, Any]:
    for key, text in texts.items():
        photo(folder / "images" / f"{key}.jpg")
        if text is not None:
            file = folder / "labels" / f"{key}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    if names is not None:
        (folder / "data.yaml").write_text(names)
    return {"path": "."}


def test_yolo_has_centres_in_parts_of_the_image(tmp_path: Path) -> None:
    source = yolo(
        tmp_path, {"train/0": "1 0.5 0.5 0.5 1\n\n0 0.25 0.25 0.25 0.5 0.9\n", "train/1": "", "val/2": None, "val/3": "0 0 0 .5 .25 .25 .5"}
    )
    found = listed("yolo", tmp_path, **source)
    assert found.classes["labels"] == ("cat", "dog")
    assert boxes_of(found) == {
        "train/0.jpg": [([0.25, 0, 0.75, 1], 1), ([0.125, 0, 0.375, 0.5], 0)],
        "train/1.jpg": [],
        "val/2.jpg": [],
        "val/3.jpg": [([0, 0, 0.5, 0.5], 0)],
    }
    found = listed("yolo", tmp_path, **source, split={"train": "train", "validation": "val"})
    assert found.parts is not None
    assert list(found.parts) == ["train", "train", "validation", "validation"]


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("path: .\ntrain: images/a\nval: images/b\nnames:\n  0: cat\n  1: dog\n", ["train", "val"]),
        ("train: ../images/a\nval: [images/b]\nnames: [cat, dog]\n", ["train", "val"]),
        ("path: /not/here\ntrain: a.txt\nval: b.txt\nnc: 2\nnames: ['cat', 'dog']\n", ["train", "val"]),
    ],
)
def test_splits_of_yolo_are_those_of_its_yaml(named: str, expected: list[str], tmp_path: Path) -> None:
    yolo(tmp_path, {"a/0": "0 .5 .5 .5 .5", "b/1": "1 .5 .5 .5 .5"}, named)
    (tmp_path / "a.txt").write_text("./images/a/0.jpg\n")
    (tmp_path / "b.txt").write_text("images/b/1.jpg\n")
    found = listed("yolo", tmp_path, path="data.yaml", split={"train": "train", "val": "val"})
    assert found.parts is not None
    assert (list(found.keys), list(found.parts)) == (["a/0.jpg", "b/1.jpg"], expected)
    assert error_of("yolo", tmp_path, path="data.yaml", split="test").code == "PG578"


def test_names_of_yolo_may_stand_in_a_text_or_nowhere(tmp_path: Path) -> None:
    source = yolo(tmp_path, {"0": "10 .5 .5 .5 .5\n2 .5 .5 .5 .5"}, None)
    assert listed("yolo", tmp_path, **source).classes["labels"] == ("2", "10")
    (tmp_path / "classes.txt").write_text("\n".join("abcdefghijk"))
    assert listed("yolo", tmp_path, **source).classes["labels"] == tuple("abcdefghijk")
    (tmp_path / "labels/lost.txt").write_text("")
    assert missing(listed("yolo", tmp_path, **source)) == [("PG476", ["../labels/lost.txt"])]


def test_folders_of_splits_that_hold_images_and_labels(tmp_path: Path) -> None:
    for split in ("train", "valid"):
        photo(tmp_path / split / "images/x.jpg")
        (tmp_path / split / "labels").mkdir()
        (tmp_path / split / "labels/x.txt").write_text("0 .5 .5 .5 .5")
    (tmp_path / "data.yaml").write_text("train: ../train/images\nval: ../valid/images\nnc: 1\nnames: [cat]\n")
    found = listed("yolo", tmp_path, path=".", split={"train": "train", "validation": "val"})
    assert boxes_of(found) == {f"{s}/images/x.jpg": [([0.25, 0.25, 0.75, 0.75], 0)] for s in ("train", "valid")}
    assert list(found.parts or ()) == ["train", "validation"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 .5 .5 .5", "0.txt:1 needs a class and a box"),
        ("\n0 .5 x .5 .5", "0.txt:2 needs a class and a box"),
        ("2 .5 .5 .5 .5", "has the invalid class 2; the 2 classes are 0 to 1"),
        ("0.5 .5 .5 .5 .5", "has the invalid class 0.5"),
        ("-1 .5 .5 .5 .5", "has the invalid class -1"),
        ("0 100 50 20 20", "has a box in pixels"),
        ("0 .1 .1 .2 .2 .3 .3 .4", "it needs pairs"),
        ("0 inf .5 .5 .5", "needs a class and a box"),
    ],
)
def test_lines_of_yolo_that_are_wrong_are_errors_with_their_place(text: str, said: str, tmp_path: Path) -> None:
    wrong = error_of("yolo", tmp_path, **yolo(tmp_path, {"0": text, "1": "0 .5 .5 .5 .5"}))
    assert wrong.code == "PG475"
    assert said in wrong.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("names: [a\n", "is not YAML"),
        ("- a", "it needs a map with `names`"),
        ("names: {0: a, 2: b}", "are not the numbers 0 to 1"),
        ("names: 3", "must be a list of names"),
        ("names: [a, a]", "has the class 'a' twice"),
        ("names: !!python/object/apply:os.getcwd []", "is not YAML"),
    ],
)
def test_a_yaml_that_is_wrong_is_an_error(text: str, said: str, tmp_path: Path) -> None:
    wrong = error_of("yolo", tmp_path, **yolo(tmp_path, {"0": "0 .5 .5 .5 .5"}, text))
    assert wrong.code == "PG475"
    assert said in wrong.message


# LabelMe


def shape(label: str, kind: str, *points: tuple[float, float]) -> dict[str, Any]:
    return {"label": label, "shape_type": kind, "points": [list(p) for p in points], "group_id": None, "flags": {}}


def labelme(folder: Path, name: str, drawn: list[Any], **changes: Any) -> None:
    photo(folder / f"{name}.png")
    content = {
        "version": "5.0",
        "shapes": drawn,
        "imagePath": f"{Path(name).name}.png",
        "imageHeight": 30,
        "imageWidth": 40,
        "imageData": "aa",
    }
    (folder / f"{name}.json").write_text(json.dumps(content | changes))


def test_labelme_draws_boxes_around_shapes(tmp_path: Path) -> None:
    kinds = [
        shape("dog", "polygon", (1, 2), (9, 3), (5, 8)),
        shape("cat", "rectangle", (20, 10), (12, 4)),
        shape("dog", "circle", (20, 15), (23, 19)),
        shape("cat", "point", (1, 1)),
        shape("cat", "mask", (2, 2), (5, 6)),
    ]
    labelme(tmp_path, "a/x", kinds)
    labelme(tmp_path, "b", [], imagePath="..\\elsewhere\\b.png")
    photo(tmp_path / "c.png")
    (tmp_path / "other.json").write_text("{}")
    found = listed("labelme", tmp_path, path=".")
    assert found.classes["labels"] == ("cat", "dog")
    assert boxes_of(found) == {
        "a/x.png": [([1, 2, 9, 8], 1), ([12, 4, 20, 10], 0), ([15, 10, 25, 20], 1), ([2, 2, 6, 7], 0)],
        "b.png": [],
        "c.png": [],
    }
    assert [(note.code, note.message) for note in found.notes] == [
        ("PG411", "ignored: 1 shape without an area (point)"),
        ("PG411", "ignored: 1 .json file without `shapes` ('other.json')"),
    ]
    (tmp_path / "b.png").unlink()
    assert missing(listed("labelme", tmp_path, path=".")) == [("PG476", ["b.json"])]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"shapes": 3}, "it has no list of `shapes`"),
        ({"shapes": [3]}, "`shapes[0]` has no `label`"),
        ({"shapes": [shape("dog", "star", (1, 1), (2, 2))]}, "an unknown kind, or `points` that are not pairs of numbers"),
        ({"shapes": [{"label": "dog", "points": [[1, 2, 3]]}]}, "`points` that are not pairs of numbers"),
        ({"shapes": [shape("dog", "circle", (1, 1))]}, "with 1 points; it needs its centre and a point on it"),
        ({"imagePath": "y.png"}, "as does"),
    ],
)
def test_a_file_of_labelme_that_is_wrong_is_an_error(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    labelme(tmp_path, "y", [shape("dog", "rectangle", (1, 1), (5, 5))])
    labelme(tmp_path, "x", [], **changes)
    wrong = error_of("labelme", tmp_path, path=".")
    assert wrong.code == "PG475"
    assert said in wrong.message


def test_what_lies_beside_annotated_images_is_told(tmp_path: Path) -> None:
    from pipegen.ops.sources.annotations.files import listed_images

    (tmp_path / "a.jpg").touch()
    (tmp_path / "b.jp2").touch()
    (tmp_path / "c.jpg").symlink_to(tmp_path / "gone.jpg")
    (tmp_path / "a.xml").touch()
    (tmp_path / "@eaDir").mkdir()
    keys, notes = listed_images(str(tmp_path), None, ".xml")
    assert keys == ["a.jpg"]
    assert [note.code for note in notes] == ["PG414", "PG411", "PG411"]
    assert "1 hidden entry ('@eaDir')" in notes[-1].message
    assert ".xml" not in notes[-1].message
