"""The functions that called, for what TensorFlow and Keras do not tell a dataset."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

Name = tuple[str, str]
"""The module and the name of a function."""


class Caller:
    """A function on the call stack."""

    def __init__(self, frame: FrameType) -> None:
        self._frame = frame

    @property
    def name(self) -> Name:
        """Its module and its name."""
        return self._frame.f_globals.get("__name__", ""), self._frame.f_code.co_name

    @property
    def variables(self) -> Mapping[str, Any]:
        """Its local variables."""
        return self._frame.f_locals


def callers() -> Iterator[Caller]:
    """Yields the functions on the call stack, from the nearest."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield Caller(frame)
        frame = frame.f_back
