"""Crops and resizes that act on some examples only: by a `probability`, or as one of the steps of a policy."""

from __future__ import annotations

from pipes import epoch_of, pipeline, same, shared
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from planning import built, checked, load_spec

from pipegen.plan import stages as s
from pipegen.plan.recipe import recipe

if TYPE_CHECKING:
    from pathlib import Path

Array = np.ndarray[Any, Any]
RESIZE: dict[str, Any] = {"resize": {"size": 24}}
WINDOW: dict[str, Any] = {"size": 24, "area": [0.3, 0.6]}
SOME: dict[str, Any] = {"random_resized_crop": {**WINDOW, "probability": 0.5}}
EITHER: dict[str, Any] = {"one_of": {"steps": [{"random_resized_crop": WINDOW}, RESIZE, {"random_crop": {"size": 24}}]}}


def found(*steps: Any) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(f.code, f.message, tuple(map(str, f.help))) for f in checked(transforms=[*steps]).diagnostics.items]


@pytest.mark.parametrize(("steps", "said", "helps"), [
    ([SOME], "`random_resized_crop` leaves images at 24×24, and at ?×? where it changes nothing; they need one size",
     "put `resize: {size: 24}` before it"),
    ([{"resize": {"size": [20, 30]}}, {"random_crop": {"size": 20, "probability": 0.5}}],
     "`random_crop` leaves images at 20×20, and at 20×30 where it changes nothing; they need one size",
     "`random_resized_crop` resizes its window to the size of the image, 20×30"),
    ([{"resize": {"size": 32}}, {"one_of": {"steps": ["random_flip", {"random_resized_crop": WINDOW}]}}],
     "`one_of` leaves images at 32×32 after `random_flip`, and at 24×24 after `random_resized_crop`; they need one size",
     "put `resize: {size: 24}` before it"),
    ([{"one_of": {"steps": [RESIZE, {"random_resized_crop": {"size": [24, 32]}}]}}],
     "`one_of` leaves images at 24×24 after `resize`, and at 24×32 after `random_resized_crop`; they need one size",
     "give all of its steps one size"),
    ([{"one_of": {"steps": [RESIZE, {"random_resized_crop": WINDOW}], "probability": 0.5}}],
     "`one_of` leaves images at 24×24 after `resize`, and at ?×? where it changes nothing; they need one size",
     "put `resize: {size: 24}` before it"),
    ([{"some_of": {"steps": [RESIZE, {"random_resized_crop": WINDOW}], "count": [1, 2]}}],
     "`some_of` leaves images at 24×24 after `resize`, and at ?×? where it changes nothing; they need one size",
     "put `resize: {size: 24}` before it"),
])  # fmt: skip
def test_sizes_that_differ_are_named(steps: list[Any], said: str, helps: str) -> None:
    first, *others = found(*steps)
    assert first == ("PG226", said, (helps,))
    assert {code for code, *_ in others} <= {"PG201"}, "of the other split, where nothing makes one size"


@pytest.mark.parametrize("steps", [
    [RESIZE, SOME],
    [RESIZE, {"random_crop": {"size": 24, "padding": 3, "probability": 0.3}}],
    [{"random_resized_crop": {**WINDOW, "probability": 0}}, RESIZE],
    [EITHER],
    [RESIZE, {"one_of": {"steps": [SOME, "random_flip", {"random_crop": {"size": 24, "padding": 2}}], "probability": 0.5}}],
    [RESIZE, {"some_of": {"steps": [{"random_hue": {"degrees": 9}}, SOME, "random_flip"], "count": 2}}],
    [RESIZE, {"random_order": {"steps": ["random_flip", SOME]}}],
    [{"some_of": {"steps": [RESIZE, {"random_resized_crop": WINDOW}], "count": 1}}],
    [{"one_of": {"steps": [{"one_of": {"steps": [RESIZE, {"random_resized_crop": WINDOW}]}}, {"pad": {"size": 24}}]}}],
    [{"one_of": {"steps": [{"resize": {"shorter_side": 30}}, "random_zoom_out"]}}, RESIZE],
])  # fmt: skip
def test_one_size_after_all_is_right(steps: list[Any]) -> None:
    assert found(*steps) == []


