"""The plan as built: typed on every edge, one stage a step in the order written, and segments where DESIGN §4.2 has them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from planning import built, checked
from strategies import recipes

from pipegen.ops.families.combining import Combine
from pipegen.ops.families.decoder import Decode, DecodeWindow
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Element, Emit, Index, Kernel, Plan, Read, Shard, Shuffle
from pipegen.plan.plan_rules import verify
from pipegen.types import BYTE_RANGE, DTYPES, Interval

SIZE = "{resize: {size: [24, 36]}}"


def segments(plan: Plan) -> list[tuple[str, ...]]:
    """The ids of the steps of each segment, in order: geometric ones as they are, colour ones behind `colour`."""
    found: list[tuple[str, ...]] = []
    pending: list[str] = []
    for stage in plan.stages():
        if isinstance(stage, (s.Compose, s.ComposeColour)):
            assert stage.opens == (not pending)
            pending.append(stage.ref.id)
        elif isinstance(stage, (s.Resample, s.ApplyColour)):
            found.append(("colour", *pending) if isinstance(stage, s.ApplyColour) else tuple(pending))
            pending = []
        else:
            assert not pending, "nothing stands inside a segment"
    return found


def steps(*written: str) -> str:
    """A spec of some steps behind a resize."""
    return f"{{transforms: [{', '.join([SIZE, *written])}]}}"


ROTATE, SHEAR, ZOOM, SHIFT = (
    "{random_rotation: {degrees: 9}}", "{random_shear: {degrees: 9}}", "{random_zoom: {factor: 0.1}}", "{random_translation: {x: 0.1}}",
)  # fmt: skip
BRIGHT, CONTRAST, HUE = "{random_brightness: {factor: 0.1}}", "{random_contrast: {factor: 0.1}}", "{random_hue: {degrees: 9}}"

SEGMENTS: dict[str, tuple[str, list[tuple[str, ...]]]] = {
    "a run": (
        steps(ROTATE, SHEAR, "random_flip", ZOOM, SHIFT),
        [("random_rotation", "random_shear", "random_flip", "random_zoom", "random_translation")],
    ),
    "another fill": (
        steps(ROTATE, "{random_shear: {degrees: 9, fill: nearest}}", ZOOM),
        [("random_rotation",), ("random_shear",), ("random_zoom",)],
    ),
    "another constant": (
        steps("{random_rotation: {degrees: 9, fill: {constant: 0}}}", "{random_shear: {degrees: 9, fill: {constant: 1}}}"),
        [("random_rotation",), ("random_shear",)],
    ),
    "the same constant": (
        steps("{random_rotation: {degrees: 9, fill: {constant: 0}}}", "{random_shear: {degrees: 9, fill: {constant: 0}}}"),
        [("random_rotation", "random_shear")],
    ),
    "another interpolation": (
        steps(ROTATE, "{random_shear: {degrees: 9, interpolation: nearest}}"),
        [("random_rotation",), ("random_shear",)],
    ),
    "exact in the middle": (
        steps(ROTATE, "{random_shear: {degrees: 9, exact: true}}", ZOOM),
        [("random_rotation",), ("random_shear",), ("random_zoom",)],
    ),
    "exact first": (steps("{random_rotation: {degrees: 9, exact: true}}", SHEAR), [("random_rotation",), ("random_shear",)]),
    "both exact": (
        steps("{random_rotation: {degrees: 9, exact: true}}", "{random_shear: {degrees: 9, exact: true}}"),
        [("random_rotation",), ("random_shear",)],
    ),
    "another family between": (steps(ROTATE, BRIGHT, SHEAR), [("random_rotation",), ("colour", "random_brightness"), ("random_shear",)]),
    "arithmetic between": (steps(ROTATE, "{rescale: {to: [0, 1]}}", SHEAR), [("random_rotation",), ("random_shear",)]),
    "a resize between": (steps(ROTATE, "{resize: {size: 20}}", SHEAR), [("random_rotation",), ("random_shear",)]),
    "a crop ends it": (steps(ROTATE, "{random_crop: {size: 20}}", SHEAR), [("random_rotation", "random_crop"), ("random_shear",)]),
    "two crops": (steps(ROTATE, "{random_crop: {size: 22}}", "{center_crop: {size: 20}}"), [("random_rotation", "random_crop")]),
    "a crop opens none": (steps("{random_crop: {size: 20}}", ROTATE), [("random_rotation",)]),
    "colour": (steps(BRIGHT, CONTRAST, HUE, "grayscale"), [("colour", "random_brightness", "random_contrast", "random_hue", "grayscale")]),
    "rescale ends colour": (
        steps(BRIGHT, "{rescale: {to: [0, 1]}}", CONTRAST),
        [("colour", "random_brightness"), ("colour", "random_contrast")],
    ),
    "a table ends colour": (
        steps(BRIGHT, "invert", CONTRAST),
        [("colour", "random_brightness"), ("colour", "random_contrast")],
    ),
    "a cast ends colour": (steps(BRIGHT, "{cast: {dtype: float16}}"), [("colour", "random_brightness")]),
    "a flip ends colour": (
        steps(BRIGHT, "random_flip", CONTRAST),
        [("colour", "random_brightness"), ("random_flip",), ("colour", "random_contrast")],
    ),
    "probability keeps the run": (
        steps(ROTATE, "{random_shear: {degrees: 9, probability: 0.3}}", ZOOM),
        [("random_rotation", "random_shear", "random_zoom")],
    ),
}
"""Steps behind a resize, and the segments that the language makes of them."""


@pytest.mark.parametrize("name", list(SEGMENTS))
def test_segments_come_from_the_text(name: str) -> None:
    text, expected = SEGMENTS[name]
    assert segments(built(text)) == expected


def test_a_segment_s_canvas_is_the_image_that_enters_it() -> None:
    plan = built(steps(ROTATE, SHEAR, "{random_crop: {size: [20, 30]}}"))
    composed = [st for st in plan.stages() if isinstance(st, s.Compose)]
    assert {st.canvas for st in composed} == {(24, 36)}
    assert [st.size for st in plan.stages() if isinstance(st, s.Resample)] == [(20, 30)], "only its last step changes the size"


def test_the_canvas_of_images_of_any_size_is_not_known() -> None:
    plan = built(f"{{transforms: [{ROTATE}, {SIZE}]}}")
    assert next(st for st in plan.stages() if isinstance(st, s.Compose)).canvas == (None, None)


@pytest.mark.parametrize(("before", "clip"), [
    ("", BYTE_RANGE), ("{rescale: {to: [0, 1]}}", Interval(0, 1)), ("{resize: {size: 20, method: bicubic}}", BYTE_RANGE),
])  # fmt: skip
def test_colour_clips_once_to_the_interval_that_enters(before: str, clip: Interval) -> None:
    plan = built(steps(*filter(None, [before]), BRIGHT, CONTRAST, "{normalize: {mean: 0, std: 2}}"))
    assert [st.clip for st in plan.stages() if isinstance(st, s.ApplyColour)] == [clip]


def test_colour_of_an_unknown_interval_is_not_clipped() -> None:
    plan = built(steps("{cast: {dtype: float32}}", "{resize: {size: 20, method: bicubic}}", BRIGHT))
    assert [st.clip for st in plan.stages() if isinstance(st, s.ApplyColour)] == [None]


def test_only_contrast_asks_for_the_mean() -> None:
    for text, expected in ((steps(BRIGHT, HUE), False), (steps(BRIGHT, CONTRAST, HUE), True)):
        assert [st.uses_mean for st in built(text).stages() if isinstance(st, s.ApplyColour)] == [expected]


def test_a_plan_as_built_is_the_plainest() -> None:
    kinds = [type(n) for n in built(steps(ROTATE, BRIGHT)).nodes]
    assert kinds[:4] == [Index, Read, Shuffle, Shard]
    assert kinds[-2:] == [Batch, Emit]
    assert set(kinds[4:-2]) == {Element}


def test_one_stage_for_each_step_in_order() -> None:
    plan = built(steps("{random_crop: {size: [20, 30]}}", ROTATE, "random_flip", BRIGHT, "{normalize: {preset: tf}}"))
    used = [r.step.op for st in plan.stages() for r in st.uses()]
    assert used == ["decode", "resize", "random_crop", "random_rotation", "random_flip", "random_brightness", "normalize"]
    assert all(len(n.stages) == 1 for n in plan.nodes if isinstance(n, Element))


@pytest.mark.parametrize(("text", "split", "kinds"), [
    ("{transforms: [{resize: {size: 8}}], shuffle: none}", "train", [Shard]),
    ("{transforms: [{resize: {size: 8}}]}", "validation", [Shard]),
    ("{transforms: [{resize: {size: 8}}], runtime: {shard: none}}", "train", [Shuffle]),
    ("{transforms: [{resize: {size: 8}}], shuffle: none, runtime: {shard: none}}", "train", []),
])  # fmt: skip
def test_order_and_shares(text: str, split: str, kinds: list[type]) -> None:
    assert [type(n) for n in built(text, split=split).nodes if isinstance(n, (Shuffle, Shard))] == kinds


def test_a_written_decode_takes_the_place_of_the_implicit_one() -> None:
    decoders = [st for st in built("{transforms: [{decode: {exif: ignore}}, {resize: {size: 8}}]}").stages() if isinstance(st, Decode)]
    assert [d.ref.step.exif for d in decoders] == ["ignore"]  # type: ignore[attr-defined]
    assert decoders[0].needed == (8, 8)


@pytest.mark.parametrize(("following", "needed"), [
    ("{resize: {size: [10, 20]}}", (10, 20)), ("{resize: {shorter_side: 30}}, {center_crop: {size: 20}}", (30, 30)),
    ("{center_crop: {size: 20}}", None), ("random_flip, {resize: {size: 20}}", None),
])  # fmt: skip
def test_how_far_a_decoder_may_shrink(following: str, needed: Any) -> None:
    decode = next(st for st in built(f"{{transforms: [{following}]}}").stages() if isinstance(st, Decode))
    assert decode.needed == needed


def test_a_window_that_is_resized_is_decoded_with_its_crop() -> None:
    plan = built("{transforms: [{random_resized_crop: {size: 18}}]}")
    assert [type(st) for st in plan.stages()][:1] == [DecodeWindow]
    assert plan.stages()[0].whole, "as built, the whole image is decoded and cut; not to is a pass's work"  # type: ignore[union-attr]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=recipes())
def test_every_edge_is_typed(text: str) -> None:
    """A plan out of any recipe verifies, and each edge knows dtype and rank of each feature."""
    plan = built(text, classes=3)
    verify(plan, "build")
    for node in plan.nodes:
        for name, t in node.out.items():
            assert t.dtype in DTYPES
            assert t.kind == ("label" if name == "label" else "image")
            assert t.kind != "image" or t.encoded or len(t.shape) == 3
            assert t.interval is None or t.interval.low <= t.interval.high
    batch = plan.nodes.index(plan.batch)
    assert all(n.out.batch is None for n in plan.nodes[:batch])
    assert all(n.out.batch is not None for n in plan.nodes[batch:])
    assert plan.out["image"].is_static
    assert not any(isinstance(n, Kernel) for n in plan.nodes) or any(isinstance(st, Combine) for st in plan.stages())


@pytest.mark.parametrize(("remainder", "axis"), [("drop", 8), ("pad", 8), ("keep", 0)])
def test_the_batch_axis_is_known_unless_the_last_batch_is_smaller(remainder: str, axis: int) -> None:
    plan = built(f"{{transforms: [{SIZE}], batch: {{size: 8, remainder: {remainder}}}}}")
    assert plan.out.batch == axis


def test_types_of_neighbours_meet() -> None:
    """Every step's inference, from the edge before it, gives the edge behind it."""
    plan = built(steps("{random_crop: {size: 20}}", "{rescale: {to: [0, 1]}}", "{normalize: {mean: 0.5, std: 0.2}}"))
    for before, node in pairwise(plan.nodes):
        if isinstance(node, Element) and node.stages[0].uses():
            (ref,) = node.stages[0].uses()
            assert ref.step.infer(before.out["image"]) == node.out["image"]


def test_after_an_error_the_other_findings_still_come() -> None:
    found = checked(steps("{center_crop: {size: 40}}", BRIGHT), splits={"parts": {"train": 0.9, "validation": 0.9}})
    assert {"PG206", "PG301"} <= {d.code for d in found.diagnostics.items}
    assert found.plans == {}
