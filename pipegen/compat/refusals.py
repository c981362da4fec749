"""Refuses arguments that the spec language cannot express."""

from __future__ import annotations

from pipegen.errors import PipegenError


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
