"""The README is true: its plan and its finding are what pipegen prints. `test_documentation.py` looks at its specs, commands and code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipegen.diagnostics.text import render_text
from pipegen.phases.compilation import inspect, optimise
from pipegen.physical.render import render_physical
from pipegen.plan.render import render_plan
from pipegen.views.explanation import physical_plans

README = Path(__file__).parents[1] / "README.md"


def block(text: str, tag: str) -> str:
    """The fenced block that follows a comment."""
    match = re.search(rf"<!-- {re.escape(tag)} -->\n```\w*\n(.*?)```", text, re.DOTALL)
    assert match is not None, f"the README has no block after <!-- {tag} -->"
    return match[1]


def expected(text: str) -> dict[str, str]:
    """What the generated blocks must hold."""
    found = inspect("flowers.pipegen.yaml", text=block(text, "example: spec"))
    assert not found.diagnostics.items
    assert found.loaded.spec is not None
    done = optimise(found.loaded.spec, found.plans["train"])
    plan = render_plan(done.plan)
    physical = render_physical(*physical_plans(found.loaded.spec, {"train": done}, 2, every=False)["train"])
    broken = block(text, "example: spec").replace("{degrees: 20}", "{degree: 20}")
    mistake = inspect("flowers.pipegen.yaml", text=broken)
    finding = render_text(mistake.diagnostics.sorted(), sources=mistake.loaded.texts)
    return {"example: plan": plan, "example: physical": physical, "example: findings": finding}


def test_generated_blocks(update_golden: bool) -> None:
    text = README.read_text(encoding="utf-8")
    for tag, wanted in expected(text).items():
        if update_golden:
            text = text.replace(f"<!-- {tag} -->\n```text\n{block(text, tag)}```", f"<!-- {tag} -->\n```text\n{wanted.rstrip()}\n```")
    if update_golden:
        README.write_text(text, encoding="utf-8")
    for tag, wanted in expected(text).items():
        assert block(text, tag).rstrip() == wanted.rstrip(), f"{tag} is out of date: run pytest tests/test_readme.py --update-golden"


@pytest.mark.parametrize("tag", ["ci: main", "ci: test"])
def test_ci_finds_the_commands(tag: str) -> None:
    assert "python -m p" in block(README.read_text(encoding="utf-8"), tag)
