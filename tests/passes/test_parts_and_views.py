"""Passes reach into the parts of a mix, share what views have in common and no more, and keep to their limits."""

from __future__ import annotations

from typing import Any

import pytest
from planning import built, compiled, load_spec

from pipegen.errors import InternalError
from pipegen.passes import PASSES, PassContext, run_passes
from pipegen.passes.plan_pass import PassRecord
from pipegen.plan.nodes import Batch, Element, Emit, Kernel, Read
from pipegen.plan.plan_text import render_plan
from pipegen.plan.stages import Branch, Fork

RESIZE: dict[str, Any] = {"resize": {"size": 64}}


def record_of(name: str, **sections: Any) -> PassRecord:
    done = compiled(built(sections, classes=None if "source" in sections else 3), load_spec(sections))
    return next(record for record in done.records if record.name == name)


def a_part(*steps: Any) -> dict[str, Any]:
    folder = {"image_folder": {"path": "photos", "classes": ["x", "y"]}}
    return {"weight": 0.5, "source": folder, "splits": {"parts": {"train": 0.5, "validation": 0.5}}, "transforms": [*steps]}


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("drop_identities", [RESIZE, RESIZE]),
        ("fold_constants", [RESIZE, {"rescale": {"to": [0, 1]}}, {"normalize": {"mean": 0.5, "std": 0.5}}]),
        ("fold_tables", [RESIZE, {"solarization": {"threshold": 128}}, {"posterization": {"bits": 4}}]),
        ("fuse_colour", [RESIZE, {"random_brightness": {"factor": 0.2}}, {"random_contrast": {"factor": 0.2}}]),
        ("fuse_decode_crop", [{"random_resized_crop": {"size": 64}}]),
        ("fuse_geometry", [RESIZE, {"random_rotation": {"degrees": 9}}, {"random_shear": {"degrees": 9}}]),
    ],
)
def test_a_pass_rewrites_what_a_part_does_alone(name: str, steps: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planning.DEFAULTS", {"pipegen": 1, "batch": {"size": 8}})
    mix = {"mix": {"epoch": "a", "parts": {"a": a_part(*steps), "b": a_part(RESIZE)}}}
    record = record_of(name, source=mix, transforms=["random_flip"])
    plans = [render_plan(plan).splitlines() for plan in (record.before, record.after)]
    before, after = (next(line for line in lines if line.strip().startswith("a:")) for lines in plans)
    assert len(before) > len(after), f"what was {before} is {after}"


@pytest.mark.parametrize(
    ("sections", "shared"),
    [
        ({"transforms": [RESIZE], "views": 2}, "`decode`, `resize`"),
        ({"transforms": [RESIZE, "random_flip"], "views": 3}, "`decode`, `resize`"),
        (
            {
                "transforms": [RESIZE],
                "views": {"a": {"transforms": [{"resize": {"size": 32}}]}, "b": {"transforms": [{"resize": {"size": 48}}]}},
            },
            "`decode`, `resize`",
        ),
        (
            {"transforms": [RESIZE], "views": {"a": {"transforms": [{"resize": {"size": 32}}]}, "b": {"transforms": []}}},
            "`decode`, `resize`",
        ),
    ],
)
def test_views_share_what_all_of_them_begin_with(sections: dict[str, Any], shared: str) -> None:
    (note,) = record_of("share_views", **sections).notes
    count = sections["views"] if isinstance(sections["views"], int) else len(sections["views"])
    assert note == f"once for the {count} views of `image`: {shared}"


@pytest.mark.parametrize("before", [[], ["random_flip"], ["random_flip", {"random_flip": {"axis": "vertical"}}]])
def test_what_comes_behind_the_last_rare_stage_is_not_branched(before: list[Any]) -> None:
    """Mirrors before it are passed over."""
    steps = [RESIZE, *before, {"random_median_blur": {"probability": 0.1}}, {"random_median_blur": {"probability": 0.9}}]
    branches = [
        stage for stage in record_of("branch_rare", transforms=steps, runtime={"jit": "never"}).after.stages() if isinstance(stage, Branch)
    ]
    assert [ref.share for branch in branches for ref in branch.stage.uses()] == [0.1]


@pytest.mark.parametrize(("before", "branches"), [([], 1), (["random_flip"], 0)])
def test_a_filter_that_a_mirror_changes_stays_behind_it(before: list[Any], branches: int) -> None:
    steps = [RESIZE, *before, {"random_motion_blur": {"length": [3, 5], "probability": 0.1}}]
    after = record_of("branch_rare", transforms=steps, runtime={"jit": "never"}).after
    assert sum(isinstance(stage, Branch) for stage in after.stages()) == branches


@pytest.mark.parametrize(("size", "ahead"), [(8, 2), (64, 2), (65, 1)])
def test_one_large_batch_is_made_ahead_and_two_small_ones(size: int, ahead: int) -> None:
    """A gray image of 256 by 256 floats is 256 KiB, and a batch is large above 16 MiB."""
    gray = [{"decode": {"channels": 1}}, {"resize": {"size": 256}}]
    after = record_of("prefetch_last", transforms=gray, batch={"size": size}, output={"x": "image", "y": None}).after
    assert after.nodes[-1].batches == ahead  # type: ignore[union-attr]


@pytest.mark.parametrize(("megabytes", "chunk"), [(0.1, 16), (1, 4), (9, 1)])
def test_a_call_holds_few_bytes_of_files(megabytes: float, chunk: int) -> None:
    sections: dict[str, Any] = {"transforms": [RESIZE]}
    done = compiled(built(sections, classes=3), load_spec(sections), file_bytes=megabytes * 2**20)
    assert [node.chunk for node in done.plan.nodes if isinstance(node, Element)] == [chunk]


def test_a_plan_that_is_wrong_before_the_passes_is_told() -> None:
    plan = built({"transforms": [RESIZE]}, classes=3)
    wrong = plan.with_nodes([node for node in plan.nodes if not isinstance(node, Emit)])
    context = PassContext(load_spec({"transforms": [RESIZE]}).runtime)
    with pytest.raises(InternalError, match="build"):
        run_passes(wrong, PASSES[:0], context)


def test_a_feature_that_is_not_in_the_output_leaves_the_parts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planning.DEFAULTS", {"pipegen": 1, "batch": {"size": 8}})
    mix = {"mix": {"epoch": "a", "parts": {"a": a_part(RESIZE), "b": a_part(RESIZE)}}}
    record = record_of("drop_unused", source=mix, transforms=["random_flip"], output={"x": "image", "y": None})
    outs = [
        {name for part in read.parts for node in part for name, _ in node.out.items()}
        for plan in (record.before, record.after)
        for read in plan.nodes
        if isinstance(read, Read)
    ]
    assert outs == [{"image", "label"}, {"image"}]


BOTH = {"x": "image", "y": "mask"}
STEPS = [RESIZE, "random_flip"]
FILES: dict[str, Any] = {
    "image": {"kind": "image", "path": "photos"},
    "mask": {"kind": "mask", "path": "masks", "of": "image", "classes": 3},
}


def test_a_mask_that_views_share_belongs_to_the_image_that_they_share() -> None:
    plan = record_of("share_views", source={"files": {"features": FILES}}, transforms=STEPS, views=2, output=BOTH).after
    fork = next(i for i, node in enumerate(plan.nodes) if any(isinstance(stage, Fork) for stage in getattr(node, "stages", ())))
    shared = [node.out["mask"] for node in plan.nodes[:fork] if "mask" in dict(node.out.items())]
    assert {mask.of for mask in shared} == {"image"}


@pytest.mark.parametrize("y", ["boxes", "boxes_valid", None])
def test_items_and_which_of_them_are_there_stay_together(y: str | None) -> None:
    boxes = {"kind": "boxes", "format": "xyxy", "max": 5}
    source = {"arrays": {"features": {"image": {"kind": "image", "size": 32}, "boxes": boxes}}}
    record = record_of("drop_unused", source=source, transforms=["random_flip"], output={"x": "image", "y": y})
    assert {name for name, _ in record.after.out.items()} == {"image", *(("boxes", "boxes_valid") if y else ())}


@pytest.mark.parametrize("output", [{}, {"dtype": "uint8"}])
def test_records_of_one_shape_are_read_together_whether_or_not_a_stage_follows(output: dict[str, Any]) -> None:
    source = {"arrays": {"features": {"image": {"kind": "image", "size": 32}}}}
    nodes = record_of("batch_early", source=source, output={"x": "image", "y": None, **output}).after.nodes
    assert [type(node) for node in nodes if isinstance(node, (Batch, Read))] == [Batch, Read]


@pytest.mark.parametrize(
    ("steps", "moved"),
    [
        ([{"cast": {"dtype": "float32"}}, "random_flip"], 1),
        ([{"rescale": {"to": [0, 1]}}, {"normalize": {"mean": 0.5, "std": 0.5}}, "random_flip"], 2),
        ([{"cast": {"dtype": "float32"}}, {"cast": {"dtype": "uint8"}}, "random_flip"], 0),
        ([{"cast": {"dtype": "float32"}}, {"random_rotation": {"degrees": 9}}], 0),
        ([{"cast": {"dtype": "float32"}}, {"random_crop": {"size": 32}}], 1),
    ],
)
def test_arithmetic_moves_behind_what_only_moves_pixels_unless_it_gives_bytes(steps: list[Any], moved: int) -> None:
    notes = record_of("defer_cast", transforms=[RESIZE, *steps], output={"encode": {"label": "int"}}).notes
    assert sum("moved after" in note for note in notes) == moved


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("random_flip", "`random_flip` only mirrors, so `image` is reversed, not resampled"),
        ("random_rotate_90", "`random_rotate_90` only turns, so axes of `image` are reversed and swapped, not resampled"),
        ({"random_rotation": {"degrees": 9}}, "`random_rotation` resamples `image` once"),
    ],
)
def test_one_geometric_step_is_told_by_what_it_does_to_pixels(step: Any, said: str) -> None:
    assert record_of("fuse_geometry", transforms=[RESIZE, step]).notes == (said,)


def test_the_plan_of_each_bucket_goes_through_the_passes() -> None:
    sections = {"transforms": [{"resize": {"size": "bucket"}}, {"rescale": {"to": [0, 1]}}, "random_flip"]}
    record = record_of("defer_cast", **sections, batch={"size": 8, "buckets": {"sizes": [[64, 96], [96, 64]]}})
    assert record.notes == ("arithmetic on `image` moved after `random_flip`",)
    assert [own.out["image"].shape for own in record.after.buckets] == [(64, 96, 3), (96, 64, 3)]


def test_no_kernel_is_compiled_or_parallel_before_a_pass_says_so() -> None:
    record = record_of("form_kernels", transforms=[RESIZE, "random_flip", {"random_brightness": {"factor": 0.2}}])
    before, after = ([node for node in plan.nodes if isinstance(node, Kernel)] for plan in (record.before, record.after))
    assert not any(kernel.compiled or kernel.parallel for kernel in before)
    assert any(kernel.compiled for kernel in after)
