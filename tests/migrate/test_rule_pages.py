"""The pages of the codes of `pipegen migrate`: each code has one, and its two pieces of code do what the page says."""

from __future__ import annotations

import ast
import re
from importlib.resources import files

import pytest

from pipegen.diagnostics.catalog import CODES, page_sections
from pipegen.migrate.findings import RULES, migration_page
from pipegen.migrate.migration import migrate_code
from pipegen.migrate.reading import parse_code

PAGE = migration_page("PG640").text


_FENCE = re.compile(r"^```(python|notebook) *\n(.*?)^``` *$", re.MULTILINE | re.DOTALL)


def blocks(code: str, sections: dict[str, str]) -> tuple[bool, str, str]:
    """True if a page is about notebooks; the code before and after."""
    before, after = (_FENCE.findall(sections[s] + "\n") for s in ("Before", "After"))
    if len(before) != 1 or len(after) != 1 or before[0][0] != after[0][0]:
        raise ValueError(f"the page of {code} needs one block of code under `## Before` and one of the same kind under `## After`")
    return before[0][0] == "notebook", before[0][1], after[0][1]


def codes(notebook: bool, text: str) -> set[str]:
    """What a migration of a text says."""
    result = migrate_code(parse_code("train.ipynb" if notebook else "train.py", text.encode()), always=True)
    return {finding.code for finding in result.findings.items}


def test_codes_are_in_order_and_have_names_of_their_own() -> None:
    assert list(RULES) == sorted(RULES)
    assert all(key == rule.code and re.fullmatch(r"PG6\d\d", key) for key, rule in RULES.items())
    names = [rule.name for rule in (*RULES.values(), *CODES.values())]
    assert len(set(names)) == len(names)
    assert not RULES.keys() & CODES.keys()
    assert not any(rule.title.endswith(".") for rule in RULES.values())


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert sorted(p.name for p in (files("pipegen.migrate") / "rules").iterdir()) == [f"{code}.md" for code in RULES]


@pytest.mark.parametrize("code", RULES)
def test_the_code_before_yields_it_and_the_code_after_does_not(code: str) -> None:
    told = migration_page(code)
    what, why = (told.sections[title].strip() for title in ("What it finds", "Why"))
    notebook, before, after = blocks(code, told.sections)
    assert told.name == RULES[code].name
    assert what.endswith(".")
    assert why.endswith(".")
    assert code not in what + why
    assert all(len(line) <= 250 for line in told.text.splitlines())
    assert code in codes(notebook, before)
    assert code not in codes(notebook, after)
    if not notebook:
        ast.parse(after)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# PG640", "# PG641", "must start with"),
        ("## Why", "## Because", "sections"),
        ("```python\nfrom keras", "```yaml\nfrom keras", "one block of code"),
    ],
)
def test_a_malformed_page_says_what_is_wrong(old: str, new: str, said: str) -> None:
    assert old in PAGE
    with pytest.raises(ValueError, match=said):
        blocks("PG640", page_sections("PG640", PAGE.replace(old, new), tuple(migration_page("PG640").sections))[1])
