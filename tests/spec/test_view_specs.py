"""The section `views`: the names of views, what an output makes of them, the hash, and findings. No TensorFlow."""

from __future__ import annotations

from typing import Any

import pytest
from planning import built, checked, load_spec
from spec_helpers import other_numbers

from pipegen.plan.lanes import first_view
from pipegen.spec.load import load
from pipegen.spec.spec_hash import canonical, meaning, spec_hash

CROPS: dict[str, Any] = {"large": {"count": 2, "transforms": ["random_flip"]}, "small": {"transforms": [{"resize": {"size": 8}}]}}
STEPS: list[Any] = [{"resize": {"size": 16}}]


@pytest.mark.parametrize(
    ("views", "wanted", "train", "other"),
    [
        (2, "image", {"image_1": "image_1", "image_2": "image_2"}, "image"),
        (2, "image_2", "image_2", None),
        (2, ["image"], ["image_1", "image_2"], ["image"]),
        (2, {"a": "image_2", "b": "image_1"}, {"a": "image_2", "b": "image_1"}, {"b": "image"}),
        (2, {"in": "image"}, {"in_1": "image_1", "in_2": "image_2"}, {"in": "image"}),
        (1, "image", "image", "image"),
        (CROPS, "image_large", {"image_large_1": "image_large_1", "image_large_2": "image_large_2"}, "image"),
        (CROPS, "image_small", "image_small", None),
        (CROPS, ["image_small", "image_large_1"], ["image_small", "image_large_1"], ["image"]),
        ({**CROPS, "small": {"when": "all"}}, "image_small", "image_small", "image_small"),
    ],
)
def test_an_output_names_views(views: Any, wanted: Any, train: Any, other: Any) -> None:
    found = checked(transforms=STEPS, views=views, output={"x": wanted})
    if other is None:
        assert {d.code for d in found.diagnostics if d.severity.value == "error"} == {"PG246"}
        return
    assert not found.diagnostics.has_errors
    assert {split: plan.emit.output.x for split, plan in found.plans.items()} == {"train": train, "validation": other}


def test_what_is_aligned_with_an_image_has_its_views() -> None:
    features = {"image": {"kind": "image", "path": "a/"}, "mask": {"kind": "mask", "path": "b/", "of": "image", "classes": 2}}
    output = {"x": "image", "y": "mask", "encode": {"mask": "one_hot"}}
    plan = built(source={"files": {"features": features}}, transforms=[*STEPS, "random_flip"], views=2, output=output)
    assert plan.emit.output.encode == {"mask_1": "one_hot", "mask_2": "one_hot"}
    assert [plan.out[f"mask_{i}"].of for i in (1, 2)] == ["image_1", "image_2"]
    assert [ref.id for ref in plan.index.draws] == ["random_flip", "random_flip@image_2"]


def test_the_first_view_has_the_draws_of_the_steps() -> None:
    steps = [*STEPS, "random_flip", {"random_rotation": {"degrees": 9}}]
    alone = built(transforms=steps).index.draws
    plan = built(transforms=STEPS, views={"b": {"transforms": steps[1:]}, "a": {"count": 2, "transforms": ["random_flip"]}})
    assert plan.index.draws[:2] == tuple(ref for ref in plan.index.draws if "@" not in ref.id)
    assert [(ref.id, ref.start) for ref in plan.index.draws[:2]] == [(ref.id, ref.start) for ref in alone]
    assert [ref.id for ref in plan.index.draws[2:]] == ["random_flip@image_a_1", "random_flip@image_a_2"]
    assert plan.index.draws[-1].end == plan.index.num_draws


def test_the_hash_covers_views() -> None:
    plain = load_spec(transforms=STEPS)
    assert "views" not in canonical(plain)
    assert spec_hash(plain) == spec_hash(load_spec(transforms=STEPS, views=1))
    other = [load_spec(transforms=STEPS, views=views) for views in (2, 3, CROPS, dict(reversed(CROPS.items())))]
    assert len({spec_hash(spec) for spec in (plain, *other)}) == 5
    changed = load_spec(transforms=STEPS, views={**CROPS, "large": {"count": 3, "transforms": [{"random_flip": {"axis": "both"}}]}})
    assert other_numbers(meaning(other[2]), meaning(changed)) == [
        "views.large.count: 2 → 3",
        "views.large.transforms[0].random_flip.axis: horizontal → both",
    ]


