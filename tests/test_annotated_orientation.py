"""Boxes and masks lie on what they were drawn around, whichever way the EXIF of an image turns it and its annotations were drawn.

The oracle is colour: each image shows one red rectangle, and what its annotations say is to be red.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import picture_files as made
import pytest
from PIL import Image

from pipegen.data.collect import collect, in_stage
from pipegen.ops.kinds.base import geometry_of
from pipegen.ops.lowering.exif import turned_points
from pipegen.phases.compilation import load
from pipegen.types import FeatureType

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]
HEIGHT, WIDTH = 40, 60
TOP, LEFT, BOTTOM, RIGHT = 6, 8, 22, 36
"""The rectangle on the upright picture; it lies differently for each orientation."""
FORMS = ("JPEG", "PNG", "WEBP")


def upright(height: int = HEIGHT, width: int = WIDTH) -> Array:
    picture = np.full((height, width, 3), (20, 60, 160), np.uint8)
    picture[TOP:BOTTOM, LEFT:RIGHT] = (220, 30, 20)
    return picture


def as_stored(picture: Array, orientation: int) -> Array:
    """Undoes `ImageOps.exif_transpose`, by NumPy."""
    turns: dict[int, Any] = {
        1: lambda p: p, 2: np.fliplr, 3: lambda p: np.rot90(p, 2), 4: np.flipud, 5: lambda p: p.swapaxes(0, 1),
        6: lambda p: np.rot90(p, 1), 7: lambda p: np.rot90(p.swapaxes(0, 1), 2), 8: lambda p: np.rot90(p, -1),
    }  # fmt: skip
    found: Array = np.ascontiguousarray(turns[orientation](picture))
    return found


def box_of(picture: Array) -> tuple[int, int, int, int]:
    """Left, top, right and bottom edge of what is red."""
    rows, columns = np.nonzero(picture[..., 0] > 128)
    return int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1


@dataclass(frozen=True)
class Annotated:
    """A file and what is annotated: on its stored pixels, or on the upright picture."""

    name: str
    orientation: int
    drawn: Literal["stored", "upright"]
    size: tuple[int, int]
    box: tuple[int, int, int, int]

    def told(self) -> bool:
        """Returns whether the size says which way it was drawn."""
        return self.orientation >= 5 and self.size[0] != self.size[1]


def annotated(folder: Path, *, square: bool = False) -> list[Annotated]:
    """Writes a file of each orientation for each way to draw."""
    folder.mkdir(parents=True)
    found = []
    picture = upright(WIDTH if square else HEIGHT)
    for orientation in range(1, 9):
        for drawn in ("stored", "upright"):
            stored = as_stored(picture, orientation)
            form = FORMS[(orientation + (drawn == "stored")) % 3]
            name = f"{orientation}_{drawn}.{form.lower().replace('jpeg', 'jpg')}"
            options: dict[str, Any] = {"exif": b"Exif\0\0" + made.exif_block(orientation)}
            options |= {"quality": 95, "subsampling": 0} if form == "JPEG" else {"lossless": True} if form == "WEBP" else {}
            Image.fromarray(stored).save(folder / name, form, **options)
            shown = stored if drawn == "stored" else picture
            found.append(Annotated(name, orientation, drawn, shown.shape[:2], box_of(shown)))  # type: ignore[arg-type]
    return found


def coco(base: Path, files: list[Annotated]) -> dict[str, Any]:
    boxes = [
        {"id": i + 1, "image_id": i, "category_id": 1, "iscrowd": 0, "area": 1, "bbox": [x0, y0, x1 - x0, y1 - y0],
         "segmentation": [[x0, y0, x1, y0, x1, y1, x0, y1]]}
        for i, (x0, y0, x1, y1) in enumerate(one.box for one in files)
    ]  # fmt: skip
    images = [{"id": i, "file_name": one.name, "height": one.size[0], "width": one.size[1]} for i, one in enumerate(files)]
    told = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "red"}]}
    (base / "boxes.json").write_text(json.dumps(told))
    return {"coco": {"images": str(base / "photos"), "annotations": str(base / "boxes.json")}}


def voc(base: Path, files: list[Annotated]) -> dict[str, Any]:
    for one in files:
        x0, y0, x1, y1 = one.box
        corners = f"<xmin>{x0 + 1}</xmin><ymin>{y0 + 1}</ymin><xmax>{x1}</xmax><ymax>{y1}</ymax>"
        size = f"<size><width>{one.size[1]}</width><height>{one.size[0]}</height></size>"
        text = f"<annotation>{size}<object><name>red</name><bndbox>{corners}</bndbox></object></annotation>"
        for folder in ("drawn", "SegmentationObject"):
            (base / folder).mkdir(exist_ok=True)
        (base / "drawn" / f"{Path(one.name).stem}.xml").write_text(text)
        mask = np.zeros(one.size, np.uint8)
        mask[y0:y1, x0:x1] = 1
        Image.fromarray(mask).save(base / "SegmentationObject" / f"{Path(one.name).stem}.png")
    return {"voc": {"path": str(base), "images": "photos", "annotations": "drawn"}}


def labelme(base: Path, files: list[Annotated]) -> dict[str, Any]:
    for one in files:
        x0, y0, x1, y1 = one.box
        shape = {"label": "red", "points": [[x0, y0], [x1, y0], [x1, y1], [x0, y1]], "shape_type": "polygon"}
        told = {"imagePath": one.name, "imageHeight": one.size[0], "imageWidth": one.size[1], "shapes": [shape]}
        (base / "photos" / f"{Path(one.name).stem}.json").write_text(json.dumps(told))
    return {"labelme": {"path": str(base / "photos")}}


SOURCES = {"coco": coco, "voc": voc, "labelme": labelme}


STEP = {"resize": {"size": [96, 96], "method": "nearest"}}
BOX_OUTPUT = {"x": "image", "y": {"boxes": "boxes", "there": "boxes_valid"}}


def build(source: dict[str, Any], exif: str, *steps: Any, **own: Any) -> Any:
    """The pipeline; of steps that make images smaller, `own` says more."""
    import pipegen

    steps = ({"decode": {"exif": exif}}, *(steps or (STEP,)))
    output = BOX_OUTPUT | {"y": BOX_OUTPUT["y"] | ({"mask": "mask"} if "masks" in next(iter(source.values())) else {})}  # type: ignore[operator]
    spec = {"pipegen": 1, "source": source, "transforms": list(steps), "batch": {"size": 1}, "shuffle": "none", "output": output}
    return pipegen.build(spec | own)


def examples(pipe: Any, epoch: int = 0) -> dict[str, tuple[Array, Array, Array | None]]:
    """By the name of each file, its image, boxes and mask."""
    found = []
    for image, y in pipe.dataset("train", epoch=epoch):
        boxes = y["boxes"].numpy()[0][y["there"].numpy()[0]]
        found.append((image.numpy()[0], boxes, y["mask"].numpy()[0, ..., 0] if "mask" in y else None))
    return {Path(file).name: example for file, example in zip(pipe.files("train"), found, strict=True)}


def lies_on_red(image: Array, boxes: Array, mask: Array | None) -> bool:
    """Returns whether exactly what is annotated is red, up to pixels at its edge."""
    red = image[..., 0] > 128
    if not len(boxes):
        return not red[2:-2, 2:-2].any() and (mask is None or not mask.any())
    ((left, top, right, bottom),) = np.round(boxes).astype(int)
    said = np.zeros(red.shape, bool)
    said[top:bottom, left:right] = True
    inner, outer = np.zeros_like(said), np.zeros_like(said)
    inner[top + 3 : bottom - 3, left + 3 : right - 3] = True
    outer[max(top - 3, 0) : bottom + 3, max(left - 3, 0) : right + 3] = True
    of_mask = mask is None or (mask[inner].all() and not mask[~outer].any())
    return bool(red[inner].all() and not red[~outer].any() and of_mask)


def with_masks(source: dict[str, Any]) -> dict[str, Any]:
    return {op: arguments | {"masks": "instances"} for op, arguments in source.items()}


def yolo(base: Path, files: list[Annotated]) -> dict[str, Any]:
    (base / "photos").rename(base / "images")
    (base / "labels").mkdir()
    for one in files:
        (left, top, right, bottom), (height, width) = one.box, one.size
        line = f"0 {(left + right) / 2 / width} {(top + bottom) / 2 / height} {(right - left) / width} {(bottom - top) / height}"
        (base / "labels" / f"{Path(one.name).stem}.txt").write_text(line)
    (base / "classes.txt").write_text("red")
    return {"yolo": {"path": str(base)}}


def notes_of(source: dict[str, Any], exif: str = "apply") -> dict[str, Any]:
    """By its code, each finding about orientations."""
    output = BOX_OUTPUT if "csv" not in source else {"x": "image", "y": "mask"}
    spec = {"pipegen": 1, "source": source, "transforms": [{"decode": {"exif": exif}}, STEP], "batch": {"size": 1}, "output": output}
    return {d.code: d for d in collect(load(spec).model).diagnostics if d.code in ("PG660", "PG661")}


def staged(source: dict[str, Any], exif: str, *others: str) -> Any:
    """The model of a spec whose stages turn images otherwise."""
    output = {"x": "image", "y": {"boxes": "boxes", "mask": "mask"}}
    stages = [{"epochs": 1, "params": {"exif": other}} for other in others]
    spec = {
        "pipegen": 1, "source": source, "transforms": [{"decode": {"exif": "$exif"}}, STEP], "batch": {"size": 1}, "output": output,
        "params": {"exif": {"type": "str", "default": exif}},
    }  # fmt: skip
    return load(spec | ({"stages": stages} if stages else {})).model


@pytest.mark.parametrize("mixed", [False, True])
def test_each_stage_decides_for_itself_how_images_lie(mixed: bool, tmp_path: Path) -> None:
    source = with_masks(SOURCES["coco"](tmp_path, annotated(tmp_path / "photos")))
    if mixed:
        source = {"mix": {"epoch": "shortest", "parts": {name: {"weight": 0.5, "source": source} for name in "ab"}}}

    def columns(manifest: Any) -> dict[str, Array]:
        parts = manifest.parts.values() if mixed else [manifest]
        held = {f"{i} {name}": np.asarray(column.values) for i, part in enumerate(parts) for name, column in part.listing.columns.items()}
        return held | {f"{i} sides": np.asarray(part.listing.sides) for i, part in enumerate(parts)}

    alone = {exif: columns(collect(staged(source, exif)).manifest) for exif in ("apply", "ignore")}
    assert any(not np.array_equal(values, alone["ignore"][name]) for name, values in alone["apply"].items()), "the test would find nothing"
    for exif, other in (("apply", "ignore"), ("ignore", "apply")):
        spec = staged(source, exif, exif, other)
        found = collect(spec)
        assert found.manifest is not None
        for stage, expected in zip(spec.stages, (exif, other), strict=True):
            own = columns(in_stage(spec, stage.resolved, found.manifest)[0])
            assert own.keys() == alone[expected].keys()
            for name, values in own.items():
                np.testing.assert_allclose(values, alone[expected][name], rtol=0, atol=1e-4, err_msg=f"{exif} {expected} {name}")
        if not mixed:
            taken = {d.message.rpartition("assumed: ")[2] for d in found.diagnostics if d.code == "PG661"}
            assert taken == {"on the upright images", "on the images as they are stored"}, "each way is told of"


@pytest.mark.nightly
def test_a_stage_that_turns_images_trains_on_what_is_annotated(tmp_path: Path) -> None:
    source = with_masks(SOURCES["coco"](tmp_path, annotated(tmp_path / "photos")))
    stages = [{"epochs": 1}, {"epochs": 1, "params": {"exif": "ignore"}}]
    pipe = build(source, "$exif", params={"exif": {"type": "str", "default": "apply"}}, stages=stages)
    for epoch, how in enumerate(("apply", "ignore")):
        alone = build(source, how).dataset("train", epoch=0)
        for (image, y), (expected, told) in zip(pipe.dataset("train", epoch=epoch), alone, strict=True):
            np.testing.assert_array_equal(image, expected)
            np.testing.assert_allclose(y["boxes"], told["boxes"], atol=1e-3)
            np.testing.assert_array_equal(y["mask"], told["mask"])


@pytest.mark.nightly
@pytest.mark.parametrize(("op", "masks", "exif"), [
    (op, masks, exif)
    for op in SOURCES for masks in (False, True) for exif in ("apply", "ignore")
])  # fmt: skip
def test_what_is_annotated_is_red(op: str, masks: bool, exif: str, tmp_path: Path) -> None:
    """Image by image, also where a set has both kinds. What no size tells is taken for the image as it is decoded."""
    files = annotated(tmp_path / "photos")
    source = SOURCES[op](tmp_path, files)
    found = examples(build(with_masks(source) if masks else source, exif))
    assert len(found) == len(files)
    as_decoded = "upright" if exif == "apply" else "stored"
    for one in files:
        right = one.told() or one.drawn == as_decoded or one.orientation == 1
        assert lies_on_red(*found[one.name]) == right, one


STEPS: dict[str, tuple[Any, ...]] = {
    "a window alone": ({"random_resized_crop": {"size": 96, "area": [0.5, 1], "aspect_ratio": [0.8, 1.25]}},),
    "turned again": ({"random_flip": {"axis": "both"}}, STEP, {"random_rotate_90": {}}),
    "of another size": ({"resize": {"size": 96, "mode": "pad"}},),
}


@pytest.mark.nightly
@pytest.mark.parametrize("runtime", [{"cache": "none"}, {"cache": "memory"}], ids=["read", "cached"])
@pytest.mark.parametrize("steps", STEPS)
def test_steps_and_caches_work_on_what_was_turned(steps: str, runtime: dict[str, Any], tmp_path: Path) -> None:
    files = annotated(tmp_path / "photos")
    pipe = build(with_masks(coco(tmp_path, files)), "apply", *STEPS[steps], runtime=runtime)
    for epoch in range(2):
        found = examples(pipe, epoch)
        for one in files:
            if one.told():
                image, boxes, mask = found[one.name]
                red = image[..., 0] > 128
                assert mask is not None
                assert (red[2:-2, 2:-2] == (mask == 1)[2:-2, 2:-2]).mean() > 0.97, (one, epoch)
                assert not len(boxes) or lies_on_red(image, boxes, None), (one, epoch)


@pytest.mark.nightly
def test_a_prepared_store_holds_what_was_turned(tmp_path: Path) -> None:
    import pipegen

    files = annotated(tmp_path / "photos")
    spec = {"pipegen": 1, "source": with_masks(coco(tmp_path, files)), "transforms": [STEP], "batch": {"size": 1}, "shuffle": "none"}
    spec |= {"output": {"x": "image", "y": {"boxes": "boxes", "there": "boxes_valid", "mask": "mask"}}}
    pipe = pipegen.build(pipegen.prepare(spec, tmp_path / "store").spec)
    read = [
        (x.numpy()[0], y["boxes"].numpy()[0][y["there"].numpy()[0]], y["mask"].numpy()[0, ..., 0])
        for x, y in pipe.dataset("train", epoch=0)
    ]
    for one, example in zip(sorted(files, key=lambda one: one.name), read, strict=True):
        assert lies_on_red(*example) or not (one.told() or one.drawn == "upright"), one


@pytest.mark.parametrize("op", SOURCES)
def test_findings_count_what_was_turned_and_what_nothing_tells(op: str, tmp_path: Path) -> None:
    source = SOURCES[op](tmp_path, annotated(tmp_path / "photos"))
    for exif, drawn, taken in (("apply", "as it is stored", "upright images"), ("ignore", "upright", "images as they are stored")):
        found = notes_of(source, exif)
        assert found["PG660"].severity == "info"
        assert "fits the image " + drawn in found["PG660"].message
        assert "annotations of 4 of 16 images are rotated" in found["PG660"].message
        assert found["PG661"].severity == "warning"
        assert found["PG661"].message.startswith("6 images have an EXIF orientation, such as ")
        assert found["PG661"].message.endswith(f"assumed: on the {taken}")


@pytest.mark.parametrize("form", ["square", "yolo", "table"])
def test_what_no_size_tells_is_a_warning(form: str, tmp_path: Path) -> None:
    """Square images, formats without a size, and masks in a table."""
    files = annotated(tmp_path / "photos", square=form == "square")
    if form == "table":
        Image.fromarray(np.zeros((HEIGHT, WIDTH), np.uint8)).save(tmp_path / "mask.png")
        rows = "".join(f"{tmp_path}/photos/{one.name},{tmp_path}/mask.png\n" for one in files if one.orientation < 5)
        (tmp_path / "t.csv").write_text(f"file,mask\n{rows}")
        features = {"image": {"kind": "image", "column": "file"}, "mask": {"kind": "mask", "column": "mask"}}
        source: dict[str, Any] = {"csv": {"path": str(tmp_path / "t.csv"), "features": features}}
    else:
        source = coco(tmp_path, files) if form == "square" else yolo(tmp_path, files)
    found = notes_of(source)
    assert [*found] == ["PG661"]
    assert found["PG661"].message.startswith(f"{6 if form == 'table' else 14} images have an EXIF orientation")


def test_images_without_an_orientation_are_no_finding(tmp_path: Path) -> None:
    files = annotated(tmp_path / "photos")
    assert not notes_of(coco(tmp_path, [one for one in files if one.orientation == 1]))


def test_a_bucket_is_that_of_the_image_as_it_is_decoded(tmp_path: Path) -> None:
    """Annotations say the sides, and these are turned with them."""
    files = annotated(tmp_path / "photos")
    for exif in ("apply", "ignore"):
        steps = [{"decode": {"exif": exif}}, {"resize": {"size": "bucket", "mode": "pad"}}]
        spec = {"pipegen": 1, "source": coco(tmp_path, files), "transforms": steps, "output": BOX_OUTPUT}
        spec |= {"batch": {"size": 1, "buckets": {"sizes": [[40, 60], [60, 40]]}}}
        manifest = collect(load(spec).model).manifest
        assert manifest is not None
        assert manifest.sides is not None
        for key, sides in zip(manifest.listing.keys, manifest.sides.tolist(), strict=True):
            one = next(one for one in files if one.name == key)
            swapped = exif == "ignore" and one.orientation >= 5
            assert sides == ([WIDTH, HEIGHT] if swapped else [HEIGHT, WIDTH]), (one, exif)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_places_are_turned_as_pixels_are(orientation: int) -> None:
    """Against a picture of one pixel: a keypoint is its centre, a box its edges, in every format."""
    from pipegen.ops.arguments.geometry import BoxRules, PointRules

    picture = np.zeros((HEIGHT, WIDTH), np.uint8)
    picture[7, 11] = 1
    stored = as_stored(picture, orientation)
    (y,), (x,) = np.nonzero(stored)
    sides = np.array([stored.shape], np.float64)
    assert turned_points(np.array([[x, y]], np.float64), orientation, sides - 1).tolist() == [[11, 7]]
    points = FeatureType("keypoints", "float32", (None, 3), of="image", details=PointRules())
    found = geometry_of("keypoints").turned(np.array([[x, y, 2], [0, 0, 0]], np.float32), orientation, np.repeat(sides, 2, 0), points)
    assert found.tolist() == [[11, 7, 2], [0, 0, 0]]
    high, wide = stored.shape
    formats = {
        "xyxy": ((x, y, x + 1, y + 1), (11, 7, 12, 8)), "yxyx": ((y, x, y + 1, x + 1), (7, 11, 8, 12)),
        "xywh": ((x, y, 1, 1), (11, 7, 1, 1)), "center_xywh": ((x + 0.5, y + 0.5, 1, 1), (11.5, 7.5, 1, 1)),
        "rel_xyxy": ((x / wide, y / high, (x + 1) / wide, (y + 1) / high), (11 / WIDTH, 7 / HEIGHT, 12 / WIDTH, 8 / HEIGHT)),
    }  # fmt: skip
    for form, (given, expected) in formats.items():
        boxes = FeatureType("boxes", "float32", (None, 4), of="image", details=BoxRules(format=form))  # type: ignore[arg-type]
        own = geometry_of("boxes").turned(np.array([given], np.float32), orientation, sides, boxes)
        np.testing.assert_allclose(own, [expected], atol=1e-6)


def test_names_of_keypoints_change_sides_in_a_mirror() -> None:
    from pipegen.ops.arguments.geometry import PointRules

    rules = PointRules(("left", "right"), (1, 0))
    x = FeatureType("keypoints", "float32", (2, 3), of="image", details=rules)
    given, sides = np.array([[1, 2, 2], [5, 2, 2]], np.float32), np.array([[8, 10]] * 2, np.float64)
    assert geometry_of("keypoints").turned(given, 2, sides, x).tolist() == [[4, 2, 2], [8, 2, 2]]
    assert geometry_of("keypoints").turned(given, 3, sides, x).tolist() == [[8, 5, 2], [4, 5, 2]]


@pytest.mark.parametrize("form", ["JPEG", "JPEG behind 64 KiB", "PNG", "PNG behind", "WebP", "TIFF", "AVIF"])
def test_headers_say_what_decoding_finds(form: str, tmp_path: Path) -> None:
    from pipegen.ops.sources.annotations.sizes import orientation_of, sides_of

    for orientation in range(10):
        path = tmp_path / f"{orientation}.picture"
        path.write_bytes(made.oriented(form, orientation))
        expected = orientation if 1 <= orientation <= 8 else 1
        assert orientation_of(str(path)) == expected
        sides = sides_of(str(path))
        assert sides is not None
        assert sides == ((sides.stored[::-1] if expected >= 5 else sides.stored), (made.WIDTH, made.HEIGHT))


def test_headers_of_every_form_agree_with_pillow(tmp_path: Path) -> None:
    from pipegen.ops.sources.annotations.sizes import orientation_of, sides_of

    path = tmp_path / "picture"
    for form in made.FORMATS:
        for name, contents in made.files(form).items():
            picture = made.pillow(contents, 3)
            path.write_bytes(contents)
            assert orientation_of(str(path)) == 1, (form, name)
            if not isinstance(picture, str):
                sides = sides_of(str(path))
                assert sides is not None, (form, name)
                assert sides.upright == picture.shape[1::-1], (form, name)