def test_what_is_refused_inside() -> None:
    from pipegen.spec.load import load

    def messages(*steps: Any, op: str = "one_of") -> list[str]:
        spec = {"pipegen": 1, "source": {"image_folder": {"path": "x"}}, "transforms": [RESIZE, {op: {"steps": [*steps]}}]}
        return [finding.message for finding in load(spec).diagnostics.items]

    around, whole = {"random_crop_around": {"size": 24}}, "random_box_safe_crop"
    assert "holds one crop that chooses its window by boxes, keypoints or masks, not 2" in messages(around, whole)[0]
    assert messages({"one_of": {"steps": [around, RESIZE]}}, RESIZE) == ["`one_of` cannot hold `random_crop_around` inside `one_of`"]
    assert messages(around, RESIZE) == []


def test_evaluation_has_the_first_of_several_crops() -> None:
    def of(step: Any) -> list[str]:
        return [ref.step.op for ref in recipe(load_spec(transforms=[step]), "validation").steps]

    assert of(EITHER) == ["resize", "center_crop"]
    assert of({"one_of": {"steps": [RESIZE, {"random_resized_crop": WINDOW}]}}) == ["resize"]
    assert of({"one_of": {"steps": ["random_flip", {"random_resized_crop": WINDOW}]}}) == []
    assert of(SOME) == []
    assert of({"random_resized_crop": WINDOW}) == ["resize", "center_crop"]


def test_all_crops_of_a_policy_are_one_stage() -> None:
    (stage,) = [stage for stage in built(transforms=[EITHER]).stages() if isinstance(stage, s.SometimesSized)]
    assert [ref.step.op for ref in stage.refs] == ["random_resized_crop", "resize", "random_crop"]
    assert stage.size == (24, 24)


def test_the_hash_is_that_of_before() -> None:
    from pipegen.spec.spec_hash import spec_hash

    def of(step: Any) -> str:
        return spec_hash(load_spec(transforms=[step]))

    plain = of({"random_resized_crop": WINDOW})
    assert of({"random_resized_crop": {**WINDOW, "probability": 1}}) == plain
    assert of(SOME) != plain
    meaning = load_spec(transforms=[{"random_resized_crop": WINDOW}]).transforms[0].meaning()
    assert not {"probability", "rows"} & {*meaning}
    assert "area" not in load_spec(transforms=[{"random_resized_crop": {"size": 24, "rows": [9, 20]}}]).transforms[0].meaning()


@pytest.mark.tf
def test_a_probability_is_a_choice_between_the_window_and_the_image(photo_folder: Any) -> None:
    """The examples that it changes get the window that they get without a `probability`."""
    whole, cut, some = (
        epoch_of(shared(photo_folder, transforms=[RESIZE, *steps]), 0)[0]
        for steps in ([], [{"random_resized_crop": {**WINDOW, "when": ["train"]}}], [SOME])
    )
    changed = np.array([not np.array_equal(a, b) for a, b in zip(some, whole, strict=True)])
    assert 3 < changed.sum() < len(some) - 3
    np.testing.assert_array_equal(some, np.where(changed[:, None, None, None], cut, whole))


@pytest.mark.tf
@pytest.mark.parametrize("steps", [[RESIZE, SOME], [EITHER]], ids=["probability", "one_of"])
def test_numbers_depend_on_the_example_alone(photo_folder: Any, steps: list[Any]) -> None:
    """Resumed in the middle, in batches of another size, for a share, compiled, and from a cache."""
    steps = [*steps, "random_flip"]
    images = epoch_of(shared(photo_folder, transforms=steps), 1)[0]
    pipe = shared(photo_folder, transforms=steps)
    same(epoch_of(pipe, 1, 2)[:1], [images[16:]])
    share = np.concatenate([np.asarray(x) for x, _ in pipe.dataset("train", epoch=1, shard=(1, 2))])
    np.testing.assert_array_equal(share, images.reshape(-1, 8, *images.shape[1:])[:, 4:].reshape(share.shape))
    other = pipeline(photo_folder, {"jit": "always", "cache": "memory"}, transforms=steps, batch={"size": 4})
    for _ in range(2):
        np.testing.assert_array_equal(epoch_of(other, 1)[0][: len(images)], images)


HEIGHT, WIDTH = 40, 56


def scenes(known: bool) -> dict[str, Any]:
    """Images that are their masks times 100, each with the box of its one rectangle; of one size, if it is `known`."""
    rng, images, masks, boxes = np.random.default_rng(0), [], [], []
    for i in range(12):
        height, width = (HEIGHT, WIDTH) if known else (HEIGHT + i, WIDTH + 2 * i)
        top, left = int(rng.integers(8, 14)), int(rng.integers(8, 20))
        mask = np.zeros((height, width, 1), np.uint8)
        mask[top : top + 16, left : left + 20] = 1
        images.append(np.repeat(mask * 100, 3, -1))
        masks.append(mask)
        boxes.append(np.array([[left, top, left + 20, top + 16]], np.float32))
    stacked = (lambda values: np.stack(values)) if known else (lambda values: values)
    return {"image": stacked(images), "mask": stacked(masks), "boxes": boxes}


