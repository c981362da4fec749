"""Keypoints and outlines of annotation files: the batches are those of the same data as arrays."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from pipes import batches
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import pipegen
from pipegen.cli.commands import app

pytestmark = pytest.mark.tf

COUNT, WIDTH, HEIGHT = 12, 64, 32
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


def write_labelme(folder: Path, held: list[Record], *, of: str = "instances") -> dict[str, Any]:
    """Points are counted from the corner of the image; a box and its points have a group, and none is hidden."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, one in enumerate(held):
        Image.fromarray(one["image"]).save(folder / f"{i:02d}.png")
        shapes: list[Any] = []
        for group, (box, name, points) in enumerate(zip(one["boxes"].tolist(), one["labels"], one["points"].tolist(), strict=True)):
            shapes.append({"label": name, "points": [box[:2], box[2:]], "shape_type": "rectangle", "group_id": group})
            for joint, (x, y, seen) in zip(NAMED, points, strict=True):
                if seen and (of == "instances" or group == 0):
                    shapes.append({"label": joint, "points": [[x + 0.5, y + 0.5]], "shape_type": "point", "group_id": group})
        about = {"imagePath": f"{i:02d}.png", "imageWidth": WIDTH, "imageHeight": HEIGHT}
        (folder / f"{i:02d}.json").write_text(json.dumps({**about, "shapes": shapes}))
    return {"labelme": {"path": str(folder), "keypoints": of}}


WRITERS: dict[str, Callable[[Path, list[Record]], dict[str, Any]]] = {"coco": write_coco, "labelme": write_labelme, "yolo": write_yolo}
RELATIVE = {"yolo"}


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
    if op == "labelme":  # which has no hidden points
        for one in held:
            one["points"][..., 2] = np.where(one["points"][..., 2] > 0, 2, 0)
    source, data = arrays_of(held, relative=op in RELATIVE)
    return batches(pipegen.build(spec_of(source), data=data, runtime={"jit": "never"}).train)


def equal(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("cache_", ["none", "memory", "disk"])
@pytest.mark.parametrize("op", WRITERS)
def test_batches_are_those_of_arrays(op: str, cache_: str, tmp_path: Path) -> None:
    runtime = {"jit": "never", "cache": {"disk": str(tmp_path / "cache")} if cache_ == "disk" else cache_}
    pipe = pipegen.build(spec_of(WRITERS[op](tmp_path, records())), runtime=runtime, allow_write=[str(tmp_path)])
    expected = as_arrays(op)
    assert sum(len(np.unique(batch[3])) for batch in expected) > 20
    for _ in range(2):
        equal(batches(pipe.train), expected)


def rows_of(found: list[tuple[Any, ...]]) -> dict[bytes, list[Any]]:
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


@pytest.mark.parametrize("op", WRITERS)
def test_a_store_a_picture_and_a_table(op: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = spec_of(WRITERS[op](tmp_path / "data", records()), splits={"parts": {"train": 11, "validation": 1}, "method": "random"})
    (tmp_path / "spec.pipegen.yaml").write_text(json.dumps(spec))
    for words in (["validate", "spec.pipegen.yaml", "--data"], ["report", "spec.pipegen.yaml", "-o", "report.html"]):
        done = CliRunner().invoke(app, words, prog_name="pipegen")
        assert done.exit_code == 0, done.output
    pipe = pipegen.build(spec, runtime={"jit": "never"})
    assert len(np.unique(np.asarray(pipe.preview("train", rows=4, draws=1)))) > 30
    rows = [json.loads(line) for line in pipe.export("out").table.read_text().splitlines()]
    due = batches(pipe.train)
    assert [{*one} for row in rows for one in row["keypoints"]] == [{*NAMED}] * sum(int(batch[-1].sum()) for batch in due)
    store = pipegen.prepare(spec, tmp_path / "store")
    same_rows(batches(pipegen.build(store.spec, runtime={"jit": "never"}).train), due, 11)


def test_points_of_an_image_and_those_without_a_box(tmp_path: Path) -> None:
    """One set for an image, of which some have no point; a mask beside it; a second point of a name; a point of no group."""
    held = records()
    source = write_labelme(tmp_path / "a", held, of="image")
    output = {"x": "image", "y": ["keypoints", "boxes"]}
    found = batches(pipegen.build(spec_of(source, output=output), runtime={"jit": "never"}).train)
    points = np.stack([one["points"][0] if len(one["points"]) else np.zeros((3, 3)) for one in held]).astype(np.float32)
    points[..., 2] = np.where(points[..., 2] > 0, 2, 0)
    feature = {"kind": "keypoints", "names": [*NAMED], "mirror_pairs": [["left_ear", "right_ear"]]}
    arrays = {"arrays": {"features": {"image": {"kind": "image"}, "keypoints": feature}}}
    data = {"image": np.stack([one["image"] for one in held]), "keypoints": points}
    due = batches(pipegen.build(spec_of(arrays, output={"x": "image", "y": "keypoints"}), data=data, runtime={"jit": "never"}).train)
    equal([batch[:2] for batch in found], due)
    masked = {"labelme": {**source["labelme"], "masks": "instances", "names": ["nose", "left_ear"]}}
    pipe = pipegen.build(spec_of(masked, output={"x": "image", "y": ["keypoints", "mask", "boxes"]}), runtime={"jit": "never"})
    for batch, other in zip(batches(pipe.train), due, strict=True):
        np.testing.assert_array_equal(batch[1][:, 0], other[1][:, 1])

    file = tmp_path / "a" / "03.json"
    about = json.loads(file.read_text())
    about["shapes"].append({"label": "tail", "points": [[3, 4]], "shape_type": "point", "group_id": None})
    file.write_text(json.dumps(about))
    (tmp_path / "spec.pipegen.yaml").write_text(json.dumps(spec_of({"labelme": {**source["labelme"], "keypoints": "instances"}})))
    told = CliRunner().invoke(app, ["validate", str(tmp_path / "spec.pipegen.yaml"), "--data"], prog_name="pipegen")
    assert "has no `group_id` that one shape with an area has, too" in " ".join(told.output.split())
    about["shapes"].append(about["shapes"][-1])
    file.write_text(json.dumps(about))
    with pytest.raises(pipegen.SpecError, match=r"is the second point 'tail' of its image"):
        pipegen.build(spec_of(source, output=output))
