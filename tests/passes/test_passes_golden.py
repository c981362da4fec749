"""The golden files of the passes and of whole recipes: what they show is what happens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from golden import cases, check
from planning import built, compiled, load_spec

from pipegen.passes import PASSES
from pipegen.plan.plan_text import render_plan
from pipegen.spec.units import parse_bytes
from pipegen.views.explanation import explain_text

if TYPE_CHECKING:
    from golden import Block, Case

    from pipegen.passes import Compiled

GOLDEN = Path(__file__).parents[1] / "golden"
PLANS = sorted((GOLDEN / "plans").glob("*.md"))
UNCHANGED = "the plan stays as it is"


def compile_case(case: Case, block: Block) -> Compiled:
    """The compiled plan of the split that the block, or else the case, asks for."""
    settings = case.source.settings | block.settings
    split = settings.get("split", "train")
    spec = load_spec(case.source.body)
    plan = built(case.source.body, split=split, classes=int(settings.get("classes", 3)))
    ram = parse_bytes(settings["ram"]) if "ram" in settings else None
    known = {
        name: int(settings[key])
        for key, name in (("examples", "num_examples"), ("file", "file_bytes"), ("epoch", "epoch_examples"))
        if key in settings
    }
    return compiled(plan, spec, ram_budget=ram, **known)


@pytest.mark.parametrize("name", [p.name for p in PASSES])
def test_a_pass_does_what_its_file_shows(name: str, update_golden: bool) -> None:
    def produce(case: Case, block: Block) -> str:
        record = next(r for r in compile_case(case, block).records if r.name == name)
        if block.name == "text notes":
            return "\n".join(record.notes)
        if block.name == "plan after" and not record.changed:
            return UNCHANGED
        return render_plan({"plan before": record.before, "plan after": record.after}[block.name])

    check(GOLDEN / "passes" / f"{name}.md", produce, update=update_golden)


@pytest.mark.parametrize("name", [p.name for p in PASSES])
def test_a_pass_is_shown_at_work_and_at_rest(name: str) -> None:
    shown = cases((GOLDEN / "passes" / f"{name}.md").read_text(encoding="utf-8"))
    after = [b.body.strip() for case in shown for b in case.blocks if b.name == "plan after"]
    assert sum(a != UNCHANGED for a in after) >= 2, "two pairs that differ"
    assert UNCHANGED in after, "one where there is nothing to do"
    assert len({case.title for case in shown}) == len(shown), "each case has a heading of its own"


def test_every_pass_file_is_of_a_pass() -> None:
    assert {p.stem for p in (GOLDEN / "passes").glob("*.md")} == {p.name for p in PASSES}


@pytest.mark.parametrize("path", PLANS, ids=lambda p: p.stem)
def test_a_recipe_compiles_as_its_file_shows(path: Path, update_golden: bool) -> None:
    def produce(case: Case, block: Block) -> str:
        done = compile_case(case, block)
        if block.name == "text explain":
            return explain_text(load_spec(case.source.body), {done.plan.split: done})
        return render_plan(done.records[0].before if block.name == "plan built" else done.plan)

    check(path, produce, update=update_golden)


def test_the_recipes_are_all_there() -> None:
    wanted = {"geometric", "imagenet", "colour_chain", "evaluation_forms", "channels_first", "one_hot", "broken_segments"}
    assert wanted <= {p.stem for p in PLANS}
