"""The page that explains each code of `pipegen migrate`: what it finds, why that matters, and code before and after.

A page is `rules/PG6nn.md`: a title line `# PG640 augmented-validation`, a paragraph under `## What it finds` and one under `## Why`, then
`## Before` and `## After`, each with one fenced block: `python` for a script, `notebook` for the text of an `.ipynb` file. The first yields
the finding, perhaps among others; the second is the corrected or migrated code, and does not yield it.
"""

from __future__ import annotations

import re

from pipegen.diagnostics.catalog import page_sections
from pipegen.frozen import dataclass
from pipegen.migrate.findings import RULES

_FENCE = re.compile(r"^```(python|notebook) *\n(.*?)^``` *$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class MigrationPage:
    """Explanation of one code.

    Attributes:
        name: Its name, as in the title line.
        before: Code that yields it.
        after: Code that does not.
        notebook: True if both are notebooks.
        text: The whole page as Markdown.
    """

    code: str
    name: str
    what: str
    why: str
    before: str
    after: str
    notebook: bool
    text: str


def migration_page(code: str) -> MigrationPage:
    """Reads the page of a code from the package.

    Raises:
        KeyError: If there is no such code.
    """
    from importlib.resources import files

    known = RULES[code]
    resource = files("pipegen.migrate") / "rules" / f"{known.code}.md"
    return parse_migration_page(known.code, resource.read_text(encoding="utf-8"))


def parse_migration_page(code: str, text: str) -> MigrationPage:
    """Parses the Markdown of a page.

    Raises:
        ValueError: If the page does not have the form in the module's docstring.
    """
    name, sections = page_sections(code, text, ("What it finds", "Why", "Before", "After"))
    before, after = (_FENCE.findall(sections[s] + "\n") for s in ("Before", "After"))
    if len(before) != 1 or len(after) != 1 or before[0][0] != after[0][0]:
        raise ValueError(f"the page of {code} needs one block of code under `## Before` and one of the same kind under `## After`")
    return MigrationPage(
        code=code,
        name=name,
        what=sections["What it finds"].strip(),
        why=sections["Why"].strip(),
        before=before[0][1],
        after=after[0][1],
        notebook=before[0][0] == "notebook",
        text=text,
    )
