"""`pipegen`, the program. Typer is imported when it starts, so that even an early Ctrl-C ends in one line."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    # Plugins of pydantic serve other programs; looking for them costs more than validating a spec.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        from pipegen.cli.commands import app

        app(prog_name="pipegen")
    except KeyboardInterrupt:
        from pipegen.cli.failures import interrupted

        sys.exit(interrupted())
