"""Masks of instances: one plane whose pixels number the boxes of an image, which stays right whatever becomes of those."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pipegen
from pipegen.errors import SpecError
from pipegen.phases.compilation import inspect

SIZE = HEIGHT, WIDTH = 48, 64
BLACK = {"fill": {"constant": 0}}
COUNT, MOST = 12, 5


def scenes(seed: int = 0) -> dict[str, Any]:
    """Images with up to five rectangles, of which later ones lie on earlier ones; and a plane of their numbers."""
    rng, masks, boxes = np.random.default_rng(seed), np.zeros((COUNT, *SIZE), np.uint8), []
    for i in range(COUNT):
        own = []
        for k in range(i % (MOST + 1)):
            x, y, (w, h) = rng.integers(0, WIDTH - 20), rng.integers(0, HEIGHT - 20), rng.integers(6, 20, 2)
            masks[i, y : y + h, x : x + w] = k + 1
            own.append([x, y, x + w, y + h])
        boxes.append(np.array(own, np.float32).reshape(-1, 4))
    return {"image": (masks[..., None] * 40).repeat(3, -1), "boxes": boxes, "mask": masks}


def spec(steps: list[Any], *, mask: Any = {}, boxes: Any = {}, **sections: Any) -> dict[str, Any]:  # noqa: B006
    features = {
        "image": {"kind": "image", "size": list(SIZE)},
        "boxes": {"kind": "boxes", **boxes},
        "mask": {"kind": "mask", "with": "boxes", **mask},
    }
    return {
        "pipegen": 1,
        "source": {"arrays": {"features": features}},
        "splits": {"parts": {"train": COUNT}},
        "transforms": steps,
        "batch": {"size": 4},
        "output": {"dtype": "uint8", "y": {"boxes": "boxes", "there": "boxes_valid", "mask": "mask"}},
        **sections,
    }


def delivered(given: dict[str, Any], data: dict[str, Any] | None = None, **where: Any) -> list[dict[str, Any]]:
    """What each example has."""
    pipe = pipegen.build(given, data=data or scenes(), runtime={"jit": "never"})
    found = []
    for x, y in pipe.dataset("train", **{"epoch": 0, **where}):
        batch = {"image": x.numpy(), **{name: value.numpy() for name, value in y.items()}}
        found += [{name: value[i] for name, value in batch.items()} for i in range(len(batch["image"]))]
    return found


def shown(example: dict[str, Any], ignore: int = 0) -> int:
    """Checks that each pixel of an item lies in its box, where the image has the item's own colour; counts the items that are seen."""
    mask, boxes, there = example["mask"][..., 0], example["boxes"], example["there"]
    values = {*np.unique(mask).tolist()} - {0, ignore}
    assert all(v <= there.sum() for v in values), "a pixel of what was left out belongs to nothing"
    colours = {}
    for value in values:
        rows, columns = np.nonzero(mask == value)
        left, top, right, bottom = boxes[value - 1]
        assert left - 1 <= columns.min()
        assert columns.max() + 1 <= right + 1
        assert top - 1 <= rows.min()
        assert rows.max() + 1 <= bottom + 1
        colours[value] = int(np.bincount(example["image"][..., 0][mask == value]).argmax())
    assert len({*colours.values()}) == len(colours), "two items have not one colour"
    assert all(colour % 40 == 0 for colour in colours.values())
    return len(values)


RECIPES: dict[str, list[Any]] = {
    "nothing": [],
    "flip and crop": ["random_flip", {"random_crop": {"size": [30, 40]}}],
    "affine": [{"random_affine": {"degrees": 25, "x": 0.4, "y": 0.3, "interpolation": "nearest", **BLACK}}],
    "perspective": [{"random_perspective": {"x": 0.2, "y": 0.2, "interpolation": "nearest", **BLACK}}],
    "resize": [{"resize": {"size": [96, 128], "method": "nearest"}}, {"random_crop": {"size": [64, 80]}}],
    "around": [{"random_crop_around": {"size": [24, 30], "around": "mask"}}],
    "boxes lost on the way": [{"random_crop": {"size": [30, 40]}}, {"random_affine": {"x": 0.5, "interpolation": "nearest", **BLACK}}],
}

BY_DAY = ("perspective", "around", "boxes lost on the way")
"""Windows, matrices, and both in turn; the rest repeats them."""


@pytest.mark.by_day(1)
@pytest.mark.tf
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.nightly] * (name not in BY_DAY)) for name in RECIPES])
def test_each_pixel_numbers_the_box_that_it_lies_in(name: str) -> None:
    found = delivered(spec(RECIPES[name], boxes={"min_visibility": 0.3}))
    assert sum(shown(example) for example in found) > 5
    assert len({*(int(example["there"].sum()) for example in found)}) > 1


