"""Steps that call a function which the user has written in Python: named in the spec, and found only when the caller allows it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import PrivateAttr, field_validator

from pipegen.errors import InternalError
from pipegen.ops.base import ElementTransform
from pipegen.ops.traits import Family, Traits
from pipegen.types import BYTE_RANGE, Interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from pipegen.types import FeatureType


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


_WEIGHT = 4.0
"""A guess: NumPy passes over the pixels a few times, and copies them in and out."""


class CustomTransform(NamedFunction, ElementTransform):
    """A step that calls a Python function on one image at a time.

    Class attributes:
        call: How the function is called, in words.
        num_arguments: How many values it is given.
    """

    family = Family.CUSTOM
    call: ClassVar[str] = "fn(image)"
    num_arguments: ClassVar[int] = 1
    calls_python: ClassVar[Literal["never", "rarely", "always"]] = "always"

    function: str
    """The function, as `module:function`. The module is imported as any other is, when a pipeline is built and not before, and only
    for a caller who allows it: `allow_code=["my_pkg"]` in Python, `--allow-code my_pkg` on the command line."""
    moves_pixels: bool = True
    """Whether the function may move pixels, as a crop or a flip does. Where a mask or another picture is aligned with the image, this
    has to be `false`, since the function does not see that."""

    _callee: Any = PrivateAttr(default=None)
    _handed: bool = PrivateAttr(default=False)

    @field_validator("function")
    @classmethod
    def _function(cls, value: str) -> str:
        return as_written(value, "my_pkg.filters:denoise")

    def with_callee(self, callee: Callable[..., Any] | None) -> Self:
        """The same step with its function; with `None`, as the spec says it."""
        step = self.model_copy()
        step._callee, step._handed = callee, False
        return step

    def handed(self, callee: Callable[..., Any]) -> Self:
        """The same step with a function that the caller hands over, which need not be allowed by its name."""
        step = self.with_callee(callee)
        step._handed = True
        return step

    @property
    def has_been_handed(self) -> bool:
        """Returns whether the caller has handed its function over."""
        return self._handed

    def __getstate__(self) -> dict[Any, Any]:
        """Without the function: whoever reads a pickle has to allow it anew."""
        return super(CustomTransform, self.with_callee(None)).__getstate__()

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.CUSTOM, weight=_WEIGHT)

    def lasting(self) -> bool:
        return False


def full_range(dtype: str) -> Interval | None:
    """Every value that whole numbers of a dtype have; `None` for floats."""
    return {"uint8": BYTE_RANGE, "uint16": Interval(0.0, 65535.0)}.get(dtype)
