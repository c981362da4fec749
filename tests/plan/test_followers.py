"""What is aligned with an image goes where it goes, by the same draws; images of their own draw for themselves."""

from __future__ import annotations

from typing import Any

import pytest
from planning import checked, load_spec
from pydantic import ValidationError

from pipegen.diagnostics.diagnostic import Label
from pipegen.errors import SpecError
from pipegen.ops.families.combining import Combine
from pipegen.ops.families.decoder import Decode, DecodeWindow
from pipegen.ops.sources.by_split import BySplit
from pipegen.ops.sources.files import Files
from pipegen.plan import stages as s
from pipegen.plan.evaluation_plans import fitting_plan, unlabelled_plan
from pipegen.spec.spec_hash import spec_hash

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
    return [(ref.id, ref.start) for st in stages(found, split) if st.feature == feature for ref in st.uses() if ref.is_random]


def test_followers_draw_what_their_image_draws_and_others_for_themselves() -> None:
    found = plans()
    image = refs(found, "image")
    assert [name for name, _ in image] == ["random_resized_crop", "random_rotation", "random_brightness"]
    assert refs(found, "mask") == refs(found, "depth") == image[:2], "colour steps leave alone what is aligned with an image"
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
    assert (depth.fill.constant, depth.interpolation) == (7, "bilinear"), "an image is blended, whatever it is aligned with"


def test_followers_are_decoded_first_at_full_size_and_compared() -> None:
    decoded = [(st.feature, st.like and st.like[0], st.needed) for st in stages(plans()) if isinstance(st, Decode)]
    assert decoded == [("mask", "image", None), ("depth", "image", None)], "the image itself waits for its window"
    windows = [st.feature for st in stages(plans()) if isinstance(st, DecodeWindow)]
    assert windows == ["image", "other"]


def test_a_size_that_follows_from_the_size_before_is_not_decoded_at_a_scale() -> None:
    steps = [{"resize": {"shorter_side": 48}}, {"center_crop": {"size": 32}}]
    needed = {st.feature: st.needed for st in stages(plans(steps=steps)) if isinstance(st, Decode)}
    assert needed == {"mask": None, "depth": None, "image": None, "other": (48, 48)}
    needed = {st.feature: st.needed for st in stages(plans(steps=[{"resize": {"size": 32}}])) if isinstance(st, Decode)}
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
    assert [d.message for d in output(mask="binary").diagnostics] == ["`binary` needs two classes, but `mask` has 3"]
    assert [d.code for d in output(mask="multi_hot").diagnostics] == ["PG218"]


@pytest.mark.parametrize("between", [
    {"random_brightness": {"factor": 0.2}},
    "invert",
    {"random_gaussian_noise": {"std": 3}},
    {"normalize": {"preset": "torch"}},
    {"random_brightness": {"factor": 0.2, "feature": "depth"}},
    {"rand_augment": {}},
])  # fmt: skip
def test_what_divides_the_segments_of_an_image_divides_those_of_its_mask(between: Any) -> None:
    """Two resamplings of the image are two of the mask: one of both together would show other pixels at the edges."""
    features = {name: FEATURES[name] for name in ("image", "mask", "depth")}
    steps = [{"resize": {"size": 24}}, {"random_rotation": {"degrees": 60}}, between, {"random_translation": {"x": 0.4, "y": 0.4}}]
    found = plans(features, steps)
    assert len(segments(found, "image")) >= 2
    assert segments(found, "mask") == segments(found, "depth") == segments(found, "image")


