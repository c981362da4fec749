"""The model of costs: its figures stand in `golden/costs`, and its shape here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from golden import check
from planning import built, compiled, load_spec

from pipegen.phases.machine_settings import circumstances
from pipegen.plan.cost import (
    ASSUMED_FILE,
    ASSUMED_VALUES,
    HANDED_OVER,
    Circumstances,
    PlanCost,
    cost_json,
    example_bytes,
    plan_cost,
    render_cost,
)
from pipegen.plan.nodes import Cache, Element, Kernel, Prefetch, Read
from pipegen.spec.units import parse_bytes
from pipegen.types import ElementType, FeatureType
from pipegen.views.explanation import Known, explain_json, explain_text

if TYPE_CHECKING:
    from golden import Block, Case

    from pipegen.plan.nodes import Plan

GOLDEN = Path(__file__).parents[1] / "golden" / "costs" / "recipes.md"
RESIZE: dict[str, Any] = {"resize": {"size": 64}}


def test_the_costs_of_recipes(update_golden: bool) -> None:
    def produce(case: Case, block: Block) -> str:
        settings = case.source.settings
        spec = load_spec(case.source.body)
        known = {name: int(settings[key]) for key, name in (("examples", "num_examples"), ("file", "file_bytes")) if key in settings}
        ram = parse_bytes(settings["ram"]) if "ram" in settings else None
        plan = compiled(built(case.source.body, split=settings["split"], classes=3), spec, ram_budget=ram, **known).plan
        given = circumstances(spec, int(settings.get("threads", 8)), examples=known.get("num_examples"), file_bytes=known.get("file_bytes"))
        cost = plan_cost(plan, given)
        return json.dumps(cost_json(plan, cost), indent=2) if block.name == "json cost" else render_cost(plan, cost)

    check(GOLDEN, produce, update=update_golden)


def cost(*steps: Any, given: Circumstances | None = None, split: str = "train", **own: Any) -> tuple[Plan, PlanCost]:
    sections = {"transforms": list(steps), **own}
    plan = compiled(built(sections, split=split, classes=3), load_spec(sections)).plan
    return plan, plan_cost(plan, given or Circumstances())


def total(*steps: Any, **own: Any) -> float:
    return cost(*steps, **own)[1].us


@pytest.mark.parametrize(
    ("cheap", "dear"),
    [
        ([{"resize": {"size": 64}}], [{"resize": {"size": 128}}]),
        ([RESIZE], [{"resize": {"size": 64, "antialias": True}}]),
        ([{"random_resized_crop": {"size": 64}}], [{"random_resized_crop": {"size": 64, "antialias": True}}]),
        ([RESIZE, "random_flip"], [RESIZE, {"random_rotation": {"degrees": 9}}]),
        ([RESIZE, {"random_rotation": {"degrees": 9, "interpolation": "nearest"}}], [RESIZE, {"random_rotation": {"degrees": 9}}]),
        ([RESIZE, {"normalize": {"preset": "tf"}}], [RESIZE, {"random_brightness": {"factor": 0.2}}, {"normalize": {"preset": "tf"}}]),
        ([RESIZE, {"random_brightness": {"factor": 0.2}}], [RESIZE, {"random_contrast": {"factor": 0.2}}]),
        ([RESIZE, {"random_contrast": {"factor": 0.2}}], [RESIZE, {"random_hue": {"degrees": 9}}]),
        ([{"random_resized_crop": {"size": 64}}], [{"decode": {"scaled": "never"}}, {"resize": {"size": 64}}]),
    ],
    ids=str,
)
def test_what_is_dearer_costs_more(cheap: list[Any], dear: list[Any]) -> None:
    assert total(*cheap) < total(*dear)


def test_a_cache_spares_what_stands_before_it() -> None:
    plan, cached = cost(RESIZE, "random_flip", runtime={"cache": "memory"})
    at = next(i for i, n in enumerate(plan.nodes) if isinstance(n, Cache))
    assert [c.cached for c in cached.nodes] == [i < at and isinstance(n, (Read, Element)) for i, n in enumerate(plan.nodes)]
    assert cached.us < total(RESIZE, "random_flip") < cached.first_us
    assert cached.first_us - cached.us == pytest.approx(sum(c.us for c in cached.nodes[1:at]))


def test_every_stage_has_a_figure_and_a_node_is_no_less_than_its_stages() -> None:
    plan, figures = cost(RESIZE, "random_flip", {"random_contrast": {"factor": 0.1}}, {"normalize": {"preset": "tf"}})
    for node, figure in zip(plan.nodes, figures.nodes, strict=True):
        if isinstance(node, (Element, Kernel)):
            assert len(figure.stages) == len(node.stages)
            assert figure.us >= sum(figure.stages) > 0
    assert figures.us == pytest.approx(sum(f.us for f in figures.nodes))


def test_memory_follows_batches_threads_and_examples() -> None:
    plan, small = cost(RESIZE, batch={"size": 8}, given=Circumstances(threads=1))
    _, large = cost(RESIZE, batch={"size": 16}, given=Circumstances(threads=1))
    _, wide = cost(RESIZE, batch={"size": 8}, given=Circumstances(threads=4))
    batch = 8 * 64 * 64 * 3 * 4
    prefetched = next(f.bytes for n, f in zip(plan.nodes, small.nodes, strict=True) if isinstance(n, Prefetch))
    assert prefetched == 2 * batch
    each = batch + 8 * 64 * 64 * 3 + ASSUMED_VALUES
    assert wide.bytes - small.bytes == 3 * each, "each thread has a batch of its own in the kernel, a chunk, and an image as it is decoded"
    assert large.bytes - ASSUMED_VALUES > 1.9 * (small.bytes - ASSUMED_VALUES)
    _, kept = cost(RESIZE, runtime={"cache": "memory"}, given=Circumstances(examples=1000))
    _, on_disk = cost(RESIZE, runtime={"cache": {"disk": "cache/"}}, given=Circumstances(examples=1000))
    assert kept.bytes - on_disk.bytes == 1000 * 64 * 64 * 3


def test_large_results_of_a_compiled_kernel_have_places_and_others_work_in_fresh_memory() -> None:
    def kernel(**own: Any) -> int:
        plan, found = cost({"resize": {"size": 256}}, {"random_rotation": {"degrees": 9}}, **own)
        return sum(f.bytes for n, f in zip(plan.nodes, found.nodes, strict=True) if isinstance(n, Kernel))

    values = 256 * 256 * 3
    batch = {"size": 8}
    assert kernel(batch=batch, given=Circumstances(threads=3)) == (3 + HANDED_OVER) * 8 * values * 4
    never = kernel(batch=batch, given=Circumstances(threads=3), runtime={"jit": "never"})
    assert never == 3 * 8 * values * 4 + 3 * 4 * 8 * values * 4
    assert kernel(batch=batch, given=Circumstances(threads=3, hosts=4)) == (3 + HANDED_OVER) * 2 * values * 4


def test_results_that_a_later_kernel_replaces_are_held_while_they_are_computed() -> None:
    steps = {"resize": {"size": 256}}, {"random_rotation": {"degrees": 9}}, {"random_gaussian_blur": {"sigma": 2}}
    plan, found = cost(*steps, batch={"size": 8}, given=Circumstances(threads=3))
    first, last = (f.bytes / example_bytes(n.out) / 8 for n, f in zip(plan.nodes, found.nodes, strict=True) if isinstance(n, Kernel))
    assert (first, last) == (3, 3 + 3 + HANDED_OVER), "what runs last has intermediate results of its own"


def test_of_large_batches_one_waits() -> None:
    for size, waiting in ((8, 2), (2000, 1)):
        plan, found = cost(RESIZE, batch={"size": size}, given=Circumstances(threads=1))
        (prefetch,) = (n for n in plan.nodes if isinstance(n, Prefetch))
        assert prefetch.batches == waiting
        assert found.nodes[-1].bytes == waiting * size * 64 * 64 * 3 * 4


def test_what_is_not_known_stands_for_a_photograph() -> None:
    type_ = FeatureType("image", "uint8", (None, None, 3))
    assert example_bytes(ElementType((("image", type_), ("label", FeatureType("label", "int64", ()))))) == ASSUMED_VALUES
    spec = load_spec(runtime={"threads": 3})
    assert circumstances(spec, 8) == Circumstances(ASSUMED_FILE, 3, None, assumed=True)
    assert circumstances(spec, 8, examples=5, file_bytes=100.0) == Circumstances(100.0, 3, 5, assumed=False)


def test_explain_shows_the_cost_when_it_is_told_the_circumstances() -> None:
    spec = load_spec(transforms=[RESIZE])
    done = {"train": compiled(built({"transforms": [RESIZE]}, classes=3), spec)}
    given = {"train": Circumstances(threads=2)}
    known = {"train": Known(given=given["train"])}
    text = explain_text(spec, done, known)
    assert render_cost(done["train"].plan, plan_cost(done["train"].plan, given["train"])).rstrip() in text
    assert "expected cost" not in explain_text(spec, done)
    document = explain_json(spec, done, known)["splits"]["train"]
    assert [n["node"] for n in document["cost"]["nodes"]] == [n["node"] for n in document["plan"]["nodes"]]
    assert "cost" not in explain_json(spec, done)["splits"]["train"]
