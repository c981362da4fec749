"""A module that fails while it is imported."""

from __future__ import annotations

raise OSError("no licence\nfor this machine")
