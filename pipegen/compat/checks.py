"""`UnsupportedArgument`, and warnings about differences from Keras."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from pipegen.errors import PipegenError
from pipegen.terminal import visible


class UnsupportedArgument(PipegenError, NotImplementedError):
    """An argument of `ImageDataGenerator` or its methods that a spec cannot express, or an overridden method that is never called.

    Attributes:
        argument: Its name.
        help: What to do instead.
    """

    def __init__(self, argument: str, why: str, help: str) -> None:
        self.argument = argument
        self.help = help
        super().__init__(f"`{argument}`: {why}; {help}")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the line of the user's program that called into `pipegen.compat`."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").startswith("pipegen.compat"):
        frame, level = frame.f_back, level + 1
    warnings.warn(visible(message), category, stacklevel=level)
