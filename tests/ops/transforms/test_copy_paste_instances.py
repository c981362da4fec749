"""Pasting by masks of instances: image, mask, boxes and what stands beside them against NumPy, alone and in a running pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planning import checked

from pipegen.ops.arguments.geometry import BoxRules
from pipegen.ops.families.item_stages import NumberItems, Paste, PasteInstances, PasteItems, Renumber
from pipegen.ops.kinds.keypoints import PointRules
from pipegen.ops.stage import StepRef
from pipegen.ops.transforms.copy_paste import CopyPaste

pytestmark = pytest.mark.tf
N, H, W, MOST = 24, 24, 32, 5
Array = np.ndarray[Any, Any]


def scene(seed: int = 0, ignore: int = 255) -> dict[str, Array]:
    """Up to five rectangles on each image, whose boxes are some parts of a pixel larger; later ones lie on earlier ones."""
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {
        "image": rng.integers(0, 256, (N, H, W, 3), np.uint8), "mask": np.zeros((N, H, W, 1), np.uint8),
        "boxes": np.zeros((N, MOST, 4), np.float32), "boxes_valid": np.zeros((N, MOST), bool),
        "labels": np.zeros((N, MOST), np.int64), "points": np.zeros((N, MOST, 2, 3), np.float32),
    }  # fmt: skip
    for i in range(N):
        for k in range(i % (MOST + 1)):
            x, y, (w, h) = rng.integers(0, W - 14), rng.integers(0, H - 12), rng.integers(3, 12, 2)
            found["mask"][i, y : y + h, x : x + w] = k + 1
            found["boxes"][i, k] = [x - 0.25, y - 0.5, x + w + 0.25, y + h]
            found["boxes_valid"][i, k] = True
            found["labels"][i, k] = 10 * i + k
            found["points"][i, k] = [[x + 1, y + 1, 2], [x + w - 1.25, y + h - 1, k % 2]]
    found["mask"][:, 0, ::5] = ignore
    found["boxes_number"] = np.where(found["boxes_valid"], np.arange(1, MOST + 1), 0).astype(np.float32)
    return found


def oracle(given: dict[str, Array], partner: Array, taken: Array, rules: BoxRules, ignore: int = 255) -> list[dict[str, Any]]:
    """What each example comes to, object by object."""
    found = []
    for i in range(N):
        other, shown = partner[i], taken[i, ..., 0] & (partner[i] != i)
        own, theirs = given["mask"][i, ..., 0].astype(int), given["mask"][other, ..., 0].astype(int)
        mask, boxes = np.zeros((H, W), int), []
        mask[own == ignore] = ignore
        image = np.where(shown[..., None], given["image"][other], given["image"][i])
        for k in np.flatnonzero(given["boxes_valid"][i]):
            before = own == k + 1
            after = before & ~shown
            x0, y0, x1, y1 = map(float, given["boxes"][i, k])
            area, share = (x1 - x0) * (y1 - y0), 1.0
            if before.any():
                share = after.sum() / before.sum()
                if not after.any():
                    continue
                (rows, columns), (old_rows, old_columns) = np.nonzero(after), np.nonzero(before)
                x0 = x0 if columns.min() == old_columns.min() else float(columns.min())
                y0 = y0 if rows.min() == old_rows.min() else float(rows.min())
                x1 = x1 if columns.max() == old_columns.max() else columns.max() + 1.0
                y1 = y1 if rows.max() == old_rows.max() else rows.max() + 1.0
                small = share * area < rules.min_area or share < rules.min_visibility or min(x1 - x0, y1 - y0) < rules.min_size
                if share < 1 and small:
                    continue
            points = given["points"][i, k].copy()
            for point in points:
                if not point[2] or shown[int(np.floor(point[1] + 0.5)), int(np.floor(point[0] + 0.5))]:
                    point[:] = 0
            boxes.append(([x0, y0, x1, y1], given["labels"][i, k], points))
            mask[after] = len(boxes)
        mask[shown] = 0
        for k in np.flatnonzero(given["boxes_valid"][other]):
            if ((theirs == k + 1) & shown).any():
                boxes.append((given["boxes"][other, k].tolist(), given["labels"][other, k], given["points"][other, k]))
                mask[(theirs == k + 1) & shown] = len(boxes)
        found.append({"image": image, "mask": mask, "boxes": boxes})
    return found


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "rules", [BoxRules(), BoxRules(min_visibility=0.6), BoxRules(min_area=30, min_size=4)], ids=["all", "visible", "large"]
)
@pytest.mark.parametrize(("objects", "probability"), [(1.0, 1.0), (0.5, 0.8)])
def test_a_batch_is_what_numpy_makes_of_it(rules: BoxRules, objects: float, probability: float) -> None:
    import tensorflow as tf

    from pipegen.backend.index.combined_groups import partners
    from pipegen.backend.kernels.lower import apply_stage

    step, given = CopyPaste(objects=objects, probability=probability), scene()
    u = np.random.default_rng(5).random((N, step.num_draws()))
    member = np.arange(N) < N - 7  # of the last group one alone has a place, and no partner but itself
    ref: Any = StepRef(step, "copy_paste", ("transforms", 0, "copy_paste"), 0, gated=False)
    points = ("points", "keypoints", PointRules(("a", "b"), (0, 1), "remove", each=True))
    riders = ("labels", "points", "boxes_number")
    stages = [
        Paste("image", ref, "mask", 255, label=False),
        PasteItems("boxes", "boxes", ref, (H, W), rules, riders, (points,), "boxes_number", mask="mask", ignore=255),
        PasteInstances("mask", ref, "mask", 255, label=False),
        Renumber("mask", "boxes", "boxes_number", 255, 2),
        NumberItems("boxes", "boxes_number"),
    ]  # fmt: skip
    features = {name: tf.constant(value) for name, value in given.items()} | {"@draws": tf.constant(u), "@member": tf.constant(member)}
    for stage in stages:
        apply_stage(stage, features)
    partner = partners(u[:, 0], member).numpy()
    taken = step.pasted(tf.constant(given["mask"][partner]), tf.constant(u), 255).numpy()
    pasted = dropped = cut = 0
    for i, due in enumerate(oracle(given, partner, taken, rules)):
        np.testing.assert_array_equal(features["image"][i], due["image"])
        np.testing.assert_array_equal(features["mask"][i, ..., 0], due["mask"])
        many = len(due["boxes"])
        np.testing.assert_array_equal(features["boxes_valid"][i], np.arange(2 * MOST) < many)
        np.testing.assert_array_equal(features["boxes_number"][i], np.where(np.arange(2 * MOST) < many, np.arange(1, 2 * MOST + 1), 0))
        assert not features["boxes"][i, many:].numpy().any()
        for k, (box, label, own) in enumerate(due["boxes"]):
            np.testing.assert_array_equal(features["boxes"][i, k], np.float32(box))
            assert features["labels"][i, k] == label
            np.testing.assert_array_equal(features["points"][i, k], own)
            pasted += label // 10 != i
            cut += label // 10 == i and not np.array_equal(np.float32(box), given["boxes"][i, label % 10])
        dropped += int(given["boxes_valid"][i].sum()) - sum(label // 10 == i for _, label, _ in due["boxes"])
    assert pasted > 8
    assert dropped > 0
    assert cut > (2 if rules == BoxRules() else 0)


FEATURES: dict[str, Any] = {
    "image": {"kind": "image", "size": [48, 64]},
    "boxes": {"kind": "boxes", "max": 5},
    "kind": {"kind": "label", "with": "boxes", "classes": 3},
    "mask": {"kind": "mask", "with": "boxes"},
    "classes": {"kind": "mask", "classes": 3},
}


def planned(step: Any, *received: str, **more: Any) -> Any:
    features = {name: FEATURES[name] for name in FEATURES} | more
    output = {"x": "image", "y": list(received)} if received else {"x": "image"}
    return checked({"transforms": [step], "output": output, "source": {"arrays": {"features": features}}})


def test_what_decides_is_the_mask_of_what_the_model_gets() -> None:
    def by(step: Any, *received: str) -> list[str]:
        plan = planned(step, *received).plans["train"]
        return [f"{type(st).__name__} {st.feature} by {st.mask}" for st in plan.stages() if isinstance(st, (Paste, PasteItems))]

    images = ["Paste image by mask", "Paste classes by mask"]
    for received in (("mask",), ("boxes", "boxes_valid"), ("kind",), ("mask", "classes")):
        assert by("copy_paste", *received) == [*images, "PasteItems boxes by mask", "PasteInstances mask by mask"]
    assert by("copy_paste", "classes") == ["Paste image by classes", "Paste classes by classes"]
    assert by({"copy_paste": {"mask": "mask"}}, "classes") == [*images, "PasteItems boxes by mask", "PasteInstances mask by mask"]


@pytest.mark.parametrize(("step", "received", "more", "code", "says"), [
    ({"copy_paste": {"mask": "classes"}}, ("boxes",), {}, "PG203", "`classes`, whose pixels do not number the items of `boxes`"),
    ({"copy_paste": {"background": 3}}, ("mask",), {}, "PG596", "`background` is a class, but `mask` numbers objects"),
    ({"copy_paste": {"mask": "classes"}}, ("classes", "points"), {"points": {"kind": "keypoints", "with": "boxes", "names": ["a"]}},
     "PG203", "`classes`, whose pixels do not number the items of `boxes`"),
    ("copy_paste", ("mask", "other"), {"other": {"kind": "boxes"}}, "PG203", "no rule to combine `other`, a feature of kind `boxes`"),
    ("copy_paste", ("mask", "others"), {"other": {"kind": "boxes"}, "others": {"kind": "mask", "with": "other"}}, "PG203",
     "pastes the objects of `mask`, but `others` numbers other objects, `other`"),
])  # fmt: skip
def test_what_has_no_rule_is_said(step: Any, received: tuple[str, ...], more: dict[str, Any], code: str, says: str) -> None:
    found = [d for d in planned(step, *received, **more).diagnostics if d.severity.value == "error"]
    assert [d.code for d in found] == [code]
    assert says in found[0].message
