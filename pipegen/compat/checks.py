"""Checks what each kind of flow asks of its arguments, and warns of what is different."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from pipegen.errors import PipegenError
from pipegen.terminal import visible


class UnsupportedArgument(PipegenError, NotImplementedError):
    """An argument of `ImageDataGenerator` or of one of its methods that no spec can express, or a method that a subclass overrides in vain.

    Attributes:
        argument: Its name.
        help: What to do meanwhile.
    """

    def __init__(self, argument: str, why: str, help: str) -> None:
        self.argument = argument
        self.help = help
        super().__init__(f"`{argument}`: {why}; {help}")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the program's own line that called into `pipegen.compat`, however deep in this package it arises."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").startswith("pipegen.compat"):
        frame, level = frame.f_back, level + 1
    warnings.warn(visible(message), category, stacklevel=level)
