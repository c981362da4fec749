"""`coco: {masks: …}` from files to batches: outlines move with their image, and are the same however and wherever they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_boxed_sources import COUNT, NAMES, boxes_on, sides, write

import pipegen
from pipegen.errors import SpecError

pytestmark = pytest.mark.tf
OUTPUT = {"dtype": "uint8", "y": {"boxes": "boxes", "labels": "labels", "there": "boxes_valid", "mask": "mask"}}
PAD = {"pad": {"size": [64, 88]}}


def outlined(folder: Path, keys: range = range(COUNT), *, crowd: int | None = None) -> dict[str, Any]:
    """The photos of `test_boxed_sources`, whose boxes are outlined: every third one by runs, others by a rectangle and a corner."""
    source = write(folder, "coco", keys)
    file = folder / "boxes.json"
    content = json.loads(file.read_text())
    for one in content["annotations"]:
        x, y, w, h = one["bbox"]
        width, height = sides(one["image_id"])
        if one["id"] % 3 == 2:
            plane = np.zeros((height, width), int)
            plane[y : y + h, x : x + w] = 1
            ends = np.flatnonzero(np.diff(plane.T.ravel(), prepend=0, append=2))
            one["segmentation"] = {"counts": np.diff(ends, prepend=0).tolist(), "size": [height, width]}
        else:
            middle = y + h // 2
            one["segmentation"] = [[x, y, x + w, y, x + w, middle, x, middle], [x, middle, x + w, middle, x + w, y + h, x, y + h]]
        one["iscrowd"] = int(one["id"] == crowd)
    file.write_text(json.dumps(content))
    return source["coco"]


def painted(i: int, value: Any = None, crowd: int | None = None) -> Any:
    """The mask of a photo: the larger below the smaller, of equal ones the later upon the earlier."""
    width, height = sides(i)
    plane = np.zeros((height, width), np.uint8)
    own = [*enumerate(boxes_on(i))]
    for k, (name, x0, y0, x1, y1) in sorted(own, key=lambda one: (one[0] != crowd, -(one[1][3] - one[1][1]) * (one[1][4] - one[1][2]))):
        plane[y0:y1, x0:x1] = k + 1 if value is None else 255 if k == crowd else value(name)
    around = [((whole - side) // 2, whole - side - (whole - side) // 2) for whole, side in ((64, height), (88, width))]
    return np.pad(plane, around, constant_values=0 if value is None else 255)


def spec(source: dict[str, Any], *steps: Any, **own: Any) -> dict[str, Any]:
    sections = {"pipegen": 1, "source": {"coco": source}, "transforms": [PAD, *steps], "output": OUTPUT, "batch": {"size": 5}}
    return sections | {"shuffle": "none"} | own


def masks(given: Any, epoch: int = 0, runtime: dict[str, Any] | None = None, **where: Any) -> Any:
    pipe = given if isinstance(given, pipegen.Pipeline) else pipegen.build(given, runtime={"jit": "never", **(runtime or {})})
    return np.concatenate([y["mask"].numpy() for _, y in pipe.dataset("train", epoch=epoch, **where)])


@pytest.mark.nightly
def test_instances_are_those_that_were_outlined(tmp_path: Path) -> None:
    source = outlined(tmp_path)
    got = masks(spec(source | {"masks": "instances"}, {"flip": {"axis": "horizontal"}}))[:, :, ::-1]
    np.testing.assert_array_equal(got[..., 0], [painted(i) for i in range(COUNT)], "mirrored as its image is")
    few = pipegen.build(spec(source | {"masks": "instances", "classes": ["dog", "eel"]}), runtime={"jit": "never"})
    for i, (mask, whole) in enumerate(zip(masks(few)[..., 0], got[..., 0], strict=True)):
        table = np.zeros(256, np.uint8)
        kept = [k + 1 for k, (name, *_) in enumerate(boxes_on(i)) if name != "cat"]
        table[kept] = np.arange(len(kept)) + 1
        seen = ~np.isin(whole, [k + 1 for k, (name, *_) in enumerate(boxes_on(i)) if name == "cat"])
        np.testing.assert_array_equal(mask[seen], table[whole][seen], "what a cat hid may now be seen")


def test_classes_have_the_pixels_of_what_was_outlined_and_crowds_are_left_open(tmp_path: Path) -> None:
    pipe = pipegen.build(spec(outlined(tmp_path, crowd=0) | {"masks": "classes"}), runtime={"jit": "never"})
    got = masks(pipe)
    first = next(i for i in range(COUNT) if boxes_on(i))
    due = [painted(i, lambda name: NAMES.index(name) + 1, 0 if i == first else None) for i in range(COUNT)]
    np.testing.assert_array_equal(got[..., 0], due)
    assert (got[first] == 255).any()
    assert pipe._manifest.type["mask"].classes == len(NAMES) + 1
    text = str(pipe.explain())
    assert "mask" in text


def augmented(folder: Path) -> dict[str, Any]:
    steps = {"random_flip": {}}, {"random_crop": {"size": [48, 56]}}
    return spec(outlined(folder) | {"masks": "instances"}, *steps, shuffle="global", batch={"size": 4})


@pytest.mark.nightly
def test_a_cache_and_a_resumed_run_have_the_same(tmp_path: Path) -> None:
    given = augmented(tmp_path)
    pipe, cached = (pipegen.build(given, runtime={"jit": "never", "cache": cache}) for cache in ("none", "memory"))
    whole = masks(pipe, epoch=1)
    assert len(np.unique(whole)) > 3
    for _ in range(2):
        np.testing.assert_array_equal(masks(cached, epoch=1), whole)
    np.testing.assert_array_equal(masks(pipe, epoch=1, step=1), whole[4:])


@pytest.mark.nightly
def test_a_cache_on_disk_shares_other_batches_and_splits_have_the_same(tmp_path: Path) -> None:
    given = augmented(tmp_path)
    whole = masks(given, epoch=1)
    pipe = pipegen.build(given, runtime={"jit": "never", "cache": {"disk": str(tmp_path / "cache")}})
    for _ in range(2):
        np.testing.assert_array_equal(masks(pipe, epoch=1), whole)
    halves = [masks(given, epoch=1, shard=(i, 2)).reshape(-1, 2, *whole.shape[1:]) for i in range(2)]
    np.testing.assert_array_equal(np.concatenate(halves, 1).reshape(whole.shape), whole)
    other = masks(given | {"batch": {"size": 2}}, epoch=1)
    np.testing.assert_array_equal(other[: len(whole)], whole)
    parted = spec(given["source"]["coco"], splits={"parts": {"train": 0.5, "validation": 0.5}}, batch={"size": 5})
    pipe = pipegen.build(parted, runtime={"jit": "never"})
    for split in ("train", "validation"):
        found = np.concatenate([y["mask"].numpy()[..., 0] for _, y in pipe.dataset(split, epoch=0)])
        np.testing.assert_array_equal(found, [painted(int(Path(file).stem)) for file in pipe.files(split)])


@pytest.mark.nightly
def test_a_damaged_image_is_skipped_and_takes_its_mask_along(tmp_path: Path) -> None:
    given = spec(outlined(tmp_path) | {"masks": "instances"}, errors={"decode": {"skip": {"max_fraction": 0.5}}})
    (tmp_path / "photos" / "3.png").write_bytes(b"no image")
    pipe = pipegen.build(given, runtime={"jit": "never"})
    for x, y in pipe.dataset("train", epoch=0):
        for image, mask in zip(x.numpy(), y["mask"].numpy(), strict=True):
            np.testing.assert_array_equal(mask[..., 0], painted(round(image.max() / 20)))


@pytest.mark.nightly
def test_an_image_of_another_size_than_its_mask_is_told_of(tmp_path: Path) -> None:
    from PIL import Image

    source = outlined(tmp_path)
    Image.new("RGB", (32, 32)).save(tmp_path / "photos" / "3.png")
    with pytest.raises(pipegen.DataError, match=r"3\.png"):
        masks(spec(source | {"masks": "instances"}))


@pytest.mark.nightly  # by day masks of arrays are
def test_it_is_drawn_and_exported(tmp_path: Path) -> None:
    from PIL import Image

    pipe = pipegen.build(spec(outlined(tmp_path) | {"masks": "instances"}), runtime={"jit": "never"})
    assert pipe.preview("train", rows=2, draws=1).width > 100
    done = pipe.export(tmp_path / "out", "train", examples=5)
    lines = [json.loads(line) for line in done.table.read_text().splitlines()]
    for i, line in enumerate(lines):
        np.testing.assert_array_equal(np.asarray(Image.open(done.folder / line["mask_file_name"])), painted(i))


@pytest.mark.nightly
def test_splits_and_parts_of_a_mix_have_masks_of_the_same_classes(tmp_path: Path) -> None:
    train, other = outlined(tmp_path / "a", range(5)), outlined(tmp_path / "b", range(5, COUNT))
    parts = {"train": {"coco": {**train, "masks": "classes"}}, "validation": {"coco": {**other, "masks": "classes"}}}
    given = spec({}) | {"source": {"by_split": parts}}
    pipe = pipegen.build(given, runtime={"jit": "never"})
    (_, y) = next(iter(pipe.dataset("validation")))
    np.testing.assert_array_equal(y["mask"].numpy()[..., 0], [painted(i, lambda name: NAMES.index(name) + 1) for i in range(5, COUNT)])
    assert len(masks(pipe)) == 5
    content = json.loads((tmp_path / "b/boxes.json").read_text())
    content["categories"].append({"id": 1, "name": "ant"})
    (tmp_path / "b/boxes.json").write_text(json.dumps(content))
    with pytest.raises(SpecError, match="have different classes, which number the pixels of `mask`"):
        pipegen.build(given)
    mix = spec({}) | {
        "source": {
            "mix": {
                "epoch": 8,
                "parts": {name: {"weight": 1, "source": part, "splits": {"parts": {"train": 5}}} for name, part in parts.items()},
            }
        }
    }
    with pytest.raises(SpecError, match="has other classes than the mix, so the class numbers in its masks would be wrong"):
        pipegen.build(mix)


@pytest.mark.nightly
def test_classes_that_are_said_join_parts_and_splits(tmp_path: Path) -> None:
    train, other = outlined(tmp_path / "a", range(5)), outlined(tmp_path / "b", range(5, COUNT))
    own = {"masks": "classes", "classes": [*NAMES]}
    parts = {"train": {"coco": {**train, **own}}, "validation": {"coco": {**other, **own}}}
    given = spec({}) | {"source": {"by_split": parts}}
    of_mix = {name: {"weight": 1, "source": part, "splits": {"parts": {"train": 5}}} for name, part in parts.items()}
    mix = spec({}) | {"source": {"mix": {"epoch": 8, "parts": of_mix}}}
    masked = pipegen.build(given, runtime={"jit": "never"})
    assert len(masks(masked)) == 5
    joined = pipegen.build(mix, runtime={"jit": "never"})
    for x, y in joined.dataset("train", epoch=0):
        for image, mask in zip(x.numpy(), y["mask"].numpy(), strict=True):
            np.testing.assert_array_equal(mask[..., 0], painted(round(image.max() / 20), lambda name: NAMES.index(name) + 1))


@pytest.mark.nightly
def test_parts_of_a_mix_that_have_boxes_are_for_training(tmp_path: Path) -> None:
    parts = {
        name: {"weight": 1, "source": {"coco": outlined(tmp_path / name, keys)}} for name, keys in (("a", range(5)), ("b", range(5, 10)))
    }
    pipe = pipegen.build(spec({}) | {"source": {"mix": {"epoch": 8, "parts": parts}}, "output": {"y": "boxes"}}, runtime={"jit": "never"})
    assert "train: 10 examples" in repr(pipe)
    assert len([*pipe.train]) == 1


def test_an_ejected_graph_has_no_outlines(tmp_path: Path) -> None:
    """Python draws them, which a graph elsewhere does not have."""
    given = spec(outlined(tmp_path, crowd=0) | {"masks": "classes"}, output={"dtype": "uint8", "y": "mask"})
    pipe = pipegen.build(given, runtime={"jit": "never"})
    assert "only in this process" in str(pipe.explain(physical=True))
    with pytest.raises(SpecError, match=r"only Python reads \(outlines \(coco\)\)"):
        pipe.eject(tmp_path / "graph")


@pytest.mark.nightly
def test_who_asks_for_no_mask_reads_none(tmp_path: Path) -> None:
    source = outlined(tmp_path)
    pipe = pipegen.build(spec(source | {"masks": "instances"}, output={"y": "boxes"}), runtime={"jit": "never"})
    assert "outlines" not in str(pipe.explain())
    next(iter(pipe.train))


def test_classes_of_masks_are_compared_without_those_of_a_joined_label(tmp_path: Path) -> None:
    """A split that lacks a class of the label still numbers its masks as the others do."""
    source = outlined(tmp_path / "a") | {"masks": "classes"}
    keys = [Path(file).name for file in pipegen.build(spec(source), runtime={"jit": "never"}).files("train")]
    (tmp_path / "t.csv").write_text("key,team\n" + "".join(f"{key},{'ab'[i % 2]}\n" for i, key in enumerate(keys)))
    join = {"table": {"csv": {"path": str(tmp_path / "t.csv")}}, "on": {"path": "key"}}
    train = source | {"join": join, "features": {"team": {"kind": "label"}}}
    splits = {"train": {"coco": train}, "validation": {"coco": train | {"where": "team == 'b'"}}}
    made = pipegen.build(spec(source) | {"source": {"by_split": splits}}, runtime={"jit": "never"})
    assert made.class_names == ("a", "b")
    assert set(made.labels("validation").tolist()) == {1}  # type: ignore[union-attr]
    assert np.array_equal(next(iter(made["validation"]))[1]["mask"][0], masks(spec(source))[1])