NEAREST = {"method": "nearest"}
CROPS: dict[str, list[Any]] = {
    "probability": [{"resize": {"size": [40, 56], **NEAREST}},
                    {"random_resized_crop": {"size": [40, 56], "area": [0.4, 0.7], **NEAREST, "probability": 0.5}}],
    "padding": [{"resize": {"size": [40, 56], **NEAREST}}, {"random_crop": {"size": [40, 56], "padding": 6, "probability": 0.5}}],
    "around": [{"resize": {"size": [40, 56], **NEAREST}},
               {"one_of": {"steps": [{"random_crop_around": {"size": [30, 40]}}, {"center_crop": {"size": [30, 40]}}]}}],
    "one_of": [{"one_of": {"steps": [
        {"random_resized_crop": {"size": [64, 80], "area": [0.6, 0.9], **NEAREST}}, {"resize": {"size": [64, 80], **NEAREST}},
        {"pad": {"size": [64, 80]}}]}}],
    "some_of": [{"resize": {"size": [40, 56], **NEAREST}},
                {"some_of": {"count": 2, "steps": [
                    {"random_crop": {"size": [40, 56], "padding": 5}},
                    {"random_resized_crop": {"size": [40, 56], "area": [0.5, 1], **NEAREST}},
                    {"random_flip": {"probability": 1}}]}}],
    "sizes of their own": [{"one_of": {"steps": ["random_box_safe_crop", {"random_zoom_out": {"canvas": [1.1, 1.4]}}]}},
                           {"resize": {"size": [40, 56], **NEAREST}}],
}  # fmt: skip


@pytest.mark.tf
@pytest.mark.by_day(3)
@pytest.mark.parametrize("known", [True, False], ids=["arrays", "files"])
@pytest.mark.parametrize("name", [*CROPS])
def test_masks_and_boxes_go_where_their_image_goes(name: str, known: bool, tmp_path: Path) -> None:
    """Images of one size, as arrays, and of many, as files."""
    import pipegen

    features = {"image": {"kind": "image"}, "mask": {"kind": "mask"}, "boxes": {"kind": "boxes"}}
    source, data = ({"arrays": {"features": features}}, scenes(known)) if known else (files_of(scenes(known), tmp_path), None)
    spec = {"pipegen": 1, "source": source, "splits": {"parts": {"train": 12}}, "transforms": CROPS[name], "batch": {"size": 4}}
    outputs = {"y": {part: part for part in ("mask", "boxes", "boxes_valid")}}
    pipe = pipegen.build(spec | {"output": outputs}, data=data, runtime={"jit": "never", "cache": "none"})
    boxed = 0
    for x, y in (batch for epoch in range(2) for batch in pipe.dataset("train", epoch=epoch)):
        np.testing.assert_array_equal(x.numpy()[..., :1], y["mask"].numpy() * 100.0)
        for mask, box, there in zip(y["mask"].numpy(), y["boxes"].numpy(), y["boxes_valid"].numpy(), strict=True):
            rows, columns = np.nonzero(mask[..., 0])
            if there[0] and len(rows):
                drawn = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
                assert np.abs(box[0] - drawn).max() <= 2, (box[0], drawn)
                boxed += 1
    assert boxed > 12


def files_of(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The same as PNG files with a table beside them."""
    import json

    from PIL import Image

    lines = []
    for i, (image, mask, boxes) in enumerate(zip(data["image"], data["mask"], data["boxes"], strict=True)):
        Image.fromarray(image).save(folder / f"{i}.png")
        Image.fromarray(mask[..., 0]).save(folder / f"{i}-mask.png")
        lines.append(json.dumps({"image": f"{i}.png", "mask": f"{i}-mask.png", "boxes": boxes.tolist()}))
    (folder / "table.jsonl").write_text("\n".join(lines), encoding="utf-8")
    features = {"image": {"kind": "image", "column": "image"}, "mask": {"kind": "mask", "column": "mask"},
                "boxes": {"kind": "boxes", "column": "boxes"}}  # fmt: skip
    return {"jsonl": {"path": str(folder / "table.jsonl"), "features": features}}
