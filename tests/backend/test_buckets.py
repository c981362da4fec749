"""Batches of one bucket each: the pixels of a spec with that size alone, in an order that any step of any share can be begun with."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pipegen
from pipegen.data.buckets import InBuckets, in_buckets

pytestmark = pytest.mark.tf

SIZES = [[32, 32], [24, 40]]
SHAPES = [(50, 52), (44, 80), (90, 50), (40, 70)]
COUNT, BATCH = 31, 2
STEPS = [{"random_resized_crop": {"size": "bucket", "area": [0.5, 1]}}, "random_flip"]
ROTATION = {"random_rotation": {"degrees": 9, "fill": {"constant": 0}}}
RESIZED = [{"resize": {"size": "bucket"}}]


def sides(i: int) -> tuple[int, int]:
    """Height and width of an image."""
    height, width = SHAPES[i % 4]
    return height + i % 3, width + i % 2


def nearest_size(i: int) -> list[int]:
    """The bucket that an image belongs to."""
    return min(SIZES, key=lambda size: abs(np.log(size[0] / size[1]) - np.log(np.divide(*sides(i)))))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images with a box each: in class folders, and with annotations."""
    at = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    images, boxes = [], []
    for i in range(COUNT):
        height, width = sides(i)
        (at / f"kind{i % 2}").mkdir(exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(at / f"kind{i % 2}" / f"{i:02}.png")
        images.append({"id": i, "file_name": f"kind{i % 2}/{i:02}.png", "width": width, "height": height})
        boxes.append({"id": i, "image_id": i, "category_id": 1, "bbox": [i % 7, 3, 20, 25]})
    content = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "thing"}]}
    (at / "boxes.json").write_text(json.dumps(content))
    return at


def build(folder: Path, steps: Any = STEPS, *, buckets: Any = {}, boxes: bool = True, batch: Any = {}, **own: Any) -> Any:  # noqa: B006
    """A pipeline over the images, with boxes or with class folders."""
    coco = {"coco": {"images": str(folder), "annotations": str(folder / "boxes.json")}}
    spec = {
        "pipegen": 1,
        "source": coco if boxes else {"image_folder": {"path": str(folder)}},
        "splits": {"parts": {"train": 24, "validation": 7}},
        "transforms": steps,
        "batch": {"size": BATCH, **({"buckets": {"sizes": SIZES, **buckets}} if buckets is not None else {}), **batch},
        "output": {"x": "image", "y": {"boxes": "boxes", "there": "boxes_valid"} if boxes else "label"},
        "runtime": {"jit": "never"},
    }
    return pipegen.build(spec | own)


@pytest.fixture(scope="module")
def pipe(folder: Path) -> Any:
    return build(folder)


def batches(pipe: Any, split: str = "train", **where: Any) -> list[Any]:
    """The images and the boxes of the batches of one epoch, or of the rest of it."""
    return [(x.numpy(), y["boxes"].numpy()) for x, y in pipe.dataset(split, **where)]


def records(pipe: Any, split: str = "train", epoch: int = 0) -> list[list[int]]:
    """The records of each batch of an epoch."""
    import tensorflow as tf

    order = pipe._engine.executor(split).order
    each = (order.slots_of(tf.constant(step, tf.int64), epoch=epoch) for step in range(order.steps))
    return [order.found(epoch, slots).record.numpy().tolist() for slots in each]


