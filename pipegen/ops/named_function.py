"""Holds the Python function that a step or a test of the data calls, and that the spec names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipegen.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = r"[^\W\d]\w*"
_FUNCTION = re.compile(rf"{_NAME}(\.{_NAME})*:{_NAME}")


class NamedFunction:
    """Names a function in a field `function`, and holds it in a private `_callee` once it has been looked up."""

    if TYPE_CHECKING:
        function: str
        _callee: Any

    @property
    def module(self) -> str:
        """Names the module that the function is looked up in."""
        return self.function.partition(":")[0]

    @property
    def name(self) -> str:
        """Names the function in that module."""
        return self.function.partition(":")[2]

    @property
    def callee(self) -> Callable[..., Any]:
        """Returns the function itself.

        Raises:
            InternalError: Before it was found.
        """
        if self._callee is None:
            raise InternalError(f"`{self.function}` is to be called, and was never looked up")
        found: Callable[..., Any] = self._callee
        return found


def as_written(function: str, such_as: str) -> str:
    """Returns the name of a function that is written as it should be.

    Raises:
        ValueError: If it is not `module:function`.
    """
    if _FUNCTION.fullmatch(function) is None:
        raise ValueError(f"`function` is written `module:function`, such as `{such_as}`")
    return function
