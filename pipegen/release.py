"""Says which version of pipegen this is."""

from __future__ import annotations

__version__ = "0.1.0"
