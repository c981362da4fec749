"""The reference: generated pages for each section of a spec, the commands, the findings and the Python names.

A section's page is `sections/NAME.md`: the purpose of the section, an example that is a whole spec, and remarks. A line
`<!-- keys: MODEL -->` is replaced by the keys of a model, `<!-- sources -->` by the list of sources. The pages in `docs/reference/` and
`pipegen help SECTION` are both made from it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


def reference_pages(apps: Mapping[str, typer.Typer]) -> dict[str, str]:
    """Generates every page of the documentation, by its path in pipegen's own repository; `apps` has the commands."""
    from pipegen.cli.reference.command_pages import commands_page, findings_page, migration_findings_page
    from pipegen.cli.reference.ops import reference
    from pipegen.cli.reference.other_libraries import pages as other_libraries
    from pipegen.cli.reference.python_names import NAMES, names_page
    from pipegen.cli.reference.section_pages import PAGES, markdown

    pages = {name: markdown(name) for name in PAGES}
    pages |= {name: names_page(name) for name in NAMES}
    pages |= {"commands": commands_page(apps), "findings": findings_page(), "migration-findings": migration_findings_page()}
    return {
        os.path.join("docs", "ops.md"): reference(),
        **{os.path.join("docs", "reference", f"{name}.md"): text for name, text in pages.items()},
        **{os.path.join("docs", f"{name}.md"): text for name, text in other_libraries().items()},
    }
