"""Masks of instances under every step: their pixels have the places of the boxes that are left, whatever drops, joins and cuts these."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from pipes import at
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from test_boxes_painted import BLACK, HEIGHT, IMAGE, RUN, WIDTH, moving

from pipegen.errors import SpecError
from pipegen.ops.kinds.base import kind_of
from pipegen.ops.kinds.mask import with_numbers
from pipegen.ops.registry import transforms
from pipegen.ops.transforms.rotate_90 import TurnTransform
from pipegen.plan.bucketed_plans import sound_plan
from pipegen.types import ElementType

COUNT, MOST = 16, 4
STEPS: list[Any] = [{"random_flip": BLACK}, {"random_rotation": {"degrees": 30, **BLACK}}, {"random_crop": {"size": [30, 40]}}]


@cache
def scenes() -> dict[str, Any]:
    """Images with up to four rectangles, which have one number among those of the image (`masks`), and one among all (`all_masks`)."""
    rng, masks, boxes, which = np.random.default_rng(0), np.zeros((COUNT, HEIGHT, WIDTH), np.uint8), [], []
    all_masks, number = masks.copy(), 0
    for i in range(COUNT):
        own, numbers = [], []
        for k in range(i % (MOST + 1)):
            x, y, (w, h) = rng.integers(0, WIDTH - 24), rng.integers(0, HEIGHT - 24), rng.integers(6, 24, 2)
            number += 1
            masks[i, y : y + h, x : x + w], all_masks[i, y : y + h, x : x + w] = k + 1, number
            own.append([x, y, x + w, y + h])
            numbers.append(number)
        boxes.append(np.array(own, np.float32).reshape(-1, 4))
        which.append(np.array(numbers, np.float32))
    image = np.repeat(all_masks[..., None] * 3, 3, -1)
    return {"image": image, "boxes": boxes, "which": which, "masks": masks, "all_masks": all_masks}


def sections(steps: list[Any], *, size: int = 8, masks: dict[str, Any] | None = None, **boxes: Any) -> dict[str, Any]:
    features = {
        "image": {"kind": "image"},
        "boxes": {"kind": "boxes", **boxes},
        "which": {"kind": "tensor", "with": "boxes"},
        "masks": {"kind": "mask", "with": "boxes", **(masks or {})},
        "all_masks": {"kind": "mask"},
    }
    return {
        "pipegen": 1,
        "source": {"arrays": {"features": features}},
        "splits": {"parts": {"train": 12, "validation": 4}, "method": "random"},
        "transforms": steps,
        "batch": {"size": size, "remainder": "keep"},
        "output": {"y": {name: name for name in ("boxes", "boxes_valid", "which", "masks", "all_masks")}},
    }


def pipe(steps: list[Any], *, runtime: dict[str, Any] | None = None, data: dict[str, Any] | None = None, **more: Any) -> Any:
    import pipegen

    return pipegen.build(sections(steps, **more), data=data or scenes(), runtime={"jit": "never", "cache": "none", **(runtime or {})})


def stream(made: Any, split: str = "train", epoch: int = 0) -> dict[str, Any]:
    parts = [{name: value.numpy() for name, value in y.items()} for _, y in (at(made, epoch) if split == "train" else made[split])]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def check(got: dict[str, Any], ignore: int = 0) -> int:
    """What is known by a number among all boxes says which place each pixel has to have. Returns how many boxes show."""
    shown = 0
    for mask, every, there, which in zip(*(got[name] for name in ("masks", "all_masks", "boxes_valid", "which")), strict=True):
        place = np.zeros(256, np.uint8)
        place[ignore] = ignore
        place[which[there].astype(int)] = np.flatnonzero(there) + 1
        np.testing.assert_array_equal(mask, place[every])
        shown += len({*mask.ravel().tolist()} - {0, ignore})
    return shown


@pytest.fixture(scope="module")
def plain() -> Any:
    return pipe(STEPS, max=3, min_area=90)


@pytest.mark.tf
def test_pixels_have_the_places_of_boxes_that_are_left(plain: Any) -> None:
    got = stream(plain)
    assert got["masks"].shape == (12, 30, 40, 1)
    assert got["masks"].dtype == np.uint8
    assert check(got) > 8
    dropped = [{*every.ravel().tolist()} - {0.0, *which} for every, which in zip(got["all_masks"], got["which"], strict=True)]
    assert any(dropped)  # of which something is still on the image
    assert check(stream(plain, "validation")) > 4


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("step", ["cutmix", "mosaic"])  # behind which there is a cutmix, too
@pytest.mark.parametrize("most", [None, 3])
def test_pixels_of_combined_images_have_the_places_of_joined_boxes(step: str, most: int | None) -> None:
    got = stream(pipe([step, {"random_rotation": {"degrees": 20, **BLACK}}], max=most))
    assert check(got) > (12 if most else 20)
    assert got["boxes"].shape[1] == (most or MOST * (2 if step == "cutmix" else 4))


@pytest.mark.tf
@pytest.mark.nightly
def test_pixels_of_images_that_were_combined_twice_have_places_of_boxes_that_are_there() -> None:
    twice = stream(pipe([{"mosaic": {}}, {"random_flip": BLACK}, {"cutmix": {}}]))
    for mask, there, boxes in zip(twice["masks"], twice["boxes_valid"], twice["boxes"], strict=True):
        for number in {*mask.ravel().tolist()} - {0}:
            _within(mask[..., 0] == number, boxes[number - 1])
            assert there[number - 1]


@pytest.mark.tf
@pytest.mark.nightly  # by day pasted ones are
def test_a_share_of_a_combined_batch_is_that_of_the_whole() -> None:
    """Whose groups lie across both shares; and a run that goes on has what it would have had."""
    made = pipe(["mosaic", {"random_flip": BLACK}], size=4)
    whole = [y["masks"].numpy() for _, y in made.dataset("train", epoch=1)]
    shares = [[y["masks"].numpy() for _, y in made.dataset("train", epoch=1, shard=(i, 2))] for i in range(2)]
    for batch, *parts in zip(whole, *shares, strict=True):
        np.testing.assert_array_equal(np.concatenate(parts), batch)
    for batch, rest in zip(whole[1:], made.dataset("train", epoch=1, step=1), strict=True):
        np.testing.assert_array_equal(rest[1]["masks"], batch)


@pytest.mark.nightly
@pytest.mark.tf
def test_what_is_combined_with_itself_keeps_its_numbers() -> None:
    """One example alone has no partner but itself, in its own place."""
    data = {name: values[4:5] for name, values in scenes().items()}
    given = sections(["cutmix", "mosaic"]) | {"splits": {"parts": {"train": 1}}}
    import pipegen

    got = stream(pipegen.build(given, data=data, runtime={"jit": "never"}))
    assert got["boxes_valid"].sum() > MOST
    for number in {*got["masks"][0].ravel().tolist()} - {0}:
        _within(got["masks"][0, ..., 0] == number, got["boxes"][0, number - 1])


@pytest.mark.tf
def test_no_more_boxes_are_joined_than_pixels_tell_apart() -> None:
    """Of 4 × 100 boxes on single pixels and small squares, the largest stay."""
    rows, columns = np.divmod(np.arange(100), 10)
    boxes = np.stack([columns * 4, rows * 4, columns * 4 + 3, rows * 4 + 1 + 2 * (columns % 2)], -1).astype(np.float32)
    mask = np.zeros((8, 40, 40), np.uint8)
    for number, (left, top, right, bottom) in enumerate(boxes.astype(int)):
        mask[:, top:bottom, left:right] = number + 1
    features = {"image": {"kind": "image"}, "boxes": {"kind": "boxes"}, "masks": {"kind": "mask", "with": "boxes"}}
    given = {
        "pipegen": 1, "source": {"arrays": {"features": features}}, "transforms": [{"mosaic": {"centre": [0.5, 0.5]}}],
        "batch": {"size": 8}, "output": {"y": {"boxes": "boxes", "boxes_valid": "boxes_valid", "masks": "masks"}},
    }  # fmt: skip
    import pipegen

    data = {"image": np.zeros((8, 40, 40, 3), np.uint8), "boxes": [boxes] * 8, "masks": mask}
    got = stream(pipegen.build(given, data=data, runtime={"jit": "never"}))
    assert got["boxes"].shape == (8, 254, 4)
    for mask, there, boxes in zip(got["masks"], got["boxes_valid"], got["boxes"], strict=True):
        numbers = {*mask.ravel().tolist()} - {0}
        assert numbers == {*(np.flatnonzero(there) + 1).tolist()}
        for number in numbers:
            _within(mask[..., 0] == number, boxes[number - 1])


def _within(shown: Any, box: Any, slack: int = 1) -> None:
    rows, columns = np.nonzero(shown)
    assert columns.min() >= box[0] - slack
    assert rows.min() >= box[1] - slack
    assert columns.max() + 1 <= box[2] + slack
    assert rows.max() + 1 <= box[3] + slack


@pytest.mark.nightly
@pytest.mark.tf
def test_what_the_loss_leaves_out_stays() -> None:
    data = {name: list(values) if isinstance(values, list) else values.copy() for name, values in scenes().items()}
    for name in ("masks", "all_masks"):
        data[name][:, ::7, ::5] = 255
    given = sections(
        [{"resize": {"size": [40, 50]}}, {"random_rotation": {"degrees": 30, **BLACK}}, "mosaic"], masks={"ignore": 255}, max=5
    )
    given["source"]["arrays"]["features"]["all_masks"]["ignore"] = 255
    import pipegen

    got = stream(pipegen.build(given, data=data, runtime={"jit": "never"}))
    assert (got["masks"] == 255).mean() > 0.05
    assert check(got, ignore=255) > 10


@pytest.mark.tf
def test_masks_alone_are_numbered_by_boxes_that_the_model_does_not_get(plain: Any) -> None:
    import pipegen

    given = sections(STEPS, max=3, min_area=90) | {"output": {"y": {"masks": "masks"}}}
    made = pipegen.build(given, data=scenes(), runtime={"jit": "never", "cache": "none"})
    np.testing.assert_array_equal(stream(made)["masks"], stream(plain)["masks"])
    text = str(made.explain())
    assert "places of `boxes`, for their numbers" in text
    assert "all_masks:" not in text


@pytest.mark.tf
def test_without_masks_nothing_is_numbered() -> None:
    import pipegen

    given = sections(STEPS) | {"output": {"y": {"boxes": "boxes"}}}
    text = str(pipegen.build(given, data=scenes(), runtime={"jit": "never"}).explain())
    assert "for their numbers" not in text
    assert "boxes_number" not in text


@pytest.mark.nightly
@pytest.mark.tf
def test_views_have_masks_of_their_own() -> None:
    import pipegen

    targets = {name: name for name in ("boxes_1", "boxes_2", "masks_1", "masks_2", "which_1", "which_2", "all_masks_1", "all_masks_2")}
    targets |= {name: name for name in ("boxes_1_valid", "boxes_2_valid")}
    given = sections(STEPS, max=3, min_area=90) | {"views": 2, "output": {"x": ["image_1", "image_2"], "y": targets}}
    got = stream(pipegen.build(given, data=scenes(), runtime={"jit": "never", "cache": "none"}))
    for view in ("1", "2"):
        own = {name: got[f"{name}_{view}"] for name in ("masks", "all_masks", "which")}
        assert check(own | {"boxes_valid": got[f"boxes_{view}_valid"]}) > 8
    assert not np.array_equal(got["masks_1"], got["masks_2"])


@pytest.mark.nightly
@pytest.mark.tf
def test_a_preview_draws_masks_and_an_export_writes_them(plain: Any, tmp_path: Path) -> None:
    from PIL import Image

    import pipegen

    shown = [
        pipegen.build(sections(STEPS) | {"output": {"y": name}}, data=scenes()).preview(rows=2, draws=1) for name in ("masks", "which")
    ]
    assert (np.asarray(shown[0]) != np.asarray(shown[1])).mean() > 0.005
    done = plain.export(tmp_path / "out", split="train", examples=6)
    lines = [json.loads(line) for line in done.table.read_text(encoding="utf-8").splitlines()]
    got = {name: values[:6] for name, values in stream(plain).items()}
    assert not any("boxes_number" in line for line in lines)
    for line, mask, boxes, there in zip(lines, got["masks"], got["boxes"], got["boxes_valid"], strict=True):
        np.testing.assert_array_equal(np.asarray(Image.open(done.folder / line["masks_file_name"])), mask[..., 0])
        np.testing.assert_allclose(np.array(line["boxes"]).reshape(-1, 4), boxes[there], atol=0.006)


@pytest.mark.tf
def test_a_preview_shows_the_masks_of_boxes_that_are_left() -> None:
    """Of an image with two boxes, of which the larger one stays, the other one's pixels are no instance's."""
    from pipegen.views.preview import render_example

    executor = pipe([{"random_flip": BLACK}], max=1)._engine.executor("train")
    shown = [render_example(executor, record, 0, "masks") for record in range(len(executor.records))]
    assert {number for mask in shown for number in mask.ravel().tolist()} == {0, 1}


@pytest.mark.tf
@pytest.mark.nightly
def test_parts_of_a_mix_have_masks_of_one_numbering(tmp_path: Path) -> None:
    import pipegen

    given, data = sections(STEPS[:1]), scenes()
    parts = {}
    for name, records in {"a": range(1, 6), "b": range(6, 12)}.items():
        features = {"image": {"kind": "image"}, "boxes": {"kind": "boxes"}, "masks": {"kind": "mask", "with": "boxes"}}
        rows = [i for i in records if len(data["boxes"][i]) == 3] * 3
        np.savez(
            tmp_path / f"{name}.npz", image=data["image"][rows], boxes=np.stack([data["boxes"][i] for i in rows]), masks=data["masks"][rows]
        )
        source = {"arrays": {"path": str(tmp_path / f"{name}.npz"), "features": features}}
        parts[name] = {"source": source, "weight": 1, "splits": {"parts": {"train": 3}}}
    given |= {"source": {"mix": {"parts": parts, "epoch": 8}}, "output": {"y": {name: name for name in ("boxes", "masks")}}}
    del given["splits"]
    got = stream(pipegen.build(given, runtime={"jit": "never"}))
    for mask, boxes in zip(got["masks"], got["boxes"], strict=True):
        for number in {*mask.ravel().tolist()} - {0}:
            _within(mask[..., 0] == number, boxes[number - 1])


# ---- Each step ----


@cache
def plan_of(*steps: str) -> Any:
    from pipegen.phases.compilation import load

    written = RUN if steps == ("run",) else [{name: moving()[name]} for name in steps]
    step = transforms()[steps[-1]].model_validate(moving()[steps[-1]]) if written is not RUN else None
    if isinstance(step, TurnTransform) and step.random:  # which wants squares
        written = [{"center_crop": {"size": min(HEIGHT, WIDTH)}}, *written]
    elif step is not None and not step.infer(IMAGE).is_static:
        written = [*written, {"pad": {"size": [4 * HEIGHT, 4 * WIDTH]}}]
    own = {"image": {"kind": "image", "size": [HEIGHT, WIDTH]}, "boxes": {"kind": "boxes", "max": 3, "min_area": 25}}
    own |= {name: {"kind": "mask", "size": [HEIGHT, WIDTH]} for name in ("masks", "all_masks")}
    own["masks"]["with"] = "boxes"
    loaded = load({
        "pipegen": 1, "source": {"arrays": {"features": own}}, "transforms": written,
        "output": {"y": ["boxes", "boxes_valid", "masks", "all_masks"]},
    }).loaded  # fmt: skip
    features = {name: kind_of(feature).array_types(feature)[0] for name, feature in loaded.spec.source.features.items()}
    features["boxes"] = features["boxes"].with_(most=5, of="image")
    types = {name: t if name == "image" else t.with_(of="image") for name, t in features.items()} | {"image": IMAGE}
    return sound_plan(loaded.spec, "train", loaded.locate.label, with_numbers(ElementType(tuple(types.items()))))


def check_step(plan: Any, boxes: list[tuple[int, int, int, int]], seed: int, slack: int = 1) -> None:
    import tensorflow as tf

    from pipegen.backend.kernels.lower import apply_element

    mask = np.zeros((HEIGHT, WIDTH, 1), np.uint8)
    for number, (x0, y0, x1, y1) in enumerate(boxes):
        mask[y0:y1, x0:x1] = number + 1
    there = np.arange(5) < len(boxes)
    draws = np.random.default_rng(seed).random(max([ref.end for ref in plan.index.draws], default=0))
    features = {
        "image": tf.constant(np.repeat(mask * 50, 3, -1)), "masks": tf.constant(mask), "all_masks": tf.constant(mask),
        "boxes": tf.constant([*boxes, *[(0, 0, 0, 0)] * (5 - len(boxes))], tf.float32), "boxes_valid": tf.constant(there),
        "boxes_number": tf.constant(np.where(there, np.arange(1, 6), 0), tf.float32), "@draws": tf.constant(draws),
    }  # fmt: skip
    for stage in plan.stages():
        apply_element(stage, features)
    got = {name: features[name].numpy() for name in ("boxes", "boxes_valid", "boxes_number", "masks", "all_masks")}
    place = np.zeros(256, np.uint8)
    place[got["boxes_number"][got["boxes_valid"]].astype(int)] = np.flatnonzero(got["boxes_valid"]) + 1
    np.testing.assert_array_equal(got["masks"], place[got["all_masks"]])
    for number in {*got["masks"].ravel().tolist()} - {0}:
        _within(got["masks"][..., 0] == number, got["boxes"][number - 1], slack)


BOXES = st.lists(
    st.tuples(st.integers(0, WIDTH - 8), st.integers(0, HEIGHT - 8), st.integers(2, 40), st.integers(2, 40)).map(
        lambda b: (b[0], b[1], min(b[0] + b[2], WIDTH), min(b[1] + b[3], HEIGHT))
    ),
    max_size=5,
)
SEEDS = st.integers(0, 2**16)
NO_SHRINKING = (Phase.explicit, Phase.generate)


@pytest.mark.tf
@pytest.mark.nightly
@pytest.mark.parametrize("step", sorted(moving()))
@settings(max_examples=30, deadline=None, phases=NO_SHRINKING)
@given(boxes=BOXES, seed=SEEDS)
def test_masks_follow_each_step(step: str, boxes: list[tuple[int, int, int, int]], seed: int) -> None:
    check_step(plan_of(step), boxes, seed)


@pytest.mark.tf
@settings(max_examples=12, deadline=None, phases=NO_SHRINKING)
@given(step=st.sampled_from(sorted(moving())), boxes=BOXES, seed=SEEDS)
def test_masks_follow_steps(step: str, boxes: list[tuple[int, int, int, int]], seed: int) -> None:
    check_step(plan_of(step), boxes, seed)


@pytest.mark.tf
@pytest.mark.parametrize("seed", range(3))
def test_masks_follow_several_segments(seed: int) -> None:
    check_step(plan_of("run"), [(3, 4, 30, 22), (20, 10, 60, 50), (50, 2, 58, 9), (1, 40, 8, 52)], seed, slack=2)


@pytest.mark.peers
@pytest.mark.tf
def test_masks_and_boxes_are_those_of_albumentations() -> None:
    albumentations = pytest.importorskip("albumentations")
    steps: list[Any] = [{"flip": {"axis": "horizontal", **BLACK}}, {"crop": {"size": [30, 40], "top": 5, "left": 9}}]
    made = pipe(steps, size=4, min_area=30)
    got = stream(made, "validation")
    params = albumentations.BboxParams("pascal_voc", label_fields=["which"], min_area=30)
    chain = albumentations.Compose([albumentations.HorizontalFlip(p=1), albumentations.Crop(9, 5, 49, 35)], bbox_params=params)
    for i, key in enumerate(map(int, made.files("validation"))):
        given = {"mask": scenes()["masks"][key], "bboxes": scenes()["boxes"][key], "which": np.arange(len(scenes()["boxes"][key])) + 1}
        theirs = chain(image=scenes()["image"][key], **given)
        there = got["boxes_valid"][i]
        np.testing.assert_allclose(got["boxes"][i][there], np.reshape(theirs["bboxes"], (-1, 4)), atol=1e-3)
        place = np.zeros(256, np.uint8)
        place[np.asarray(theirs["which"], int)] = np.arange(len(theirs["which"])) + 1
        np.testing.assert_array_equal(got["masks"][i][..., 0], place[theirs["mask"]])


# ---- What is wrong ----


@pytest.mark.parametrize(("masks", "says"), [
    ({"ignore": 3}, "its `ignore` must be 0 or 255"),
    ({"classes": 4}, "classes` is for masks of whole examples"),
    ({"with": "box"}, "is `boxes` meant"),
    ({"with": "which"}, "which is not a feature of boxes"),
])  # fmt: skip
def test_what_a_mask_of_instances_cannot_say(masks: dict[str, Any], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        pipe([], masks=masks)


def test_the_name_of_the_numbers_is_taken() -> None:
    given = sections([])
    given["source"]["arrays"]["features"]["boxes_number"] = {"kind": "tensor"}
    import pipegen

    with pytest.raises(SpecError, match="rename the feature"):
        pipegen.build(given, data=scenes() | {"boxes_number": np.zeros(COUNT)})


def test_holes_are_no_box() -> None:
    with pytest.raises(SpecError, match="`mask_fill: 3` is the number of one of the `boxes`"):
        pipe([{"random_coarse_dropout": {"holes": [2, 4], "mask_fill": 3}}])
    made = pipe([{"random_coarse_dropout": {"holes": [2, 4], "mask_fill": 0}}])
    got, whole = stream(made), scenes()["masks"][[*map(int, made.files("train"))]]
    assert check(got) > 8
    assert (got["masks"] > 0).sum() < (whole > 0).sum()


def test_a_mask_of_instances_has_no_classes_to_encode() -> None:
    given = sections([])
    given["output"]["encode"] = {"masks": "one_hot"}
    import pipegen

    with pytest.raises(SpecError, match="`masks` is not a label of the output"):
        pipegen.build(given, data=scenes())


# ---- Copy-paste ----

PASTED: list[Any] = [
    {"random_flip": BLACK},
    {"random_affine": {"factor": 0.3, "x": 0.2, "y": 0.2, **BLACK}},
    {"copy_paste": {"objects": 0.7}},
]


@pytest.fixture(scope="module")
def pasted() -> Any:
    return pipe(PASTED)


@pytest.mark.tf
def test_pixels_of_pasted_images_have_the_places_of_the_boxes_that_are_left(pasted: Any) -> None:
    """Whose objects were moved, dropped and cut before and after."""
    assert check(stream(pasted)) > 20
    assert check(stream(pipe([*PASTED, {"random_rotation": {"degrees": 20, **BLACK}}], max=3, min_visibility=0.3))) > 12


@pytest.mark.tf
@pytest.mark.nightly
def test_pixels_have_their_places_where_boxes_are_moved_or_limited_alone() -> None:
    assert check(stream(pipe([*PASTED, {"random_rotation": {"degrees": 20, **BLACK}}]))) > 20
    assert check(stream(pipe(PASTED, max=3, min_visibility=0.3))) > 12
    before, after = (stream(pipe(steps)) for steps in (PASTED[:-1], PASTED))
    assert after["boxes_valid"].sum() > before["boxes_valid"].sum()
    assert (after["masks"] > 0).sum() > (before["masks"] > 0).sum()


COMBINED_AND_PASTED: list[list[Any]] = [PASTED, ["cutmix", {"copy_paste": {}}], [*PASTED, "mosaic"]]


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("steps", COMBINED_AND_PASTED)
def test_a_box_that_was_not_covered_is_where_it_would_be(steps: list[Any]) -> None:
    """Although a box can come twice."""
    whole = stream(pipe(steps))
    for mask, there, boxes in zip(whole["masks"], whole["boxes_valid"], whole["boxes"], strict=True):
        for number in {*mask.ravel().tolist()} - {0}:
            assert there[number - 1]
            _within(mask[..., 0] == number, boxes[number - 1], slack=2)


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("shares", [[0, 1], [1]], ids=["both, and after a resume", "the second"])
def test_a_pasted_stream_is_the_same_for_shares_and_batches_of_any_size_and_after_a_resume(pasted: Any, shares: list[int]) -> None:
    whole, made = stream(pasted, epoch=1), pipe(PASTED, size=4)
    batches = [y for _, y in made.dataset("train", epoch=1)]
    for name in ("masks", "boxes", "boxes_valid", "which"):
        np.testing.assert_array_equal(np.concatenate([batch[name] for batch in batches]), whole[name], name)
    for share in shares:
        for batch, (_, own) in zip(batches, made.dataset("train", epoch=1, shard=(share, 2)), strict=True):
            for name in ("masks", "boxes", "which"):
                np.testing.assert_array_equal(own[name], np.split(batch[name], 2)[share])
    if len(shares) == 2:
        for rest, batch in zip(made.dataset("train", epoch=1, step=1), batches[1:], strict=True):
            np.testing.assert_array_equal(rest[1]["masks"], batch["masks"])


@pytest.mark.tf
@pytest.mark.nightly
@pytest.mark.parametrize("how", [{"size": 3}, {"size": 12}, {"size": 4, "runtime": {"jit": "always"}}])
def test_a_pasted_stream_is_the_same_in_xla_and_with_a_step_behind(how: dict[str, Any]) -> None:
    steps = [*PASTED, {"random_flip": BLACK}]
    whole, other = stream(pipe(steps), epoch=1), stream(pipe(steps, **how), epoch=1)
    for name in ("masks", "boxes", "boxes_valid", "which"):
        np.testing.assert_array_equal(other[name], whole[name], name)


@pytest.mark.tf
@pytest.mark.nightly  # by day views have masks of their own, and are pasted, in tests of each
def test_views_are_pasted_by_masks_of_their_own() -> None:
    import pipegen

    targets = {name: name for name in ("boxes_1", "boxes_2", "masks_1", "masks_2", "which_1", "which_2", "all_masks_1", "all_masks_2")}
    targets |= {name: name for name in ("boxes_1_valid", "boxes_2_valid")}
    given = sections(PASTED) | {"views": 2, "output": {"x": ["image_1", "image_2"], "y": targets}}
    got = stream(pipegen.build(given, data=scenes(), runtime={"jit": "never", "cache": "none"}))
    for view in ("1", "2"):
        own = {name: got[f"{name}_{view}"] for name in ("masks", "all_masks", "which")}
        assert check(own | {"boxes_valid": got[f"boxes_{view}_valid"]}) > 20


@pytest.mark.tf
@pytest.mark.parametrize("last", ["cutmix", "copy_paste"])
@pytest.mark.nightly  # by day they keep the boxes
def test_the_passes_keep_what_is_combined_with_masks(last: str) -> None:
    """Each against the plan before it, from the one that was built."""
    from planning import interpret

    from pipegen.backend.reading.split_records import records_from

    made = pipe([*PASTED[:2], {last: {"probability": 0.8}}, {"random_contrast": {"factor": 0.3}}])
    compiled = made._compiled
    plan, spec = compiled.plans["train"], compiled.spec.model
    records = [record for record in compiled.splits["train"].records if record.changed]
    assert len(records) > 3
    first = interpret(plan, spec, records_from(compiled.manifest, "train", plan.read, spec.runtime))
    for record in records:
        after = interpret(record.after, spec, records_from(compiled.manifest, "train", record.after.read, spec.runtime))
        for name in ("masks", "all_masks", "boxes", "boxes_valid", "which"):
            np.testing.assert_array_equal(after[name], first[name], record.name)


def received_alone(step: str) -> tuple[dict[str, Any], dict[str, Any]]:
    data = scenes() | {"points": [np.repeat(b[:, None, :2] + 1, 2, 1) for b in scenes()["boxes"]]}
    data["points"] = [np.concatenate([p, np.full_like(p[..., :1], 2)], -1) for p in data["points"]]
    given = sections([{"random_flip": BLACK}, step])
    given["source"]["arrays"]["features"]["points"] = {"kind": "keypoints", "with": "boxes", "names": ["a", "b"]}
    del given["source"]["arrays"]["features"]["all_masks"], data["all_masks"]
    return given, data


@cache
def batches_of(step: str, *received: str) -> list[tuple[Any, Any]]:
    import pipegen

    given, data = received_alone(step)
    output = {"output": {"y": {name: name for name in received}}}
    made = pipegen.build(given | output, data=data, runtime={"jit": "never", "cache": "none"})
    return [*made.dataset("train", epoch=0)]


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize(
    ("step", "received"),
    [(step, received) for step in ("cutmix", "mosaic", "copy_paste") for received in ("boxes", "masks", "points", "image")],
)
def test_what_the_model_does_not_get_is_no_part_of_a_mix(step: str, received: str) -> None:
    """Boxes pasted by a mask that nobody gets, masks whose boxes have keypoints that nobody gets, and so on."""
    whole, alone = batches_of(step, "boxes", "masks", "points", "which"), batches_of(step, received)
    for (image, due), (other, found) in zip(whole, alone, strict=True):
        np.testing.assert_array_equal(other, image)
        if received != "image":
            np.testing.assert_array_equal(found[received], due[received])