def test_prediction_has_the_first_view() -> None:
    loaded = load({"pipegen": 1, "source": {"image_folder": {"path": "x"}}, "transforms": STEPS, "views": CROPS}, env={})
    assert loaded.spec is not None
    one, locate = first_view(loaded.spec, loaded.locate.label, loaded.spec.source.infer())
    assert [step.op for step in one.transforms] == ["resize", "random_flip"]
    assert one.views == 1
    assert locate(("transforms", 1, "random_flip"), key=True).path == "views.large.transforms[0].random_flip"


@pytest.mark.parametrize(
    ("sections", "codes"),
    [
        ({"views": {"a": {"transforms": ["decode"]}}, "transforms": []}, {"PG243", "PG201"}),
        ({"views": {"a": {"transforms": [{"standardize": {"statistics": "featurewise"}}]}}}, {"PG243"}),
        ({"views": {"a": {"transforms": [{"python": {"function": "my_pkg.filters:denoise"}}]}}}, {"PG243"}),
        ({"views": {"a": {"count": 2}, "a_2": {}}}, {"PG244"}),
        ({"views": {"a": {"transforms": ["random_flip", "random_flip"]}}, "transforms": [{"random_crop": {"size": 3}}]}, set()),
        ({"views": {"a": {"transforms": [{"random_flip": {"id": "k"}}, {"random_hue": {"id": "k", "degrees": 9}}]}}}, {"PG216"}),
        ({"views": {"a": {"transforms": [{"random_flip": {"feature": "image_a"}}]}}}, {"PG217"}),
        ({"views": {"a": {"when": ["elsewhere"]}}}, {"PG220"}),
        ({"views": {"a": {"transforms": [{"random_flip": {"when": ["elsewhere"]}}]}}}, {"PG220"}),
        ({"views": {"a": {}, "b": {"transforms": [{"resize": {"size": 9}}], "when": "eval"}}}, {"PG210"}),
        ({"views": {"a": {}, "b": {"transforms": [{"resize": {"size": 9}}]}}}, set()),
        ({"views": 2, "output": {"x": "image_3"}}, {"PG217"}),
        ({"views": 2, "tests": [{"range": {"feature": "image", "within": [0, 255]}}]}, set()),
        ({"views": {"a": {"transforms": [{"random_resized_crop": {"size": 9}}]}}, "transforms": [*STEPS, "mixup"]}, {"PG223", "PG224"}),
    ],
)  # fmt: skip
def test_what_cannot_run_is_a_finding(sections: dict[str, Any], codes: set[str]) -> None:
    found = checked(**{"transforms": STEPS, **sections})
    assert {d.code for d in found.diagnostics if d.severity.value == "error"} == codes, [d.message for d in found.diagnostics]


TWO = {"files": {"features": {name: {"kind": "image", "path": f"{name}/"} for name in ("image", "radar")}}}


def test_a_branch_is_of_the_images_that_it_names() -> None:
    views = {"far": {"of": ["image", "radar"]}, "near": {"count": 2, "of": "image"}}
    own = {"source": TWO, "transforms": [*STEPS, "random_flip"], "output": {"x": ["image", "radar"], "y": None}}
    plan = built(views=views, **own)
    assert plan.emit.output.x == ["image_far", "image_near_1", "image_near_2", "radar_far"]
    single = built(views={"near": {"count": 2, "of": "image"}}, **own)
    assert single.emit.output.x == ["image_near_1", "image_near_2", "radar"]
    assert [ref.id for ref in single.index.draws] == ["random_flip", "random_flip@radar", "random_flip@image_near_2"]
    one, many = (load_spec(views={"a": {"of": of}}, **own) for of in ("image", ["image"]))
    assert spec_hash(one) == spec_hash(many) != spec_hash(load_spec(views={"a": {}}, **own))


@pytest.mark.parametrize(
    ("views", "code", "path"),
    [
        ({"a": {"of": "foto"}}, "PG247", "views.a.of"),
        ({"a": {}, "b": {"of": "label"}}, "PG247", "views.b.of"),
        ({"a": {"of": "image"}, "b": {"of": "radar"}}, "PG248", "views.b.of"),
    ],
)
def test_a_branch_is_of_images_alone(views: Any, code: str, path: str) -> None:
    found = checked(source=TWO, transforms=STEPS, views=views, output={"x": ["image", "radar"], "y": None})
    assert [(d.code, d.labels[0].path) for d in found.diagnostics if d.severity.value == "error"] == [(code, path)]
