"""What crosses to a device of each batch: as text, as JSON and on the page, and which kernels go there. No TensorFlow."""

from __future__ import annotations

from typing import Any

import pytest
from planning import built, compiled, load_spec

from pipegen.physical.device import crossing, device_kernels, divided, sent
from pipegen.plan.nodes import Kernel, Plan

STEPS: list[Any] = [{"resize": {"size": 224}}, "random_flip", {"random_rotation": {"degrees": 20}}, {"normalize": {"preset": "torch"}}]
FILES = {"image_folder": {"path": "photos/"}}
COCO = {"coco": {"images": "photos/", "annotations": "instances.json"}}


def plan_of(split: str = "train", **sections: Any) -> Plan:
    given = {"transforms": STEPS, "batch": {"size": 64}, "source": FILES, **sections}
    return compiled(built(split=split, classes=3, **given), load_spec(**given), num_examples=5000).plan


SAID: dict[str, tuple[dict[str, Any], str]] = {
    "kernels on the device": (
        {},
        "to a device: 38,535,680 bytes a batch of 64 as it is, or 9,634,304 bytes and the parameters of 1 kernel by `pipe.device_stage`",
    ),
    "weights of what fills up": (
        {"batch": {"size": 64, "remainder": "pad"}, "split": "validation"},
        "to a device: 38,535,936 bytes a batch of 64 as it is, or 9,634,560 bytes and the parameters of 1 kernel by `pipe.device_stage`",
    ),
    "boxes, of any number": (
        {"source": COCO, "output": {"x": "image", "y": {"boxes": "boxes"}}},
        "to a device: bytes that depend on the data a batch of 64 as it is, or bytes that depend on the data and the "
        "parameters of 1 kernel by `pipe.device_stage`, 1 on the host before",
    ),
    "none compiled": (
        {"runtime": {"jit": "never"}},
        "to a device: 38,535,680 bytes a batch of 64 as it is; `pipe.device_stage` would have no work there: `runtime: {jit: never}` "
        "leaves its steps to plain TensorFlow",
    ),
    "nothing to do": (
        {"transforms": STEPS[:1], "output": {"dtype": "uint8"}},
        "to a device: 9,634,304 bytes a batch of 64 as it is; `pipe.device_stage` would have no work there: no step works on whole batches",
    ),
    "buckets": (
        {"transforms": [{"resize": {"size": "bucket"}}, "random_flip"], "batch": {"size": 64, "buckets": {"sizes": [[24, 32], [32, 24]]}}},
        "to a device: 590,336 bytes a batch of 64 as it is; `pipe.device_stage` would have no work there: with `batch: {buckets: …}` each "
        "batch has a program of its own",
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_a_line_says_what_crosses_in_each_form(name: str) -> None:
    sections, said = SAID[name]
    found = sent(plan_of(**sections))
    assert found.text() == said
    document = found.json()
    assert document["batch_bytes"] == found.finished
    assert (document["obstacle"] is None) == (document["kernels"] > 0)


def test_text_json_and_page_say_it() -> None:
    from pipegen.passes import Compiled
    from pipegen.plan.cost import Circumstances
    from pipegen.views.explanation import Known, explain_json, explain_text
    from pipegen.views.plan_page import plan_page

    spec = load_spec(transforms=STEPS, batch={"size": 64}, source=FILES)
    done: Compiled = compiled(built(classes=3, transforms=STEPS, batch={"size": 64}, source=FILES), spec, num_examples=5000)
    known = {"train": Known(given=Circumstances())}
    line = sent(done.plan).text()
    assert line in explain_text(spec, {"train": done}, known)
    assert explain_json(spec, {"train": done}, known)["splits"]["train"]["to_device"] == {
        "batch_bytes": 38_535_680,
        "device_stage_bytes": 9_634_304,
        "kernels": 1,
        "kernels_on_host": 0,
        "obstacle": None,
    }
    assert "To a device: 38,535,680 bytes a batch of 64 as it is, or 9,634,304 bytes" in str(
        plan_page(spec, "0" * 64, {"train": done}, known, None)
    )


def test_what_later_gets_numbers_on_the_host_is_cut_off_from_the_image() -> None:
    features = {
        "image": {"kind": "image", "size": [480, 480], "channels": 3, "bits": 8},
        "boxes": {"kind": "boxes", "max": 5},
        "masks": {"kind": "mask", "with": "boxes"},
    }
    output = {"x": "image", "y": {"boxes": "boxes", "masks": "masks"}, "dtype": "uint8"}
    steps = [{"random_rotation": {"degrees": 10, "fill": {"constant": 0}}}, {"random_brightness": {"factor": 0.2}}]
    plan = plan_of(source={"arrays": {"features": features}}, transforms=steps, output=output)

    def kernels(plan: Plan) -> list[str]:
        own = [node for node in plan.nodes if isinstance(node, Kernel)]
        return [" ".join(f"{type(stage).__name__}:{stage.feature}" for stage in node.stages) for node in own if node.compiled]

    warps = kernels(plan)[0].split()
    assert sorted(warps) == ["Colour:image", "Warp:image", "Warp:masks"]
    assert kernels(divided(plan))[:2] == ["Warp:masks", "Warp:image Colour:image"]
    assert divided(divided(plan)) == divided(plan)
    chosen = device_kernels(divided(plan))
    assert {stage.feature for node in chosen for stage in node.stages} == {"image"}
    assert crossing(divided(plan), chosen)["masks"] == plan.emit.out
    pasted = plan_of(source={"arrays": {"features": features}}, transforms=[*steps[:1], "copy_paste"], output=output)
    assert "XLA cannot compile `copy_paste`, which works on the output of `random_rotation`" in sent(pasted).text()


def test_the_cheapest_end_of_a_plan_goes_to_the_device() -> None:
    """A crop to a 36th of the pixels costs the host less than the bytes that it spares."""
    arrays = {"arrays": {"features": {"image": {"kind": "image", "size": [480, 480], "channels": 3, "bits": 8}}}}
    whole = plan_of(source=arrays, transforms=["random_flip", {"random_contrast": {"factor": 0.2}}], output={"x": "image"})
    kernels = [node for node in whole.nodes if isinstance(node, Kernel)]
    assert len(kernels) == 2
    assert list(device_kernels(whole)) == kernels
    assert {name: edge["image"].dtype for name, edge in crossing(whole, kernels).items()} == {"image": "uint8"}
    crop = [{"random_rotation": {"degrees": 10}}, {"random_crop": {"size": 32}}, {"random_contrast": {"factor": 0.2}}]
    cut = plan_of(source=arrays, transforms=crop, output={"x": "image"})
    kernels = [node for node in cut.nodes if isinstance(node, Kernel)]
    assert list(device_kernels(cut)) == kernels[1:]