@pytest.mark.tf
def test_it_is_as_it_was_where_nothing_happens_and_pixels_of_dropped_boxes_are_none() -> None:
    data = scenes()
    plain = delivered(spec([], shuffle="none"), data)
    for example, mask in zip(plain, data["mask"], strict=True):
        np.testing.assert_array_equal(example["mask"][..., 0], mask)
    few = delivered(spec([], shuffle="none", boxes={"max": 2}), data)
    for example, mask, boxes in zip(few, data["mask"], data["boxes"], strict=True):
        area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        kept = sorted(np.argsort(-area, kind="stable")[:2].tolist())
        table = np.zeros(256, np.uint8)
        table[[k + 1 for k in kept]] = np.arange(1, len(kept) + 1)
        np.testing.assert_array_equal(example["mask"][..., 0], table[mask], "the largest two, in their order")


@pytest.mark.tf
def test_what_a_fill_uncovers_is_ignored_and_stays_so() -> None:
    steps = [{"random_affine": {"x": [0.3, 0.3], "interpolation": "nearest", **BLACK}}]
    for example in delivered(spec(steps, mask={"ignore": 255})):
        assert (example["mask"] == 255).any()
        shown(example, ignore=255)


@pytest.mark.tf
@pytest.mark.nightly  # by day outlines of files are cached, masks that are pasted are shared and resumed, and views have boxes
def test_caches_shares_resumes_and_views_keep_it(tmp_path: Any) -> None:
    steps = RECIPES["flip and crop"]
    whole = delivered(spec(steps))
    for runtime in ({"cache": "memory"}, {"cache": {"disk": str(tmp_path / "cache")}}):
        pipe = pipegen.build(spec(steps), data=scenes(), runtime={"jit": "never", **runtime})
        for _ in range(2):
            masks = np.concatenate([y["mask"].numpy() for _, y in pipe.dataset("train", epoch=0)])
            np.testing.assert_array_equal(masks, [example["mask"] for example in whole])
    rest = delivered(spec(steps), step=1)
    np.testing.assert_array_equal([e["mask"] for e in rest], [e["mask"] for e in whole[4:]])
    halves = [delivered(spec(steps), shard=(i, 2)) for i in range(2)]
    np.testing.assert_array_equal([e["mask"] for e in halves[0][:2] + halves[1][:2]], [e["mask"] for e in whole[:4]])
    output = {"dtype": "uint8", "x": "image_2", "y": {"boxes": "boxes_2", "there": "boxes_2_valid", "mask": "mask_2"}}
    assert sum(shown(example) for example in delivered(spec(steps, views=2, output=output))) > 5
    alone = delivered(spec(steps, output={"dtype": "uint8", "y": {"mask": "mask", "boxes": "boxes", "there": "boxes_valid"}}))
    np.testing.assert_array_equal([e["mask"] for e in alone], [e["mask"] for e in whole])


@pytest.mark.tf
@pytest.mark.nightly  # by day moved ones are
def test_an_image_with_its_instances_is_drawn_and_exported(tmp_path: Any) -> None:
    pipe = pipegen.build(spec(RECIPES["affine"]), data=scenes(), runtime={"jit": "never"})
    assert pipe.preview("train", rows=2, draws=2).width > 100
    written = pipe.export(tmp_path / "out", "train", examples=4)
    assert len(written.files) == 4


def test_steps_that_blend_refuse_it() -> None:
    found = inspect(spec(["mixup"]))
    says = "`mixup` has no rule to combine `mask`, a feature of kind `mask`"
    assert any(d.code == "PG203" and says in d.message for d in found.diagnostics.items)


def test_what_is_wrong_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = spec([], mask={"with": "boxs"})
    assert any("is `boxes` meant?" in str(d.help) for d in inspect(wrong).diagnostics.items)
    wrong = spec([], mask={"ignore": 7})
    assert any("its `ignore` must be 0 or 255" in d.message for d in inspect(wrong).diagnostics.items)
    data = scenes()
    data["mask"][3, 0, 0] = 9
    with pytest.raises(SpecError, match=r"row 3 of `mask` holds 9, but the image has 3 of `boxes`"):
        pipegen.build(spec([]), data=data)
    many = {"image": np.zeros((12, *SIZE, 3), np.uint8), "mask": np.zeros((12, *SIZE), np.uint8)}
    many["boxes"] = [np.array([[0, 0, 4, 4]] * 255, np.float32)] * 12
    with pytest.raises(SpecError, match=r"has 255 of `boxes`; `mask` can hold 254"):
        pipegen.build(spec([]), data=many)


def test_masks_of_two_parts_of_a_mix_need_one_ignore(tmp_path: Any) -> None:
    voc, labelme = ({op: {"path": str(tmp_path), "masks": "instances"}} for op in ("voc", "labelme"))
    parts = {"a": {"weight": 1, "source": voc}, "b": {"weight": 1, "source": labelme}}
    output = {"y": {"boxes": "boxes", "mask": "mask"}}
    mix = {"pipegen": 1, "source": {"mix": {"epoch": 8, "parts": parts}}, "transforms": [{"resize": {"size": 32}}], "output": output}
    found = [d for d in inspect(mix).diagnostics.items if d.code == "PG462"]
    assert [d.message for d in found] == ["the `ignore` of `mask` is 255 in the part `a` and 0 in `b`; a batch takes one of them"]
