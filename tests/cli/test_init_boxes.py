"""`pipegen init`: the first spec of images with boxes, in every format and layout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_helpers import Cli, write_images

import pipegen
from pipegen.phases.compilation import collect_data, inspect

VOC = """<annotation><size><width>20</width><height>18</height></size>
<object><name>{}</name><bndbox><xmin>3</xmin><ymin>3</ymin><xmax>12</xmax><ymax>12</ymax></bndbox></object></annotation>"""


def written(cli: Cli, path: str) -> tuple[str, dict[str, int]]:
    """Runs `init`: the text of the spec, which has no findings, and the images of each split."""
    result = cli("init", path)
    assert result.exit_code == 0, result.output
    file = result.stdout.split(":")[0].removeprefix("wrote ")
    text = Path(file).read_text(encoding="utf-8")
    assert not inspect(file).diagnostics.items
    spec = pipegen.load(file)
    manifest = collect_data(spec)
    assert "output: {x: image, y: {boxes: boxes, labels: labels, there: boxes_valid}}" in text
    assert "# Classes: cat 6, dog 6" in text or "# Classes: cat 12, dog 12" in text
    return text, {split: manifest.num_examples(split) for split in spec.model.split_names()}


def coco(folder: Path, file: str, images: str) -> None:
    write_images(folder / images, 12)
    content = {
        "info": {"year": 2024},
        "images": [{"id": i, "file_name": f"{i:02d}.jpg", "width": 20, "height": 18} for i in range(12)],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [{"id": i, "image_id": i, "category_id": 1 + i % 2, "bbox": [2, 2, 9, 9], "iscrowd": 0} for i in range(12)],
    }
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(json.dumps(content))


def test_coco_with_a_file_for_each_split(cli: Cli, tmp_path: Path) -> None:
    for split in ("train", "val"):
        coco(tmp_path / "pets", f"annotations/instances_{split}2017.json", f"{split}2017")
        (tmp_path / f"pets/annotations/captions_{split}2017.json").write_text('{"images": [], "annotations": []}')
    text, counts = written(cli, "pets")
    assert counts == {"train": 12, "validation": 12}
    assert "    train: {coco: {images: pets/train2017/, annotations: pets/annotations/instances_train2017.json}}" in text


@pytest.mark.parametrize("asked", ["pets", "pets/boxes.json"])
def test_coco_in_one_file(cli: Cli, tmp_path: Path, asked: str) -> None:
    coco(tmp_path / "pets", "boxes.json", "images")
    text, counts = written(cli, asked)
    assert counts == {"train": 10, "validation": 2}
    assert "source: {coco: {images: pets/images/, annotations: pets/boxes.json}}" in text
    assert "12 images with 12 boxes of 2 classes" in text


def test_outlines_are_offered_where_there_are_any(cli: Cli, tmp_path: Path) -> None:
    coco(tmp_path / "pets", "boxes.json", "images")
    text, _ = written(cli, "pets")
    assert "Outlines" not in text
    content = json.loads((tmp_path / "pets/boxes.json").read_text())
    for one in content["annotations"]:
        one["segmentation"] = [[2, 2, 11, 2, 11, 11]]
    (tmp_path / "pets/boxes.json").write_text(json.dumps(content))
    Path("pets.pipegen.yaml").unlink()
    text, _ = written(cli, "pets")
    assert "# Outlines: `masks: instances` in `coco` turns them into a `mask` with the number of each box" in text
    asked = text.replace("annotations: pets/boxes.json", "annotations: pets/boxes.json, masks: instances").replace(
        "labels: labels}", "mask: mask}"
    )
    Path("asked.pipegen.yaml").write_text(asked)
    assert not inspect("asked.pipegen.yaml").diagnostics.items


@pytest.mark.parametrize(
    ("images", "annotations", "lists"), [("JPEGImages", "Annotations", True), ("images", "annotations", False), (".", ".", False)]
)
def test_pascal_voc(cli: Cli, tmp_path: Path, images: str, annotations: str, lists: bool) -> None:
    write_images(tmp_path / "pets" / images, 12)
    (tmp_path / "pets" / annotations).mkdir(exist_ok=True)
    for i in range(12):
        (tmp_path / "pets" / annotations / f"{i:02d}.xml").write_text(VOC.format(("cat", "dog")[i % 2]))
    if lists:
        (tmp_path / "pets/ImageSets/Main").mkdir(parents=True)
        (tmp_path / "pets/ImageSets/Main/train.txt").write_text("\n".join(f"{i:02d}" for i in range(9)))
        (tmp_path / "pets/ImageSets/Main/val.txt").write_text("\n".join(f"{i:02d}" for i in range(9, 12)))
    text, counts = written(cli, "pets")
    assert counts == ({"train": 9, "validation": 3} if lists else {"train": 10, "validation": 2})
    assert ("split: {train: train, validation: val}" in text) == lists


@pytest.mark.parametrize("yaml", [None, "train: images/train\nval: images/val\nnames: [cat, dog]\n"])
def test_yolo(cli: Cli, tmp_path: Path, yaml: str | None) -> None:
    for split in ("train", "val"):
        write_images(tmp_path / "pets/images" / split, 6)
        (tmp_path / "pets/labels" / split).mkdir(parents=True)
        for i in range(6):
            (tmp_path / "pets/labels" / split / f"{i:02d}.txt").write_text(f"{i % 2} 0.5 0.5 0.5 0.5\n")
    if yaml is None:
        (tmp_path / "pets/classes.txt").write_text("cat\ndog\n")
    else:
        (tmp_path / "pets/data.yaml").write_text(yaml)
    text, counts = written(cli, "pets" if yaml is None else "pets/data.yaml")
    assert counts == {"train": 6, "validation": 6}
    assert "split: {train: train, validation: val}" in text


def test_labelme(cli: Cli, tmp_path: Path) -> None:
    write_images(tmp_path / "pets", 12)
    for i in range(12):
        shape = {"label": ("cat", "dog")[i % 2], "shape_type": "rectangle", "points": [[2, 2], [9, 9]]}
        (tmp_path / "pets" / f"{i:02d}.json").write_text(json.dumps({"imagePath": f"{i:02d}.jpg", "shapes": [shape]}))
    text, counts = written(cli, "pets")
    assert counts == {"train": 10, "validation": 2}
    assert "source: {labelme: {path: pets/}}" in text


def test_files_that_say_nothing_of_boxes(cli: Cli, tmp_path: Path) -> None:
    write_images(tmp_path / "pets/cat", 12)
    write_images(tmp_path / "pets/dog", 12)
    (tmp_path / "pets/notes.json").write_text('{"info": {}, "cats": 3}')
    (tmp_path / "pets/cat/about.txt").write_text("12 photos\n")
    (tmp_path / "pets/cat/about.xml").write_text("<about/>")
    assert "wrote pets.pipegen.yaml: 24 images in 2 classes" in cli("init", "pets").stdout
    refused = cli("init", "pets/notes.json")
    assert refused.exit_code == 2
    assert "has no boxes of images in its folder or below" in refused.stderr


@pytest.mark.nightly
def test_annotations_of_images_that_are_not_there(cli: Cli, tmp_path: Path) -> None:
    """The first spec runs: it leaves them out, and says so."""
    coco(tmp_path / "pets", "boxes.json", "images")
    (tmp_path / "pets/images/11.jpg").unlink()
    file = cli("init", "pets").stdout.split(":")[0].removeprefix("wrote ")
    text = Path(file).read_text(encoding="utf-8")
    assert "errors: {missing: drop}" in text
    assert "names '11.jpg', which is not in" in text
    assert "# Classes: cat 6, dog 5" in text
    assert collect_data(pipegen.load(file)).total == 11


def pointed(cli: Cli, path: str, expected: str) -> None:
    """Runs `init` on annotations with keypoints: its spec has no findings, and gives batches."""
    result = cli("init", path)
    assert result.exit_code == 0, result.output
    file = result.stdout.split(":")[0].removeprefix("wrote ")
    text = Path(file).read_text(encoding="utf-8")
    assert expected in text
    found = inspect(file).diagnostics.items
    assert not found, found
    _, y = next(iter(pipegen.build(file, runtime={"jit": "never"}).train))
    points = y["keypoints"] if isinstance(y, dict) else y
    assert points.shape[-1] == 3
    assert points.numpy().any()


@pytest.mark.nightly
def test_keypoints_of_coco(cli: Cli, tmp_path: Path) -> None:
    coco(tmp_path / "pets", "person_keypoints.json", "images")
    file = tmp_path / "pets/person_keypoints.json"
    content = json.loads(file.read_text())
    for category in content["categories"]:
        category["keypoints"] = ["nose", "tail"]
    for one in content["annotations"]:
        one |= {"keypoints": [3, 3, 2, 0, 0, 0], "num_keypoints": 1}
    file.write_text(json.dumps(content))
    pointed(cli, "pets", "annotations: pets/person_keypoints.json, keypoints: instances}}")


@pytest.mark.by_day(1)
@pytest.mark.parametrize("split", [True, False])
def test_poses_and_outlines_of_yolo(cli: Cli, tmp_path: Path, split: bool) -> None:
    for name in ("train", "val"):
        write_images(tmp_path / "pets/images" / name, 6)
        (tmp_path / "pets/labels" / name).mkdir(parents=True)
        for i in range(6):
            (tmp_path / "pets/labels" / name / f"{i:02d}.txt").write_text("0 0.5 0.5 0.5 0.5 0.4 0.4 2 0 0 0\n")
    splits = "train: images/train\nval: images/val\n" if split else ""
    (tmp_path / "pets/data.yaml").write_text(f"{splits}names: [cat]\nkpt_shape: [2, 3]\nflip_idx: [1, 0]\n")
    pointed(cli, "pets", "keypoints: instances")
    for file in tmp_path.rglob("labels/*/*.txt"):
        file.write_text("0 0.1 0.1 0.5 0.1 0.5 0.5\n")
    (tmp_path / "pets/data.yaml").write_text(f"{splits}names: [cat]\n")
    Path("pets.pipegen.yaml").unlink()
    assert cli("init", "pets").exit_code == 0
    assert "`masks: instances` in `yolo`" in Path("pets.pipegen.yaml").read_text()


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("group", "box", "labels", "expected"),
    [
        (3, True, ("nose", "tail"), "{labelme: {path: pets/, keypoints: instances}}"),
        (None, True, ("nose", "tail"), "{labelme: {path: pets/, keypoints: image, names: [nose, tail]}}"),
        (None, False, ("nose", "tail"), "{labelme: {path: pets/, keypoints: image, names: [nose, tail]}}"),
        (None, False, ("seed", "seed"), "{labelme: {path: pets/, keypoints: image}}"),
    ],
)
def test_points_of_labelme(cli: Cli, tmp_path: Path, group: int | None, box: bool, labels: tuple[str, str], expected: str) -> None:
    write_images(tmp_path / "pets", 12)
    for i in range(12):
        shapes = [{"label": n, "shape_type": "point", "points": [[4 + k, 5]], "group_id": group} for k, n in enumerate(labels)]
        shapes += [{"label": "cat", "shape_type": "rectangle", "points": [[2, 2], [9, 9]], "group_id": group}] if box else []
        (tmp_path / "pets" / f"{i:02d}.json").write_text(json.dumps({"imagePath": f"{i:02d}.jpg", "shapes": shapes}))
    pointed(cli, "pets", expected)
