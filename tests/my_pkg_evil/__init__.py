"""A package that nobody allows, although its name begins like that of one that is allowed."""

from __future__ import annotations

raise RuntimeError("it was imported")
