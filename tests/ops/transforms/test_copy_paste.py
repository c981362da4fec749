"""Pasting by masks against NumPy, alone and in a running pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planning import checked

from pipegen.ops.families.item_stages import Paste, PasteItems, PastePoints
from pipegen.ops.traits import IMAGE_224
from pipegen.ops.transforms.copy_paste import CopyPaste

Array = np.ndarray[Any, Any]

N, H, W = 16, 6, 5
MASKS = np.random.default_rng(1).integers(0, 4, (N, H, W, 1)).astype(np.uint8)
MASKS[:, 0] = 9
IGNORE = 9


def draws(step: CopyPaste, n: int = N) -> Array:
    return np.random.default_rng(2).random((n, step.num_draws()))


def pasted(step: CopyPaste, u: Array, masks: Array = MASKS) -> Array:
    import tensorflow as tf

    return step.pasted(tf.constant(masks), tf.constant(u), IGNORE).numpy()


@pytest.mark.tf
def test_every_object_is_pasted_but_background_and_what_is_ignored() -> None:
    for background in (0, 2):
        step = CopyPaste(background=background)
        np.testing.assert_array_equal(pasted(step, draws(step)), (background != MASKS) & (MASKS != IGNORE))


@pytest.mark.tf
def test_objects_are_taken_whole_and_as_often_as_asked() -> None:
    step = CopyPaste(objects=0.3, probability=0.8)
    u = draws(step, 4000)
    masks = np.broadcast_to(np.arange(4, dtype=np.uint8)[:, None, None], (4000, 4, 2, 1))
    found = pasted(step, u, masks)[..., 0]
    assert (found[..., 0] == found[..., 1]).all()
    acts = u[:, 1] < 0.8
    assert not found[~acts].any()
    taken = found[acts][:, 1:, 0]
    np.testing.assert_allclose(taken.mean(0), 0.3, atol=0.03)
    assert np.abs(np.corrcoef(taken.T) - np.eye(3)).max() < 0.05


@pytest.mark.tf
def test_a_batch_is_what_numpy_makes_of_it() -> None:
    """The image, another mask and a label by one mask, which itself is changed last."""
    import tensorflow as tf

    from pipegen.backend.index.combined_groups import partners
    from pipegen.backend.kernels.lower import apply_stage
    from pipegen.ops.stage import StepRef

    step, rng = CopyPaste(objects=0.7, probability=0.8), np.random.default_rng(3)
    u = draws(step)
    ref = StepRef(step, "copy_paste", ("transforms", 0, "copy_paste"), 0, gated=False)
    entering: dict[str, Array] = {
        "image": rng.integers(0, 256, (N, H, W, 3), dtype=np.uint8),
        "parts": rng.integers(0, 5, (N, H, W, 1), dtype=np.uint8),
        "label": np.eye(3, dtype=np.float32)[np.arange(N) % 3],
        "mask": MASKS,
    }
    features = {name: tf.constant(value) for name, value in entering.items()} | {"@draws": tf.constant(u)}
    for name in entering:
        apply_stage(Paste(name, ref, "mask", IGNORE, label=name == "label"), features)
    partner = partners(u[:, 0], np.ones(N, bool)).numpy()
    taken = pasted(step, u, MASKS[partner])
    for name in ("image", "parts", "mask"):
        np.testing.assert_array_equal(features[name], np.where(taken, entering[name][partner], entering[name]))
    share = taken.mean((1, 2, 3))[:, None]
    np.testing.assert_allclose(features["label"], (1 - share) * entering["label"] + share * entering["label"][partner], atol=1e-6)


@pytest.mark.tf
@pytest.mark.parametrize("named", [True, False], ids=["named", "any number"])
def test_points_are_those_that_numpy_finds_to_be_seen(*, named: bool) -> None:
    """Own ones beside what is pasted; of any number of points those of the other one upon it, too, in the order that they had."""
    import tensorflow as tf

    from pipegen.backend.index.combined_groups import partners
    from pipegen.backend.kernels.lower import apply_stage
    from pipegen.ops.arguments.geometry import PointRules
    from pipegen.ops.stage import StepRef

    step, rng, most = CopyPaste(objects=0.7, probability=0.8), np.random.default_rng(4), 5
    u, member = draws(step), np.arange(N) < N - 7  # of the last group one alone has a place, and no partner but itself
    ref: Any = StepRef(step, "copy_paste", ("transforms", 0, "copy_paste"), 0, gated=False)
    places = rng.uniform([-1.5, -1.5], [W + 0.5, H + 0.5], (N, most, 2)).astype(np.float32)
    places[0, :3] = [[0.5, 1.49], [-0.5, 2], [W - 0.5, H - 1]]
    points = np.concatenate([places, rng.integers(0, 3, (N, most, 1))], -1).astype(np.float32)
    points[points[..., 2] == 0] = 0
    there = np.ones((N, most), bool) if named else np.arange(most) < rng.integers(0, most + 1, (N, 1))
    points[~there] = 0
    rank = np.where(there, np.arange(N)[:, None] * 100 + np.arange(most) + 1, 0).astype(np.float32)
    rules = PointRules(("a", "b", "c", "d", "e"), tuple(range(most))) if named else PointRules(outside="keep")
    stage = PastePoints("points", "keypoints", ref, (H, W), rules, ("rank",), mask="mask", ignore=IGNORE, joins=not named)
    given = {"points": points, "points_valid": there, "rank": rank, "mask": MASKS, "@draws": u, "@member": member}
    features = {name: tf.constant(value) for name, value in given.items()}
    apply_stage(stage, features)
    partner = partners(u[:, 0], member).numpy()
    taken = pasted(step, u, MASKS[partner])[..., 0] & (partner != np.arange(N))[:, None, None]
    lost = joined = 0
    for i, other in enumerate(partner):

        def covered(point: Array, i: int = i) -> bool:
            x, y = np.floor(point[:2] + 0.5).astype(int)
            return bool(0 <= x < W and 0 <= y < H and taken[i, y, x])

        zeros = np.zeros(3, np.float32)
        own = [(zeros if covered(p) else p, r) for p, r in zip(points[i], rank[i], strict=True)]
        if not named:
            theirs = [(p, r) for p, r in zip(points[other], rank[other], strict=True) if p[2] and covered(p)]
            joined += len(theirs)
            own = [(p, r) for p, r in own if p[2]] + theirs
        lost += sum(bool(p[2]) and covered(p) for p in points[i])
        room = most if named else 2 * most
        due = own + [(zeros, np.float32(0))] * (room - len(own))
        np.testing.assert_array_equal(features["points"][i], np.stack([p for p, _ in due]))
        np.testing.assert_array_equal(features["rank"][i], np.stack([r for _, r in due]))
        np.testing.assert_array_equal(features["points_valid"][i], np.arange(room) < len(own))
    assert lost > 3
    assert named or joined > 3


SOURCE: dict[str, Any] = {
    "image": {"kind": "image", "path": "photos"},
    "mask": {"kind": "mask", "path": "masks", "classes": 3},
    "parts": {"kind": "mask", "path": "parts", "classes": 5},
}


def found(step: Any, *masks: str) -> Any:
    features = {name: SOURCE[name] for name in ("image", *masks)}
    output = {"x": "image", "y": list(masks)} if masks else {"x": "image"}
    sections = {"transforms": [{"resize": {"size": 24}}, step], "output": output, "source": {"files": {"features": features}}}
    return checked(sections)


def test_what_reads_the_mask_comes_before_it_changes() -> None:
    plan = found({"copy_paste": {"mask": "parts"}}, "mask", "parts").plans["train"]
    assert [st.feature for st in plan.stages() if isinstance(st, Paste)] == ["image", "mask", "parts"]


def test_points_are_looked_up_before_the_mask_changes() -> None:
    """By a mask of classes and by one of instances, whatever else is pasted."""
    features: dict[str, Any] = {
        "image": {"kind": "image", "size": [48, 64]},
        "boxes": {"kind": "boxes", "max": 5},
        "numbers": {"kind": "mask", "with": "boxes"},
        "classes": {"kind": "mask", "classes": 3},
        "pose": {"kind": "keypoints", "names": ["a", "b"]},
        "dots": {"kind": "keypoints"},
        "label": {"kind": "label", "classes": 3},
    }
    for mask, y, stages in (
        ("classes", ["classes"], "Paste image, Paste label, PastePoints pose, PastePoints dots, Paste classes"),
        ("numbers", ["numbers", "boxes"], "Paste image, Paste classes, Paste label, PasteItems boxes, PastePoints pose, PastePoints dots, "
         "PasteInstances numbers"),
    ):  # fmt: skip
        output = {"x": "image", "y": [*y, "pose", "dots", "dots_valid", "label"], "encode": {"label": "one_hot"}}
        source = {"arrays": {"features": features}}
        found = checked({"transforms": [{"copy_paste": {"mask": mask}}], "output": output, "source": source})
        assert not [d for d in found.diagnostics if d.severity.value == "error"]
        plan = found.plans["train"]
        own = [st for st in plan.stages() if isinstance(st, (Paste, PasteItems))]
        assert ", ".join(f"{type(st).__name__} {st.feature}" for st in own) == stages
        assert {st.mask for st in own} == {mask}
        assert plan.nodes[-1].out["pose"].shape == (2, 3)
    narrowed = {"transforms": [{"copy_paste": {"mask": "classes"}}], "output": {"y": ["pose", "boxes"]}, "source": source}
    (error,) = (d for d in checked(narrowed).diagnostics if d.severity.value == "error")
    assert "`classes`, whose pixels do not number the items of `boxes`" in error.message


@pytest.mark.parametrize(
    ("step", "masks", "says"),
    [
        ("copy_paste", (), "`image` has no mask"),
        ("copy_paste", ("mask", "parts"), "`image` has 2 masks"),
        ({"copy_paste": {"mask": "image"}}, ("mask",), "by `image`, which is not a mask"),
    ],
)
def test_it_is_clear_which_mask_is_meant(step: Any, masks: tuple[str, ...], says: str) -> None:
    (error,) = (d for d in found(step, *masks).diagnostics if d.severity.value == "error")
    assert error.code == "PG596"
    assert says in error.message


def test_boxes_beside_it_are_a_finding() -> None:
    """No box says which pixels of a mask are its own."""
    features = {
        "image": {"kind": "image"},
        "mask": {"kind": "mask", "classes": 3},
        "boxes": {"kind": "boxes", "format": "xyxy", "max": 5},
    }
    sections = {"transforms": [{"resize": {"size": 24}}, "copy_paste"], "output": {"x": "image", "y": ["mask", "boxes"]}}
    (error,) = checked({**sections, "source": {"arrays": {"features": features}}}).diagnostics
    assert error.code == "PG203"
    assert "no rule to combine `boxes`, a feature of kind `boxes`" in error.message


def test_what_changes_nothing() -> None:
    assert CopyPaste(probability=0).is_identity(IMAGE_224)
    assert CopyPaste().infer(IMAGE_224) == IMAGE_224
