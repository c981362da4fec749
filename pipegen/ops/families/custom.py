"""Steps that call a user's Python function: the spec names it, and it is looked up only if the caller allows it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, PrivateAttr

from pipegen.errors import InternalError
from pipegen.ops.step_bases import ElementTransform
from pipegen.ops.traits import Family, Traits
from pipegen.types import FeatureType

if TYPE_CHECKING:
    from typing_extensions import Self


_NAME = r"[^\W\d]\w*"
_FUNCTION = re.compile(rf"{_NAME}(\.{_NAME})*:{_NAME}")


class NamedFunction:
    """A function that a field `function` names; `_callee` is the function itself, once it has been looked up."""

    if TYPE_CHECKING:
        function: str
        _callee: Any

    @property
    def module(self) -> str:
        """The name of the function's module."""
        return self.function.partition(":")[0]

    @property
    def name(self) -> str:
        """The name of the function in its module."""
        return self.function.partition(":")[2]

    @property
    def callee(self) -> Callable[..., Any]:
        """The function itself; `InternalError` before it was looked up."""
        if self._callee is None:
            raise InternalError(f"`{self.function}` is called before it was looked up")
        found: Callable[..., Any] = self._callee
        return found


def function_name(such_as: str) -> AfterValidator:
    """The check of a field `function`: it is `module:function`."""

    def validate(function: str) -> str:
        if _FUNCTION.fullmatch(function) is None:
            raise ValueError(f"`function` is written `module:function`, such as `{such_as}`")
        return function

    return AfterValidator(validate)


_WEIGHT = 4.0  # a guess: NumPy reads the pixels a few times, and copies them in and out


class CustomTransform(NamedFunction, ElementTransform):
    """A step that calls a Python function of `num_arguments` on one image at a time; messages show the `call`."""

    family = Family.CUSTOM
    call: ClassVar[str] = "fn(image)"
    num_arguments: ClassVar[int] = 1
    calls_python: ClassVar[Literal["never", "rarely", "always"]] = "always"

    function: Annotated[str, function_name("my_pkg.filters:denoise")]
    """The function, as `module:function`. The module is imported when a pipeline is built, and only if the caller allows it:
    `allow_code=["my_pkg"]` in Python, `--allow-code my_pkg` on the command line."""
    moves_pixels: bool = True
    """Whether the function may move pixels, as a crop or a flip does. With a mask or another image aligned with the image, this has to be
    `false`, since the function does not see those."""

    _callee: Any = PrivateAttr(default=None)
    _handed: bool = PrivateAttr(default=False)

    def with_callee(self, callee: Callable[..., Any] | None) -> Self:
        """The same step with its function; with `None`, without one, as in the spec."""
        step = self.model_copy()
        step._callee, step._handed = callee, False
        return step

    def handed(self, callee: Callable[..., Any]) -> Self:
        """The same step with a function from the caller, which needs no permission by name."""
        step = self.with_callee(callee)
        step._handed = True
        return step

    @property
    def has_been_handed(self) -> bool:
        """Whether the function is from the caller."""
        return self._handed

    def __getstate__(self) -> dict[Any, Any]:
        """Leaves out the function: the reader of a pickle has to allow it again."""
        return super(CustomTransform, self.with_callee(None)).__getstate__()

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.CUSTOM, weight=_WEIGHT)

    def lasting(self) -> bool:
        return False
