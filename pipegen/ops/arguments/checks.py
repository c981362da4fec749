"""Says in an argument's annotation which values it takes, which of them are odd, and which arguments belong together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic import AfterValidator, ValidationInfo, model_validator

from pipegen.errors import OpError
from pipegen.ops.arguments.schedules import Schedule


class Odd(partial[tuple[OpError, ...]]):
    """Finds legal but unwise values: a function of the op's name, the argument's name and its value."""


def checked(check: Callable[..., None], *given: Any, **named: Any) -> AfterValidator:
    """A validator that calls `check` with the argument's value (each one of a schedule) and name, and with what is given here.

    `None` is not checked.
    """

    def validate(value: Any, info: ValidationInfo) -> Any:
        for each in value.given() if isinstance(value, Schedule) else (value,):
            if each is not None:
                check(each, info.field_name, *given, **named)
        return value

    return AfterValidator(validate)


def needs_one(*names: str, message: str | None = None) -> Any:
    """A validator of a step that takes at least one of some arguments."""
    *most, last = (f"`{name}`" for name in names)

    def validate(step: Any) -> Any:
        if step.model_fields_set.isdisjoint(names):
            raise ValueError(message or f"give at least one of {', '.join(most)} and {last}")
        return step

    return model_validator(mode="after")(validate)
