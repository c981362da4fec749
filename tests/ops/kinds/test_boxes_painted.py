"""A box goes where a rectangle goes that is painted in its place: every step that boxes follow, by whatever it draws."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pipegen.ops.families.item_stages import Bend, BendEach
from pipegen.ops.kinds.base import geometry_of, kind_named
from pipegen.ops.registry import transforms
from pipegen.ops.transforms.rotate_90 import TurnTransform
from pipegen.plan.bucketed_plans import sound_plan
from pipegen.types import BYTE_RANGE, ElementType, FeatureType

pytestmark = pytest.mark.tf
HEIGHT, WIDTH = 56, 72
BLACK = {"fill": {"constant": 0}}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "affine": {"degrees": 20, "x": 0.1, "factor": 1.2, **BLACK},
    "center_crop": {"size": [40, 50]},
    "corner_crop": {"size": [40, 50], "corner": "bottom_left"},
    "crop": {"size": [40, 50], "top": 7, "left": 11},
    "flip": {"axis": "vertical", **BLACK},
    "pad": {"size": [70, 90], "position": "bottom_right"},
    "perspective": {"top_left": [0.1, 0.05], "bottom_right": [-0.05, -0.1], **BLACK},
    "random_affine": {"degrees": 30, "x": 0.2, "y": 0.2, "factor": [0.7, 1.4], **BLACK},
    "random_crop": {"size": [32, 48]},
    "random_crop_around": {"size": [32, 48]},
    "random_iou_crop": {"overlaps": [0, 0.1]},
    "random_elastic": {"alpha": [60, 90], "sigma": 6, **BLACK},
    "random_optical_distortion": {"coefficient": [-0.2, 0.8], **BLACK},
    "random_piecewise_affine": {"x": 0.06, "y": 0.06, **BLACK},
    "random_perspective": {"x": 0.2, "y": 0.2, **BLACK},
    "random_resized_crop": {"size": [48, 40], "area": [0.3, 1]},
    "random_rotation": {"degrees": 180, **BLACK},
    "random_shear": {"degrees": 30, **BLACK},
    "random_shorter_side": {"between": [40, 80], "longer_side": 90},
    "random_thin_plate_spline": {"x": 0.06, "y": 0.06, "probability": 0.8, **BLACK},
    "random_translation": {"x": 0.3, "y": 0.3, **BLACK},
    "random_zoom": {"factor": [0.6, 1.6], **BLACK},
    "resize": {"size": [80, 61]},
    "scale_jitter": {"size": [60, 50], "scale": [0.4, 1.8]},
    "rotation": {"degrees": 33, **BLACK},
    "shear": {"degrees": 20, **BLACK},
    "translation": {"x": 0.2, "y": -0.1, **BLACK},
    "zoom": {"factor": 1.3, **BLACK},
}
REFUSED = {"random_grid_shuffle"}
"""Steps that move pixels so that no box can follow, which is a finding."""
RUN = [{name: ARGUMENTS[name]} for name in ("random_affine", "random_perspective", "random_crop", "resize")]
IMAGE = FeatureType("image", "uint8", (HEIGHT, WIDTH, 3), BYTE_RANGE)


@cache
def moving() -> dict[str, dict[str, Any]]:
    """Every step of the registry that boxes follow, with arguments. A new one that cannot do without any has them above."""
    steps = {name: step for name, step in transforms().items() if step.moves and name not in REFUSED}
    return {name: ARGUMENTS.get(name, BLACK if "fill" in step.model_fields else {}) for name, step in steps.items()}


@cache
def plan_of(*steps: str) -> Any:
    from pipegen.phases.compilation import load

    written = RUN if steps == ("run",) else [{name: moving()[name]} for name in steps]
    step = transforms()[steps[-1]].model_validate(moving()[steps[-1]]) if written is not RUN else None
    if isinstance(step, TurnTransform) and step.random:  # which wants squares
        written = [{"center_crop": {"size": min(HEIGHT, WIDTH)}}, *written]
    elif step is not None and not step.infer(IMAGE).is_static:
        written = [*written, {"pad": {"size": [4 * HEIGHT, 4 * WIDTH]}}]  # which copies pixels
    sections = {
        "pipegen": 1,
        "source": {"arrays": {"features": {"image": {"kind": "image", "size": [HEIGHT, WIDTH]}, "boxes": {"kind": "boxes"}}}},
        "transforms": written,
        "output": {"y": "boxes"},
    }
    loaded = load(sections).loaded
    boxes = kind_named("boxes").array_types(loaded.spec.source.features["boxes"])[0].with_(most=1, of="image")
    return sound_plan(loaded.spec, "train", loaded.locate.label, ElementType((("image", IMAGE), ("boxes", boxes))))


def moved(plan: Any, box: tuple[int, int, int, int], seed: int) -> tuple[Any, Any, Any]:
    """The image on which a box is painted, and the box, where the stages of a plan bring them."""
    import tensorflow as tf

    from pipegen.backend.kernels.lower import apply_element

    x0, y0, x1, y1 = box
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[y0:y1, x0:x1] = 255
    draws = np.random.default_rng(seed).random(max([ref.end for ref in plan.index.draws], default=0))
    features = {
        "image": tf.constant(image), "boxes": tf.constant([box], tf.float32), "boxes_valid": tf.constant([True]),
        "@draws": tf.constant(draws),
    }  # fmt: skip
    for stage in plan.stages():
        apply_element(stage, features)
    return tuple(features[name].numpy() for name in ("image", "boxes", "boxes_valid"))


def check(plan: Any, box: tuple[int, int, int, int], seed: int) -> None:
    image, boxes, there = moved(plan, box, seed)
    painted = image[..., 0] > 255 * 0.2
    if not there[0]:
        assert painted.sum() <= 2 * max(painted.shape)  # a sliver
        return
    left, top, right, bottom = boxes[0]
    assert 0 <= left < right <= painted.shape[1]
    assert 0 <= top < bottom <= painted.shape[0]
    if not painted.any():
        assert min(right - left, bottom - top) <= 1
        return
    rows, columns = np.flatnonzero(painted.any(1)), np.flatnonzero(painted.any(0))
    seen = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
    inner = seen if not bends(plan) else nearest(boxes[0], image, seen)
    if min(left, top) > 0 and right < painted.shape[1] and bottom < painted.shape[0]:
        np.testing.assert_allclose(boxes[0], inner, atol=1.0)
    # The enclosing box is clipped: a corner that lies beyond one edge of the image still says how far the box reaches along it.
    assert (boxes[0, :2] <= inner[:2] + 1).all()
    assert (boxes[0, 2:] >= inner[2:] - 1).all()


def bends(plan: Any) -> bool:
    return any(isinstance(stage, (Bend, BendEach)) for stage in plan.stages())


def nearest(box: Any, image: Any, seen: Any) -> Any:
    """Of what is painted to a fifth and what is painted to the half, and what lies between, that which is nearest to a box.

    A field can stretch a part of the image: what is blended with black at an edge is stretched likewise, so that the fifth lies a pixel
    and more beyond the edge itself, which is at the half.
    """
    half = image[..., 0] > 255 * 0.5
    if not half.any():
        return seen
    rows, columns = np.flatnonzero(half.any(1)), np.flatnonzero(half.any(0))
    edge = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
    return np.clip(box, np.minimum(edge, seen), np.maximum(edge, seen))


NO_SHRINKING = (Phase.explicit, Phase.generate)
BOXES = st.tuples(st.integers(0, WIDTH - 12), st.integers(0, HEIGHT - 12), st.integers(10, 40), st.integers(10, 40)).map(
    lambda b: (b[0], b[1], min(b[0] + b[2], WIDTH), min(b[1] + b[3], HEIGHT))
)
SEEDS = st.integers(0, 2**16)


@pytest.mark.nightly
@pytest.mark.parametrize("step", sorted(moving()))
@settings(max_examples=60, deadline=None, phases=NO_SHRINKING)
@given(box=BOXES, seed=SEEDS)
def test_a_box_follows_each_step(step: str, box: tuple[int, int, int, int], seed: int) -> None:
    check(plan_of(step), box, seed)


@settings(max_examples=12, deadline=None, phases=NO_SHRINKING)
@given(step=st.sampled_from(sorted(moving())), box=BOXES, seed=SEEDS)
def test_a_box_follows_steps(step: str, box: tuple[int, int, int, int], seed: int) -> None:
    check(plan_of(step), box, seed)


@pytest.mark.nightly
@settings(max_examples=12, deadline=None, phases=NO_SHRINKING)
@given(box=BOXES, seed=SEEDS)
def test_a_box_follows_several_segments(box: tuple[int, int, int, int], seed: int) -> None:
    """Of which each encloses the box anew, so that it can only be too large. An edge that each blurs stays where it is at the half."""
    image, boxes, there = moved(plan_of("run"), box, seed)
    painted = image[..., 0] > 255 * 0.5
    if there[0] and painted.any():
        rows, columns = np.flatnonzero(painted.any(1)), np.flatnonzero(painted.any(0))
        assert (boxes[0, :2] <= np.array([columns[0], rows[0]]) + 1).all()
        assert (boxes[0, 2:] >= np.array([columns[-1], rows[-1]])).all()


@pytest.mark.parametrize("kind", ["boxes", "keypoints"])
def test_items_follow_every_step_that_moves_pixels_or_it_is_a_finding(kind: str) -> None:
    items = geometry_of(kind)
    for name, arguments in moving().items():
        assert items.follows(transforms()[name].model_validate(arguments).traits(IMAGE)), name
    assert not any(items.follows(transforms()[name]().traits(IMAGE)) for name in REFUSED)
