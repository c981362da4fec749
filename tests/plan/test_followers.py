"""What lives on an image goes where it goes, by the same draws; images of their own draw for themselves."""

from __future__ import annotations

from typing import Any

from planning import checked

from pipegen.plan import stages as s

FEATURES: dict[str, Any] = {
    "image": {"kind": "image", "path": "a"},
    "mask": {"kind": "mask", "path": "m", "of": "image", "classes": 3, "ignore": 255},
    "depth": {"kind": "image", "path": "d", "of": "image"},
    "other": {"kind": "image", "path": "o"},
}
STEPS: list[Any] = [
    {"random_resized_crop": {"size": 32, "method": "bicubic"}},
    {"random_rotation": {"degrees": 10, "fill": {"constant": 7}}},
    {"random_brightness": {"factor": 0.2}},
    {"resize": {"size": 16}},
]
"""The last one ends the segment, so that it is a step of its own."""


def plans(features: dict[str, Any] | None = None, steps: list[Any] | None = None, **sections: Any) -> Any:
    output = {"x": list(features or FEATURES), "y": None}
    source = {"files": {"features": features or FEATURES}}
    return checked(source=source, transforms=STEPS if steps is None else steps, output=output, **sections)


def stages(found: Any, split: str = "train") -> list[Any]:
    assert [d.message for d in found.diagnostics if d.severity.value == "error"] == []
    return [stage for stage in found.plans[split].stages() if not isinstance(stage, s.Pointwise)]


def refs(found: Any, feature: str, split: str = "train") -> list[tuple[str, int]]:
    return [(ref.id, ref.start) for st in stages(found, split) if st.feature == feature for ref in s.refs(st) if ref.is_random]


def test_followers_draw_what_their_image_draws_and_others_for_themselves() -> None:
    found = plans()
    image = refs(found, "image")
    assert [name for name, _ in image] == ["random_resized_crop", "random_rotation", "random_brightness"]
    assert refs(found, "mask") == refs(found, "depth") == image[:2], "colour steps leave alone what lives on an image"
    other = refs(found, "other")
    assert [name for name, _ in other] == [f"{name}@other" for name, _ in image]
    draws = found.plans["train"].index.draws
    assert {(ref.id, ref.start) for ref in draws} == {*image, *other}
    assert sum(ref.num_draws for ref in draws) == 2 * sum(ref.num_draws for ref in draws[: len(image)])


def test_a_further_feature_leaves_the_first_image_s_draws_alone() -> None:
    alone = plans({"image": FEATURES["image"]})
    assert refs(alone, "image") == refs(plans(), "image")


def test_a_mask_is_picked_and_not_blended() -> None:
    found = plans()
    mask = [st for st in stages(found) if st.feature == "mask"]
    crop = next(st for st in mask if isinstance(st, s.Crop))
    assert (crop.ref.step.method, crop.ref.step.size) == ("nearest", 32)
    resample = next(st for st in mask if isinstance(st, s.Resample))
    assert (resample.fill.constant, resample.interpolation) == (255, "nearest")
    assert next(st for st in mask if isinstance(st, s.Apply)).ref.step.method == "nearest"
    depth = next(st for st in stages(found) if isinstance(st, s.Resample) and st.feature == "depth")
    assert (depth.fill.constant, depth.interpolation) == (7, "bilinear"), "an image is blended, whatever it lives on"


def test_followers_are_decoded_first_at_full_size_and_compared() -> None:
    decoded = [(st.feature, st.like and st.like[0], st.needed) for st in stages(plans()) if isinstance(st, s.Decode)]
    assert decoded == [("mask", "image", None), ("depth", "image", None)], "the image itself waits for its window"
    windows = [st.feature for st in stages(plans()) if isinstance(st, s.DecodeWindow)]
    assert windows == ["image", "other"]


def test_a_size_that_follows_from_the_size_before_is_not_decoded_at_a_scale() -> None:
    steps = [{"resize": {"shorter_side": 48}}, {"center_crop": {"size": 32}}]
    needed = {st.feature: st.needed for st in stages(plans(steps=steps)) if isinstance(st, s.Decode)}
    assert needed == {"mask": None, "depth": None, "image": None, "other": (48, 48)}
    needed = {st.feature: st.needed for st in stages(plans(steps=[{"resize": {"size": 32}}])) if isinstance(st, s.Decode)}
    assert needed == {"mask": None, "depth": None, "image": (32, 32), "other": (32, 32)}


def test_what_is_the_same_in_every_epoch_comes_first() -> None:
    steps = [{"resize": {"size": 40}}, {"random_crop": {"size": 32}}, "random_flip"]
    order = [type(st).__name__ for st in stages(plans(steps=steps))]
    first_random = next(i for i, st in enumerate(stages(plans(steps=steps))) if s.is_random(st))
    assert order[:first_random] == ["Decode", "Apply"] * 4


def test_what_is_wrong_with_a_step_is_said_once() -> None:
    steps = [{"resize": {"size": 16}}, {"random_crop": {"size": 32}}]
    found = plans(steps=steps)
    assert [(d.code, d.labels[0].path) for d in found.diagnostics] == [("PG206", "transforms[1].random_crop.size")]


def test_a_step_that_changes_values_acts_on_a_follower_that_it_names() -> None:
    steps = [{"resize": {"size": 16}}, {"random_brightness": {"factor": 0.2, "feature": "depth"}}]
    assert refs(plans(steps=steps), "depth") == [("random_brightness", 0)]
    wrong = plans(steps=[{"resize": {"size": 16}}, {"random_brightness": {"factor": 0.2, "feature": "mask"}}])
    assert [(d.code, d.message) for d in wrong.diagnostics] == [("PG203", "`random_brightness` has no rule for a feature of kind `mask`")]


def test_masks_as_targets() -> None:
    def output(**encode: str) -> Any:
        features = {"image": FEATURES["image"], "mask": FEATURES["mask"]}
        out = {"x": "image", "y": "mask", "encode": encode, "channels": "first"}
        return checked(source={"files": {"features": features}}, transforms=[{"resize": {"size": 16}}], output=out)

    assert output().plans["train"].out["mask"].shape == (1, 16, 16)
    assert output(mask="one_hot").plans["train"].out["mask"].shape == (3, 16, 16)
    assert [d.message for d in output(mask="binary").diagnostics] == ["`binary` needs two classes, and `mask` has 3"]
    assert [d.code for d in output(mask="multi_hot").diagnostics] == ["PG218"]
