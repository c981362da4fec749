"""The README and the page of plans are true: plans and the finding are what pipegen prints, figures those of the page of speed.

`test_documentation.py` looks at specs, commands and code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipegen.diagnostics.text import render_text
from pipegen.ops.kinds.base import kinds
from pipegen.phases.compilation import inspect, optimise
from pipegen.physical.physical_text import render_physical
from pipegen.plan.plan_text import render_plan
from pipegen.views.explanation import physical_plans

ROOT = Path(__file__).parents[1]
README, PLANS, SPEED = ROOT / "README.md", ROOT / "docs" / "how-it-works.md", ROOT / "docs" / "speed.md"
LONGEST = 180
"""Lines of the README: a first page is read, and not searched."""


def block(text: str, tag: str) -> str:
    """The fenced block that follows a comment."""
    match = re.search(rf"<!-- {re.escape(tag)} -->\n```\w*\n(.*?)```", text, re.DOTALL)
    assert match is not None, f"the README has no block after <!-- {tag} -->"
    return match[1]


def expected() -> dict[tuple[Path, str], str]:
    """What the generated blocks must hold."""
    spec = block(PLANS.read_text(encoding="utf-8"), "example: spec")
    found = inspect("flowers.pipegen.yaml", text=spec)
    assert not found.diagnostics.items
    assert found.loaded.spec is not None
    done = optimise(found.loaded.spec, found.plans["train"])
    plan = render_plan(done.plan)
    physical = render_physical(*physical_plans(found.loaded.spec, done.plan, 2, every=False))
    mistake = inspect("flowers.pipegen.yaml", text=spec.replace("{degrees: 20}", "{degree: 20}"))
    finding = render_text(mistake.diagnostics.sorted(), sources=mistake.loaded.texts)
    return {(PLANS, "example: plan"): plan, (PLANS, "example: physical"): physical, (README, "example: findings"): finding}


def test_generated_blocks(update_golden: bool) -> None:
    for (page, tag), wanted in expected().items():
        text = page.read_text(encoding="utf-8")
        if update_golden:
            text = text.replace(f"<!-- {tag} -->\n```text\n{block(text, tag)}```", f"<!-- {tag} -->\n```text\n{wanted.rstrip()}\n```")
            page.write_text(text, encoding="utf-8")
        assert block(text, tag).rstrip() == wanted.rstrip(), f"{tag} is out of date: run pytest tests/test_readme.py --update-golden"


@pytest.mark.parametrize("tag", ["ci: main", "ci: test"])
def test_ci_finds_the_commands(tag: str) -> None:
    assert "python -m p" in block(README.read_text(encoding="utf-8"), tag)


def test_ci_runs_the_smoke_set_on_both_tensorflows() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    set_up = dict(re.findall(r"set_up (\w+) \S+ ([\d.]+)$", script, re.MULTILINE))
    used = re.findall(r"^\. \"\$home/(\w+)/bin/activate\"$(.*?)^deactivate$", script, re.MULTILINE | re.DOTALL)
    assert [set_up[name] for name, _ in used] == ["2.21", "2.16"]
    assert [re.findall(r"^smoke_tests$", steps, re.MULTILINE) for _, steps in used] == [["smoke_tests"]] * 2
    assert re.search(r"^smoke_tests\(\) \{.*\bpytest\b.* -m smoke\b", script, re.MULTILINE)


def test_the_readme_is_a_first_page() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert [re.sub(r"\W", " ", title) for title in re.findall(r"^## (.+)$", text, re.MULTILINE)] == [
        *("One spec", "Install", "Five minutes", "Three ways of use", "Speed", "Limits", "The documentation"),
    ]


def test_the_spec_of_the_readme_is_the_one_whose_plan_is_shown() -> None:
    (shown,) = re.findall(r"^```yaml\n# flowers.pipegen.yaml\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert shown == block(PLANS.read_text(encoding="utf-8"), "example: spec")


def test_the_figures_of_speed_are_those_of_its_page() -> None:
    """So that one run renews both, and the mark says which run it was."""
    text, page = README.read_text(encoding="utf-8"), SPEED.read_text(encoding="utf-8")
    marked = re.search(r"^<!-- speed: commit [0-9a-f]{8}, (\d{4}-\d\d-\d\d), .+ -->\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert marked is not None
    assert f"Measured on {marked[1]} " in page
    assert f"measured on {marked[1]}:" in text
    rows = [row for row in marked[2].splitlines() if not row.startswith("|---")]
    assert rows[1].startswith("| **pipegen** |")
    assert [row for row in rows if row not in page.splitlines()] == []


def test_what_the_limits_say_is_not_there_is_not_there() -> None:
    """A limit that is gone has to leave the page."""
    limits = README.read_text(encoding="utf-8").partition("## Limits")[2].partition("## ")[0]
    to_come = re.search(r"^- To come: (.+?)\.", limits, re.MULTILINE)
    assert to_come is not None
    assert re.split(r",? and |, ", to_come[1]) == ["text"]
    assert "text" not in {kind.name for kind in kinds()}
