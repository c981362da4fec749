"""Pasting by masks against NumPy, alone and in a running pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planning import checked

from pipegen.ops.base import IMAGE_224
from pipegen.ops.transforms.copy_paste import CopyPaste
from pipegen.plan import stages as s

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

    from pipegen.backend.index.mixing import partners
    from pipegen.backend.kernels.lower import apply_stage
    from pipegen.plan.stages import StepRef

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
        apply_stage(s.Paste(name, ref, "mask", IGNORE, label=name == "label"), features)
    partner = partners(u[:, 0], np.ones(N, bool)).numpy()
    taken = pasted(step, u, MASKS[partner])
    for name in ("image", "parts", "mask"):
        np.testing.assert_array_equal(features[name], np.where(taken, entering[name][partner], entering[name]))
    share = taken.mean((1, 2, 3))[:, None]
    np.testing.assert_allclose(features["label"], (1 - share) * entering["label"] + share * entering["label"][partner], atol=1e-6)


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
    assert [st.feature for st in plan.stages() if isinstance(st, s.Paste)] == ["image", "mask", "parts"]


@pytest.mark.parametrize(
    ("step", "masks", "says"),
    [
        ("copy_paste", (), "`image` has none"),
        ("copy_paste", ("mask", "parts"), "there are 2 of `image`"),
        ({"copy_paste": {"mask": "image"}}, ("mask",), "by `image`, which is no mask"),
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
    assert "no rule for a feature of kind `boxes`" in error.message


def test_what_changes_nothing() -> None:
    assert CopyPaste(probability=0).is_identity(IMAGE_224)
    assert CopyPaste().infer(IMAGE_224) == IMAGE_224
