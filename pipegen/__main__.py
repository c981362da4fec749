"""`python -m pipegen`."""

from __future__ import annotations

from pipegen.cli.app import main

main()