def segments(found: Any, feature: str) -> list[list[str]]:
    """The steps of each resampling."""
    runs: list[list[str]] = [[]]
    for stage in stages(found):
        if stage.feature == feature and isinstance(stage, s.Compose):
            runs[-1].append(stage.ref.id)
        elif stage.feature == feature and isinstance(stage, s.Resample):
            runs.append([])
    return runs[:-1]


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"random_flip": {"feature": "image"}}, "`random_flip` moves `image` alone, but not `mask`, which is aligned with it"),
        (
            {"random_rotation": {"degrees": 9, "feature": "mask"}},
            "`random_rotation` moves `mask` alone, but not `image`, which is aligned with it",
        ),
        ({"rotation": {"degrees": 9, "feature": "image"}}, "`rotation` moves `image` alone, but not `mask`, which is aligned with it"),
        ({"random_elastic": {"alpha": 9, "sigma": 4, "feature": "image"}}, "`random_elastic` moves `image` alone"),
        ({"resize": {"size": 16, "feature": "mask"}}, None),
        ({"random_erasing": {"feature": "image"}}, None),
        ({"random_flip": {"feature": "other"}}, None),
    ],
)
def test_nothing_is_left_behind(step: Any, says: str | None) -> None:
    found = plans(steps=[{"resize": {"size": 16}}, step])
    told = [d.message for d in found.diagnostics if d.code == "PG203"]
    assert told == [] if says is None else (len(told) == 1 and says in told[0])


def test_the_frame_of_a_crop_does_not_follow_from_a_scaled_size() -> None:
    for mode, needed in (("stretch", (32, 32)), ("crop", None), ("pad", None)):
        found = plans(steps=[{"resize": {"size": 32, "mode": mode}}])
        assert {st.feature: st.needed for st in stages(found) if isinstance(st, Decode)}["image"] == needed
        alone = plans({"image": FEATURES["image"]}, steps=[{"resize": {"size": 32, "mode": mode}}])
        assert {st.feature: st.needed for st in stages(alone) if isinstance(st, Decode)}["image"] == (32, 32)


def nowhere(*_: Any, **__: Any) -> Label:
    return Label(None)


def test_predictions_decode_as_evaluation_does_and_take_one_image() -> None:
    spec = load_spec(source={"files": {"features": FEATURES}}, transforms=[{"resize": {"size": 32, "mode": "crop"}}], output={"x": "image"})
    plan = unlabelled_plan(spec, nowhere)
    assert [(st.feature, st.needed) for st in plan.stages() if isinstance(st, Decode)] == [("image", None)]
    second = spec.model_copy(update={"output": spec.output.model_copy(update={"x": "other"})})
    assert {st.feature for st in unlabelled_plan(second, nowhere).stages()} == {"other"}, "whichever image the model takes"
    two = spec.model_copy(update={"output": spec.output.model_copy(update={"x": ["image", "other"]})})
    with pytest.raises(SpecError, match="but the model also needs `other`"):
        unlabelled_plan(two, nowhere)


def test_statistics_of_a_follower_are_of_what_reaches_it() -> None:
    steps = [{"resize": {"size": 8}}, {"rescale": {"to": [0, 1]}}, {"standardize": {"statistics": "featurewise", "feature": "depth"}}]
    spec = load_spec(source={"files": {"features": FEATURES}}, transforms=steps, output={"x": ["image", "depth"]})
    _, plan = fitting_plan(spec, 2, "depth", nowhere, spec.source.infer())
    assert not any(ref.step.op == "rescale" for st in plan.stages() for ref in st.uses())


