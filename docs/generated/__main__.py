"""Writes the generated pages of the documentation: the reference of sections, steps, commands, findings and Python names, and the pages
about other libraries.

    python -m docs.generated            renews what is out of date
    python -m docs.generated --check    exits with 1 if something is
"""

from __future__ import annotations

import sys

from docs.generated import DOCS, MARK, every_page


def main(*arguments: str) -> int:
    """Writes or checks the pages; returns the exit code."""
    if arguments not in ((), ("--check",)):
        print(__doc__)
        return 2
    pages = every_page()
    stale = [path for path, text in pages.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    others = [path for path in sorted((DOCS / "reference").glob("*.md")) if path not in pages]
    gone = [path for path in others if MARK in path.read_text(encoding="utf-8")]
    for path in stale:
        print(f"{path.relative_to(DOCS)} is out of date" if arguments else f"wrote {path.relative_to(DOCS)}")
        if not arguments:
            path.write_text(pages[path], encoding="utf-8")
    for path in gone:
        print(f"{path.relative_to(DOCS)} describes what pipegen no longer has" if arguments else f"removed {path.relative_to(DOCS)}")
        if not arguments:
            path.unlink()
    if arguments and stale + gone:
        print("`python -m docs.generated` renews the pages")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
