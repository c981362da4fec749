"""What `explain` says, as text and as JSON: types on the edges, what each pass did and why, and what stands in for what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from planning import built, compiled, load_spec

from pipegen.passes import PASSES
from pipegen.plan.nodes import Element, Kernel
from pipegen.plan.plan_text import render_plan
from pipegen.views.explanation import Known, explain_json, explain_text, physical_plans

TEXT = """\
name: flowers
transforms:
  - random_resized_crop: {size: 24}
  - random_flip
  - random_contrast: {factor: 0.1}
  - rescale: {to: [0, 1]}
output: {encode: {label: one_hot}}
"""
SPEC = load_spec(TEXT)
DONE = {split: compiled(built(TEXT, split=split, classes=3), SPEC, num_examples=40, ram_budget=2**30) for split in ("train", "validation")}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The JSON form, written and read."""
    read: dict[str, Any] = json.loads(json.dumps(explain_json(SPEC, DONE)))
    return read


def test_text_shows_every_edge_and_stage() -> None:
    text = explain_text(SPEC, DONE)
    for done in DONE.values():
        assert render_plan(done.plan) in text
        for node in done.plan.nodes:
            assert f"→ {node.out}" in text, "each edge has its type"
    assert "→ 8× image: float32[24×24×3] in [0, 1], label: float32[3] in [0, 1]" in text
    assert "decode only the window of random_resized_crop(size: 24)" in text
    assert "`random_resized_crop` is random and fixes the shape; here resize, center_crop stand in for it" in text
    assert "\n\n\n" not in text


@pytest.mark.parametrize("name", [p.name for p in PASSES])
def test_text_says_what_each_pass_did_and_why(name: str) -> None:
    text = explain_text(SPEC, {"train": DONE["train"]})
    record = next(r for r in DONE["train"].records if r.name == name)
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.split()[:1] == [name])
    assert lines[at].split()[1] == record.rewrite_class
    assert (lines[at + 1].strip() == f"because {record.reason}") == record.changed
    for note in record.notes:
        assert note in lines[at]
    if not record.changed and not record.notes:
        assert lines[at].endswith("nothing to do")


def test_text_with_counts_and_the_plan_as_written() -> None:
    text = explain_text(SPEC, {"train": DONE["train"]}, {"train": Known("40 examples, 5 steps")}, before=True)
    assert text.startswith("split train: 40 examples, 5 steps\n─")
    assert text.index("as written") < text.index("decode and take the window of") < text.index("decode only the window of")


def test_without_the_data_it_says_that_boxes_beyond_the_most_are_not_counted() -> None:
    text = """
source: {coco: {images: photos/, annotations: boxes.json, max: 20}}
transforms: [{resize: {size: 64}}]
output: {x: image, y: boxes}
"""
    spec, line = load_spec(text), "`max: 20` of `boxes`: how many are cut depends on the data: `pipe.explain()` counts them"
    done = {"train": compiled(built(text), spec, num_examples=40)}
    assert f"  {line}\n" in explain_text(spec, done)
    assert "cut" not in explain_text(spec, done, {"train": Known(visits=())})


def test_json_has_both_plans_with_types_on_every_edge(document: dict[str, Any]) -> None:
    assert document["version"] == 1
    assert document["name"] == "flowers"
    assert list(document["splits"]) == ["train", "validation"]
    for split, done in DONE.items():
        for key, plan in (("plan", done.plan), ("built", done.records[0].before)):
            nodes = document["splits"][split][key]["nodes"]
            assert [n["node"] for n in nodes] == [type(n).__name__.lower() for n in plan.nodes]
            for shown, node in zip(nodes, plan.nodes, strict=True):
                assert list(shown["type"]) == [name for name, _ in node.out.items()]
                assert shown.get("batch") == node.out.batch
                for name, t in node.out.items():
                    interval = [t.interval.low, t.interval.high] if t.interval else None
                    kind = "encoded" if t.encoded else t.kind
                    assert shown["type"][name] == {"kind": kind, "dtype": t.dtype, "shape": list(t.shape), "interval": interval}
                assert ("stages" in shown) == isinstance(node, (Element, Kernel))


def test_json_names_the_steps_of_a_stage_and_their_draws(document: dict[str, Any]) -> None:
    stages = [st for n in document["splits"]["train"]["plan"]["nodes"] for st in n.get("stages", ())]
    steps = {step["op"]: step for st in stages for step in st["steps"]}
    assert steps["random_contrast"]["path"] == ["transforms", 2, "random_contrast"]
    assert steps["random_contrast"]["arguments"] == {"factor": 0.1}
    low, high = steps["random_contrast"]["draws"]
    assert high - low == 1
    assert steps["rescale"]["draws"][0] == steps["rescale"]["draws"][1]
    assert {st["feature"] for st in stages} == {"image", "label"}


def test_json_has_what_each_pass_did(document: dict[str, Any]) -> None:
    for split, done in DONE.items():
        shown = document["splits"][split]["passes"]
        assert [(p["name"], p["class"], p["changed"]) for p in shown] == [(r.name, r.rewrite_class, r.changed) for r in done.records]
        assert all(p["reason"] for p in shown)
        assert all(p["notes"] for p in shown if p["changed"]), "a change has words"
    assert document["splits"]["validation"]["stand_ins"] == [["transforms", 0, "random_resized_crop"]]
    assert document["splits"]["train"]["stand_ins"] == []


def running(*, every: bool) -> dict[str, Known]:
    return {split: Known(physical=physical_plans(SPEC, done.plan, 2, every=every)) for split, done in DONE.items()}


def test_what_runs_stands_in_place_of_the_plan() -> None:
    text = explain_text(SPEC, DONE, running(every=False))
    assert text.count("form: training\n") == text.count("form: one epoch\n") == 1
    assert "→" not in text
    assert "fuse_decode_crop" in text, "the passes that were asked for"


def test_json_has_what_runs_in_every_form() -> None:
    shown = json.loads(json.dumps(explain_json(SPEC, DONE, running(every=True))))["splits"]
    forms = {split: [plan["form"] for plan in shown[split]["physical"]] for split in shown}
    derived = ", for datasets built on it"
    served = "workers of the tf.data service"
    rest = ["one epoch", f"one epoch{derived}", "requested batches", served, "export", "preview", "records tried one by one"]
    sent = ", for a device stage"
    assert forms == {"train": ["training", f"training{derived}", *rest, f"training{sent}"], "validation": [*rest, f"one epoch{sent}"]}
    assert [f["function"] for f in shown["train"]["physical"][-1]["operations"][-3]["functions"]] == ["split_for_device"]
    for plan in shown["train"]["physical"][:-1]:
        alone = f"one epoch{derived}", served
        assert plan["portable"] == (plan["form"] in alone), "no variable, and Python for rare kinds of files alone"
        functions = [f for operation in plan["operations"] for f in operation.get("functions", ())]
        assert any(f["device"] for f in functions if f["function"] == "kernel") == (plan["form"] not in rest[-2:])
        assert all(set(f) >= {"text", "variables", "python", "asserts", "compiled", "portable"} for f in functions)
