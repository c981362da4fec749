"""Defines what a step puts where the image has no pixels, and how it reads between pixels."""

from __future__ import annotations

from typing import Literal

from pipegen.errors import OpError
from pipegen.ops.arguments.schedules import Number
from pipegen.ops.model import Model
from pipegen.types import INTEGER_RANGES, FeatureType, Interval


class ConstantFill(Model):
    """Fill with one value."""

    constant: Number = 0.0
    """The value, in the units of the image that enters the step. An image aligned with it is filled with the same value, so that any
    but 0 needs both to have one range; a mask is filled with its `ignore`."""


Fill = Literal["reflect", "nearest", "wrap"] | ConstantFill
"""What lies outside the image: `reflect` (abc|cba, the edge pixel repeated), `nearest`, `wrap`, or `{constant: VALUE}`."""

Interpolation = Literal["nearest", "bilinear", "bicubic"]


def filled(x: FeatureType, fill: Fill) -> FeatureType:
    """The type of an image of type `x` of which some is filled; `PG207` for a constant that the dtype cannot hold."""
    if not isinstance(fill, ConstantFill) or x.interval is None:
        return x
    require_holds(x, fill.constant, "filled")
    return x.with_(interval=x.interval.union(Interval(fill.constant, fill.constant)))


def require_holds(x: FeatureType, value: float, done: str) -> None:
    """Rejects, as `PG207`, a constant that the dtype of an image of type `x` cannot hold; `done` is what is done with it: `filled`."""
    whole = INTEGER_RANGES.get(x.dtype)
    if whole is not None and not (whole.low <= value <= whole.high and value == int(value)):
        help_ = f"use a whole number from 0 to {whole.high:.0f}"
        raise OpError("PG207", f"a {x.dtype} image cannot be {done} with {value:g}", field="fill", help=help_)


def interpolated(x: FeatureType, interpolation: Interpolation) -> FeatureType:
    """The type of an image of type `x` read between pixels: floats have no interval behind `bicubic`, which overshoots."""
    if interpolation != "bicubic" or x.interval is None:
        return x
    return x.with_(interval=INTEGER_RANGES.get(x.dtype))
