"""Describes the section that lets easy examples come first."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, create_model, model_validator

from pipegen.ops.arguments.magnitudes import Level
from pipegen.ops.arguments.schedules import Pair, Schedule
from pipegen.ops.model import Model
from pipegen.ops.sampling import FeatureName


class _Curriculum(Model):
    """Lets an epoch draw its examples from the easiest ones, and from more of them as training goes on (Bengio 2009)."""

    @model_validator(mode="after")
    def _shares(self) -> _Curriculum:
        wrong = next((value for value in self.shares() if not 0 < value <= 1), None)
        if wrong is not None:
            raise ValueError(f"`pace` is a share of the examples, above 0 and at most 1, got {wrong:g}")
        return self

    def shares(self) -> tuple[float, ...]:
        """Returns the share of the examples that each epoch draws from; the last one stays."""
        pace = getattr(self, "pace")  # noqa: B009
        return tuple(low for low, _ in pace.ranges(_number)) if isinstance(pace, Schedule) else (float(pace),)

    @property
    def rising(self) -> bool:
        """Returns whether the lowest value is the easiest."""
        return bool(getattr(self, "from") != "high")

    def meaning(self) -> dict[str, Any]:
        """Returns one form for each meaning, as plain values."""
        shares = self.shares()
        changes = [[epoch, share] for epoch, share in enumerate(shares) if not epoch or share != shares[epoch - 1]]
        return {"by": getattr(self, "by"), "from": "low" if self.rising else "high", "pace": changes}  # noqa: B009


def _number(strength: Any) -> Pair:
    if isinstance(strength, tuple):
        raise ValueError(f"`pace` is a share of the examples, and no range, got {list(strength)}")
    return float(strength), float(strength)


# `from` is a word of Python, so the class that has a field of this name is made by a call.
Curriculum: Any = create_model(
    "Curriculum",
    __base__=_Curriculum,
    __module__=__name__,
    **{
        "by": (FeatureName, Field(description="A feature with a number for each example, such as the loss of an earlier model.")),
        "from": (
            Literal["low", "high", "easy"],
            Field(default="low", description="Which end is the easiest: `low` or `high` numbers; `easy` is `low`, for a difficulty."),
        ),
        "pace": (
            Level,
            Field(description="The share of the examples, from the easiest on, that an epoch draws from: a number or a schedule."),
        ),
    },
)  # type: ignore[call-overload]
Curriculum.__doc__ = _Curriculum.__doc__