def test_every_batch_has_one_size_and_every_example_its_own(pipe: Any) -> None:
    found, named = batches(pipe), records(pipe)
    counts = pipe._engine.executor("train").buckets.counts
    assert sum(counts) == 24
    assert Counter(x.shape[1:3] for x, _ in found) == {tuple(size): n // BATCH for size, n in zip(SIZES, counts, strict=True)}
    assert pipe.steps("train") == len(found) == sum(n // BATCH for n in counts)
    keys = pipe._manifest.keys("train")
    for (x, _), own in zip(found, named, strict=True):
        assert all(nearest_size(int(keys[i][-6:-4])) == list(x.shape[1:3]) for i in own)
    every = [i for own in named for i in own]
    assert len(every) == len({*every})
    later = records(pipe, epoch=1)
    assert [len(own) for own in later] == [BATCH] * len(named)
    # Neither the order of batches nor who is in one is that of the epoch before.
    assert {tuple(sorted(own)) for own in later} != {tuple(sorted(own)) for own in named}


@pytest.mark.nightly
@pytest.mark.parametrize("more", [[], [ROTATION]])
def test_its_pixels_are_those_of_a_spec_with_that_size_alone(pipe: Any, folder: Path, more: list[Any]) -> None:
    pipe = build(folder, [*STEPS, *more]) if more else pipe
    found = list(zip(batches(pipe, epoch=1), records(pipe, epoch=1), strict=True))
    for size in SIZES:
        steps = [{"random_resized_crop": {"size": size, "area": [0.5, 1]}}, "random_flip", *more]
        alone = build(folder, steps, buckets=None, batch={"size": 8})
        known = {}
        for own, (images, boxes) in zip(records(alone, epoch=1), batches(alone, epoch=1), strict=True):
            known |= {i: (image, box) for i, image, box in zip(own, images, boxes, strict=True)}
        compared = 0
        for (images, boxes), own in found:
            for i, image, box in zip(own, images, boxes, strict=True) if list(images.shape[1:3]) == size else ():
                np.testing.assert_array_equal(image, known[i][0])
                np.testing.assert_array_equal(box, known[i][1])
                compared += 1
        assert compared >= 4


@pytest.mark.nightly
def test_any_step_of_any_share_can_be_begun_with(pipe: Any) -> None:
    whole = batches(pipe, epoch=2)
    for (x, b), (again, boxes) in zip(whole[2:], batches(pipe, epoch=2, step=2), strict=True):
        np.testing.assert_array_equal(x, again)
        np.testing.assert_array_equal(b, boxes)
    for (x, b), (right, boxes) in zip(whole, batches(pipe, epoch=2, shard=(1, 2)), strict=True):
        np.testing.assert_array_equal(x[BATCH // 2 :], right)
        np.testing.assert_array_equal(b[BATCH // 2 :], boxes)


def test_training_goes_on_where_it_stood_and_a_changed_batch_waits_for_the_next_epoch(folder: Path, pipe: Any) -> None:
    pipe.seek(1)
    iterator = iter(pipe.train)
    seen = [next(iterator)[0].numpy() for _ in range(2)]
    state = json.loads(json.dumps(pipe.state()))
    pipe.seek(3)
    pipe.restore(state)
    seen += [x.numpy() for x, _ in pipe.train]
    for a, (b, _) in zip(seen, batches(pipe, epoch=1), strict=True):
        np.testing.assert_array_equal(a, b)
    other = build(folder, batch={"size": 4})
    with pytest.raises(pipegen.StateError, match="as it was begun, not with 4; or begin the next epoch with it"):
        other.restore(state)
    other.restore({**state, "step": 0, "examples": 0})
    assert other.state()["epoch"] == 1
    again = build(folder)
    again.restore(state)
    assert again.state() == state
    pipe.seek(0)


@pytest.mark.nightly  # by day the training split does
def test_evaluation_has_each_example_once_in_the_order_of_its_files(pipe: Any, folder: Path) -> None:
    files = pipe.files("validation")
    assert sorted(files) == sorted(pipe._manifest.files("validation"))
    shown = [x for xs, _ in batches(pipe, "validation") for x in xs]
    assert [list(x.shape[:2]) for x in shown] == [nearest_size(int(Path(file).stem)) for file in files]
    padded = build(folder, batch={"remainder": {"validation": "pad"}})
    given = [(x.numpy(), weight.numpy()) for x, _, weight in padded["validation"]]
    assert {len(x) for x, _ in given} == {BATCH}
    assert sum(weight.sum() for _, weight in given) == 7
    kept = padded.trim("validation", np.array([float(x.mean()) for xs, _ in given for x in xs]))
    np.testing.assert_allclose(kept, [x.mean() for x in shown], rtol=1e-6)


@pytest.mark.nightly
def test_examples_are_combined_within_their_bucket_whatever_the_shares(folder: Path) -> None:
    combined = build(folder, [*RESIZED, {"mixup": {"alpha": 1}}], batch={"size": 6})
    whole = batches(combined, epoch=1)
    parts = [batches(combined, epoch=1, shard=(i, 3)) for i in range(3)]
    for (x, b), *own in zip(whole, *parts, strict=True):
        np.testing.assert_array_equal(x, np.concatenate([images for images, _ in own]))
        np.testing.assert_array_equal(b, np.concatenate([boxes for _, boxes in own]))
    assert all(b[:, 1].any() for _, b in whole)


@pytest.mark.nightly
def test_an_epoch_of_so_many_steps_goes_on_through_the_batches(folder: Path, pipe: Any) -> None:
    whole = [own for epoch in range(3) for own in records(pipe, epoch=epoch)]
    paced = build(folder, epoch={"steps": 2})
    found = [own for epoch in range(len(whole) // 2) for own in records(paced, epoch=epoch)]
    assert found == whole[: len(found)]


@pytest.mark.parametrize("how", ["headers", "columns"])
def test_sizes_come_from_headers_or_from_a_table(how: str, folder: Path, tmp_path: Path) -> None:
    own: dict[str, Any] = {}
    if how == "columns":
        lines = [f"{folder}/kind{i % 2}/{i:02}.png,{i % 2},{sides(i)[0]},{sides(i)[1]}" for i in range(COUNT)]
        (tmp_path / "table.csv").write_text("\n".join(["file,kind,high,wide", *lines]))
        kinds = {"image": ("image", "file"), "label": ("label", "kind"), "high": ("tensor", "high"), "wide": ("tensor", "wide")}
        features = {name: {"kind": kind, "column": column} for name, (kind, column) in kinds.items()}
        own["source"] = {"csv": {"path": str(tmp_path / "table.csv"), "features": features}}
        own["buckets"] = {"measured": {"columns": ["high", "wide"]}}
    other = build(folder, boxes=False, **own)
    for split, count in (("train", 24), ("validation", 7)):
        found = in_buckets(other.spec.model, other._manifest, split)
        assert found is not None
        names = [int(Path(file).stem) for file in other._manifest.files(split)]
        assert [SIZES[bucket] for bucket in found.of] == [nearest_size(i) for i in names]
        assert len(names) == count


def test_the_nearest_proportions_count_and_of_several_sizes_the_largest_that_fits() -> None:
    sizes = ((100, 100), (200, 200), (100, 200), (200, 100))
    images = [(90, 95), (150, 160), (500, 480), (100, 190), (1000, 400), (np.nan, np.nan)]
    found = InBuckets.by_size(sizes, np.array(images, np.float64))
    assert found.of.tolist() == [0, 0, 1, 2, 3, 0]
    assert found.counts == (3, 1, 1, 1)
    assert found.members.tolist() == [0, 1, 5, 2, 3, 4]


@pytest.mark.nightly  # each view is a pipeline of three sizes; by day the views are tested where they are, and buckets as training has them
def test_it_is_drawn_exported_explained_and_looked_at(pipe: Any, tmp_path: Path) -> None:
    assert pipe.preview("train", rows=3, draws=2).width > 100
    written = pipe.export(tmp_path / "out", "train", examples=None)
    assert len(written.files) == BATCH * pipe.steps("train")
    sizes = Counter(Image.open(tmp_path / "out" / file).size[::-1] for file in written.files)
    assert sizes == Counter(x.shape[:2] for xs, _ in batches(pipe) for x in xs)
    told = str(pipe.explain())
    assert "32×32×3 | 24×40×3" in told
    assert "examples in 24×40" in told
    assert "one of 2 buckets" in str(pipe.explain(physical=True))
    assert pipe.peek("train", 24)[0].shape[1:3] == (32, 40)
    assert "24×40" in str(pipe.explain_html("train"))


@pytest.mark.nightly
def test_a_damaged_image_is_replaced_within_its_batch(folder: Path, tmp_path: Path) -> None:
    spoilt = tmp_path / "copy" / "kind1" / "01.png"
    shutil.copytree(folder, tmp_path / "copy")
    spoilt.write_bytes(spoilt.read_bytes()[:400])
    whole: dict[str, Any] = {"splits": {"parts": {"train": COUNT}}, "batch": {"remainder": {"train": "keep"}}}
    skipping = build(tmp_path / "copy", **whole, errors={"decode": {"skip": {"max_fraction": 0.2}}})
    assert sum(len(x) for x, _ in batches(skipping)) == COUNT
    failing = build(tmp_path / "copy", **whole)
    with pytest.raises(pipegen.DataError, match=r"01\.png"):
        list(failing.train)