@pytest.mark.parametrize(
    ("depth", "steps", "says"),
    [
        ({}, [{"random_rotation": {"degrees": 9, "fill": {"constant": 7}}}], None),
        ({"channels": 1}, [{"random_rotation": {"degrees": 9, "fill": {"constant": 7}}}], None),
        ({"bits": 16}, [{"random_rotation": {"degrees": 9, "fill": "reflect"}}], None),
        ({"bits": 16}, [{"random_rotation": {"degrees": 9, "fill": {"constant": 0}}}], None),
        ({"bits": 16}, [{"random_rotation": {"degrees": 9, "fill": {"constant": 7}}}], "`random_rotation` fills with 7"),
        (
            {},
            [{"rescale": {"to": [0, 1]}}, {"random_elastic": {"alpha": 9, "sigma": 4, "fill": {"constant": 1}}}],
            "`random_elastic` fills",
        ),
        ({}, [{"posterization": {"bits": 4}}, {"random_zoom": {"factor": 0.1, "fill": {"constant": 7}}}], None),
        ({}, [{"rescale": {"to": [0, 1]}}, {"random_zoom": {"factor": 0.1, "fill": {"constant": 1}}}], "`random_zoom` fills with 1"),
    ],
)
def test_a_constant_means_the_same_on_what_lives_on_an_image(depth: Any, steps: list[Any], says: str | None) -> None:
    features = {"image": FEATURES["image"], "mask": FEATURES["mask"], "depth": FEATURES["depth"] | depth}
    told = [d for d in plans(features, [{"resize": {"size": 16}}, *steps]).diagnostics if d.code == "PG207"]
    assert len(told) == (says is not None)
    if says is not None:
        assert told[0].message.startswith(says)
        assert "`depth` (" in told[0].message
        assert told[0].labels[0].path.endswith(".fill")


def test_the_order_of_images_is_part_of_the_meaning() -> None:
    def hashed(*names: str) -> str:
        features = {name: FEATURES["image"] | {"path": name} for name in names}
        return spec_hash(load_spec(source={"files": {"features": features}}, output={"x": list(names)}))

    assert hashed("a", "b") != hashed("b", "a")


@pytest.mark.parametrize(
    ("mask", "says"),
    [
        ({"classes": 300}, "a mask has at most 256"),
        ({"classes": 2, "values": {0: 0, 7: 5}}, "has the class index 5, but there are 2 `classes`"),
    ],
)
def test_class_indices_that_cannot_be(mask: Any, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Files(features={"image": FEATURES["image"], "mask": {"kind": "mask", "path": "m", **mask}})


def test_splits_say_the_same_of_a_mask() -> None:
    def parts(**mask: Any) -> Any:
        own = {"image": FEATURES["image"], "mask": {"kind": "mask", "path": "m", "values": {0: 0, 7: 1}}}
        return {"train": {"files": {"features": own}}, "validation": {"files": {"features": own | {"mask": own["mask"] | mask}}}}

    assert BySplit.from_yaml(parts()).decoders()["mask"].values == ((0, 0), (7, 1))
    for wrong, says in (({"values": {0: 1, 7: 0}}, "has other `values`"), ({"ignore": 9}, "has another `ignore`, 9, than in `train`")):
        with pytest.raises(ValidationError, match=says):
            BySplit.from_yaml(parts(**wrong))


def test_a_written_decode_of_one_feature_leaves_the_others_to_the_default() -> None:
    found = plans(steps=[{"decode": {"feature": "other", "channels": 1}}, {"resize": {"size": 16}}])
    assert {name: t.channels for name, t in found.plans["train"].out.items()} == {"image": 3, "mask": 1, "depth": 3, "other": 1}


def test_binary_masks_have_two_classes() -> None:
    def told(**mask: Any) -> list[str]:
        features = {"image": FEATURES["image"], "mask": {"kind": "mask", "path": "m", **mask}}
        out = {"x": "image", "y": "mask", "encode": {"mask": "binary"}}
        found = checked(source={"files": {"features": features}}, transforms=[{"resize": {"size": 16}}], output=out)
        return sorted({d.message for d in found.diagnostics if d.code == "PG218"})

    assert told(values={0: 0, 255: 1}) == []
    assert told() == ["`binary` needs two classes, but the number of classes of `mask` is unknown"]
    assert told(classes=2, ignore=255) == ["`binary` needs two classes, but `ignore` of `mask` is a third one"]


def test_combining_takes_along_what_lives_on_an_image() -> None:
    features = {name: FEATURES[name] for name in ("image", "depth")}
    found = plans(features, [{"resize": {"size": 16}}, {"mixup": {"alpha": 0.2}}])
    assert [st.feature for st in stages(found) if isinstance(st, Combine)] == ["image", "depth"]
