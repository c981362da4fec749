"""The diagnostics package starts quickly because it imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("tensorflow", "keras", "numpy", "yaml", "pydantic", "rich", "typer", "PIL")


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys\n"
        "from pipegen.diagnostics import catalog, fixes, machine_readable as machine, suggest, text\n"
        "found = [catalog.make('PG102', 'm')]\n"
        "text.render_text(found), machine.render_json(found), machine.render_github(found), machine.render_sarif(found)\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
