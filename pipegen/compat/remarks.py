"""Warnings that point at the program's own line, however deep in this package they arise."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from pipegen.terminal import visible


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called into `pipegen.compat`."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").startswith("pipegen.compat"):
        frame, level = frame.f_back, level + 1
    warnings.warn(visible(message), category, stacklevel=level)
