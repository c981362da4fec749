"""The pages of the codes of `pipegen migrate`: each code has one, and its two pieces of code do what the page says."""

from __future__ import annotations

import ast
import re
from importlib.resources import files

import pytest

from pipegen.diagnostics.catalog import CODES
from pipegen.migrate.findings import RULES, MigrationPage, migration_page, parse_migration_page
from pipegen.migrate.migration import migrate_code
from pipegen.migrate.reading import parse_code

PAGE = migration_page("PG640").text


def codes(page: MigrationPage, text: str) -> set[str]:
    """What a migration of a text says."""
    result = migrate_code(parse_code("train.ipynb" if page.notebook else "train.py", text.encode()), always=True)
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
    assert (told.code, told.name) == (code, RULES[code].name)
    assert told.what.endswith(".")
    assert told.why.endswith(".")
    assert code not in told.what + told.why
    assert all(len(line) <= 250 for line in told.text.splitlines())
    assert code in codes(told, told.before)
    assert code not in codes(told, told.after)
    if not told.notebook:
        ast.parse(told.after)


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
        parse_migration_page("PG640", PAGE.replace(old, new))
