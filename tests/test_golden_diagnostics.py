"""The corpus of broken specs: what a user who made the mistake would read, to the letter.

Each file of `golden/diagnostics/` is one mistake: the spec, the files beside it, and what is rendered. `params=NAME:VALUE` gives a
value from outside, `classes=N` checks as if the data had been listed, and `meant=A,B` names what the suggestions should be, in order.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from golden import cases, check

from pipegen.diagnostics.catalog import CODES
from pipegen.diagnostics.diagnostic import Diagnostics
from pipegen.diagnostics.text import render_text
from pipegen.phases.compilation import inspect

if TYPE_CHECKING:
    from golden import Block, Case

GOLDEN = Path(__file__).parent / "golden" / "diagnostics"
CORPUS = sorted(GOLDEN.rglob("*.md"))
DATA = {c for c in CODES if c.startswith(("PG4", "PG66", "PG7")) and c not in ("PG412", "PG700", "PG703")}
"""Codes of the data, which need files: the pages of the catalogue show those."""
ITEMS = {"PG250", "PG251", "PG253", "PG254", "PG256"}
"""Codes of what boxes, events and keypoints hold, which is read."""
LEAVING = {c for c in CODES if c.startswith(("PG53", "PG54", "PG55", "PG57"))}
"""Codes of what a spec is locked, served, ejected or prepared with."""
REMOTE = {"PG565", "PG566", "PG567"}
"""Codes of data on other machines."""
ELSEWHERE = {
    "PG001",
    "PG003",
    "PG005",
    "PG114",
    "PG117",
    "PG204",
    "PG240",
    "PG241",
    "PG627",
    "PG629",
    "PG674",
    *REMOTE,
    *DATA,
    *ITEMS,
    *LEAVING,
}
"""Codes that no readable text can show: PG114 and PG117 need a package and a lock, and PG24x are of who builds it;
 PG674 is about what lies on the disk."""


def _id(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def _cases(path: Path) -> list[Case]:
    return cases(path.read_text(encoding="utf-8"))


def rendered(case: Case) -> str:
    """What the command line would print for a case, run in a folder with the files beside it."""
    from pipegen.plan.check import check as check_plans

    for block in case.blocks[1:]:
        if block.info.startswith("yaml "):
            Path(block.info.split()[1]).write_text(block.body, encoding="utf-8")
    Path("spec.yaml").write_text(case.source.body, encoding="utf-8")
    settings = case.source.settings
    params = dict([settings["params"].split(":")]) if "params" in settings else {}
    found = inspect("spec.yaml", params=params)
    diagnostics = found.diagnostics
    if "classes" in settings:
        assert found.loaded.spec is not None
        checked = check_plans(found.loaded.spec, found.loaded.locate.label, classes=int(settings["classes"]))
        diagnostics = Diagnostics([*diagnostics, *checked.diagnostics])
    return render_text(diagnostics.sorted(), sources=found.loaded.texts)


@pytest.mark.parametrize("path", CORPUS, ids=_id)
def test_a_mistake_reads_as_its_file_shows(path: Path, update_golden: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def produce(case: Case, block: Block) -> str:
        assert block.name == "text"
        return rendered(case)

    check(path, produce, update=update_golden)
    assert str(tmp_path) not in path.read_text(encoding="utf-8"), "findings name files as the user named them"


def test_the_corpus_is_large_and_shows_every_code_that_a_text_can_have() -> None:
    assert len(CORPUS) >= 60
    shown = {code for path in CORPUS for code in re.findall(r"\[(PG\d{3})\]: ", path.read_text(encoding="utf-8"))}
    assert set(CODES) - shown - ELSEWHERE == set()


def test_suggestions_are_what_was_meant() -> None:
    right, wrong = 0, []
    for path in CORPUS:
        for case in _cases(path):
            meant = [m for m in case.source.settings.get("meant", "").split(",") if m]
            guesses = re.findall(r"did you mean `\$?([\w.]+)", case.blocks[-1].body)
            right += sum(a == b for a, b in zip(meant, guesses, strict=False))
            wrong += [(_id(path), meant, guesses)] if meant and meant != guesses else []
    assert right >= 60
    assert len(wrong) <= 0.05 * right, wrong
